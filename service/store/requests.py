"""Label requests in Redis: drawn and issued, published, expired, answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from service.errors import FenceRefused, FlushRefused
from service.store.asked import class_digest, item_digest, place_of, records_per_bucket
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys
from service.store.records import Given, encode_packed

IssueStatus = Literal["issued", "gone", "requested", "budget"]
ExpiryStatus = Literal["expired", "reissued", "changed"]


class OpenRequest(msgspec.Struct, frozen=True):
    """What is known of a request in flight without its item.

    Attributes:
        assessment: who asked.
        group: name of the group that it was drawn for.
        attributes: by name.
        predicted_class: by name.
        score: probability of the predicted class.
        attempt: counts from 1.
        requested_at: when the first attempt was issued, seconds since the epoch.
    """

    assessment: str
    group: str
    attributes: dict[str, str]
    predicted_class: str
    score: float
    attempt: int
    requested_at: float


@dataclass(frozen=True)
class Draw:
    """One pooled item to be turned into a label request."""

    partition: int
    slot: int
    record: bytes
    item_hash: int
    item_id: str
    request_id: str
    fact: bytes
    message: bytes
    open: OpenRequest
    deadline: float


@dataclass(frozen=True)
class Due:
    """One request whose deadline has passed."""

    request_id: str
    open: OpenRequest
    message: bytes


@dataclass(frozen=True)
class Renewal:
    """What becomes of a due request: another attempt, or, without a deadline, its end."""

    due: Due
    deadline: float | None = None
    message: bytes = b""


@dataclass(frozen=True)
class LabelEvent:
    """One label, checked and ready to be applied.

    Attributes:
        digest: 16 hexadecimal digits that differ between different labels for one request.
        true_class: empty for a skip and a retraction.
        time: seconds since the epoch.
    """

    request_id: str
    item_id: str
    kind: str
    true_class: str
    digest: str
    time: float
    annotator: str


@dataclass(frozen=True)
class Applied:
    """What became of a label.

    Attributes:
        status: `applied`, `duplicate`, or the reason to reject it.
        closed: the request that was open until this label came, if it was.
    """

    status: str
    closed: OpenRequest | None


class RequestStore:
    """The label requests of one model.

    Args:
        connection: to Redis.
        keys: of the model.
        closed_seconds: how long a label may be corrected or retracted.
        outcome_limit: outcomes to keep, about, and requests to remember, at least.
    """

    def __init__(
        self, connection: Connection, keys: ModelKeys, *, closed_seconds: int, outcome_limit: int
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._closed_seconds = closed_seconds
        self._outcome_limit = outcome_limit

    def pooled(self, partition_slots: Sequence[tuple[int, Sequence[int]]]) -> list[list[bytes | None]]:
        """Records in the given slots of each partition, None where a slot is empty.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        if not partition_slots:
            return []
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=False)
            for partition, slots in partition_slots:
                pipeline.hmget(self._keys.pool(partition), slots)
            replies: list[list[bytes | None]] = pipeline.execute()
        return replies

    def issue(
        self,
        *,
        epoch: int,
        assessment: str,
        window: str,
        budget: int,
        now: float,
        draws: Sequence[Draw],
    ) -> list[IssueStatus]:
        """Turn pooled items into label requests: draw, mark, take from the budget, put in the outbox.

        Args:
            epoch: the leader's.
            assessment: who asks.
            window: field of the budget that pays.
            budget: labels that this field may reach.
            now: seconds since the epoch.
            draws: the items.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now. Issuing the same draws again is harmless.
        """
        if not draws:
            return []
        keys = self._keys
        names = [keys.fence, keys.open, keys.deadlines, keys.outbox, keys.budget, keys.tallies]
        names.append(keys.outcomes)
        arguments: list[str | bytes | int | float] = [epoch, window, budget, assessment]
        arguments += [now, self._closed_seconds, records_per_bucket(self._outcome_limit)]
        for draw in draws:
            place = place_of(draw.request_id)
            names += [keys.pool(draw.partition), keys.drawn(draw.partition)]
            names += [keys.request(draw.request_id), keys.asked(place.bucket)]
            arguments += [draw.slot, draw.record, draw.item_hash, draw.request_id, place.field]
            arguments += [item_digest(draw.item_id), draw.fact, draw.message]
            arguments += [msgspec.json.encode(draw.open), draw.deadline]
        return self._fenced("issue_requests", names, arguments)

    def due(self, *, now: float, limit: int = 500) -> list[Due]:
        """Requests whose deadline has passed, oldest first.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        client, keys = self._connection.client, self._keys
        with unavailable_when_away():
            ids = [i.decode() for i in client.zrangebyscore(keys.deadlines, "-inf", now, 0, limit)]
            if not ids:
                return []
            pipeline = client.pipeline(transaction=False)
            pipeline.hmget(keys.open, ids)
            for request_id in ids:
                pipeline.hget(keys.request(request_id), "message")
            opened, *messages = pipeline.execute()
        return [
            Due(request_id, msgspec.json.decode(text, type=OpenRequest), message)
            for request_id, text, message in zip(ids, opened, messages, strict=True)
            if text is not None and message is not None
        ]

    def renew(self, *, epoch: int, renewals: Sequence[Renewal]) -> list[ExpiryStatus]:
        """Expire due requests, or issue them once more.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now. Renewing the same again is harmless.
        """
        if not renewals:
            return []
        keys = self._keys
        names = [keys.fence, keys.open, keys.deadlines, keys.outbox, keys.budget, keys.tallies]
        arguments: list[str | bytes | int | float] = [epoch]
        for renewal in renewals:
            attempt = renewal.due.open.attempt
            again = msgspec.structs.replace(renewal.due.open, attempt=attempt + 1)
            place = place_of(renewal.due.request_id)
            names += [keys.request(renewal.due.request_id), keys.asked(place.bucket)]
            arguments += [renewal.due.request_id, place.field, attempt]
            arguments += ["" if renewal.deadline is None else renewal.deadline, renewal.message]
            arguments.append(msgspec.json.encode(again))
        return self._fenced("expire_requests", names, arguments)

    def _fenced(
        self, script: str, names: Sequence[str], arguments: Sequence[str | bytes | int | float]
    ) -> list[Any]:
        statuses = [status.decode() for status in self._connection.run(script, names, arguments)]
        if statuses == ["fenced"]:
            raise FenceRefused("a newer leader has taken over; this one stops asking")
        return statuses

    def outbox(self) -> dict[str, bytes]:
        """Messages that wait to be published, by `request id/attempt`.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        with unavailable_when_away():
            return {k.decode(): v for k, v in self._connection.client.hgetall(self._keys.outbox).items()}

    def published(self, entries: Sequence[str]) -> None:
        """Take published messages out of the outbox.

        Raises:
            Unavailable: Redis cannot answer now; they are then published again, which is harmless.
        """
        if entries:
            with unavailable_when_away():
                self._connection.client.hdel(self._keys.outbox, *entries)

    def apply(self, partition: int, labels: Sequence[LabelEvent], *, now: float) -> list[Applied]:
        """Apply a batch of labels, each at most once; order matters within one request alone.

        Args:
            partition: of the labels topic.
            labels: at least one.
            now: seconds since the epoch.

        Returns:
            What became of every label.

        Raises:
            Unavailable: Redis cannot answer now. Applying the same again is harmless.
        """
        keys = self._keys
        names = [keys.open, keys.deadlines, keys.outbox, keys.outcomes, keys.tallies, keys.labels(partition)]
        arguments: list[str | bytes | int | float] = [self._outcome_limit, self._closed_seconds, now]
        for label in labels:
            place = place_of(label.request_id)
            names += [keys.request(label.request_id), keys.asked(place.bucket)]
            arguments += [label.request_id, place.field, item_digest(label.item_id), label.kind]
            arguments += [class_digest(label.true_class), bytes.fromhex(label.digest)]
            arguments.append(encode_packed(Given(label.true_class, label.time, label.annotator)))
        return [_applied(reply) for reply in self._connection.run("apply_labels", names, arguments)]

    def labels_progress(self, partition: int) -> tuple[int | None, int]:
        """Offset of the first label that is not applied yet, None where none was; and batches applied ever.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        with unavailable_when_away():
            offset, batches = self._connection.client.hmget(
                self._keys.labels(partition), "next_offset", "batches"
            )
        return None if offset is None else int(offset), int(batches or 0)

    def store_labels_offset(self, partition: int, offset: int, *, batches: int) -> None:
        """Remember how far labels are applied.

        Args:
            partition: of the labels topic.
            offset: of the first label that is not applied yet.
            batches: applied ever, as far as the caller knows.

        Raises:
            FlushRefused: Redis has lost batches, or somebody else applies some too.
            Unavailable: Redis cannot answer now.
        """
        reply = self._connection.run("store_labels_offset", [self._keys.labels(partition)], [offset, batches])
        if reply != b"ok":
            raise FlushRefused(f"labels of partition {partition} may be lost; read on from the stored offset")


def _applied(reply: bytes) -> Applied:
    status, _, closed = reply.partition(b" ")
    return Applied(status.decode(), msgspec.json.decode(closed, type=OpenRequest) if closed else None)
