"""Shards in Redis: loaded when a partition is assigned; one atomic step writes back what has changed."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from typing import Any

import msgspec
import numpy as np

from service.config.model import DriftSettings
from service.domain.arrays import Floats
from service.domain.cells import CellSpace
from service.domain.errors import FlushRefused
from service.domain.grouping_pool import Sketch
from service.domain.pool import Pools, PoolSizes
from service.domain.pool_key import PoolKey
from service.domain.shard import Shard
from service.domain.traffic import Traffic
from service.domain.traffic_marks import Mark, ShardMarks
from service.domain.traffic_tables import tables
from service.store.connection import Argument, Connection, ModelStore
from service.store.drift_facts import PINS, unpack_pins
from service.store.joins import join_arguments, join_keys, pending_joins
from service.store.keys import ModelKeys
from service.store.marked_traffic import newest_prediction, shard_timeline
from service.store.traffic_pages import changed_pages, stored_traffic

_HASH_BYTES = 8
_SHARD_FIELDS = (
    *("next_offset", "flush_id", "drawn_base", "landmark", "newest_record", "newest_prediction"),
    "clipped",
)


def unpack_probability_sums(fields: Mapping[bytes, bytes]) -> dict[int, Floats]:
    """Class-probability sums by predicted class, as they are stored."""
    return {int(c): np.frombuffer(v, "<f8").astype(np.float64) for c, v in fields.items()}


def unpack_clipped(field: bytes | None) -> dict[str, int]:
    """How many predictions had a time that was clipped, by direction, as it is stored."""
    return {} if field is None else msgspec.json.decode(field, type=dict[str, int])


def pool_field(pool_id: str, group: str) -> bytes:
    """Field of a group's sketch in the hash of pools."""
    return f"{pool_id}\0{group}".encode()


def split_pool_field(field: bytes) -> tuple[str, str]:
    """Pool id and group that a field is of."""
    pool_id, _, group = field.decode().partition("\0")
    return pool_id, group


