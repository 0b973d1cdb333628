"""The pool of a recording: its items by group, and what they truly are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.replay.recording import Recording
from service.statistics.balance_heuristic import sums
from service.statistics.beliefs import Outcomes
from service.statistics.laplace import Cells


@dataclass(frozen=True)
class Pool:
    """A recording's items in groups and score bins."""

    recording: Recording
    names: list[str]  # of the groups [G]
    groups: Indices  # group of every item [N]
    bins: Indices  # score bin of every item [N], 0 to `bin_count` - 1
    bin_count: int  # number of score bins B, empty ones included

    @cached_property
    def sizes(self) -> Ints:
        """Items of every group [G]."""
        return np.bincount(self.groups, minlength=len(self.names)).astype(np.int64)

    @cached_property
    def cells(self) -> Cells:
        """What the items tell without their labels."""
        bins = self.bin_count
        counts, totals = self._by_bin(np.ones(self.recording.size)), self._by_bin(self.recording.scores)
        middles = np.tile((np.arange(bins) + 0.5) / bins, (len(self.names), 1))
        return Cells(
            shares=counts / self.sizes[:, None],
            scores=np.divide(totals, counts, out=middles, where=counts > 0),
            group_shares=self.sizes / self.sizes.sum(),
        )

    @cached_property
    def accuracy(self) -> Floats:
        """True accuracy of every group [G]."""
        return self._mean(self.recording.correct.astype(np.float64))

    @cached_property
    def bin_counts(self) -> tuple[Floats, Floats]:
        """Items, and correctly predicted ones, of every group's bins [G, B]."""
        items, correct = np.ones(self.recording.size), self.recording.correct.astype(np.float64)
        return self._by_bin(items), self._by_bin(correct)

    @cached_property
    def predicted(self) -> Indices:
        """Predicted class of every group [G], if groups are predicted classes."""
        first = np.full(len(self.names), -1, dtype=np.intp)
        first[self.groups] = self.recording.predicted
        return first

    @cached_property
    def probabilities(self) -> Floats:
        """Mean probability of every class in every group [G, K]: the confusion that scores alone tell."""
        columns = [self._mean(column) for column in self.recording.probabilities.T]
        means = np.stack(columns, axis=1)
        return np.asarray(means / means.sum(axis=1, keepdims=True), np.float64)

    @cached_property
    def confusion(self) -> Floats:
        """Share of every true class among the items of every group [G, K]."""
        classes = self.recording.classes
        fine = self.groups * classes + self.recording.labels
        counts = sums(fine, np.ones(len(fine)), len(self.names) * classes)
        return counts.reshape(-1, classes) / self.sizes[:, None]

    def _by_bin(self, values: Floats) -> Floats:
        """Sums over the items of every group's bins [G, B]."""
        shape = len(self.names), self.bin_count
        fine = self.groups * shape[1] + self.bins
        return sums(fine, values, shape[0] * shape[1]).reshape(shape)

    def _mean(self, values: Floats) -> Floats:
        return sums(self.groups, values, len(self.names)) / self.sizes


class Shuffled:
    """The items of every group, drawn in random order without replacement, in each of R runs.

    Of every group `left` items have no label yet [R, G].
    """

    def __init__(self, pool: Pool, runs: int, rng: np.random.Generator) -> None:
        self._correct = pool.recording.correct.astype(np.float64)
        self._bins, self._classes = pool.bins, pool.recording.labels.astype(np.intp)
        by_group = np.argsort(pool.groups, kind="stable").astype(np.int32)
        self._items = np.tile(by_group, (runs, 1))
        self._next = np.tile(np.cumsum(pool.sizes) - pool.sizes, (runs, 1))
        self._rng = rng
        self.left = np.tile(pool.sizes, (runs, 1))

    def label(self, runs: Indices, groups: Indices) -> Outcomes:
        """Label a random item of groups [n] that have one left, in some runs [n]."""
        # A step of Fisher and Yates: few items are ever drawn of a large pool, and shuffling all is dear.
        place, left = self._next[runs, groups], self.left[runs, groups]
        drawn = place + (self._rng.random(len(runs)) * left).astype(np.intp)
        items = self._items[runs, drawn]
        self._items[runs, drawn] = self._items[runs, place]
        self._next[runs, groups] = place + 1
        self.left[runs, groups] = left - 1
        return Outcomes(self._correct[items], self._bins[items], self._classes[items])
