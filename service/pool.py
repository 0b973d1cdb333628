"""Pools: for every group of a grouping that asks for labels, the items that it may ask about next.

A group's pool is a bottom-k sketch (`service/sketch.py`): it keeps the k items of highest priority, priority
= lambda t + Gumbel noise. In the order of their priorities the items of a group are an exact sample without
replacement, weighted exp(lambda t) (the Gumbel-top-k trick; Efraimidis and Spirakis 2006 in the log domain),
down to the bound below which an item may have been dropped. Sketches of several shards merge exactly down to
the highest of their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from service.cells import OTHER
from service.sketch import EMPTY_SKETCH, Sketch

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
UInt64s = npt.NDArray[np.uint64]


class Moves(NamedTuple):
    """What changed in the sketches of a grouping.

    Attributes:
        entered: which of the offered items entered a sketch.
        left: hashes of items that left one.
    """

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
        """Which of some items [n] a sketch may take in.

        Args:
            rows: number of each item's group, from `row` [n].
            priorities: of each [n].
        """
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

    def fold(self, group: str, into: str) -> UInt64s:
        """Merge a group's sketch into that of another one; hashes of the items that are in neither now.

        The order of the union is known down to the higher of both bounds.
        """
        row = self._rows.get(group)
        if row is None:
            return np.zeros(0, np.uint64)
        sketch, target = self._sketch(row), self.row(into)
        del self._rows[group]
        self._free.append(row)
        self._changed.discard(row)
        if row < len(self._priorities):
            self._priorities[row] = -np.inf
        if row < len(self._bounds):
            self._bounds[row] = -np.inf
        moves = self.offer(np.full(len(sketch.hashes), target), sketch.priorities, sketch.hashes)
        self._bounds[target] = max(self._bounds[target], sketch.bound)
        self._changed.add(target)
        return np.concatenate([np.delete(sketch.hashes, moves.entered), moves.left])

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


@dataclass
class Pools:
    """The pools of all groupings of a model that ask for labels, in one shard; each item is stored once.

    Attributes:
        groupings: by pool id (`service/pool_key.py`).
        holders: of every item, by its hash, which groupings hold it: a bit each, in their order.
        added: records of items that entered since the last flush, by hash.
        removed: hashes of items that left since then.
        gone: pool id and group of stored sketches that are none any more.
    """

    groupings: dict[str, GroupingPool]
    holders: dict[int, int] = field(default_factory=dict)
    added: dict[int, bytes] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    gone: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._bits = {pool_id: 1 << n for n, pool_id in enumerate(self.groupings)}
        for pool_id, pool in self.groupings.items():
            for sketch in pool.sketches().values():
                for item in sketch.hashes.tolist():
                    self.holders[item] = self.holders.get(item, 0) | self._bits[pool_id]

    def offer(
        self,
        pool_id: str,
        *,
        rows: Indices,
        priorities: Floats,
        hashes: UInt64s,
        record: Callable[[int], bytes],
    ) -> None:
        """Offer items [n] to the pool of a grouping.

        Args:
            pool_id: of the grouping.
            rows: number of each item's group [n].
            priorities: of each in this grouping [n].
            hashes: of each [n].
            record: encodes the record of one item; called only for items that no sketch holds.
        """
        pool, bit = self.groupings[pool_id], self._bits[pool_id]
        chosen = pool.above_bounds(rows, priorities)
        known = self.holders
        # From the end, so that of an item which comes twice the first one counts, as it does in two batches.
        chosen = chosen[::-1]
        fresh = {
            item: index
            for index, item in zip(chosen.tolist(), hashes[chosen].tolist(), strict=True)
            if not known.get(item, 0) & bit
        }
        if not fresh:
            return
        chosen = np.array(list(fresh.values()), np.intp)
        moves = pool.offer(rows[chosen], priorities[chosen], hashes[chosen])
        entered = chosen[moves.entered]
        for index, item in zip(entered.tolist(), hashes[entered].tolist(), strict=True):
            if item not in known:
                self.added[item] = record(index)
                self.removed.discard(item)
            known[item] = known.get(item, 0) | bit
        for item in moves.left.tolist():
            self._release(item, bit)

    def take(self, pool_id: str, group: str, item: int) -> None:
        """Take a drawn item out of a group's pool, or out of that which it was folded into since."""
        pool = self.groupings.get(pool_id)
        if pool is not None and (pool.take(group, item) or pool.take(OTHER, item)):
            self._release(item, self._bits[pool_id])

    def fold(self, pool_id: str, group: str, into: str) -> None:
        """Merge the pool of a group that is told apart no more into that of another one.

        Args:
            pool_id: of the grouping.
            group: name of the group.
            into: name of the other one.
        """
        for item in self.groupings[pool_id].fold(group, into).tolist():
            self._release(item, self._bits[pool_id])
        self.gone.add((pool_id, group))

    def changed(self) -> list[tuple[str, str, Sketch]]:
        """Pool id, group and sketch of every group that has changed since `mark_flushed`."""
        found = [
            (pool_id, group, sketch)
            for pool_id, pool in self.groupings.items()
            for group, sketch in pool.changed()
        ]
        # A value may have its row back by now.
        self.gone.difference_update((pool_id, group) for pool_id, group, _ in found)
        return found

    def mark_flushed(self) -> None:
        """Forget what had changed."""
        self.added.clear()
        self.removed.clear()
        self.gone.clear()
        for pool in self.groupings.values():
            pool.mark_flushed()

    def _release(self, item: int, bit: int) -> None:
        self.holders[item] &= ~bit
        if not self.holders[item]:
            del self.holders[item]
            self.added.pop(item, None)
            self.removed.add(item)
