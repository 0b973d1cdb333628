"""The facts of a model, as every replica reads them to compute estimates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from service.domain.arrays import Floats
from service.domain.cells import CellSpace
from service.domain.traffic import Traffic, merge_probability_sums, merge_traffic
from service.domain.traffic_tables import tables
from service.store.connection import Connection, ModelStore, translate_redis_errors
from service.store.drift_facts import DriftStore
from service.store.drift_verdicts import DriftVerdicts
from service.store.keys import ModelKeys
from service.store.marked_traffic import MarkedCounts, MarkedTraffic, MarkReader, newest_prediction
from service.store.outcome_entries import (
    BEGINNING,
    OutcomePage,
    Position,
    entry_id_of,
    outcome_entry,
    position_of,
)
from service.store.records import (
    PoolRecord,
    decode_pool_record,
)
from service.store.references import ReferenceStore, ReferenceWindow
from service.store.requests import OpenRequest
from service.store.shards import unpack_clipped, unpack_probability_sums
from service.store.traffic_pages import stored_traffic

_REPLIES = 6
"""Replies to one shard's part of the pipeline."""

_SHARD_FIELDS = ("next_offset", "landmark", "newest_record", "newest_prediction", "clipped")

_BUCKET = b"|bucket"
"""How the field of a token bucket ends, in the hash of budgets."""

_POOL_SAMPLE = 32
"""Items of every shard's pool whose age is read."""

_SCORES_AT_ONCE = 100
"""Pool items in one reply."""

_PAGE = 10_000
"""Entries of the outcome stream in one reply: a few megabytes, and a few milliseconds of Redis."""


@dataclass(frozen=True)
class TrafficFacts:
    """Traffic of all shards of one model together.

    Attributes:
        partitions: those with a shard.
        pool_sizes: pooled items per partition.
        pool_times: when a random sample of them was predicted, per partition.
        offsets: next offset per partition.
        newest_record: time of the newest record of all partitions, seconds since the epoch; infinite if no
            record has a time.
        probability_sums: per predicted class with any, the weighted sums of its class probabilities
            [classes].
        clipped: how many predictions ever had a time that was replaced by a bound, by direction.
    """

    partitions: list[int]
    traffic: Traffic
    pool_sizes: dict[int, int]
    pool_times: dict[int, Floats]
    offsets: dict[int, int]
    probability_sums: dict[int, Floats]
    clipped: dict[str, int] = field(default_factory=dict)
    newest_record: float = math.inf

    @property
    def pool_items(self) -> int:
        """Pooled items of all partitions."""
        return sum(self.pool_sizes.values())

    def pool_item_age(self, now: float) -> float | None:
        """Median age of pooled items, s; None without any. A shard's sample stands for all its items."""
        sampled = [(p, times) for p, times in self.pool_times.items() if len(times)]
        if not sampled:
            return None
        times = np.concatenate([times for _, times in sampled])
        weights = np.repeat(
            [self.pool_sizes[p] / len(found) for p, found in sampled], [len(found) for _, found in sampled]
        )
        median = np.quantile(times, 0.5, weights=weights, method="inverted_cdf")
        return max(0.0, now - float(median))


@dataclass(frozen=True)
class RequestFacts:
    """Requests of one model: those in flight, and counts of events.

    Attributes:
        open: requests in flight, by id.
        outbox_size: messages to publish.
        budget: labels used, by `assessment|window`.
        buckets: records of the token buckets of budgets that renew, by assessment.
        tallies: counts by (event, assessment).
    """

    open: dict[str, OpenRequest]
    outbox_size: int
    budget: dict[str, int]
    buckets: dict[str, bytes]
    tallies: dict[tuple[str, str], int]

    @property
    def of_new_items(self) -> dict[str, OpenRequest]:
        """Requests in flight for items that nobody has labelled, gold items included."""
        return {name: request for name, request in self.open.items() if request.opinion == 1}


_LAST_ANSWERS = (b"heard|", b"unheard|")
"""Fields that are no events (`expire_requests.lua`)."""


