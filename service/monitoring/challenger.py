"""Difference in accuracy of a challenger and the model, over all traffic and in every group (pure).

Labels are asked where the two disagree, for the most part, and tell of both
(`service/statistics/challenge.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from service.config.assessments import ChallengeSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.cells import AGREE, CHALLENGE, DISAGREE
from service.domain.groupings import ALL
from service.domain.traffic_tables import CHALLENGE_COLUMNS
from service.monitoring.group_index import GroupIndex
from service.monitoring.imputed_labels import answered
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import effective_counts, sums
from service.statistics.challenge import ChallengeBeliefs, PairedLabels, mixed_difference
from service.statistics.e_processes import e_values
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
    compared: Sequence[Labels],
    ledger: OutcomeLedger,
    *,
    now: float,
    interval: float,
    since: float | None = None,
    any_class: Collection[int] = (),
    wrong_labels: float | None = 0.0,
) -> ChallengeSnapshot | None:
    """Comparison of a challenger with the model; None while no prediction carried what it predicts.

    Labels are `compared` as `WeightedLabels` has them. Evidence takes them as they were asked for, from the
    ledger, and begins with what was predicted `since` the end of the reference window, if one was set. A
    request without a label for a reason in `any_class` counts against it, and so may the share `wrong_labels`
    of labels; if that is None, there is no evidence.
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
    beliefs = [
        ChallengeBeliefs(disagreement, _paired(parts, each, differs, len(names), all_won=bool(number % 2)))
        for number, each in enumerate(compared)
    ]
    margin = settings.margin

    def e_value(*, of_better: bool) -> Floats:
        if wrong_labels is None:
            return np.ones(len(names))
        asked = _as_asked(
            *(parts, ledger, differs, len(names)),
            now=now,
            since=since,
            any_class=any_class,
            all_won=not of_better,
        )
        fair = ChallengeBeliefs(disagreement, asked)
        log_e = fair.log_e_better if of_better else fair.log_e_worse
        return e_values(log_e(margin, wrong_labels=wrong_labels))

    return ChallengeSnapshot(
        challenger=challenge.challenger,
        margin=margin,
        grouping=settings.grouping,
        groups=names,
        shares=sizes / total,
        disagreement=disagreement,
        labels=_paired(parts, answered(compared[0]), differs, len(names)).total,
        difference=mixed_difference(beliefs, interval),
        better=np.mean([each.better(margin) for each in beliefs], axis=0),
        worse=np.mean([each.worse(margin) for each in beliefs], axis=0),
        evidence_better=e_value(of_better=True),
        evidence_worse=e_value(of_better=False),
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


def _paired(
    parts: list[Indices], labels: Labels, differ: Flags, count: int, *, all_won: bool = False
) -> PairedLabels:
    """Effective labels of disagreements, by who is right [G].

    Of items that may have any true class the challenger is right about all (`all_won`), or the champion.
    """
    if labels.challenger is None:
        raise ValueError("labels do not tell whether the challenger is right")
    is_open = labels.true_classes < NO_CLASS
    challenger_right, champion_right = (
        np.where(is_open, value, said)
        for value, said in ((all_won, labels.challenger), (not all_won, labels.correct))
    )
    there = np.flatnonzero(differ[labels.cells])
    right = np.zeros(count), np.zeros(count)
    total = np.zeros(count)
    for part in parts:
        for k, said in enumerate((challenger_right, champion_right)):
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
    any_class: Collection[int],
    all_won: bool,
) -> PairedLabels:
    """Labels of disagreements that were asked for a challenge, each counted once [G].

    Within disagreements these are drawn evenly, as evidence needs; whoever else asked may have looked for
    items that one of the two gets wrong. Requests without a label are as in `_paired`.
    """
    outcomes = ledger.sums(at=now, decay=0.0, since=since, unanswered=any_class)
    asked = ledger.is_sample_of(CHALLENGE, unanswered=any_class)[outcomes.sources]
    chosen = outcomes.part(asked & differ[outcomes.cells])
    counts, is_open = chosen.counts.astype(np.float64), chosen.true_classes < NO_CLASS
    challenger, champion, total = (
        _summed(parts, chosen.cells, values, count)
        for values in (
            counts * np.where(is_open, all_won, chosen.challenger),
            counts * np.where(is_open, not all_won, chosen.correct),
            counts,
        )
    )
    return PairedLabels(challenger, champion, total - challenger - champion)
