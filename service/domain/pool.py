"""Pools of all groupings that request labels (`grouping_pool.py`), and the records of their items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.domain.arrays import Floats, Indices, UInt64s
from service.domain.cells import OTHER
from service.domain.grouping_pool import GroupingPool, Sketch
from service.domain.groupings import with_value


@dataclass
class Pools:
    """The pools of all groupings of a model that request labels, in one shard; each item is stored once.

    Attributes:
        groupings: by pool id (`service/domain/pool_key.py`).
        holders: by item hash, a bit set of the groupings whose pools contain the item.
        added: records of items that entered since the last flush, by hash.
        removed: hashes of items that left since then.
        deleted: pool id and group of stored sketches to delete.
    """

    groupings: dict[str, GroupingPool]
    holders: dict[int, int] = field(default_factory=dict)
    added: dict[int, bytes] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    deleted: set[tuple[str, str]] = field(default_factory=set)

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
        """Offer items [n] to the pool of a grouping; `rows` are numbers of their groups [n].

        `record` encodes the record of one item; it is called only for items that are in no sketch yet.
        """
        pool, bit = self.groupings[pool_id], self._bits[pool_id]
        chosen = pool.above_bounds(rows, priorities)
        # In reverse, so that the first of two equal items counts, as it does in two batches.
        chosen = chosen[::-1]
        fresh = {
            item: index
            for index, item in zip(chosen.tolist(), hashes[chosen].tolist(), strict=True)
            if not self.holders.get(item, 0) & bit
        }
        if not fresh:
            return
        chosen = np.array(list(fresh.values()), np.intp)
        moves = pool.offer(rows[chosen], priorities[chosen], hashes[chosen])
        entered = chosen[moves.entered]
        for index, item in zip(entered.tolist(), hashes[entered].tolist(), strict=True):
            if item not in self.holders:
                self.added[item] = record(index)
                self.removed.discard(item)
            self.holders[item] = self.holders.get(item, 0) | bit
        for item in moves.left.tolist():
            self._release(item, bit)

    def take(self, pool_id: str, group: str, item: int) -> None:
        """Remove a drawn item from a group's pool, or from that of `OTHER` if the group was folded."""
        pool = self.groupings.get(pool_id)
        if pool is None:
            return
        if any(pool.take(name, item) for name in (group, OTHER, with_value(group, OTHER))):
            self._release(item, self._bits[pool_id])

    def fold(self, pool_id: str, groups: Sequence[str], into: str) -> None:
        """Merge the pools of groups that have lost their rows into that of another one."""
        for item in self.groupings[pool_id].fold(groups, into).tolist():
            self._release(item, self._bits[pool_id])
        self.deleted.update((pool_id, group) for group in groups)

    def changed(self) -> list[tuple[str, str, Sketch]]:
        """Pool id, group and sketch of every group that has changed since `mark_flushed`."""
        found = [
            (pool_id, group, sketch)
            for pool_id, pool in self.groupings.items()
            for group, sketch in pool.changed()
        ]
        # A value may have got a row again.
        self.deleted.difference_update((pool_id, group) for pool_id, group, _ in found)
        return found

    def mark_flushed(self) -> None:
        """Clear all marks of changes."""
        self.added.clear()
        self.removed.clear()
        self.deleted.clear()
        for pool in self.groupings.values():
            pool.mark_flushed()

    def _release(self, item: int, bit: int) -> None:
        self.holders[item] &= ~bit
        if not self.holders[item]:
            del self.holders[item]
            self.added.pop(item, None)
            self.removed.add(item)


@dataclass(frozen=True)
class PoolSizes:
    """Sizes of the pools of one shard.

    Attributes:
        wanted: items of one group, by pool id.
        capacity: items of all groupings together.
    """

    wanted: Mapping[str, int]
    capacity: int

    def pools(self, stored: Mapping[str, Mapping[str, Sketch]]) -> Pools:
        """Pools of all groupings that request labels, with stored sketches by pool id and group."""
        share = self.capacity // max(len(self.wanted), 1)
        return Pools(
            {
                pool_id: GroupingPool(wanted, share, stored.get(pool_id))
                for pool_id, wanted in self.wanted.items()
            }
        )
