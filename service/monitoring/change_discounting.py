"""Weights that labels keep after change points of their groups (pure).

A change is looked for in the labels that a grouping asked for, which are a random sample within its groups,
in the order of their predictions: the model changed between two of these, whenever they were labelled. What
a suspected change leaves of labels holds for all labels of the group, whoever asked for them, and so for all
groupings. Without suspicion, a group of many labels is still unsure of the latest ones; that holds for labels
that its own grouping asked for, so that a large group takes little from the small ones inside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.domain.arrays import Codes, Flags, Floats, Indices
from service.monitoring.outcome_aggregates import SumTallies, counting_in
from service.statistics.change_points import FEWEST, SUSPECTED, what_remains

_Print = tuple[float, int, int]

_LOOKS = 8
"""What so many looks have not asked for is dropped; between two rounds, looks at earlier times come."""


@dataclass(frozen=True)
class OrderedOutcomes:
    """Outcomes in the order of their arrival [rows], and the sums in which they count [s]."""

    sums: Codes  # that each counts in; -1 of one that counts in none [rows]
    predicted_at: Floats  # seconds since the epoch [rows]
    cells: Indices  # label cell of every sum [s]
    sources: Indices  # codes of who asked [s]
    correct: Flags  # whether the predictions are right [s]
    tallies: SumTallies  # how many outcomes count in each, and which [s]


@dataclass(frozen=True)
class AskedGrouping:
    """A grouping that labels were asked for."""

    name: str
    groups: Sequence[str]  # [G]
    cells: Indices  # group of every label cell; the number of groups of a cell without one [cells]
    sources: Flags  # who asked for it [sources]
    silent: Flags | None = None  # whose labels have no information about its groups, if any [sources]


@dataclass(frozen=True)
class Relearned:
    """A group whose accuracy has changed."""

    # when the first prediction was made that is likeliest to be from after it, seconds since the epoch
    since: float
    before: int  # labels from before it, of those that the grouping asked for
    kept: float  # what one of these still counts, at the most


@dataclass(frozen=True)
class ChangeDiscounts:
    """What changes leave."""

    factors: Floats | None  # what is kept of every row of the ledger, in (0, 1] [rows]; None if all of all
    relearned: Mapping[str, Mapping[str, Relearned]]  # groups that changed, by grouping and name
    # of every label cell, a number that cells share which are in the same groups whose labels are
    # discounted [cells]; None if all of all is kept
    regions: Indices | None = None
    regions_of_any_vote: Indices | None = None  # the same, by groupings of which no labels are silent
    # probability that every group has changed, by grouping [G]
    changed: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class _Course:
    """What became of one group's labels, in the order of their predictions."""

    factors: Floats  # what is kept of each [m]
    change: Relearned | None  # if one is detected
    probability: float  # of a change


class ChangeMemory:
    """What was found of groups, by a fingerprint of their labels: so only groups with new ones take time."""

    def __init__(self) -> None:
        self._known: dict[_Print, _Course | None] = {}
        self._used: dict[_Print, int] = {}
        self._look = 0

    def __len__(self) -> int:
        return len(self._known)

    def tidy(self) -> None:
        """Drop what recent looks did not use; called once a look."""
        self._look += 1
        for mark in [mark for mark, look in self._used.items() if look < self._look - _LOOKS]:
            del self._known[mark], self._used[mark]

    def courses(
        self, outcomes: OrderedOutcomes, asked: Flags, groups: Indices, *, run_length: float
    ) -> dict[int, _Course]:
        """Of groups whose labels are discounted, by which sums a grouping asked for, and their groups [s]."""
        known = outcomes.tallies.of_groups(asked, groups, int(groups.max(initial=-1)) + 1)
        some = np.flatnonzero(known.counts >= 2 * FEWEST)
        marks_of = zip(known.counts[some].tolist(), known.marks[some].tolist(), strict=True)
        prints: dict[int, _Print] = {
            group: (run_length, *mark) for group, mark in zip(some.tolist(), marks_of, strict=True)
        }
        fresh = np.zeros(len(known.counts), dtype=np.bool_)
        fresh[[group for group, mark in prints.items() if mark not in self._known]] = True
        if fresh.any():
            rows = counting_in(asked & fresh[groups], outcomes.sums)
            self._learn(outcomes, rows, groups[outcomes.sums[rows]], prints, run_length)
        self._used |= dict.fromkeys(prints.values(), self._look)
        found = ((group, self._known[mark]) for group, mark in prints.items())
        return {group: course for group, course in found if course is not None}

    def _learn(
        self,
        outcomes: OrderedOutcomes,
        rows: Indices,
        groups: Indices,
        prints: Mapping[int, _Print],
        run_length: float,
    ) -> None:
        order = np.lexsort((outcomes.predicted_at[rows], groups))
        rows = rows[order]
        fresh, sizes = np.unique(groups[order], return_counts=True)
        correct = outcomes.correct[outcomes.sums[rows]]
        remains = what_remains(correct=correct, sizes=sizes, run_length=run_length)
        begins = np.cumsum(sizes) - sizes
        for group, begin, size, before, changed in zip(
            fresh.tolist(),
            begins.tolist(),
            sizes.tolist(),
            remains.before.tolist(),
            remains.changed.tolist(),
            strict=True,
        ):
            factors, change = remains.factors[begin : begin + size], None
            if before:
                since = float(outcomes.predicted_at[rows[begin + before]])
                change = Relearned(since=since, before=before, kept=float(factors[before - 1]))
            course = None if factors[0] == 1 and change is None else _Course(factors.copy(), change, changed)
            self._known[prints[group]] = course


