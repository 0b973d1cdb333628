"""The configuration of a trial: the proposal for the file, on bundled servers, with one budget of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from service.app.proposal.commented_yaml import document
from service.app.proposal.propose import Proposal
from service.demo.configuration import Places
from service.demo.desk import Desk

TICK_SECONDS: Final = 1.0
"""Time between two rounds, in which labels are requested."""

FEWEST_LABELS: Final = 200
"""Labels of a trial by default, and of one in which a person labels."""

_LABELS_OF_GROUPING = 60
"""Labels for each grouping by default: with them, most planted weak groups are reported (docs/try.md)."""

_LEAST_ROUNDS = 20
"""Rounds over which the labels are spread at least, so that each is chosen knowing those before it."""

_SECONDS = 3_600.0
"""Length of the status page's history."""

_SEED = 1
_LEASE_SECONDS = 60.0
_PERSON_LEASE_SECONDS = 3_600.0


def default_labels(proposal: Proposal, *, is_answered: bool) -> int:
    """Labels of a trial: as many as its groupings take, if true classes answer; a person gives fewer."""
    assessments = proposal.settings.models[proposal.model].assessments
    return max(FEWEST_LABELS, _LABELS_OF_GROUPING * len(assessments)) if is_answered else FEWEST_LABELS


def trial_assessments(
    proposed: Mapping[str, Mapping[str, Any]], *, labels: int, lease_seconds: float
) -> dict[str, Any]:
    """Proposed assessments with one budget together, in the proportions of their proposed budgets."""
    shares = split(labels, {name: each["budget"]["labels"] for name, each in proposed.items()})
    return {
        name: {
            **proposed[name],
            "budget": {"labels": count},
            "max_in_flight": -(-count // _LEAST_ROUNDS),
            "lease_seconds": lease_seconds,
        }
        for name, count in shares.items()
    }


def trial_configuration(
    proposal: Proposal, places: Places, *, labels: int, delay_seconds: float, desk: Desk | None
) -> dict[str, Any]:
    """The configuration of `credence run` for a trial.

    Args:
        proposal: whose classes, groupings, threshold and assessments are tried.
        places: of the bundled servers.
        labels: that all assessments may use together, in the proportions of their proposed budgets.
        delay_seconds: between a request and its answer, if no person answers.
        desk: where a person labels; None if the file has true classes.
    """
    content = document(proposal.entries)
    content |= places.configuration(seconds=_SECONDS, seed=_SEED)
    content["schedule"] = {"tick_seconds": TICK_SECONDS}
    lease_seconds = _PERSON_LEASE_SECONDS if desk else _LEASE_SECONDS + 2 * delay_seconds
    model = content["models"][proposal.model]
    model["assessments"] = trial_assessments(model["assessments"], labels=labels, lease_seconds=lease_seconds)
    return content if desk is None else content | desk.settings


def split(labels: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Labels in proportion to positive weights, by largest remainders; parts without a label are left out."""
    total = sum(weights.values())
    parts = {name: labels * weight // total for name, weight in weights.items()}
    remainders = sorted(weights, key=lambda name: -(labels * weights[name] % total))
    for name in remainders[: labels - sum(parts.values())]:
        parts[name] += 1
    return {name: count for name, count in parts.items() if count}
