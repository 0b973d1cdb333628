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

_LEAST_ROUNDS = 20
"""Rounds over which the labels are spread at least, so that each is chosen knowing those before it."""

_SECONDS = 3_600.0
"""Length of the status page's history."""

_SEED = 1
_LEASE_SECONDS = 60.0
_PERSON_LEASE_SECONDS = 3_600.0


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
    assessments = content["models"][proposal.model]["assessments"]
    shares = split(labels, {name: each["budget"]["labels"] for name, each in assessments.items()})
    content["models"][proposal.model]["assessments"] = {
        name: {
            **assessments[name],
            "budget": {"labels": count},
            "max_in_flight": -(-count // _LEAST_ROUNDS),
            "lease_seconds": lease_seconds,
        }
        for name, count in shares.items()
    }
    return content if desk is None else content | desk.settings


def split(labels: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Labels in proportion to positive weights, by largest remainders; parts without a label are left out."""
    total = sum(weights.values())
    parts = {name: labels * weight // total for name, weight in weights.items()}
    remainders = sorted(weights, key=lambda name: -(labels * weights[name] % total))
    for name in remainders[: labels - sum(parts.values())]:
        parts[name] += 1
    return {name: count for name, count in parts.items() if count}
