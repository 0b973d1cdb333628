"""Difference in accuracy of a challenger and the model, over all traffic and in every group (pure).

Labels are asked where the two disagree, for the most part, and tell of both
(`service/statistics/challenge.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from service.config.assessments import ChallengeSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.cells import AGREE, CHALLENGE, DISAGREE
from service.domain.groupings import ALL
from service.domain.traffic_tables import CHALLENGE_COLUMNS
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import effective_counts, sums
from service.statistics.challenge import ChallengeBeliefs, PairedLabels
from service.statistics.estimate import Estimate
from service.statistics.groups import Labels
from service.statistics.ratios import ratio


@dataclass(frozen=True)
class ChallengeSnapshot:
    """Comparison of a challenger with the model; arrays are [G], all traffic first, then its groups."""

    challenger: str
    margin: float  # difference of accuracies that does not matter
    grouping: str  # the one whose groups are compared
    groups: list[str]  # names; the first one is `all`
    shares: Floats  # of the traffic for which the challenger's predictions are known
    disagreement: Floats  # share of each group's traffic on which the two disagree
    labels: Floats  # effective number of labels of disagreements
    difference: Estimate  # challenger less champion in accuracy: mean and interval
    better: Floats  # P(the challenger is better by more than the margin)
    worse: Floats  # P(it is worse by more than the margin)
    evidence_better: Floats  # e-value for the first, from labels that were asked for a challenge
    evidence_worse: Floats  # e-value for the second, likewise
    known: float  # share of all traffic for which predictions carry what the challenger says
    # probability that a label is asked of a disagreement, by group of the grouping `CHALLENGE`
    aimed: dict[str, float]


def challenge_snapshot(
    settings: ChallengeSettings,
    index: GroupIndex,
    labels: Labels,
    ledger: OutcomeLedger,
    *,
    now: float,
    interval: float,
    since: float | None = None,
) -> ChallengeSnapshot | None:
    """Comparison of a challenger with the model; None while no prediction carried what it predicts.

    Evidence takes the labels as they were asked for, from the ledger, and begins with what was predicted
    `since` the end of the reference window, if one was set.
    """
    challenge = index.space.challenge
    if challenge is None:
        return None
    alone = settings.grouping == ALL
    said = index.challenged(ALL)
    if not alone:
        said = np.vstack([said, index.challenged(settings.grouping)])
    agree, differ = (said[:, CHALLENGE_COLUMNS.index(name)] for name in (AGREE, DISAGREE))
    sizes = agree + differ
    # Of all traffic, which comes first.
    total = float(sizes[0]) if len(sizes) else 0.0
    if not total:
        return None
    groups = index[settings.grouping]
    # All traffic is a group of its own; label cells without a group of the other grouping are in a last one.
    every = np.zeros(len(index.cells), np.intp)
    parts = [every] if alone else [every, groups.numbers + 1]
    names = [ALL] if alone else [ALL, *groups.names]
    disagreement = np.clip(ratio(differ, sizes, 0.0), 0.0, 1.0)
    differs = index[CHALLENGE].cells_of(DISAGREE)
    beliefs = ChallengeBeliefs(disagreement, _paired(parts, labels, differs, len(names)))
    asked = _as_asked(parts, ledger, differs, len(names), now=now, since=since)
    fair = ChallengeBeliefs(disagreement, asked)
    lower, upper = beliefs.interval(interval)
    margin = settings.margin
    return ChallengeSnapshot(
        challenger=challenge.challenger,
        margin=margin,
        grouping=settings.grouping,
        groups=names,
        shares=sizes / total,
        disagreement=disagreement,
        labels=beliefs.labels.total,
        difference=Estimate(lower, beliefs.mean, upper),
        better=beliefs.better(margin),
        worse=beliefs.worse(margin),
        evidence_better=_e_value(fair.log_e_better(margin)),
        evidence_worse=_e_value(fair.log_e_worse(margin)),
        known=total / float(said[0].sum()),
        aimed=_aimed(settings, float(disagreement[0])),
    )


def _aimed(settings: ChallengeSettings, disagreement: float) -> dict[str, float]:
    """Of which group the next label is asked, by probability: those without traffic are never named."""
    share = 0.0 if disagreement == 0 else 1.0 if disagreement == 1 else settings.disagreement_share
    return {DISAGREE: share, AGREE: 1 - share}


def _summed(parts: list[Indices], cells: Indices, values: Floats, count: int) -> Floats:
    """Sums of values of labels by group [G]: of all traffic, and of its parts.

    Each part has the group of every label cell, `count` of one without [cells].
    """
    return np.asarray(
        np.sum([sums(part[cells], values, count + 1)[:count] for part in parts], axis=0), np.float64
    )


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
                group_count=count + 1,
                weights=labels.weights[there],
                freshness=labels.freshness[there],
                correct=said[there],
            )
            right[k][:] += ones[:count]
        total += found[:count]
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
    outcomes = ledger.sums(at=now, decay=0.0, since=since)
    asked = ledger.is_requested_for(CHALLENGE)[outcomes.sources]
    chosen = outcomes.part(asked & differ[outcomes.cells])
    counts = chosen.counts.astype(np.float64)
    challenger, champion, total = (
        _summed(parts, chosen.cells, values, count)
        for values in (counts * chosen.challenger, counts * chosen.correct, counts)
    )
    return PairedLabels(challenger, champion, total - challenger - champion)


def _e_value(log_evidence: Floats) -> Floats:
    """E-values, which Prometheus and JSON must be able to hold."""
    return np.asarray(special.exp10(np.minimum(log_evidence / np.log(10), 300.0)), np.float64)
