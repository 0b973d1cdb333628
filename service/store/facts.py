"""Reading the facts: what every replica needs to compute beliefs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from service.cells import Combination
from service.shard import Floats, Traffic, merge_probability_sums, merge_traffic
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys
from service.store.records import Fact, decode_fact, decode_pool_record
from service.store.requests import OpenRequest
from service.store.shards import (
    TRAFFIC_FIELDS,
    decode_combination,
    unpack_probability_sums,
    unpack_traffic,
)

_REPLIES = 4
"""Replies that one shard's part of the pipeline gives."""

_POOL_SAMPLE = 32
"""Items of every shard's pool whose age is looked at."""


@dataclass(frozen=True)
class OutcomeEntry:
    """One change of what is known of a requested item.

    Attributes:
        request_id: id of the label request.
        kind: `answered`, `corrected` or `retracted`.
        assessment: who asked.
        grouping: name of the assessment's grouping then.
        group: name of the group that it was drawn for.
        fact: what was predicted.
        true_class: empty for a retraction.
        time: when the label was given, seconds since the epoch.
    """

    request_id: str
    kind: str
    assessment: str
    grouping: str
    group: str
    fact: Fact
    true_class: str
    time: float


@dataclass(frozen=True)
class TrafficFacts:
    """Traffic of all shards of one model together.

    Attributes:
        combinations: attribute combinations in the order of their numbers.
        partitions: partitions that have a shard.
        traffic: merged, [cells].
        pool_sizes: pooled items per partition.
        pool_times: when some of them were predicted, a random sample per partition.
        offsets: next offset per partition.
        probability_sums: per predicted class with any, the weighted sums of its class probabilities
            [classes].
    """

    combinations: list[Combination]
    partitions: list[int]
    traffic: Traffic
    pool_sizes: dict[int, int]
    pool_times: dict[int, Floats]
    offsets: dict[int, int]
    probability_sums: dict[int, Floats]


@dataclass(frozen=True)
class RequestFacts:
    """Requests of one model: those in flight, and how often what happened.

    Attributes:
        open: requests in flight by id.
        outbox_size: messages that wait to be published.
        budget: labels used, by `assessment|window`.
        tallies: how often, by (event, assessment).
    """

    open: dict[str, OpenRequest]
    outbox_size: int
    budget: dict[str, int]
    tallies: dict[tuple[str, str], int]


class FactReader:
    """Reads one model's facts."""

    def __init__(
        self, connection: Connection, keys: ModelKeys, *, decay: float, cells_per_combination: int
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._decay = decay
        self._cells_per_combination = cells_per_combination

    def traffic(self) -> TrafficFacts:
        """Traffic of all shards together.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        client, keys = self._connection.client, self._keys
        with unavailable_when_away():
            partitions = sorted(int(p) for p in client.smembers(keys.partitions))
            # In one go, because a shard's sums are told at its landmark.
            pipeline = client.pipeline(transaction=True)
            for partition in partitions:
                pipeline.hmget(keys.shard(partition), "next_offset", *TRAFFIC_FIELDS)
                pipeline.hlen(keys.pool(partition))
                pipeline.hrandfield(keys.pool(partition), _POOL_SAMPLE, withvalues=True)
                pipeline.hgetall(keys.sums(partition))
            # Last, so that every cell of the shards has its combination.
            pipeline.lrange(keys.combinations, 0, -1)
            *replies, combination_texts = pipeline.execute()
        combinations = [decode_combination(text) for text in combination_texts]
        cells = len(combinations) * self._cells_per_combination
        fields, sizes, samples, told_sums = (replies[i::_REPLIES] for i in range(_REPLIES))
        shards = [unpack_traffic(told[1:]) for told in fields]
        sums = [unpack_probability_sums(told) for told in told_sums]
        return TrafficFacts(
            combinations=combinations,
            partitions=partitions,
            traffic=merge_traffic(shards, self._decay, cells),
            pool_sizes=dict(zip(partitions, sizes, strict=True)),
            pool_times={
                p: np.array([decode_pool_record(record).time for record in sample[1::2]])
                for p, sample in zip(partitions, samples, strict=True)
            },
            offsets={p: int(told[0] or 0) for p, told in zip(partitions, fields, strict=True)},
            probability_sums=merge_probability_sums(
                [(shard.landmark, told) for shard, told in zip(shards, sums, strict=True)], self._decay
            ),
        )

    def requests(self) -> RequestFacts:
        """Requests in flight, the outbox's size, budgets and tallies.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        keys = self._keys
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=True)
            pipeline.hgetall(keys.open)
            pipeline.hlen(keys.outbox)
            pipeline.hgetall(keys.budget)
            pipeline.hgetall(keys.tallies)
            opened, outbox_size, budget, tallies = pipeline.execute()
        return RequestFacts(
            open={k.decode(): msgspec.json.decode(v, type=OpenRequest) for k, v in opened.items()},
            outbox_size=outbox_size,
            budget={k.decode(): int(v) for k, v in budget.items()},
            tallies={_event_and_assessment(k): int(v) for k, v in tallies.items()},
        )

    def outcomes(self, after: str) -> tuple[str, list[OutcomeEntry]]:
        """Entries of the outcome stream behind an id.

        Args:
            after: id of the last entry that was read; `0-0` for all.

        Returns:
            Id of the last entry now, and the entries. When the stream does not hold `after` any more (it
            was restored from an older state, or has been trimmed so far), the id is `0-0` and the caller
            starts anew.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        client, key = self._connection.client, self._keys.outcomes
        entries: list[OutcomeEntry] = []
        last = after
        with unavailable_when_away():
            if after != "0-0" and not client.xrange(key, min=after, max=after):
                return "0-0", []
            while page := client.xrange(key, min=f"({last}", count=10_000):
                entries += [_outcome_entry(fields) for _, fields in page]
                last = page[-1][0].decode()
        return last, entries


def _outcome_entry(fields: dict[bytes, bytes]) -> OutcomeEntry:
    return OutcomeEntry(
        request_id=fields[b"request"].decode(),
        kind=fields[b"kind"].decode(),
        assessment=fields[b"assessment"].decode(),
        grouping=fields[b"grouping"].decode(),
        group=fields[b"group"].decode(),
        fact=decode_fact(fields[b"fact"]),
        true_class=fields[b"true_class"].decode(),
        time=float(fields[b"time"]),
    )


def _event_and_assessment(field: bytes) -> tuple[str, str]:
    event, _, assessment = field.decode().partition("|")
    return event, assessment
