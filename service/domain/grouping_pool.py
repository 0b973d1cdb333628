"""The pools of one grouping: for every group, the unlabelled items that it may request labels of next.

A group's pool is a bottom-k sketch (Cohen and Kaplan, "Summarizing data using bottom-k sketches", PODC 2007):
it keeps the k items of highest priority, priority = lambda t + Gumbel noise. In the order of their priorities
the items of a group are an exact sample without replacement, weighted exp(lambda t) (the Gumbel-top-k trick;
Efraimidis and Spirakis 2006 in the log domain), down to the bound below which an item may have been dropped.
Sketches of several shards merge exactly down to the highest of their bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Floats, Indices, UInt64s

_ENTRY = np.dtype([("priority", "<f8"), ("hash", "<u8")])


class Sketch(NamedTuple):
    """The pool of one group.

    Attributes:
        bound: an item below this priority may have been dropped; minus infinity if none was.
        priorities: of the items, descending [k].
        hashes: of the items [k].
    """

    bound: float
    priorities: Floats
    hashes: UInt64s

    def encode(self) -> bytes:
        """The bound (8 bytes), then 16 bytes an item: priority and hash, little-endian."""
        entries = np.empty(len(self.hashes), _ENTRY)
        entries["priority"], entries["hash"] = self.priorities, self.hashes
        return np.array(self.bound, "<f8").tobytes() + entries.tobytes()

    @classmethod
    def decode(cls, encoded: bytes) -> Sketch:
        """A sketch from its encoding."""
        entries = np.frombuffer(encoded, _ENTRY, offset=8)
        bound = float(np.frombuffer(encoded, "<f8", count=1)[0])
        return cls(bound, entries["priority"].astype(np.float64), entries["hash"].astype(np.uint64))


EMPTY_SKETCH = Sketch(-np.inf, np.zeros(0), np.zeros(0, np.uint64))


class Moves(NamedTuple):
    """Which of the items offered to a grouping entered a sketch, and hashes of items that left one."""

    entered: Indices
    left: UInt64s


class GroupingPool:
    """The pools of one grouping's groups, in one shard.

    Invariants: a sketch holds at most `depth` items, none twice; every item that was offered to a group, lies
    above its bound and was not taken out is in its sketch. The depth is `wanted`, halved until all groups
    have room within `capacity`; at least 1.

    Args:
        wanted: items of one group that are kept where there is room for them.
        capacity: items of all groups together.
        stored: sketches by name of the group, as they were stored.
    """

    def __init__(self, wanted: int, capacity: int, stored: Mapping[str, Sketch] | None = None) -> None:
        self._capacity = capacity
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._changed: set[int] = set()
        self._depth = min(wanted, max(capacity, 1))
        sketches = stored or {}
        self._depth = max([self._depth, *(len(sketch.hashes) for sketch in sketches.values())])
        # An empty slot has priority minus infinity; rows beyond the groups are spare.
        self._priorities = np.full((max(len(sketches), 1), self._depth), -np.inf)
        self._hashes = np.zeros(self._priorities.shape, np.uint64)
        self._bounds = np.full(len(self._priorities), -np.inf)
        for group, sketch in sketches.items():
            row, size = self.row(group), len(sketch.hashes)
            self._priorities[row, :size], self._hashes[row, :size] = sketch.priorities, sketch.hashes
            self._bounds[row] = sketch.bound
        self._target = wanted

    def row(self, group: str) -> int:
        """Number of a group; it is added if it is new."""
        row = self._rows.get(group)
        if row is None:
            row = self._rows[group] = self._free.pop() if self._free else len(self._rows)
        return row

    def sketches(self) -> dict[str, Sketch]:
        """All sketches by group."""
        return {group: self._sketch(row) for group, row in self._rows.items()}

    def changed(self) -> Iterator[tuple[str, Sketch]]:
        """Groups whose sketches have changed since `mark_flushed`."""
        if self._changed:
            for group, row in self._rows.items():
                if row in self._changed:
                    yield group, self._sketch(row)

    def mark_flushed(self) -> None:
        """Forget what had changed."""
        self._changed.clear()

    def above_bounds(self, rows: Indices, priorities: Floats) -> Indices:
        """Which of some items [n] a sketch may take in; `rows` are numbers of groups, from `row` [n]."""
        bounds = np.append(self._bounds, -np.inf)
        return np.flatnonzero(priorities > bounds[np.minimum(rows, len(self._bounds))])

    def offer(self, rows: Indices, priorities: Floats, hashes: UInt64s) -> Moves:
        """Keep those of some items [n] that are among the highest of their group.

        Args:
            rows: number of each item's group, from `row` [n].
            priorities: of each [n].
            hashes: of each [n]; they differ, and no sketch holds one of them.
        """
        left = self._fit()
        self._grow()
        items = self.above_bounds(rows, priorities)
        items = items[np.lexsort((-priorities[items], rows[items]))]
        present, firsts, where = np.unique(rows[items], return_index=True, return_inverse=True)
        # The k-th highest newcomer of a group takes the k-th lowest slot if it is higher than what is there:
        # then the highest of both remain.
        ranks = np.arange(len(items)) - firsts[where]
        inside = ranks < self._depth
        items, where, ranks = items[inside], where[inside], ranks[inside]
        slots = np.argsort(self._priorities[present], axis=1)[where, ranks]
        higher = priorities[items] > self._priorities[rows[items], slots]
        items, slots = items[higher], slots[higher]
        places = rows[items], slots
        replaced = self._hashes[places][self._priorities[places] > -np.inf]
        self._priorities[places], self._hashes[places] = priorities[items], hashes[items]
        self._bound(present)
        self._changed.update(present.tolist())
        return Moves(items, np.concatenate([left, replaced]))

    def take(self, group: str, item: int) -> bool:
        """Take an item out of a group's sketch, as it was drawn; whether it was there."""
        row = self._rows.get(group)
        if row is None or row >= len(self._hashes):  # it is new, and was offered nothing that it could take
            return False
        found = np.flatnonzero((self._hashes[row] == np.uint64(item)) & (self._priorities[row] > -np.inf))
        # What was dropped before stays dropped, so the bound stays.
        self._priorities[row, found] = -np.inf
        if found.size:
            self._changed.add(row)
        return bool(found.size)

    def fold(self, groups: Iterable[str], into: str) -> UInt64s:
        """Merge the sketches of some groups into that of another one.

        The order of the union is known down to the highest of their bounds; lower items are dropped. The
        merged groups lose their numbers.

        Returns:
            Hashes of the items that no sketch holds any more.
        """
        known = [group for group in groups if group in self._rows]
        if not known:
            return np.zeros(0, np.uint64)
        target = self.row(into)
        rows = np.array([self._rows.pop(group) for group in known], np.intp)
        self._free += rows.tolist()
        self._changed.difference_update(rows.tolist())
        rows = rows[rows < len(self._priorities)]  # the others are new, and were offered nothing
        held = self._priorities[rows] > -np.inf
        priorities, hashes = self._priorities[rows][held], self._hashes[rows][held]
        bound = self._bounds[rows].max(initial=-np.inf)
        self._priorities[rows], self._bounds[rows] = -np.inf, -np.inf
        above = np.flatnonzero(priorities >= bound)
        moves = self.offer(np.full(len(above), target), priorities[above], hashes[above])
        self._bounds[target] = max(self._bounds[target], bound)
        self._changed.add(target)
        return np.concatenate([np.delete(hashes, above[moves.entered]), moves.left])

    def _grow(self) -> None:
        """Make room for groups that are new; after `_fit`, so that all together stay within the capacity."""
        count = len(self._rows) + len(self._free)
        if count > len(self._bounds):
            self._bounds = np.pad(self._bounds, (0, count), constant_values=-np.inf)
        more = len(self._bounds) - len(self._priorities)
        if more:
            self._priorities = np.pad(self._priorities, ((0, more), (0, 0)), constant_values=-np.inf)
            self._hashes = np.pad(self._hashes, ((0, more), (0, 0)))

    def _sketch(self, row: int) -> Sketch:
        if row >= len(self._priorities):
            return EMPTY_SKETCH
        order = np.argsort(-self._priorities[row], kind="stable")
        order = order[self._priorities[row, order] > -np.inf]
        return Sketch(float(self._bounds[row]), self._priorities[row, order], self._hashes[row, order])

    def _bound(self, rows: Indices) -> None:
        """Of groups that are full: whatever was dropped is lower than all that are kept."""
        lowest = self._priorities[rows].min(axis=1, initial=np.inf)
        self._bounds[rows] = np.maximum(self._bounds[rows], lowest)

    def _fit(self) -> UInt64s:
        """Halve the depth until all groups have room; hashes of the items that had to go."""
        depth = self._target
        while depth > 1 and depth * len(self._rows) > self._capacity:
            depth = (depth + 1) // 2
        if depth >= self._depth:
            return np.zeros(0, np.uint64)
        self._depth = self._target = depth
        order = np.argsort(-self._priorities, axis=1, kind="stable")
        priorities = np.take_along_axis(self._priorities, order, axis=1)
        hashes = np.take_along_axis(self._hashes, order, axis=1)
        left = hashes[:, depth:][priorities[:, depth:] > -np.inf]
        self._priorities, self._hashes = priorities[:, :depth].copy(), hashes[:, :depth].copy()
        every = np.array([row for row in self._rows.values() if row < len(order)], np.intp)
        self._bound(every)
        self._changed.update(every.tolist())
        return left


def merged_order(sketches: Sequence[Sketch]) -> list[tuple[float, int, int]]:
    """Items of one group in the order in which they are drawn, down to the highest bound of any sketch.

    Returns:
        Priority, hash and index of the sketch of every item, the highest priority first; an item in several
        sketches comes once.
    """
    bound = max((sketch.bound for sketch in sketches), default=-np.inf)
    found = [
        (priority, item, shard)
        for shard, sketch in enumerate(sketches)
        for priority, item in zip(sketch.priorities.tolist(), sketch.hashes.tolist(), strict=True)
        if priority >= bound
    ]
    first: dict[int, tuple[float, int, int]] = {}
    for entry in sorted(found, key=lambda entry: (-entry[0], entry[2])):
        first.setdefault(entry[1], entry)
    return list(first.values())
