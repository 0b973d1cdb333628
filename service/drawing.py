"""Drawing pooled items, to be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.shard import gumbel_noise
from service.siphash import siphash24
from service.store.facts import TrafficFacts
from service.store.records import PoolRecord, decode_pool_record
from service.store.requests import RequestStore


@dataclass(frozen=True)
class Pooled:
    """One pooled item, and where it lies."""

    partition: int
    slot: int
    encoded: bytes
    item_hash: int
    record: PoolRecord


class Drawer:
    """Draws items of cells from the pool of all shards, each item at most once.

    The union of the shards' items is no random sample, but its items of highest priority are; so a
    cell's items are drawn in the order of their priorities.

    Args:
        requests: reads the pool.
        traffic: tells the partitions.
        slots: pool slots per cell and partition.
        decay: of the pool's priorities, 1/s.
        hash_key: their 16-byte key.
    """

    def __init__(
        self, requests: RequestStore, traffic: TrafficFacts, slots: int, decay: float, hash_key: bytes
    ) -> None:
        self._requests = requests
        self._partitions = traffic.partitions
        self._slots = slots
        self._decay = decay
        self._hash_key = hash_key
        self._cells: dict[int, list[Pooled]] = {}

    def draw(self, cells: Sequence[int]) -> list[Pooled | None]:
        """The next item of every cell, None where a cell has no more."""
        self._read([cell for cell in dict.fromkeys(cells) if cell not in self._cells])
        return [self._cells[cell].pop() if self._cells[cell] else None for cell in cells]

    def _read(self, cells: Sequence[int]) -> None:
        if not cells:
            return
        slots = [cell * self._slots + slot for cell in cells for slot in range(self._slots)]
        replies = self._requests.pooled([(partition, slots) for partition in self._partitions])
        found = [
            (partition, slot, encoded, decode_pool_record(encoded))
            for partition, reply in zip(self._partitions, replies, strict=True)
            for slot, encoded in zip(slots, reply, strict=True)
            if encoded is not None
        ]
        hashes = siphash24([record.item_id.encode() for *_, record in found], self._hash_key)
        times = np.array([record.time for *_, record in found])
        priorities = self._decay * times + gumbel_noise(hashes)
        self._cells.update({cell: [] for cell in cells})
        for i in np.argsort(priorities):  # the highest last, where pop() takes it
            partition, slot, encoded, record = found[i]
            self._cells[slot // self._slots].append(Pooled(partition, slot, encoded, int(hashes[i]), record))
