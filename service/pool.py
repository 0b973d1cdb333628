"""Pools: for every group of a grouping that asks for labels, the items that it may ask about next.

A group's pool is a bottom-k sketch (Cohen and Kaplan, "Summarizing data using bottom-k sketches", PODC
2007): it keeps the k items of highest priority, priority = lambda t + Gumbel noise. In the order of their
priorities the items of a group are an exact sample without replacement, weighted exp(lambda t) (the
Gumbel-top-k trick; Efraimidis and Spirakis 2006 in the log domain), down to the bound below which an item
may have been dropped. Sketches of several shards merge exactly down to the highest of their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
UInt64s = npt.NDArray[np.uint64]

_ENTRY = np.dtype([("priority", "<f8"), ("hash", "<u8")])
HEADER_BYTES = 8
"""The bound, before the entries of an encoded sketch."""


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
        entries = np.frombuffer(encoded, _ENTRY, offset=HEADER_BYTES)
        bound = float(np.frombuffer(encoded, "<f8", count=1)[0])
        return cls(bound, entries["priority"].astype(np.float64), entries["hash"].astype(np.uint64))


EMPTY_SKETCH = Sketch(-np.inf, np.zeros(0), np.zeros(0, np.uint64))


def merged_order(sketches: Sequence[Sketch]) -> list[tuple[float, int, int]]:
    """Items of one group in the order in which they are drawn, as far as that is known.

    Args:
        sketches: of the group, one a shard.

    Returns:
        Priority, hash and position of the shard of every item that lies above the bounds of all shards, the
        highest first; an item that several shards hold comes once.
    """
    bound = max((sketch.bound for sketch in sketches), default=-np.inf)
    found = [
        (priority, item, shard)
        for shard, sketch in enumerate(sketches)
        for priority, item in zip(sketch.priorities.tolist(), sketch.hashes.tolist(), strict=True)
        if priority >= bound
    ]
    found.sort(key=lambda entry: (-entry[0], entry[2]))
    return list({item: entry for entry in reversed(found) for item in [entry[1]]}.values())[::-1]


@dataclass(frozen=True)
class Moves:
    """What changed in the sketches of a grouping.

    Attributes:
        entered: which of the offered items entered a sketch.
        left: hashes of items that left one.
    """

    entered: list[int]
    left: list[int]


class GroupingPool:
    """The pools of one grouping's groups, in one shard.

    Invariants: a sketch holds at most `depth` items, descending, none twice; every item that was offered to a
    group, lies above its bound and was not taken out is in its sketch. The depth is `wanted`, halved until
    all groups have room within `capacity`; at least 1.

    Args:
        wanted: items of one group that are kept where there is room for them.
        capacity: items of all groups together.
        stored: sketches by name of the group, as they were stored.
    """

    def __init__(self, wanted: int, capacity: int, stored: Mapping[str, Sketch] | None = None) -> None:
        self._wanted = wanted
        self._capacity = capacity
        self._rows = {group: row for row, group in enumerate(stored or {})}
        self._sketches = list((stored or {}).values())
        self._bounds = np.array([sketch.bound for sketch in self._sketches] + [-np.inf])
        self._changed: set[int] = set()
        self.depth = wanted

    def row(self, group: str) -> int:
        """Number of a group; it is added if it is new."""
        row = self._rows.setdefault(group, len(self._rows))
        if row == len(self._sketches):
            self._sketches.append(EMPTY_SKETCH)
            if row >= len(self._bounds):
                self._bounds = np.concatenate([self._bounds, np.full(row, -np.inf)])
        return row

    def sketches(self) -> dict[str, Sketch]:
        """All sketches by group."""
        return dict(zip(self._rows, self._sketches, strict=True))

    def changed(self) -> Iterator[tuple[str, Sketch]]:
        """Groups whose sketches have changed since `mark_flushed`."""
        for group, row in self._rows.items():
            if row in self._changed:
                yield group, self._sketches[row]

    def mark_flushed(self) -> None:
        """Forget what had changed."""
        self._changed.clear()

    def offer(self, rows: Indices, priorities: Floats, hashes: UInt64s) -> Moves:
        """Keep those of some items [n] that are among the highest of their group.

        Args:
            rows: number of each item's group, from `row` [n].
            priorities: of each [n].
            hashes: of each [n].
        """
        entered: list[int] = []
        left = self._fit()
        chosen = np.flatnonzero(priorities > self._bounds[rows])
        if chosen.size:
            chosen = chosen[np.argsort(rows[chosen], kind="stable")]
            present, begins = np.unique(rows[chosen], return_index=True)
            for row, items in zip(present.tolist(), np.split(chosen, begins[1:]), strict=True):
                came, went = self._merge(row, priorities[items], hashes[items])
                entered += items[came].tolist()
                left += went.tolist()
        return Moves(entered, left)

    def take(self, group: str, item: int) -> bool:
        """Take an item out of a group's sketch, as it was drawn; whether it was there."""
        row = self._rows.get(group)
        if row is None:
            return False
        bound, priorities, hashes = self._sketches[row]
        others = hashes != np.uint64(item)
        if others.all():
            return False
        # What was dropped before stays dropped, so the bound stays.
        self._sketches[row] = Sketch(bound, priorities[others], hashes[others])
        self._changed.add(row)
        return True

    def _merge(self, row: int, priorities: Floats, hashes: UInt64s) -> tuple[Indices, UInt64s]:
        """Which of some items [n] enter a sketch, and the hashes of those that leave it."""
        bound, kept, kept_hashes = self._sketches[row]
        fresh = np.unique(hashes, return_index=True)[1]
        fresh = fresh[~np.isin(hashes[fresh], kept_hashes)]
        every = np.concatenate([kept, priorities[fresh]])
        every_hash = np.concatenate([kept_hashes, hashes[fresh]])
        order = np.argsort(-every, kind="stable")
        stay, go = order[: self.depth], order[self.depth :]
        if fresh.size:
            self._set(row, Sketch(bound, every[stay], every_hash[stay]))
        return fresh[stay[stay >= len(kept)] - len(kept)], every_hash[go[go < len(kept)]]

    def _fit(self) -> list[int]:
        """Halve the depth until all groups have room; hashes of the items that had to go."""
        while self.depth > 1 and self.depth * len(self._rows) > self._capacity:
            self.depth = (self.depth + 1) // 2
        left: list[int] = []
        for row, sketch in enumerate(self._sketches):
            if len(sketch.hashes) > self.depth:
                left += sketch.hashes[self.depth :].tolist()
                self._set(
                    row, Sketch(sketch.bound, sketch.priorities[: self.depth], sketch.hashes[: self.depth])
                )
        return left

    def _set(self, row: int, sketch: Sketch) -> None:
        if len(sketch.hashes) >= self.depth:
            # Whatever was dropped was lower than all that are kept.
            sketch = sketch._replace(bound=max(sketch.bound, float(sketch.priorities[-1])))
        self._sketches[row] = sketch
        self._bounds[row] = sketch.bound
        self._changed.add(row)