class FactReader(ModelStore):
    """Reads one model's facts; `decay` is lambda of its traffic in 1/s."""

    def __init__(self, connection: Connection, keys: ModelKeys, space: CellSpace, *, decay: float) -> None:
        super().__init__(connection, keys)
        self._decay = decay
        self._specs = tables(space)
        self._marks = MarkReader(connection, keys)
        self._drift = DriftStore(connection, keys)

    def traffic(self) -> TrafficFacts:
        """Traffic of all shards together."""
        return self.marked_traffic()[0]

    def marked_traffic(self) -> tuple[TrafficFacts, MarkedTraffic]:
        """Traffic of all shards together, and when it arrived."""
        client, keys = self._connection.client, self._keys
        with translate_redis_errors():
            partitions = sorted(int(p) for p in client.smembers(keys.partitions))
            # In one transaction, because a shard's sums are relative to its landmark.
            pipeline = client.pipeline(transaction=True)
            for partition in partitions:
                pipeline.hmget(keys.shard(partition), *_SHARD_FIELDS)
                pipeline.hgetall(keys.traffic(partition))
                pipeline.hlen(keys.items(partition))
                pipeline.hrandfield(keys.items(partition), _POOL_SAMPLE, withvalues=True)
                pipeline.hgetall(keys.sums(partition))
                pipeline.hkeys(keys.marks(partition))
            replies = pipeline.execute()
        heads, pages, sizes, samples, packed_sums, marks = (replies[i::_REPLIES] for i in range(_REPLIES))
        shards = [
            stored_traffic(self._specs, landmark, fields)[0]
            for (_, landmark, *_), fields in zip(heads, pages, strict=True)
        ]
        sums = [unpack_probability_sums(packed) for packed in packed_sums]
        clipped: Counter[str] = Counter()
        for *_, counted in heads:
            clipped.update(unpack_clipped(counted))
        facts = TrafficFacts(
            partitions=partitions,
            traffic=merge_traffic(shards, self._specs, decay=self._decay),
            pool_sizes=dict(zip(partitions, sizes, strict=True)),
            pool_times={
                p: np.array([decode_pool_record(record).time for record in sample[1::2]])
                for p, sample in zip(partitions, samples, strict=True)
            },
            offsets={p: int(offset or 0) for p, (offset, *_) in zip(partitions, heads, strict=True)},
            probability_sums=merge_probability_sums(
                [(shard.landmark, each) for shard, each in zip(shards, sums, strict=True)], self._decay
            ),
            newest_record=max((float(newest) for _, _, newest, *_ in heads if newest), default=math.inf),
            clipped=dict(clipped),
        )
        newest = [newest_prediction(prediction, record) for _, _, record, prediction, _ in heads]
        return facts, MarkedTraffic.of(partitions, shards, newest, marks)

    def pooled_scores(self, most: int) -> list[PoolRecord]:
        """At most about `most` items of the pool, without payloads: a random sample of every shard's."""
        client, keys = self._connection.client, self._keys
        found: dict[tuple[int, bytes], PoolRecord] = {}
        with translate_redis_errors():
            partitions = sorted(int(p) for p in client.smembers(keys.partitions))
            for partition in partitions:
                # A few at a time, as payloads come along: neither Redis nor this process holds them all.
                for _ in range(math.ceil(most / len(partitions) / _SCORES_AT_ONCE)):
                    reply = client.hrandfield(keys.items(partition), _SCORES_AT_ONCE, withvalues=True) or []
                    for item, record in zip(reply[::2], reply[1::2], strict=True):
                        decoded = decode_pool_record(record)
                        found[partition, item] = msgspec.structs.replace(decoded, payload=b"", payload_uri="")
                    if len(reply) < 2 * _SCORES_AT_ONCE:
                        break
        return list(found.values())

    def requests(self) -> RequestFacts:
        """Requests in flight, the outbox's size, budgets and tallies."""
        with self._connection.pipeline(transaction=True) as pipeline:
            self._ask_for_requests(pipeline)
            return _request_facts(pipeline.execute())

    def _ask_for_requests(self, pipeline: Any) -> None:
        keys = self._keys
        pipeline.hgetall(keys.open)
        pipeline.hlen(keys.outbox)
        pipeline.hgetall(keys.budget)
        pipeline.hgetall(keys.tallies)

    def counts_at(self, traffic: MarkedTraffic, times: Collection[float]) -> MarkedCounts:
        """Counts of all traffic that arrived before some times; without those whose marks have gone."""
        return self._marks.counts_at(traffic, times)

    def drift(self) -> tuple[DriftVerdicts | None, tuple[float, ...]]:
        """The groups that had drifted in the last round of the leader, and the times that are pinned."""
        return self._drift.read()

    def reference(self) -> ReferenceWindow | None:
        """What "now" is compared with, if a window was set."""
        return ReferenceStore(self._connection, self._keys).window()

    def outcomes(self, after: Position) -> OutcomePage | None:
        """The entries of the outcome stream after a position, or `BEGINNING`; at most one page of them.

        Returns None if the stream no longer holds `after`: Redis was restored from an older state, or the
        stream was trimmed past it. The caller then starts from the beginning.
        """
        return self.outcomes_and_requests(after)[0]

    def outcomes_and_requests(self, after: Position) -> tuple[OutcomePage | None, RequestFacts]:
        """The same, and the requests of that moment: an answer moves a request to the outcomes at once."""
        key = self._keys.outcomes
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.xrange(key, min=entry_id_of(after), max=entry_id_of(after))
            pipeline.xrange(key, count=1)
            pipeline.xrange(key, min=f"({entry_id_of(after)}", count=_PAGE)
            self._ask_for_requests(pipeline)
            known, first, page, *replies = pipeline.execute()
        requests = _request_facts(replies)
        if after != BEGINNING and not known:
            return None, requests
        entries = [outcome_entry(entry_id, fields) for entry_id, fields in page]
        found = OutcomePage(
            first=position_of(first[0][0]) if first else BEGINNING,
            entries=entries,
            last=entries[-1].position if entries else after,
            complete=len(entries) < _PAGE,
        )
        return found, requests


def _request_facts(replies: Sequence[Any]) -> RequestFacts:
    opened, outbox_size, budget, tallies = replies
    return RequestFacts(
        open={k.decode(): msgspec.json.decode(v, type=OpenRequest) for k, v in opened.items()},
        outbox_size=outbox_size,
        budget={k.decode(): int(v) for k, v in budget.items() if not k.endswith(_BUCKET)},
        buckets={k.removesuffix(_BUCKET).decode(): v for k, v in budget.items() if k.endswith(_BUCKET)},
        tallies={
            _event_and_assessment(k): int(v) for k, v in tallies.items() if not k.startswith(_LAST_ANSWERS)
        },
    )


def _event_and_assessment(field: bytes) -> tuple[str, str]:
    event, _, assessment = field.decode().partition("|")
    return event, assessment
