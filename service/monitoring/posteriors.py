"""Posteriors of the groups of every grouping, from the labels available at a given time (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Floats, Indices
from service.domain.groupings import ALL, ByClass, ByPositiveScore, Grouping
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.change_discounting import (
    ChangeDiscounts,
    DetectedChange,
    LabelledGrouping,
    discount_changes,
)
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.grouping_snapshot import GroupingSnapshot, confusion_snapshot, grouping_snapshot
from service.monitoring.imputed_labels import imputed_labels, pooled
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.label_weights import DrawnLabels, LabelEpochs, label_weights
from service.monitoring.outcome_aggregates import OutcomeSums
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.mixed_beliefs import mixed_beliefs
from service.statistics.names import PriorName
from service.statistics.ratios import ratio

_LEAST_KEPT = 1e-6  # of labels that a change left nothing of; they must not weigh without end


@dataclass(frozen=True)
class WeightedLabels:
    """The labels available at a given time, with their weights."""

    labels: Labels  # as columns, weighted; their cells are label cells
    # those with information about groups by votes, weighted for these; the same if all have it
    by_votes: Labels
    count: int
    label_counts: dict[str, int]  # labels that were requested for every grouping
    change_points: Mapping[str, Mapping[str, DetectedChange]]  # changed groups, by grouping and name
    # probability that every group has changed, by grouping [G]
    changed: Mapping[str, Floats] = field(default_factory=dict)
    # where people may err, the labels once for every imputation of whether predictions are correct
    imputed: tuple[Labels, ...] = ()


def weigh_labels(
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    decay: float,
    run_length: float | None,
    now: float,
    truth: LearnedTruth | None = None,
) -> WeightedLabels:
    """Outcomes available at a given time, weighted by the balance heuristic, age and change points.

    Labels lose weight at a rate of `decay`, 1/s. `run_length` is the average number of a group's labels
    between change points; without it, no change points are estimated.
    """
    changes = _changes(index, ledger, run_length, now)
    sums = ledger.sums(at=now, decay=decay, factors=changes.factors)
    drawn = DrawnLabels(index, ledger, sums.cells, sums.sources)
    counting = drawn.usable()
    sums = sums.part(counting)
    epochs = None
    if index.history is not None:
        of_rows, count = index.history.epoch(ledger.predicted_at), len(index.history.parts)
        whole, left = ledger.by_epoch(of_rows, count, at=now, decay=decay, factors=changes.factors)
        epochs = LabelEpochs(whole[counting], left[counting], changes.regions)
    asked: Counter[str] = Counter()
    counts = np.bincount(sums.sources, weights=sums.counts).astype(np.intp).tolist()
    for source, count in zip(ledger.sources, counts, strict=False):  # the last ones may have none
        if count:
            asked.update(dict.fromkeys(source.groupings, count))
    kept = None if changes.factors is None else partial(_retained_share, changes, sums)
    weights = label_weights(drawn.part(counting), sums.freshness, retained=kept, epochs=epochs)
    labels = Labels(
        sums.cells,
        sums.correct,
        weights.weights,
        sums.freshness,
        sums.true_classes,
        sums.counts,
        None if index.space.challenge is None else sums.challenger,
    )
    by_votes = labels if weights.voted is None else labels.part(weights.voted, weights.weights_by_votes)
    imputed: tuple[Labels, ...] = ()
    if truth is not None:
        imputed = imputed_labels(
            truth,
            index,
            ledger,
            counting=counting,
            weights=weights.weights,
            decay=decay,
            factors=changes.factors,
            at=now,
        )
    return WeightedLabels(
        labels, by_votes, int(sums.counts.sum()), dict(asked), changes.change_points, changes.changed, imputed
    )


def weigh_model_labels(
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    now: float,
    truth: LearnedTruth | None = None,
) -> WeightedLabels:
    """The same, with the decay and run length of a model's settings."""
    decay, run_length = settings.label_decay_per_second, settings.change_run_length
    return weigh_labels(index, ledger, decay=decay, run_length=run_length, now=now, truth=truth)


def _retained_share(
    changes: ChangeDiscounts, sums: OutcomeSums, members: Indices, any_vote: bool
) -> Floats | None:
    """Mean weight after change points of one source's labels, over cells with the same changes [cells]."""
    regions = changes.regions_of_any_vote if any_vote else changes.regions
    if regions is None:
        return None
    of, count = regions[sums.cells[members]], int(regions.max(initial=0)) + 1
    left = np.bincount(of, weights=sums.freshness[members], minlength=count)
    all_of_it = np.bincount(of, weights=sums.whole[members], minlength=count)
    return np.maximum(ratio(left, all_of_it, 1.0), _LEAST_KEPT)[regions]


def _changes(
    index: GroupIndex, ledger: OutcomeLedger, run_length: float | None, now: float
) -> ChangeDiscounts:
    """Weights of all outcomes after change points."""
    if run_length is None:
        return ChangeDiscounts(None, {})
    silent = ledger.of_any_vote
    asked = [
        LabelledGrouping(
            name,
            index[name].names,
            _monitored_groups(index, ledger, name),
            sources,
            silent if grouping.is_by_votes and silent.any() else None,
        )
        for name, grouping in index.space.groupings.items()
        if (sources := ledger.is_drawn_for(name)).any()
    ]
    return discount_changes(ledger.outcomes(at=now), asked, run_length=run_length, memory=ledger.changes)


