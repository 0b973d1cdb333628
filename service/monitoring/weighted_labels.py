"""The labels available at a given time with their weights, from facts (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.absent_items import impute_items
from service.monitoring.absent_learning import LearnedAccuracies, RequestedItems, requested_items
from service.monitoring.change_discounting import (
    ChangeDiscounts,
    DetectedChange,
    LabelledGrouping,
    discount_changes,
)
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.imputed_labels import alternate_extremes, extremes, imputed_labels
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.label_weights import DrawnLabels, LabelEpochs, label_weights
from service.monitoring.outcome_aggregates import ABSENT, NO_CLASS, OutcomeSums
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.unanswered_requests import unanswered_requests
from service.statistics.balance_heuristic import sums as summed
from service.statistics.groups import Labels
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
    # where people may err, or requests without a label are allowed for: the labels once for every imputation
    # of whether predictions are correct
    imputed: tuple[Labels, ...] = ()
    imputed_by_votes: tuple[Labels, ...] = ()  # the same, weighted for groups by votes
    requested: Labels | None = None  # with the items that may have any true class, if there are any
    # the labels of tasks that compare classifiers, weighted for groups by votes, once for every imputation.
    # Items that may have any true class are marked; in every other imputation they get one extreme, and in
    # the others the opposite one
    compared: tuple[Labels, ...] = ()
    # whether unrequested labels are self-selected, so that `imputed` has other items as well
    is_selected: bool = False
    # draws of the accuracy of items with such a label minus that of all traffic; None if nothing is known
    selection_bias: Floats | None = None

    def missing_shares(self, groups: Groups) -> Floats | None:
        """Share of the requested items of every group that may have any true class [G]; None without any."""
        if self.requested is None:
            return None
        labels = groups.labels_of(self.requested)
        of, weights = groups.cells[labels.cells], labels.weights * labels.freshness
        without = weights * (labels.true_classes < NO_CLASS)
        count = len(groups.names)
        return ratio(summed(of, without, count), summed(of, weights, count), 0.0)


def weigh_labels(
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    decay: float,
    run_length: float | None,
    now: float,
    truth: LearnedTruth | None = None,
    absent: LearnedAccuracies | None = None,
    unanswered: Collection[int] = (),
) -> WeightedLabels:
    """Outcomes available at a given time, weighted by the balance heuristic, age and change points.

    Labels lose weight at a rate of `decay`, 1/s. `run_length` is the average number of a group's labels
    between change points; without it, no change points are estimated. Items without a label for the reasons
    `unanswered` may have any true class. `truth` is what is learned of people who err, `absent` of items
    without a self-selected label.
    """
    changes = _changes(index, ledger, run_length, now)
    found = _weigh(index, ledger, changes, decay=decay, now=now)
    every, own, selected = found, found, None
    if ledger.unrequested == "unknown":
        reasons = frozenset(unanswered) | ABSENT
        every = _weigh(index, ledger, changes, decay=decay, now=now, unanswered=reasons)
        selected = impute_items(index, ledger, every.sums, every.labels, any_class=unanswered, learned=absent)
        if index.space.voters is not None:
            own = _weigh(
                index, ledger, changes, decay=decay, now=now, unanswered=unanswered, as_requested=True
            )
    elif unanswered:
        every = own = _weigh(index, ledger, changes, decay=decay, now=now, unanswered=unanswered)
    imputed = by_votes = tuple[Labels, ...]()
    classes = index.cells.classes
    worst_case = bool((every.sums.true_classes < NO_CLASS).any())
    # If labels are the truth, tasks that compare classifiers take both extremes, where these differ.
    compared = (own.by_votes,) * (2 if (own.sums.true_classes < NO_CLASS).any() else 1)
    if truth is not None:
        left_open, of_sums = imputed_labels(
            truth,
            index,
            ledger,
            counting=every.counting,
            weights=every.labels.weights,
            decay=decay,
            factors=changes.factors,
            at=now,
            unanswered=unanswered,
        )
        if left_open:
            compared = _imputed_by_votes(every, left_open, of_sums)
            imputed, by_votes = (alternate_extremes(each, classes) for each in (left_open, compared))
    elif selected is not None:
        imputed = by_votes = selected.imputed
        worst_case = bool((selected.requested.true_classes < NO_CLASS).any())
    elif worst_case:
        imputed = extremes(every.labels, classes)
        by_votes = imputed if every.voted is None else extremes(every.by_votes, classes)
    return WeightedLabels(
        found.labels,
        found.by_votes,
        int(found.sums.counts.sum()),
        _counts_by_grouping(ledger, found.sums),
        changes.change_points,
        changes.changed,
        imputed,
        by_votes,
        None if not worst_case else every.labels if selected is None else selected.requested,
        compared,
        is_selected=selected is not None,
        selection_bias=None if selected is None else selected.selection_bias,
    )


def _counts_by_grouping(ledger: OutcomeLedger, sums: OutcomeSums) -> dict[str, int]:
    """How many labels were requested for every grouping."""
    asked: Counter[str] = Counter()
    counts = np.bincount(sums.sources, weights=sums.counts).astype(np.intp).tolist()
    for source, count in zip(ledger.sources, counts, strict=False):  # the last ones may have none
        if count:
            asked.update(dict.fromkeys(source.groupings | source.samples, count))
    return dict(asked)


def weigh_model_labels(
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    now: float,
    truth: LearnedTruth | None = None,
    absent: LearnedAccuracies | None = None,
    any_class: frozenset[int] | None = None,
) -> WeightedLabels:
    """The same by a model's settings; `any_class` is as of `UnansweredRequests`, if that is known already."""
    if any_class is None:
        any_class = unanswered_requests(settings, ledger).any_class
    decay, run_length = settings.label_decay_per_second, settings.change_run_length
    return weigh_labels(
        index,
        ledger,
        decay=decay,
        run_length=run_length,
        now=now,
        truth=truth,
        absent=absent,
        unanswered=any_class,
    )


