"""Shards in Redis: loaded when a partition is assigned, written back whole in one atomic step."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import msgspec
import numpy as np

from service.cells import Combination
from service.combination_directory import CombinationDirectory
from service.errors import FlushRefused
from service.pool import GroupingPool, Pools, Sketch
from service.pool_key import PoolKey
from service.shard import Floats, Shard, Traffic
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys

_HASH_BYTES = 8

TRAFFIC_FIELDS = ("landmark", "counts", "weights", "score_sums")


def unpack_traffic(fields: Sequence[bytes | None]) -> Traffic:
    """Traffic from the values of `TRAFFIC_FIELDS`; empty where nothing was stored."""
    landmark, counts, weights, score_sums = fields
    if landmark is None or counts is None or weights is None or score_sums is None:
        return Traffic.empty(0)
    return Traffic(
        float(landmark),
        np.frombuffer(counts, "<i8").astype(np.int64),
        np.frombuffer(weights, "<f8").astype(np.float64),
        np.frombuffer(score_sums, "<f8").astype(np.float64),
    )


def unpack_probability_sums(fields: Mapping[bytes, bytes]) -> dict[int, Floats]:
    """Class-probability sums by predicted class, as they are stored."""
    return {int(c): np.frombuffer(v, "<f8").astype(np.float64) for c, v in fields.items()}


class DirectoryStore:
    """One model's directory of combinations, as one process knows it."""

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        make: Callable[[Sequence[Combination]], CombinationDirectory],
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._make = make
        self.directory = make(())

    def load(self, *, limit: int) -> None:
        """Know what Redis knows and nothing else, as it may have lost what this process knew.

        Args:
            limit: most combinations that the directory may hold.

        Raises:
            Unavailable: Redis cannot answer now; then nothing has changed.
        """
        empty = self._make(())
        texts = self._register(0, limit, empty.combinations)
        self.directory = self._make([decode_combination(text) for text in texts or ()])

    def register(self, folded: Combination, *, limit: int) -> bool:
        """Learn what others have registered; if they have not, register a folded combination.

        Args:
            folded: not in the directory yet.
            limit: most combinations that the directory may hold.

        Returns:
            Whether this may still be the list that this process knows; if it is not, nothing has changed.

        Raises:
            Unavailable: Redis cannot answer now; registering again is harmless.
        """
        texts = self._register(len(self.directory), limit, [folded])
        unknown = [decode_combination(text) for text in texts or ()]
        if texts is None or any(self.directory.number(combination) is not None for combination in unknown):
            return False
        for combination in unknown:
            self.directory.append(combination)
        return True

    def _register(self, known: int, limit: int, adding: Sequence[Combination]) -> list[bytes] | None:
        wanted = [encode_combination(combination) for combination in adding]
        reply: list[bytes] | None = self._connection.run(
            "register_combinations", [self._keys.combinations], [known, limit, *wanted]
        )
        return reply


def encode_combination(combination: Combination) -> bytes:
    """JSON text of a combination, one text for one combination."""
    return msgspec.json.encode(combination)


def decode_combination(text: bytes) -> Combination:
    """A combination from its JSON text."""
    return tuple(msgspec.json.decode(text, type=list[str]))


def pool_field(pool_id: str, group: str) -> bytes:
    """Field of a group's sketch in the hash of pools."""
    return f"{pool_id}\0{group}".encode()


def split_pool_field(field: bytes) -> tuple[str, str]:
    """Pool id and group that a field is of."""
    pool_id, _, group = field.decode().partition("\0")
    return pool_id, group


@dataclass(frozen=True)
class PoolSizes:
    """How many items the pools of one shard keep.

    Attributes:
        wanted: items of one group, by pool id.
        capacity: items of all groupings together.
    """

    wanted: Mapping[str, int]
    capacity: int

    def pools(self, stored: Mapping[str, Mapping[str, Sketch]]) -> Pools:
        """Pools of all groupings that ask, with what was stored, by pool id and group."""
        share = self.capacity // max(len(self.wanted), 1)
        return Pools(
            {
                pool_id: GroupingPool(wanted, share, stored.get(pool_id))
                for pool_id, wanted in self.wanted.items()
            }
        )


