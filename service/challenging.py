"""Facts -> whether a challenger is better than the model, over all traffic and in every group (pure).

Labels are asked where the two disagree, for the most part, and tell of both
(`service/assessment/challenge.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.challenge import ChallengeBeliefs, PairedLabels
from service.assessment.estimate import Estimate
from service.assessment.groups import Labels
from service.assessment.weights import effective_counts, sums
from service.assessment_settings import AssessmentSettings
from service.cells import AGREE, ALL, CHALLENGE, DISAGREE, CellSpace
from service.ledger import OutcomeLedger
from service.present import present_groups
from service.store.facts import TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChallengeSnapshot:
    """How a challenger stands; arrays are [G], all traffic first, then the groups that are compared.

    Attributes:
        challenger: its name.
        margin: difference of accuracies that does not matter.
        grouping: the one whose groups are compared.
        groups: names; the first one is `all`.
        shares: of the traffic for which the challenger's predictions are known.
        disagreement: share of each group's traffic on which the two disagree.
        labels: effective number of labels of disagreements.
        difference: challenger less champion in accuracy: mean and interval.
        better: P(the challenger is better by more than the margin).
        worse: P(it is worse by more than the margin).
        evidence_better: e-value for the first, from labels that were asked for a challenge.
        evidence_worse: e-value for the second, likewise.
        known: share of all traffic for which predictions carry what the challenger says.
        aimed: probability that a label is asked of a disagreement, by group of the grouping `CHALLENGE`.
    """

    challenger: str
    margin: float
    grouping: str
    groups: list[str]
    shares: Floats
    disagreement: Floats
    labels: Floats
    difference: Estimate
    better: Floats
    worse: Floats
    evidence_better: Floats
    evidence_worse: Floats
    known: float
    aimed: dict[str, float]


def challenge_snapshot(
    settings: AssessmentSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    labels: Labels,
    ledger: OutcomeLedger,
    *,
    now: float,
    interval: float,
    since: float | None = None,
) -> ChallengeSnapshot | None:
    """How a challenger stands; None while no prediction carried what it says.

    Args:
        settings: of the assessment.
        space: cells of the model.
        traffic: its traffic.
        labels: that are known, as columns, weighted.
        ledger: its outcomes, for evidence, which takes them as they were asked.
        now: seconds since the epoch.
        interval: probability inside intervals.
        since: end of the reference window, if one was set: evidence begins anew with what was predicted then.
    """
    if space.challenge is None:
        return None
    names, codes = space.groups(CHALLENGE, traffic.combinations)
    weights = traffic.traffic.weights
    differ, agree = (_cells_of(names, codes, name) for name in (DISAGREE, AGREE))
    told = np.where(differ | agree, weights, 0.0)
    if not told.any():
        return None
    groups = present_groups(space, settings.grouping, traffic)
    alone = settings.grouping == ALL
    # All traffic stands first, as a group of its own.
    parts = [np.zeros(len(weights), np.intp)] + ([] if alone else [groups.cells + 1])
    names = [ALL] if alone else [ALL, *groups.names]
    sizes = _summed(parts, told, len(names))
    disagreement = np.divide(
        _summed(parts, np.where(differ, told, 0.0), len(names)),
        sizes,
        out=np.zeros(len(names)),
        where=sizes > 0,
    )
    disagreement = np.clip(disagreement, 0.0, 1.0)
    beliefs = ChallengeBeliefs(disagreement, _paired(parts, labels, differ, len(names)))
    # What has no traffic is in no group.
    there = differ & (traffic.traffic.counts > 0)
    asked = _as_asked(parts, ledger, there, len(names), now=now, since=since)
    fair = ChallengeBeliefs(disagreement, asked)
    lower, upper = beliefs.interval(interval)
    margin = settings.least_margin
    return ChallengeSnapshot(
        challenger=space.challenge.challenger,
        margin=margin,
        grouping=settings.grouping,
        groups=names,
        shares=sizes / told.sum(),
        disagreement=disagreement,
        labels=beliefs.labels.total,
        difference=Estimate(lower, beliefs.mean, upper),
        better=beliefs.better(margin),
        worse=beliefs.worse(margin),
        evidence_better=_e_value(fair.log_e_better(margin)),
        evidence_worse=_e_value(fair.log_e_worse(margin)),
        known=float(told.sum() / weights.sum()),
        aimed=_aimed(settings, float(disagreement[0])),
    )


def _aimed(settings: AssessmentSettings, disagreement: float) -> dict[str, float]:
    """Of which group the next label is asked, by probability: those without traffic are never named."""
    share = 0.0 if disagreement == 0 else 1.0 if disagreement == 1 else settings.aimed_share
    return {DISAGREE: share, AGREE: 1 - share}


def _cells_of(names: list[str], codes: Indices, name: str) -> Flags:
    """Which cells are of that group [cells]; none, where there is no such group."""
    return np.equal(codes, names.index(name) if name in names else len(names))


def _summed(parts: list[Indices], values: Floats, count: int) -> Floats:
    """Sums of every group's cells [G]: of all traffic, and of its parts."""
    return np.asarray(np.sum([sums(part, values, count) for part in parts], axis=0), np.float64)


def _paired(parts: list[Indices], labels: Labels, differ: Flags, count: int) -> PairedLabels:
    """Effective labels of disagreements, by who is right [G]."""
    if labels.challenger is None:
        raise ValueError("labels do not tell whether the challenger is right")
    there = np.flatnonzero(differ[labels.cells])
    right = np.zeros(count), np.zeros(count)
    total = np.zeros(count)
    for part in parts:
        for k, said in enumerate((labels.challenger, labels.correct)):
            found, ones = effective_counts(
                groups=part[labels.cells[there]],
                group_count=count,
                weights=labels.weights[there],
                freshness=labels.freshness[there],
                correct=said[there],
            )
            right[k][:] += ones
        total += found
    challenger, champion = right
    return PairedLabels(challenger, champion, np.maximum(total - challenger - champion, 0.0))


def _as_asked(
    parts: list[Indices],
    ledger: OutcomeLedger,
    differ: Flags,
    count: int,
    *,
    now: float,
    since: float | None,
) -> PairedLabels:
    """Labels of disagreements that were asked for a challenge, each counted once [G].

    Within disagreements these are drawn evenly, as evidence needs; whoever else asked may have looked for
    items that one of the two gets wrong.
    """
    told = ledger.sums(at=now, decay=0.0, since=since)
    sources = ledger.asked_for(CHALLENGE)
    if not len(told.cells):
        none = np.zeros(count)
        return PairedLabels(none, none, none)
    chosen = told.part(sources[told.sources] & differ[told.cells])
    counts = chosen.counts.astype(np.float64)
    challenger, champion, total = (
        np.sum([sums(part[chosen.cells], values, count) for part in parts], axis=0)
        for values in (counts * chosen.challenger, counts * chosen.correct, counts)
    )
    return PairedLabels(challenger, champion, total - challenger - champion)


def _e_value(log_evidence: Floats) -> Floats:
    """E-values, which Prometheus and JSON must be able to hold."""
    return np.asarray(special.exp10(np.minimum(log_evidence / np.log(10), 300.0)), np.float64)