def model_requested_items(
    settings: ModelSettings, index: GroupIndex, ledger: OutcomeLedger, *, now: float
) -> RequestedItems | None:
    """What is to be learned of items without a self-selected label from; None if no request was answered."""
    changes = _changes(index, ledger, settings.change_run_length, now)
    any_class = unanswered_requests(settings, ledger).any_class
    decay, reasons = settings.label_decay_per_second, any_class | ABSENT
    sums = _weigh(index, ledger, changes, decay=decay, now=now, unanswered=reasons).sums
    return requested_items(index, ledger, sums, any_class=any_class, at=now)


@dataclass(frozen=True)
class _Weighed:
    """Labels with their weights, and the sums of the ledger that they are."""

    sums: OutcomeSums  # those that count
    counting: Flags  # of all of the ledger's sums, which count
    labels: Labels
    voted: Flags | None  # of these, which say something of groups by votes; None if all do
    weights_by_votes: Floats  # of all, there

    @property
    def by_votes(self) -> Labels:
        """Labels that say something of groups by votes; the same object if all do."""
        return self.labels if self.voted is None else self.labels.part(self.voted, self.weights_by_votes)


def _imputed_by_votes(weighed: _Weighed, imputed: tuple[Labels, ...], of_sums: Indices) -> tuple[Labels, ...]:
    """Imputed labels that say something of groups by votes, weighted for these; all of these sums."""
    if weighed.voted is None:
        return imputed
    voted, weights = weighed.voted[of_sums], weighed.weights_by_votes[of_sums]
    return tuple(each.part(voted, weights) for each in imputed)


def _weigh(
    index: GroupIndex,
    ledger: OutcomeLedger,
    changes: ChangeDiscounts,
    *,
    decay: float,
    now: float,
    unanswered: Collection[int] = (),
    as_requested: bool = False,
) -> _Weighed:
    """Weights of the labels, and of items without one for these reasons.

    With `as_requested` all that nobody requested is left out.
    """
    sums = ledger.sums(at=now, decay=decay, factors=changes.factors, unanswered=unanswered)
    drawn = DrawnLabels(index, ledger, sums.cells, sums.sources, as_requested)
    counting = drawn.usable(unanswered)
    sums = sums.part(counting)
    epochs = None
    if index.history is not None:
        of_rows, count = index.history.epoch(ledger.predicted_at), len(index.history.parts)
        whole, left = ledger.by_epoch(
            of_rows, count, at=now, decay=decay, factors=changes.factors, unanswered=unanswered
        )
        epochs = LabelEpochs(whole[counting], left[counting], changes.regions)
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
    return _Weighed(sums, counting, labels, weights.voted, weights.weights_by_votes)


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
        if (sources := ledger.is_sample_of(name)).any()
    ]
    return discount_changes(ledger.outcomes(at=now), asked, run_length=run_length, memory=ledger.changes)


def _monitored_groups(index: GroupIndex, ledger: OutcomeLedger, grouping: str) -> Indices:
    """Group of every label cell for the estimation of change points; the number of groups for none [cells].

    `OTHER` is left out if it contains labels of values that had rows when they were drawn.
    """
    numbers = index[grouping].numbers
    folded = index.folded(grouping)
    if folded.any() and ledger.is_drawn_by_value(grouping).any():
        numbers = np.where(folded, len(index[grouping].names), numbers)
    return numbers