class ShardStore:
    """Loads and flushes the shards of one model that this process owns.

    Args:
        connection: to Redis.
        keys: of the model.
        pool_ids: ids of pools, by the grouping that asks.
        pool_sizes: how many items they keep.
        pool_key: decides the order of their items.
        decay: lambda in 1/s.
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        *,
        pool_ids: Mapping[str, str],
        pool_sizes: PoolSizes,
        pool_key: PoolKey,
        decay: float,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self.pool_ids = dict(pool_ids)
        self._pool_sizes = pool_sizes
        self._pool_key = pool_key
        self._decay = decay
        self._owner = secrets.token_hex(4)
        self._flushes = count()

    def load(self, partition: int, *, cell_count: int) -> tuple[Shard, bool, int]:
        """The shard as stored.

        Args:
            partition: of the predictions topic.
            cell_count: cells of the model by now.

        Returns:
            The shard (its next offset is 0 where none is stored), whether one was stored, and how many
            drawn items it already reflects.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        keys = self._keys
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=True)
            pipeline.hmget(keys.shard(partition), "next_offset", "flush_id", "drawn_base", *TRAFFIC_FIELDS)
            pipeline.hgetall(keys.pool(partition))
            pipeline.hkeys(keys.items(partition))
            pipeline.hgetall(keys.sums(partition))
            pipeline.lrange(keys.drawn(partition), 0, -1)
            (next_offset, flush_id, base, *traffic_fields), pooled, items, sums, drawn = pipeline.execute()
        shard = Shard(
            next_offset=int(next_offset or 0),
            traffic=unpack_traffic(traffic_fields).resized(cell_count),
            pools=self._unpack_pools(pooled, items),
            noise=self._pool_key.noise,
            decay=self._decay,
            probability_sums=unpack_probability_sums(sums),
        )
        shard.stored_by = (flush_id or b"").decode()
        shard.next_flush = self._flush_id()
        _take_drawn(shard, drawn)
        return shard, next_offset is not None, int(base or 0) + len(drawn)

    def _flush_id(self) -> str:
        return f"{self._owner}.{next(self._flushes)}"

    def _unpack_pools(self, pooled: Mapping[bytes, bytes], items: Sequence[bytes]) -> Pools:
        """What was stored of groupings that still ask; the rest is to be removed."""
        stored: dict[str, dict[str, Sketch]] = {}
        stale: set[bytes] = set()
        for field, encoded in pooled.items():
            pool_id, group = split_pool_field(field)
            if pool_id in self._pool_sizes.wanted:
                stored.setdefault(pool_id, {})[group] = Sketch.decode(encoded)
            else:
                stale.add(field)
        pools = self._pool_sizes.pools(stored)
        pools.removed = {unpack_hash(item) for item in items} - pools.holders.keys()
        pools.stale_fields = stale
        return pools

    def flush(
        self,
        partition: int,
        shard: Shard,
        *,
        new_offset: int,
        drawn_seen: int,
        started: bool,
        combinations: Sequence[tuple[int, Combination]],
    ) -> int:
        """Write one shard back and learn which of its items were drawn.

        Args:
            partition: of the predictions topic.
            shard: Redis must still hold its `next_offset`, as written by the flush `stored_by`.
            new_offset: offset of the first record that is not in the shard now.
            drawn_seen: drawn items that the shard already reflects.
            started: whether the shard has been stored before.
            combinations: numbered combinations that the shard relies on and that no flush has confirmed.

        Returns:
            How many drawn items the shard reflects now.

        Raises:
            FlushRefused: somebody else has moved the shard on, or Redis has lost what it held.
            Unavailable: Redis cannot answer now; flushing the same again is harmless.
        """
        keys, traffic = self._keys, shard.traffic
        packed: list[bytes | str] = ["", "", "", ""]
        if shard.changed and np.isfinite(traffic.landmark):
            packed = [
                repr(traffic.landmark),
                traffic.counts.astype("<i8").tobytes(),
                traffic.weights.astype("<f8").tobytes(),
                traffic.score_sums.astype("<f8").tobytes(),
            ]
        arguments: list[str | bytes | int | float] = [
            shard.next_offset if started else "",
            new_offset,
            shard.stored_by,
            shard.next_flush,
            drawn_seen,
            partition,
            *packed,
            len(combinations),
        ]
        for number, combination in combinations:
            arguments += [number, encode_combination(combination)]
        pools = shard.pools
        sketches = pools.changed()
        arguments.append(len(sketches))
        for pool_id, group, sketch in sketches:
            arguments += [pool_field(pool_id, group), sketch.encode()]
        arguments.append(len(pools.added))
        for item, record in pools.added.items():
            arguments += [pack_hash(item), record]
        arguments.append(len(shard.changed_classes))
        for predicted in sorted(shard.changed_classes):
            arguments += [predicted, shard.probability_sums[predicted].astype("<f8").tobytes()]
        arguments += [len(pools.removed), *map(pack_hash, pools.removed)]
        arguments += [len(pools.stale_fields), *pools.stale_fields]
        reply = self._connection.run(
            "flush",
            [
                keys.shard(partition),
                keys.pool(partition),
                keys.items(partition),
                keys.sums(partition),
                keys.drawn(partition),
                keys.partitions,
                keys.combinations,
            ],
            arguments,
        )
        if reply[0] != b"ok":
            raise FlushRefused(
                f"the shard of partition {partition} has moved on in Redis; reload it and go on from there"
            )
        base, entries = int(reply[1]), reply[2:]
        shard.next_offset = new_offset
        shard.stored_by, shard.next_flush = shard.next_flush, self._flush_id()
        shard.mark_flushed()
        _take_drawn(shard, entries[drawn_seen - base :])
        return base + len(entries)


def pack_hash(item: int) -> bytes:
    """Field of an item in the hash of items, as sketches hold it."""
    return item.to_bytes(_HASH_BYTES, "little")


def unpack_hash(packed: bytes) -> int:
    """Hash of an item from its field."""
    return int.from_bytes(packed, "little")


def drawn_entry(field: bytes, item: int) -> bytes:
    """Entry in the list of drawn items: field of the group's sketch, and the item's hash."""
    return field + pack_hash(item)


def _take_drawn(shard: Shard, drawn: Sequence[bytes]) -> None:
    for entry in drawn:
        pool_id, group = split_pool_field(entry[:-_HASH_BYTES])
        shard.pools.take(pool_id, group, unpack_hash(entry[-_HASH_BYTES:]))
