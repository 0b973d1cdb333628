"""Shards in Redis: loaded when a partition is assigned, written back whole in one atomic step."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from service.cells import Combination
from service.combination_directory import CombinationDirectory
from service.errors import FlushRefused
from service.shard import Floats, Pool, Shard, Traffic, gumbel_noise
from service.siphash import siphash24
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys
from service.store.records import decode_pool_record

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


class ShardStore:
    """Loads and flushes the shards of one model that this process owns."""

    def __init__(
        self, connection: Connection, keys: ModelKeys, *, slots: int, decay: float, hash_key: bytes
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._slots = slots
        self._decay = decay
        self._hash_key = hash_key
        self._owner = secrets.token_hex(4)

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
            pipeline.hmget(keys.shard(partition), "next_offset", "drawn_base", *TRAFFIC_FIELDS)
            pipeline.hgetall(keys.pool(partition))
            pipeline.hgetall(keys.sums(partition))
            pipeline.llen(keys.drawn(partition))
            (next_offset, base, *traffic_fields), pooled, sums, drawn = pipeline.execute()
        traffic = unpack_traffic(traffic_fields).resized(cell_count)
        shard = Shard(
            next_offset=int(next_offset or 0),
            traffic=traffic,
            pool=self._unpack_pool(pooled, len(traffic.counts)),
            decay=self._decay,
            probability_sums=unpack_probability_sums(sums),
        )
        return shard, next_offset is not None, int(base or 0) + drawn

    def _unpack_pool(self, pooled: dict[bytes, bytes], cell_count: int) -> Pool:
        numbers = np.fromiter((int(n) for n in pooled), dtype=np.intp, count=len(pooled))
        pool = Pool.empty(max(cell_count, int(numbers.max(initial=-1)) // self._slots + 1), self._slots)
        if pooled:
            records = [decode_pool_record(value) for value in pooled.values()]
            hashes = siphash24([record.item_id.encode() for record in records], self._hash_key)
            times: Floats = np.array([record.time for record in records])
            pool.priorities.ravel()[numbers] = self._decay * times + gumbel_noise(hashes)
            pool.item_hashes.ravel()[numbers] = hashes
        return Pool(pool.priorities, pool.item_hashes)

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
            shard: its `next_offset` is what Redis must still hold.
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
            f"{self._owner}.{shard.next_offset}",
            drawn_seen,
            partition,
            *packed,
            len(combinations),
        ]
        for number, combination in combinations:
            arguments += [number, encode_combination(combination)]
        arguments.append(len(shard.changed_slots))
        for slot, record in shard.changed_slots.items():
            arguments += [slot, record]
        arguments.append(len(shard.changed_classes))
        for predicted in sorted(shard.changed_classes):
            arguments += [predicted, shard.probability_sums[predicted].astype("<f8").tobytes()]
        reply = self._connection.run(
            "flush",
            [
                keys.shard(partition),
                keys.pool(partition),
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
        unseen = entries[drawn_seen - base :]
        shard.free_drawn([(int(slot), int(item_hash)) for slot, item_hash in (e.split(b":") for e in unseen)])
        shard.next_offset = new_offset
        shard.mark_flushed()
        return base + len(entries)