@dataclass
class Pools:
    """The pools of all groupings of a model that ask for labels, in one shard; each item is stored once.

    Attributes:
        groupings: by pool id (`service/pool_key.py`).
        holders: how many sketches hold an item, by its hash.
        added: records of items that entered since the last flush, by hash.
        removed: hashes of items that left since then.
        stale_fields: stored sketches of groupings that ask no more.
    """

    groupings: dict[str, GroupingPool]
    holders: dict[int, int] = field(default_factory=dict)
    added: dict[int, bytes] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    stale_fields: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        for pool in self.groupings.values():
            for sketch in pool.sketches().values():
                for item in sketch.hashes.tolist():
                    self.holders[item] = self.holders.get(item, 0) + 1

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
        moves = self.groupings[pool_id].offer(rows, priorities, hashes)
        for index, item in zip(moves.entered, hashes[moves.entered].tolist(), strict=True):
            holders = self.holders.get(item, 0)
            self.holders[item] = holders + 1
            if not holders:
                self.added[item] = record(index)
                self.removed.discard(item)
        for item in moves.left:
            self._release(item)

    def take(self, pool_id: str, group: str, item: int) -> None:
        """Take a drawn item out of a group's pool."""
        pool = self.groupings.get(pool_id)
        if pool is not None and pool.take(group, item):
            self._release(item)

    def changed(self) -> list[tuple[str, str, Sketch]]:
        """Pool id, group and sketch of every group that has changed since `mark_flushed`."""
        return [
            (pool_id, group, sketch)
            for pool_id, pool in self.groupings.items()
            for group, sketch in pool.changed()
        ]

    def mark_flushed(self) -> None:
        """Forget what had changed."""
        self.added.clear()
        self.removed.clear()
        self.stale_fields.clear()
        for pool in self.groupings.values():
            pool.mark_flushed()

    def _release(self, item: int) -> None:
        self.holders[item] -= 1
        if not self.holders[item]:
            del self.holders[item]
            self.added.pop(item, None)
            self.removed.add(item)
