"""Items drawn from the pools of all shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.grouping_pool import EMPTY_SKETCH, Sketch, merged_order
from service.store.records import PoolRecord, decode_pool_record
from service.store.requests import RequestStore
from service.store.shards import pool_field, split_drawn_entry


@dataclass(frozen=True)
class Pooled:
    """One pooled item, and where it is."""

    partition: int
    field: bytes
    item_hash: int
    record: PoolRecord
    group: str  # that it was drawn for
    estimator: bytes = b""  # what is kept of the draw of its stratum, if one was drawn


class Drawer:
    """Draws items of one grouping's groups from the pools of all shards, each item at most once.

    The union of the shards' items is no random sample, but its items above the bounds of all shards are, in
    the order of their priorities. So the next item in this order is drawn, or none: a group whose items are
    used up waits for further predictions.
    """

    def __init__(self, requests: RequestStore, partitions: Sequence[int], pool_id: str) -> None:
        self._requests = requests
        self._partitions = partitions
        self._pool_id = pool_id
        self._orders: dict[str, list[tuple[int, int]]] = {}
        self._used_up: set[str] = set()

    def draw(self, groups: Sequence[str]) -> list[Pooled | None]:
        """The next item of every group that is named, None where a group has to wait.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        self._read(groups)
        places = [self._orders[group].pop() if self._orders[group] else None for group in groups]
        records = iter(self._requests.items([place for place in places if place is not None]))
        found: list[Pooled | None] = []
        for group, place in zip(groups, places, strict=True):
            encoded = None if place is None else next(records)
            if encoded is None:
                # It may have left the pool since it was read; what is behind it is not the next one.
                self._used_up.add(group)
            if place is None or encoded is None or group in self._used_up:
                found.append(None)
            else:
                field = pool_field(self._pool_id, group)
                found.append(Pooled(place[0], field, place[1], decode_pool_record(encoded), group))
        return found

    def left(self, groups: Sequence[str]) -> list[int]:
        """How many items of every group can still be drawn [n].

        Raises:
            Unavailable: Redis cannot answer now.
        """
        self._read(groups)
        return [0 if group in self._used_up else len(self._orders[group]) for group in groups]

    def _read(self, wanted: Sequence[str]) -> None:
        """Partition and hash of the items of some groups, the next one last, where pop() takes it."""
        groups = [group for group in dict.fromkeys(wanted) if group not in self._orders]
        if not groups:
            return
        fields = [pool_field(self._pool_id, group) for group in groups]
        replies = self._requests.read_pools(self._partitions, fields)
        # For whatever group: its value may have lost its row since, and its pool gone to `OTHER`.
        drawn = {split_drawn_entry(entry)[::2] for _, entries in replies for entry in entries}
        for at, group in enumerate(groups):
            encoded = [sketches[at] for sketches, _ in replies]
            sketches = [EMPTY_SKETCH if one is None else Sketch.decode(one) for one in encoded]
            self._orders[group] = [
                (self._partitions[shard], item)
                for _, item, shard in reversed(merged_order(sketches))
                if (self._pool_id, item) not in drawn
            ]