def discount_changes(
    outcomes: OrderedOutcomes,
    groupings: Sequence[AskedGrouping],
    *,
    run_length: float,
    memory: ChangeMemory,
) -> ChangeDiscounts:
    """What changes of groups leave of all labels: of each the least that any group leaves which has a say.

    Of a group, `run_length` labels come from one change to the next, on average. What is remembered of
    earlier looks makes no difference to the result.
    """
    factors = np.ones(len(outcomes.sums))
    relearned: dict[str, Mapping[str, Relearned]] = {}
    regions: Indices | None = None
    of_any_vote: Indices | None = None
    changed: dict[str, Floats] = {}
    for grouping in groupings:
        groups = grouping.cells[outcomes.cells]
        asked = grouping.sources[outcomes.sources] & (groups < len(grouping.groups))
        if grouping.silent is not None:
            silent = grouping.silent[outcomes.sources]
            asked, groups = asked & ~silent, np.where(silent, len(grouping.groups), groups)
        courses = memory.courses(outcomes, asked, groups, run_length=run_length)
        if not courses:
            continue
        rows, kept = _kept(outcomes, asked, groups, courses)
        factors[rows] = np.minimum(factors[rows], kept)
        changed[grouping.name] = np.zeros(len(grouping.groups))
        changed[grouping.name][list(courses)] = [course.probability for course in courses.values()]
        discounted = np.zeros(len(grouping.groups) + 1, np.intp)
        discounted[list(courses)] = np.arange(1, len(courses) + 1)
        regions = _joined(regions, discounted[grouping.cells])
        if grouping.silent is None:
            of_any_vote = _joined(of_any_vote, discounted[grouping.cells])
        changes = {group: course.change for group, course in courses.items() if course.change is not None}
        if changes:
            relearned[grouping.name] = {grouping.groups[group]: change for group, change in changes.items()}
    memory.tidy()
    if not (factors < 1).any():
        return ChangeDiscounts(None, relearned)
    return ChangeDiscounts(factors, relearned, regions, of_any_vote, changed)


def _joined(regions: Indices | None, discounted: Indices) -> Indices:
    """Regions of cells that are alike in both [cells]."""
    if regions is not None:
        discounted = discounted + regions * (int(discounted.max(initial=0)) + 1)
    return np.unique(discounted, return_inverse=True)[1].ravel()


def _kept(
    outcomes: OrderedOutcomes, asked: Flags, groups: Indices, courses: Mapping[int, _Course]
) -> tuple[Indices, Floats]:
    """Rows of the groups, and what is kept of each: as of the one before it that was asked for.

    Of groups that are suspected to have changed, whoever asked; of the others, those that were asked for.
    """
    number = np.full(int(groups.max()) + 1, -1)
    number[list(courses)] = np.arange(len(courses))
    rows = counting_in(number[groups] >= 0, outcomes.sums)
    of = number[groups[outcomes.sums[rows]]]
    order = np.lexsort((outcomes.predicted_at[rows], of))
    rows, of = rows[order], of[order]
    begins = np.concatenate(([0], np.cumsum([len(course.factors) for course in courses.values()])[:-1]))
    # Those that were asked for come in the order of the courses, group after group.
    places = np.cumsum(asked[outcomes.sums[rows]]) - 1
    every = np.concatenate([course.factors for course in courses.values()])
    suspected = np.array([course.probability >= SUSPECTED for course in courses.values()])
    counts = suspected[of] | asked[outcomes.sums[rows]]
    return rows[counts], every[np.maximum(places, begins[of])][counts]
