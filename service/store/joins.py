"""Predictions that wait for labels that nobody requested, and these labels.

`lua/joins.lua` says how they are stored. An item is sampled by its digest, which nobody can predict without
the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

from service.domain.pending_joins import HOUR_SECONDS, PendingJoins
from service.store.connection import Argument, Connection, ModelStore
from service.store.keys import ModelKeys
from service.store.records import ABSENT, LabelFact, encode_packed
from service.store.request_registry import class_digest

JoinStatus = Literal[
    "joined", "early", "revised", "unchanged", "not_sampled", "dropped", "too_late", "no_prediction"
]
"""What became of an unrequested label; `no_prediction`: of an early one that had to go for others."""

JOIN_RESULTS: tuple[str, ...] = get_args(JoinStatus)

NOT_JOINED: tuple[JoinStatus, ...] = ("early", "no_prediction", "too_late", "dropped")
"""Results of labels that found no prediction, so far or for ever."""

EARLY_SHARE = 10
"""One label may wait for its prediction for so many predictions that may wait for theirs."""

_MOST_PENDING = 20_000
"""Predictions of one flush: Redis does nothing else for 0.1 s, or 0.3 s if as many are thinned out.

A shard is flushed at `FLUSHED_ITEMS`, so only one poll can bring as many.
"""

_MOST_LABELS = 2_000
"""Labels of one call: Redis does nothing else for up to 50 ms."""

_CLASS_BYTES = 6
_RETRACTED = b"\xff" * _CLASS_BYTES


def pending_joins(join_items: int) -> PendingJoins:
    """Of a shard that has just been loaded."""
    return PendingJoins(min(-(-join_items // 2), _MOST_PENDING))


def join_keys(keys: ModelKeys, pending: PendingJoins) -> list[str]:
    """What a flush needs beside the keys of its shard."""
    return [keys.cohorts, keys.waiting, *map(keys.cohort, pending.hours_to_flush)]


def join_arguments(pending: PendingJoins, join_items: int) -> list[Argument]:
    """The same for its arguments."""
    hours = pending.hours_to_flush
    numbers = {hour: number for number, hour in enumerate(hours, 1)}
    arguments: list[Argument] = [join_items, len(hours), *chain.from_iterable(hours.items())]
    arguments.append(len(pending.items))
    for item in pending.items:
        arguments += [pack_digest(item.digest), numbers[item.hour], repr(item.arrival), item.fact]
    return arguments


def pack_digest(digest: int) -> bytes:
    """Field of an item in the hash of waiting items."""
    return digest.to_bytes(8)


@dataclass(frozen=True)
class OwnPrediction:
    """The prediction that a label carries.

    Attributes:
        predicted_at: seconds since the epoch.
        fact: its packed `Fact`.
    """

    predicted_at: float
    fact: bytes


@dataclass(frozen=True)
class UnrequestedLabel:
    """One label without a request, checked and ready to be joined.

    Attributes:
        digest: of its item, from `PoolKey.join_digests`.
        true_class: empty for a retraction.
        time: the latest one of an item counts; seconds since the epoch.
        given_at: the time for the outcome, which is not in the future.
        vendor: who signed it; empty if no vendors are configured.
    """

    digest: int
    true_class: str
    time: float
    given_at: float
    annotator: str = ""
    vendor: str = ""
    own: OwnPrediction | None = None


@dataclass(frozen=True)
class JoinResult:
    """What became of some labels.

    Attributes:
        statuses: of each.
        displaced: earlier labels that had waited for their prediction longest, and had to go for these.
    """

    statuses: list[JoinStatus]
    displaced: int


class JoinStore(ModelStore):
    """The unrequested labels of one model.

    Args:
        join_items: how many predictions wait for a label, about.
        join_seconds: how long.
        outcome_limit: how many entries the outcome stream keeps, about.
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        *,
        join_items: int,
        join_seconds: float,
        outcome_limit: int,
    ) -> None:
        super().__init__(connection, keys)
        self._join_items = join_items
        self._join_seconds = join_seconds
        self._outcome_limit = outcome_limit

    def apply(self, partition: int, labels: Sequence[UnrequestedLabel], *, now: float) -> JoinResult:
        """Join a batch of labels of a partition with their predictions; their order makes no difference."""
        statuses: list[JoinStatus] = []
        displaced = 0
        for begin in range(0, max(len(labels), 1), _MOST_LABELS):
            part = labels[begin : begin + _MOST_LABELS]
            batches = int(begin + _MOST_LABELS >= len(labels))
            done = self._apply_part(partition, part, batches=batches, now=now)
            statuses += done.statuses
            displaced += done.displaced
        return JoinResult(statuses, displaced)

    def _apply_part(
        self, partition: int, labels: Sequence[UnrequestedLabel], *, batches: int, now: float
    ) -> JoinResult:
        keys = self._keys
        names = [keys.cohorts, keys.waiting, keys.early, keys.outcomes, keys.labels(partition)]
        arguments: list[Argument] = [self._join_items, self._join_items // EARLY_SHARE, self._outcome_limit]
        arguments += [hour_of(now - self._join_seconds), len(labels), batches]
        for label in labels:
            given = LabelFact(
                label.true_class,
                label.given_at,
                label.annotator,
                label.vendor,
                "" if label.true_class else ABSENT,
            )
            digest = class_digest(label.true_class)[:_CLASS_BYTES] if label.true_class else _RETRACTED
            arguments += [pack_digest(label.digest), repr(label.time), digest, encode_packed(given)]
            if label.own is None:
                names.append(keys.early)
                arguments += ["", ""]
            else:
                hour = hour_of(label.own.predicted_at)
                names.append(keys.cohort(hour))
                arguments += [hour, label.own.fact]
        displaced, *statuses = self._connection.run("join_labels", names, arguments)
        return JoinResult([status.decode() for status in statuses], int(displaced))


def hour_of(time: float) -> int:
    """The cohort of predictions that arrive at a time."""
    return int(time // HOUR_SECONDS)