class ShardStore(ModelStore):
    """Loads and flushes the shards of one model that this process owns.

    Args:
        pool_ids: ids of pools, by the grouping that requests labels.
        pool_sizes: how many items they keep.
        pool_key: decides the order of their items.
        decay: how fast traffic loses weight, 1/s.
        draw_decay: how fast pooled items lose weight in draws, 1/s.
        drift: says at which boundaries of event time traffic is marked.
        join_items: how many predictions wait for unrequested labels, about; None if the model takes none.
        join_seconds: how long at most.
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        space: CellSpace,
        *,
        pool_ids: Mapping[str, str],
        pool_sizes: PoolSizes,
        pool_key: PoolKey,
        decay: float,
        draw_decay: float,
        drift: DriftSettings,
        join_items: int | None = None,
        join_seconds: float = np.inf,
    ) -> None:
        super().__init__(connection, keys)
        self._space = space
        self._specs = tables(space)
        self._pool_groupings = {pool_id: name for name, pool_id in pool_ids.items()}
        self._pool_sizes = pool_sizes
        self._pool_key = pool_key
        self._decay = decay
        self._draw_decay = draw_decay
        self._drift = drift
        self._join_items = join_items
        self.join_seconds = join_seconds
        self._owner = secrets.token_hex(4)
        self._flushes = count()
        self._stale: dict[int, set[bytes]] = {}

    @property
    def joins(self) -> bool:
        """Whether predictions wait for unrequested labels."""
        return self._join_items is not None

    def load(self, partition: int) -> Shard:
        """The shard of a predictions partition, as stored; its next offset is 0 where none is."""
        keys = self._keys
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.hmget(keys.shard(partition), *_SHARD_FIELDS)
            pipeline.hgetall(keys.traffic(partition))
            pipeline.hgetall(keys.pool(partition))
            pipeline.hkeys(keys.items(partition))
            pipeline.hgetall(keys.sums(partition))
            pipeline.lrange(keys.drawn(partition), 0, -1)
            pipeline.hkeys(keys.marks(partition))
            pipeline.hget(keys.drift, PINS)
            head, stored, pooled, items, sums, drawn, marks, pins = pipeline.execute()
        next_offset, flush_id, base, landmark, newest_record, prediction, clipped = head
        if next_offset is None:
            # Traffic without an offset would be counted again.
            traffic, stale = Traffic(self._specs), set(stored)
        else:
            traffic, stale = stored_traffic(self._specs, landmark, stored)
        shard = Shard(
            self._space,
            next_offset=int(next_offset or 0),
            traffic=traffic,
            pools=self._unpack_pools(pooled, items),
            pool_groupings=self._pool_groupings,
            noise=self._pool_key.noise,
            decay=self._decay,
            draw_decay=self._draw_decay,
            marks=self._stored_marks(
                marks,
                newest=newest_prediction(prediction, newest_record),
                predictions=traffic.predictions,
                pins=unpack_pins(pins),
            ),
            newest_record=-np.inf if newest_record is None else float(newest_record),
            probability_sums=unpack_probability_sums(sums),
            clipped=unpack_clipped(clipped),
            joins=None if self._join_items is None else pending_joins(self._join_items),
        )
        self._stale[partition] = stale
        shard.is_stored = next_offset is not None
        shard.stored_by = (flush_id or b"").decode()
        shard.next_flush = self._flush_id()
        shard.drawn_seen = int(base or 0)
        _take_drawn(shard, drawn)
        return shard

    def _stored_marks(
        self, fields: Sequence[bytes], *, newest: float, predictions: int, pins: Collection[float]
    ) -> ShardMarks:
        stored = [mark for mark in map(Mark.parse, map(bytes.decode, fields)) if mark is not None]
        *valid, _ = shard_timeline(fields, newest=newest, predictions=predictions)
        return ShardMarks(
            self._drift.slots,
            enough=self._drift.reference_predictions,
            stored=valid,
            newest=newest if predictions else -np.inf,
            pins=pins,
            removed=set(stored).difference(valid),
        )

    def _flush_id(self) -> str:
        return f"{self._owner}.{next(self._flushes)}"

    def _unpack_pools(self, pooled: Mapping[bytes, bytes], items: Sequence[bytes]) -> Pools:
        """The stored pools of groupings that still request labels; the others are to be deleted."""
        stored: dict[str, dict[str, Sketch]] = {}
        deleted: set[tuple[str, str]] = set()
        for field, encoded in pooled.items():
            pool_id, group = split_pool_field(field)
            if pool_id in self._pool_sizes.wanted:
                stored.setdefault(pool_id, {})[group] = Sketch.decode(encoded)
            else:
                deleted.add((pool_id, group))
        pools = self._pool_sizes.pools(stored)
        pools.removed = {unpack_hash(item) for item in items} - pools.holders.keys()
        pools.deleted = deleted
        return pools

    def flush(self, partition: int, shard: Shard, *, new_offset: int) -> None:
        """Write one shard back, and take out of its pools what was drawn from them.

        Redis must still hold its `next_offset`, as written by the flush `stored_by`. `new_offset` is that of
        the first record that is not in the shard now.

        Raises:
            FlushRefused: somebody else has moved the shard on, or Redis has lost what it held.
            Unavailable: Redis cannot answer now; flushing the same again is harmless.
        """
        keys, traffic, pools = self._keys, shard.traffic, shard.pools
        stale = self._stale.get(partition, set())
        arguments: list[Argument] = [
            shard.next_offset if shard.is_stored else "",
            new_offset,
            shard.stored_by,
            shard.next_flush,
            shard.drawn_seen,
            partition,
            repr(traffic.landmark) if shard.changed and np.isfinite(traffic.landmark) else "",
            repr(shard.newest_record) if np.isfinite(shard.newest_record) else "",
            msgspec.json.encode(shard.clipped) if shard.clipped else "",
            repr(shard.marks.newest) if np.isfinite(shard.marks.newest) else "",
        ]
        sketches = [
            (pool_field(pool_id, group), sketch.encode()) for pool_id, group, sketch in pools.changed()
        ]
        sums = [
            (predicted, shard.probability_sums[predicted].astype("<f8").tobytes())
            for predicted in sorted(shard.changed_classes)
        ]
        records = [(pack_hash(item), record) for item, record in pools.added.items()]
        marks = [(mark.field(), counts.pack()) for mark, counts in shard.marks.added.items()]
        written: list[list[tuple[Any, bytes]]] = [
            list(changed_pages(traffic)),
            sketches,
            records,
            sums,
            marks,
        ]
        for fields in written:
            arguments += [len(fields), *chain.from_iterable(fields)]
        arguments += [len(pools.removed), *map(pack_hash, pools.removed)]
        arguments += [len(pools.deleted), *(pool_field(*group) for group in pools.deleted)]
        arguments += [len(stale), *stale]
        arguments += [len(shard.marks.removed), *(mark.field() for mark in shard.marks.removed)]
        hashes = [keys.shard, keys.traffic, keys.pool, keys.items, keys.sums, keys.drawn]
        names = [*(key(partition) for key in hashes), keys.partitions, keys.marks(partition), keys.drift]
        if shard.joins is None or self._join_items is None:
            reply = self._connection.run("flush", names, arguments)
        else:
            names += join_keys(keys, shard.joins)
            arguments += join_arguments(shard.joins, self._join_items)
            sample, *reply = self._connection.run("flush_waiting", names, arguments)
        if reply[0] != b"ok":
            raise FlushRefused(
                f"the shard of partition {partition} has moved on in Redis; reload it and go on from there"
            )
        base, entries = int(reply[1]), reply[3:]
        shard.marks.pins = unpack_pins(reply[2])
        if shard.joins is not None:
            level, *hours = map(int, sample.split())
            shard.joins.mark_flushed(level, hours)
        shard.next_offset, shard.is_stored = new_offset, True
        shard.stored_by, shard.next_flush = shard.next_flush, self._flush_id()
        shard.mark_flushed()
        self._stale.pop(partition, None)
        _take_drawn(shard, entries[shard.drawn_seen - base :])


def _take_drawn(shard: Shard, drawn: Sequence[bytes]) -> None:
    """Take the items of new entries of the list of drawn items out of the shard's pools."""
    for entry in drawn:
        shard.pools.take(*split_drawn_entry(entry))
    shard.drawn_seen += len(drawn)


def pack_hash(item: int) -> bytes:
    """Field of an item in the hash of items, as sketches hold it."""
    return item.to_bytes(_HASH_BYTES, "little")


def unpack_hash(packed: bytes) -> int:
    """Hash of an item from its field."""
    return int.from_bytes(packed, "little")


def split_drawn_entry(entry: bytes) -> tuple[str, str, int]:
    """Pool id, group and hash of a drawn item, from the field of its group's sketch and its packed hash."""
    return *split_pool_field(entry[:-_HASH_BYTES]), unpack_hash(entry[-_HASH_BYTES:])
