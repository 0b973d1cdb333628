"""Down-weighting of labels from before a change point of their group (pure).

Change points are estimated from the labels requested for a grouping, which are a random sample within its
groups, in the order of their predictions: the model changed between two predictions, whenever they were
labelled. If a change is suspected, the weights apply to all labels of the group, and so to all groupings. If
none is, a group with many labels still has a small probability of a recent change; the weights then apply
only to labels requested for its own grouping, so that a large group hardly affects the small ones inside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.domain.arrays import Codes, Flags, Floats, Indices
from service.monitoring.outcome_aggregates import SumTallies, counting_in
from service.statistics.change_points import FEWEST, SUSPECTED, change_point_weights

_Fingerprint = tuple[float, int, int]

_ROUNDS_REMEMBERED = 8
"""Results unused for this many calls are dropped; between two rounds there are calls for earlier times."""


@dataclass(frozen=True)
class OrderedOutcomes:
    """Outcomes in the order of their arrival [rows], and the sums in which they count [s]."""

    sums: Codes  # that each counts in; -1 of one that counts in none [rows]
    predicted_at: Floats  # seconds since the epoch [rows]
    cells: Indices  # label cell of every sum [s]
    sources: Indices  # codes of who asked [s]
    correct: Flags  # whether the predictions are right [s]
    answered: Flags  # whether there are labels [s]
    tallies: SumTallies  # how many outcomes count in each, and which [s]


@dataclass(frozen=True)
class LabelledGrouping:
    """A grouping that labels were requested for."""

    name: str
    groups: Sequence[str]  # [G]
    cells: Indices  # group of every label cell; the number of groups of a cell without one [cells]
    sources: Flags  # whether labels of a source were requested for it [sources]
    silent: Flags | None = None  # sources whose labels have no information about its groups [sources]


@dataclass(frozen=True)
class DetectedChange:
    """The last change point of a group's accuracy."""

    # time of the first prediction after the most probable change point, seconds since the epoch
    since: float
    before: int  # labels from before it, requested for the grouping
    weight: float  # largest weight of one of these


@dataclass(frozen=True)
class ChangeDiscounts:
    """Weights of labels after change points."""

    factors: Floats | None  # weight of every row of the ledger, in (0, 1] [rows]; None if all are 1
    change_points: Mapping[str, Mapping[str, DetectedChange]]  # by grouping and group
    # of every label cell, a number that cells share which are in the same groups whose labels are
    # discounted [cells]; None if all of all is kept
    regions: Indices | None = None
    regions_of_any_vote: Indices | None = None  # the same, by groupings of which no labels are silent
    # probability that every group has changed, by grouping [G]
    changed: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class _GroupDiscount:
    """Weights of one group's labels, in the order of their predictions."""

    factors: Floats  # weight of each [m]
    change: DetectedChange | None  # if one is detected
    probability: float  # of a change


class ChangeMemory:
    """Cache of results by a fingerprint of a group's labels: only groups with new labels are computed."""

    def __init__(self) -> None:
        self._known: dict[_Fingerprint, _GroupDiscount | None] = {}
        self._used: dict[_Fingerprint, int] = {}
        self._round = 0

    def __len__(self) -> int:
        return len(self._known)

    def tidy(self) -> None:
        """Drop results that recent calls did not use; called once per call."""
        self._round += 1
        for mark in [mark for mark, used in self._used.items() if used < self._round - _ROUNDS_REMEMBERED]:
            del self._known[mark], self._used[mark]

    def discounts(
        self, outcomes: OrderedOutcomes, asked: Flags, groups: Indices, *, run_length: float
    ) -> dict[int, _GroupDiscount]:
        """Discounts by group; `asked` marks the sums with labels requested for the grouping [s]."""
        known = outcomes.tallies.of_groups(asked, groups, int(groups.max(initial=-1)) + 1)
        some = np.flatnonzero(known.counts >= 2 * FEWEST)
        marks_of = zip(known.counts[some].tolist(), known.marks[some].tolist(), strict=True)
        fingerprints: dict[int, _Fingerprint] = {
            group: (run_length, *mark) for group, mark in zip(some.tolist(), marks_of, strict=True)
        }
        fresh = np.zeros(len(known.counts), dtype=np.bool_)
        fresh[[group for group, mark in fingerprints.items() if mark not in self._known]] = True
        if fresh.any():
            rows = counting_in(asked & fresh[groups], outcomes.sums)
            self._discount(outcomes, rows, groups[outcomes.sums[rows]], fingerprints, run_length)
        self._used |= dict.fromkeys(fingerprints.values(), self._round)
        found = ((group, self._known[mark]) for group, mark in fingerprints.items())
        return {group: discount for group, discount in found if discount is not None}

    def _discount(
        self,
        outcomes: OrderedOutcomes,
        rows: Indices,
        groups: Indices,
        fingerprints: Mapping[int, _Fingerprint],
        run_length: float,
    ) -> None:
        order = np.lexsort((outcomes.predicted_at[rows], groups))
        rows = rows[order]
        fresh, sizes = np.unique(groups[order], return_counts=True)
        correct = outcomes.correct[outcomes.sums[rows]]
        weights = change_point_weights(correct=correct, sizes=sizes, run_length=run_length)
        begins = np.cumsum(sizes) - sizes
        for group, begin, size, before, changed in zip(
            fresh.tolist(),
            begins.tolist(),
            sizes.tolist(),
            weights.before.tolist(),
            weights.changed.tolist(),
            strict=True,
        ):
            factors, change = weights.factors[begin : begin + size], None
            if before:
                since = float(outcomes.predicted_at[rows[begin + before]])
                change = DetectedChange(since=since, before=before, weight=float(factors[before - 1]))
            discount = (
                None
                if factors[0] == 1 and change is None
                else _GroupDiscount(factors.copy(), change, changed)
            )
            self._known[fingerprints[group]] = discount