def _monitored_groups(index: GroupIndex, ledger: OutcomeLedger, grouping: str) -> Indices:
    """Group of every label cell for the estimation of change points; the number of groups for none [cells].

    `OTHER` is left out if it contains labels of values that had rows when they were drawn.
    """
    numbers = index[grouping].numbers
    folded = index.folded(grouping)
    if folded.any() and ledger.is_drawn_by_value(grouping).any():
        numbers = np.where(numbers == numbers[folded][0], len(index[grouping].names), numbers)
    return numbers


def assess_groupings(
    *,
    settings: ModelSettings,
    index: GroupIndex,
    probability_sums: Mapping[int, Floats],
    ledger: OutcomeLedger,
    at: float,
    weighted: WeightedLabels | None = None,
    truth: LearnedTruth | None = None,
    evidence: Mapping[str, GroupingEvidence] | None = None,
) -> dict[str, GroupingSnapshot]:
    """Estimates for every grouping that has traffic, from the labels available at a given time.

    `probability_sums` are weighted sums of class probabilities, by predicted class. `weighted` are the labels
    available `at` this time, if they are weighted already; if people may err, `truth` is what is learned of
    them. `evidence` is about the groups of groupings that
    labels were requested for.
    """
    proven = evidence or {}
    weighted = weighted or weigh_model_labels(settings, index, ledger, now=at, truth=truth)
    labels = pooled(weighted.imputed) if weighted.imputed else weighted.labels
    groupings = {name: grouping for name, grouping in index.space.groupings.items() if index[name].names}
    beliefs = {name: _beliefs(settings, index, grouping, weighted) for name, grouping in groupings.items()}
    if settings.prior == "learned" and ALL in groupings:
        # Within the groups of the grouping that most labels were requested for, labels are a random sample,
        # so its estimate is the best one. Under a fixed prior, which cannot learn that all groups deviate
        # alike, its sum over groups would be biased.
        most = _most_labelled(groupings, beliefs, weighted)
        if most != ALL:
            beliefs[ALL] = replace(beliefs[ALL], accuracy=beliefs[most].overall)
    return {
        name: grouping_snapshot(
            grouping,
            index[name],
            beliefs[name],
            settings,
            label_count=weighted.count,
            confusion=confusion_snapshot(
                index[name],
                beliefs[name],
                settings,
                labels=labels,
                probability_sums=probability_sums,
            )
            if isinstance(grouping, ByClass)
            else None,
            positive=_positive_scores(index, grouping) if isinstance(grouping, ByPositiveScore) else None,
            evidence=proven.get(name),
            change_points=weighted.change_points.get(name, {}),
        )
        for name, grouping in groupings.items()
    }


def _beliefs(
    settings: ModelSettings, index: GroupIndex, grouping: Grouping, weighted: WeightedLabels
) -> GroupingBeliefs:
    """Posterior of a grouping; where people may err, the mixture over all imputations."""
    labels = weighted.by_votes if grouping.is_by_votes else weighted.labels
    found = [
        assess_groups(
            index[grouping.name],
            index.cells.bins,
            each,
            prior=settings.prior,
            changed=weighted.changed.get(grouping.name),
        )
        for each in weighted.imputed or (labels,)
    ]
    return mixed_beliefs(found) if len(found) > 1 else found[0]


def assess_groups(
    groups: Groups, bins: Indices, labels: Labels, *, prior: PriorName, changed: Floats | None = None
) -> GroupingBeliefs:
    """Posterior of every group of a grouping, from its own traffic, and all labels of the model.

    Labels without a group are left out. `bins` has the score bin of every label cell [cells], `changed` the
    probability that every group has changed, if changes were sought [G].
    """
    count, bin_count = groups.weights.shape
    labels = groups.labels_of(labels)
    return assess_grouping(
        cell_groups=np.repeat(np.arange(count), bin_count),
        cell_bins=np.tile(np.arange(bin_count), count),
        group_count=count,
        bin_count=bin_count,
        traffic=CellTraffic(groups.weights.ravel(), groups.score_sums.ravel()),
        labels=replace(labels, cells=(groups.cells * bin_count + bins)[labels.cells]),
        prior=prior,
        changed=changed,
    )


def _positive_scores(index: GroupIndex, grouping: ByPositiveScore) -> Floats:
    """Mean score of the positive class in every group by it that has traffic [G]."""
    space, whole = index.space, index.traffic.whole
    names, groups = grouping.class_groups(space.classes, space.score_edges)
    own = np.repeat([name == grouping.positive for name in space.classes], space.bin_count)
    weights, sums = whole.weights[0], whole.score_sums[0]
    of, count = groups.ravel(), len(names)
    positive = np.bincount(of, weights=np.where(own, sums, weights - sums), minlength=count)
    total = np.bincount(of, weights=weights, minlength=count)
    present = np.bincount(of, weights=whole.counts[0], minlength=count) > 0
    return positive[present] / total[present]


def _most_labelled(
    groupings: Mapping[str, Grouping], beliefs: Mapping[str, GroupingBeliefs], weighted: WeightedLabels
) -> str:
    """The grouping that most labels were requested for.

    If some labels have no information about groups by votes, another grouping with fewer labels may have the
    smaller variance.
    """
    asked = [name for name in groupings if name in weighted.label_counts]
    parts = [asked]
    if weighted.by_votes is not weighted.labels:
        parts = [[name for name in asked if groupings[name].is_by_votes == votes] for votes in (False, True)]
    most = [max(names, key=lambda name: weighted.label_counts[name]) for names in parts if names]
    return min(most, key=lambda name: float(beliefs[name].overall.variance()[0]), default=ALL)
