"""Outcomes that are alike, together: what estimates are made from.

All that estimates need of an outcome is its label cell, who asked, whether the prediction was right, the true
class, and what forgetting leaves of it, which only ever is summed up. So a million outcomes are as many rows
as there are different ones, and every sum is known by one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Codes, Flags, Floats, Indices, Ints, UInt64s

NO_CLASS = -1  # index of a class that the model does not have
EXPIRED_CLASS, SKIPPED_CLASS = -2, -3  # in place of a class, of requests that ended without a label
ABSENT_CLASS = -4  # of predictions that waited for an unrequested label in vain
ABSENT_EXPIRED, ABSENT_SKIPPED = -5, -6  # likewise, if a request of the item ended without a label, too
ABSENT: frozenset[int] = frozenset((ABSENT_CLASS, ABSENT_EXPIRED, ABSENT_SKIPPED))
OF_REQUESTS = {
    EXPIRED_CLASS: frozenset((EXPIRED_CLASS, ABSENT_EXPIRED)),
    SKIPPED_CLASS: frozenset((SKIPPED_CLASS, ABSENT_SKIPPED)),
}
"""What is in place of a class, by the reason why a request has no label."""

_LOWEST_CLASS = ABSENT_SKIPPED

_FIELD_BITS = 16
_FIELD = (1 << _FIELD_BITS) - 1
"""In a key the cell comes first, in the next field the code of who asked, in the last what was said."""

_CHALLENGER_BIT = _FIELD_BITS - 1
"""Highest of what was said: the settings allow 10,000 classes, which with `correct` fit the 15 below."""


@dataclass(frozen=True)
class Columns:
    """Arrays of one length."""

    def part(self, which: Flags | Indices) -> Self:
        """Some of the rows, or all in another order."""
        return type(self)(*(column[which] for column in vars(self).values()))


@dataclass(frozen=True)
class OutcomeSums(Columns):
    """Outcomes that are alike, together; columns [s]."""

    cells: Indices  # label cell of each
    sources: Indices  # codes of who asked
    correct: Floats  # 1.0 where the predicted class is the true one, else 0.0
    # index of the true class, -1 for one that the model does not have, lower without a label; -1 for all
    # labels where no grouping is by predicted class
    true_classes: Indices
    counts: Indices  # outcomes in each
    freshness: Floats  # sum of what forgetting leaves of them
    challenger: Floats  # 1.0 where a challenger's class is the true one, else 0.0; 0.0 throughout without one
    whole: Floats  # sum of what age alone leaves of them, whatever has changed


class SumTallies:
    """Of every sum, how many outcomes count in it, and which these are; kept as outcomes come and go."""

    def __init__(self, length: int = 0) -> None:
        self.counts = np.zeros(length, dtype=np.int64)  # outcomes in each [s]
        # sum of their marks, modulo 2^64, which distinguishes them from others [s]
        self.marks = np.zeros(length, dtype=np.uint64)

    def add(self, sums: Indices, marks: UInt64s) -> None:
        """Count some outcomes: the sum in which each counts, and its mark [n]."""
        more = int(sums.max(initial=-1)) + 1 - len(self.counts)
        if more > 0:
            self.counts = np.append(self.counts, np.zeros(more, dtype=np.int64))
            self.marks = np.append(self.marks, np.zeros(more, dtype=np.uint64))
        np.add.at(self.counts, sums, 1)
        np.add.at(self.marks, sums, marks)

    def remove(self, sums: Indices, marks: UInt64s) -> None:
        """Count some outcomes no more."""
        np.subtract.at(self.counts, sums, 1)
        np.subtract.at(self.marks, sums, marks)

    def keep(self, kept: Flags) -> None:
        """Let go of sums but these [s], and number those without gaps."""
        self.counts, self.marks = self.counts[kept], self.marks[kept]

    def same(self, others: SumTallies) -> Flags:
        """In which the same outcomes count as in others [s]."""
        same: Flags = (self.counts == others.counts) & (self.marks == others.marks)
        return same

    def of_groups(self, sums: Flags, groups: Indices, group_count: int) -> SumTallies:
        """The same of groups [G] that some of the sums [s] are in; `groups` has the group of each sum."""
        found = SumTallies(group_count)
        np.add.at(found.counts, groups[sums], self.counts[sums])
        np.add.at(found.marks, groups[sums], self.marks[sums])
        return found


def mixed(numbers: npt.NDArray[np.integer[Any]]) -> UInt64s:
    """Marks of numbers, as good as random: the finalizer of splitmix64 (Steele, Lea and Flood, 2014) [n]."""
    marks = numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        marks = (marks ^ marks >> np.uint64(shift)) * np.uint64(factor)
    return marks ^ marks >> np.uint64(31)


def sum_keys(
    *, cells: Indices, sources: Indices, true_classes: Indices, correct: Flags, challenger: Flags
) -> Ints:
    """Key of the sum that each outcome counts in [n]; arguments as the columns of `OutcomeSums`."""
    said = (true_classes.astype(np.int64) - _LOWEST_CLASS) << 1 | correct
    said |= challenger.astype(np.int64) << _CHALLENGER_BIT
    return (cells.astype(np.int64) << _FIELD_BITS | sources) << _FIELD_BITS | said


def _true_classes(said: Ints) -> Indices:
    return (said >> 1 & (1 << _CHALLENGER_BIT - 1) - 1).astype(np.intp) + _LOWEST_CLASS


def counting_in(which: Flags, sums: Codes) -> Indices:
    """Which outcomes count in these sums [s], ascending; `sums` has the sum of each, or -1 [n]."""
    return np.flatnonzero(np.append(which, False)[sums])


class LabelSums:
    """Numbers the keys of sums, and knows how many labels count in each."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._keys: Ints = np.zeros(0, np.int64)
        self.tallies = SumTallies()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> Ints:
        """Keys of all sums, in the order of their numbers [sums]."""
        if more := len(self._numbers) - len(self._keys):
            fresh = np.fromiter(islice(self._numbers, len(self._keys), None), np.int64, more)
            self._keys = np.concatenate([self._keys, fresh])
        return self._keys

    @property
    def cells(self) -> Indices:
        """Label cell of every sum [sums]."""
        return (self.keys >> 2 * _FIELD_BITS).astype(np.intp)

    @property
    def sources(self) -> Indices:
        """Code of who asked, of every sum [sums]."""
        return (self.keys >> _FIELD_BITS & _FIELD).astype(np.intp)

    @property
    def correct(self) -> Flags:
        """Of every sum, whether its predictions are right [sums]."""
        return (self.keys & 1).astype(np.bool_)

    @property
    def true_classes(self) -> Indices:
        """Index of the true class, or what is in its place, of every sum [sums]."""
        return _true_classes(self.keys & _FIELD)

    @property
    def answered(self) -> Flags:
        """Of every sum, whether its outcomes have labels [sums]."""
        answered: Flags = self.true_classes >= NO_CLASS
        return answered

    def summed(self, counts: Indices, freshness: Floats, whole: Floats) -> OutcomeSums:
        """The sums in which outcomes count, with what was summed up of all [sums]."""
        some = counts > 0
        said = self.keys[some] & _FIELD
        return OutcomeSums(
            cells=self.cells[some],
            sources=self.sources[some],
            correct=self.correct[some].astype(np.float64),
            true_classes=_true_classes(said),
            counts=counts[some],
            freshness=freshness[some],
            challenger=(said >> _CHALLENGER_BIT).astype(np.float64),
            whole=whole[some],
        )

    def numbers(self, keys: Ints) -> Indices:
        """Numbers of the sums with these keys [n]; of new ones, the next numbers."""
        found, inverse = np.unique(keys, return_inverse=True)
        numbers = [self._numbers.setdefault(key, len(self._numbers)) for key in found.tolist()]
        return np.array(numbers, np.intp)[inverse.ravel()]

    def keep(self, kept: Flags, cell_count: int) -> Flags:
        """Let go of sums but these, and number those, and their cells, without gaps.

        Returns:
            Which of the label cells stay [cell_count].
        """
        keys, cells, rest = self.keys[kept], self.cells[kept], (1 << 2 * _FIELD_BITS) - 1
        cells_kept: Flags = np.bincount(cells, minlength=cell_count) > 0
        renumbered = (np.cumsum(cells_kept) - 1).astype(np.int64)
        keys = renumbered[cells] << 2 * _FIELD_BITS | keys & rest
        self._numbers = {key: number for number, key in enumerate(keys.tolist())}
        self._keys = np.zeros(0, np.int64)
        self.tallies.keep(kept)
        return cells_kept
