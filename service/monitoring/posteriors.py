"""Posteriors of the groups of every grouping, from the labels available at a given time (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Floats, Indices
from service.domain.groupings import ALL, ByClass, ByPositiveScore, Grouping
from service.monitoring.absent_learning import LearnedAccuracies
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.grouping_snapshot import GroupingSnapshot, confusion_snapshot, grouping_snapshot
from service.monitoring.imputed_labels import pooled
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import WeightedLabels, weigh_model_labels
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.mixed_beliefs import mixed_beliefs
from service.statistics.names import PriorName


def assess_groupings(
    *,
    settings: ModelSettings,
    index: GroupIndex,
    probability_sums: Mapping[int, Floats],
    ledger: OutcomeLedger,
    at: float,
    weighted: WeightedLabels | None = None,
    truth: LearnedTruth | None = None,
    absent: LearnedAccuracies | None = None,
    evidence: Mapping[str, GroupingEvidence] | None = None,
) -> dict[str, GroupingSnapshot]:
    """Estimates for every grouping that has traffic, from the labels available at a given time.

    `probability_sums` are weighted sums of class probabilities, by predicted class. `weighted` are the labels
    available `at` this time, if they are weighted already; if people may err, `truth` is what is learned of
    them, and `absent` what is learned of items without a self-selected label. `evidence` is about the groups
    of groupings that labels were requested for.
    """
    proven = evidence or {}
    weighted = weighted or weigh_model_labels(settings, index, ledger, now=at, truth=truth, absent=absent)
    imputes = (truth is not None or weighted.is_selected) and bool(weighted.imputed)
    labels = pooled(weighted.imputed) if imputes else weighted.labels
    groupings = {
        name: grouping
        for name, grouping in index.space.groupings.items()
        if not grouping.is_internal and index[name].names
    }
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
                missing=weighted.missing_shares(index[name]),
            )
            if isinstance(grouping, ByClass)
            else None,
            unanswered=ledger.unanswered_shares(index[name].numbers, len(index[name].names)),
            positive=_positive_scores(index, grouping) if isinstance(grouping, ByPositiveScore) else None,
            evidence=proven.get(name),
            change_points=weighted.change_points.get(name, {}),
        )
        for name, grouping in groupings.items()
    }


def _beliefs(
    settings: ModelSettings, index: GroupIndex, grouping: Grouping, weighted: WeightedLabels
) -> GroupingBeliefs:
    """Posterior of a grouping; the mixture over all imputations, if there are any."""
    labels, imputed = weighted.labels, weighted.imputed
    if grouping.is_by_votes:
        labels, imputed = weighted.by_votes, weighted.imputed_by_votes

    def assessed(each: Labels) -> GroupingBeliefs:
        changed = weighted.changed.get(grouping.name)
        return assess_groups(
            index[grouping.name], index.cells.bins, each, prior=settings.prior, changed=changed
        )

    if not imputed:
        return assessed(labels)
    found = [assessed(each) for each in imputed]
    mixed = mixed_beliefs(found)
    if weighted.is_selected:
        return assessed(labels).with_accuracy_of(mixed)
    return assessed(labels).allowing_for(mixed, found) if weighted.requested is not None else mixed


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