def discount_changes(
    outcomes: OrderedOutcomes,
    groupings: Sequence[LabelledGrouping],
    *,
    run_length: float,
    memory: ChangeMemory,
) -> ChangeDiscounts:
    """Weights of all labels after change points: of each label, the smallest weight in any of its groups.

    `run_length` is the average number of a group's labels from one change to the next. The cache does not
    affect the result.
    """
    factors = np.ones(len(outcomes.sums))
    change_points: dict[str, Mapping[str, DetectedChange]] = {}
    regions: Indices | None = None
    of_any_vote: Indices | None = None
    changed: dict[str, Floats] = {}
    for grouping in groupings:
        groups = grouping.cells[outcomes.cells]
        asked = grouping.sources[outcomes.sources] & (groups < len(grouping.groups)) & outcomes.answered
        if grouping.silent is not None:
            silent = grouping.silent[outcomes.sources]
            asked, groups = asked & ~silent, np.where(silent, len(grouping.groups), groups)
        discounts = memory.discounts(outcomes, asked, groups, run_length=run_length)
        if not discounts:
            continue
        rows, weight = _discounted_rows(outcomes, asked, groups, discounts)
        factors[rows] = np.minimum(factors[rows], weight)
        changed[grouping.name] = np.zeros(len(grouping.groups))
        changed[grouping.name][list(discounts)] = [discount.probability for discount in discounts.values()]
        discounted = np.zeros(len(grouping.groups) + 1, np.intp)
        discounted[list(discounts)] = np.arange(1, len(discounts) + 1)
        regions = _combine_regions(regions, discounted[grouping.cells])
        if grouping.silent is None:
            of_any_vote = _combine_regions(of_any_vote, discounted[grouping.cells])
        changes = {
            group: discount.change for group, discount in discounts.items() if discount.change is not None
        }
        if changes:
            change_points[grouping.name] = {
                grouping.groups[group]: change for group, change in changes.items()
            }
    memory.tidy()
    if not (factors < 1).any():
        return ChangeDiscounts(None, change_points)
    return ChangeDiscounts(factors, change_points, regions, of_any_vote, changed)


def _combine_regions(regions: Indices | None, discounted: Indices) -> Indices:
    """Regions of cells that are equal in both [cells]."""
    if regions is not None:
        discounted = discounted + regions * (int(discounted.max(initial=0)) + 1)
    return np.unique(discounted, return_inverse=True)[1].ravel()


def _discounted_rows(
    outcomes: OrderedOutcomes, asked: Flags, groups: Indices, discounts: Mapping[int, _GroupDiscount]
) -> tuple[Indices, Floats]:
    """Rows of the groups and their weights: that of the last label before it requested for the grouping.

    In groups with a suspected change these are all labels; in others, those requested for the grouping.
    """
    number = np.full(int(groups.max()) + 1, -1)
    number[list(discounts)] = np.arange(len(discounts))
    rows = counting_in(number[groups] >= 0, outcomes.sums)
    of = number[groups[outcomes.sums[rows]]]
    order = np.lexsort((outcomes.predicted_at[rows], of))
    rows, of = rows[order], of[order]
    begins = np.concatenate(([0], np.cumsum([len(discount.factors) for discount in discounts.values()])[:-1]))
    # Requested labels come in the order of the discounts, group after group.
    places = np.cumsum(asked[outcomes.sums[rows]]) - 1
    every = np.concatenate([discount.factors for discount in discounts.values()])
    suspected = np.array([discount.probability >= SUSPECTED for discount in discounts.values()])
    counts = suspected[of] | asked[outcomes.sums[rows]]
    return rows[counts], every[np.maximum(places, begins[of])][counts]
