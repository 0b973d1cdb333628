"""Label requests in Redis: draw, issue, publish, expire."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.claims import claimable_key
from service.store.connection import Argument, Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys
from service.store.records import EXPIRED, LabelFact, encode_packed
from service.store.request_registry import item_digest, locate_record, records_per_bucket
from service.store.shards import pack_hash

IssueStatus = Literal["issued", "gone", "shared", "budget"]
ExpiryStatus = Literal["expired", "reissued", "changed", "submitted"]

_ON_ITS_WAY_SECONDS = 60.0
"""How long a request waits, after its deadline, for an answer that the vendor API has accepted."""


class OpenRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request in flight, without its item.

    Attributes:
        group: the group that the item was drawn for.
        score: probability of the predicted class.
        attempt: counts from 1.
        requested_at: when the first attempt was issued, seconds since the epoch.
        vendor: the vendor that was asked last; empty if no vendors were configured.
        shared: further draws of the same item.
        suspected: whether the group was under suspicion when the first attempt was issued.
        opinion: whose label of the item this asks for: 2 is the second person's.
        gold: whether the item is a gold item; its group is empty.
    """

    assessment: str
    group: str
    attributes: dict[str, str]
    predicted_class: str
    score: float
    attempt: int
    requested_at: float
    vendor: str = ""
    shared: tuple[OpenRequest, ...] = ()
    suspected: bool = False
    opinion: int = 1
    gold: bool = False


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One item to be turned into a label request: of the pool, a gold item, or one that was labelled before.

    Attributes:
        fact: the packed `Fact` of its outcome.
        message: for the labeller.
        deadline: of the first attempt, seconds since the epoch.
        partition: of the shard that pools it.
        field: of its group's sketch.
        item_hash: as sketches hold it.
        first_request: of an item that was labelled, id of the first request; empty for one of the pool.
    """

    item_id: str
    request_id: str
    fact: bytes
    message: bytes
    open: OpenRequest
    deadline: float
    partition: int = 0
    field: bytes = b""
    item_hash: int = 0
    first_request: str = ""


@dataclass(frozen=True)
class Spending:
    """How a budget that renews is being spent: its token bucket.

    Attributes:
        window: number of the budget's period.
        reserve_used: labels that were taken from the reserve in this period.
        tokens: labels that the bucket holds.
        at: when it held them, seconds since the epoch.
    """

    window: int
    reserve_used: int
    tokens: float
    at: float

    @classmethod
    def parse(cls, record: bytes) -> Spending:
        """From the field of the budget."""
        window, reserve_used, tokens, at = record.split(b"|")
        return cls(int(window), int(reserve_used), float(tokens), float(at))


@dataclass(frozen=True)
class Payment:
    """What pays for the requests of one assessment in one round.

    Attributes:
        window: field of the budget.
        labels: that the budget allows in this window.
        spending: of a budget that renews.
        stored: the record that `spending` was computed from; empty without one.
        from_reserve: as many of the first requests are taken from the reserve.
    """

    window: str
    labels: int
    spending: Spending | None = None
    stored: bytes = b""
    from_reserve: int = 0


@dataclass(frozen=True)
class DueRequest:
    """One request whose deadline has passed."""

    request_id: str
    open: OpenRequest
    message: bytes


@dataclass(frozen=True)
class Renewal:
    """The next attempt of a due request, or the request's end if there is no deadline.

    Attributes:
        deadline: seconds since the epoch.
        vendor: empty if there are none.
        item_id: needed if the vendor changes.
    """

    due: DueRequest
    deadline: float | None = None
    message: bytes = b""
    vendor: str = ""
    item_id: str = ""


class RequestStore(ModelStore):
    """The label requests of one model.

    Args:
        closed_seconds: how long a label may be corrected or retracted.
        outcome_limit: outcomes to keep, approximately, and requests to remember, at least.
        claiming: vendors that claim their requests (`service/store/claims.py`).
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        *,
        closed_seconds: int,
        outcome_limit: int,
        claiming: Collection[str] = (),
    ) -> None:
        super().__init__(connection, keys)
        self._closed_seconds = closed_seconds
        self._outcome_limit = outcome_limit
        self._claiming = frozenset(claiming)

    def read_pools(
        self, partitions: Sequence[int], fields: Sequence[bytes]
    ) -> list[tuple[list[bytes | None], list[bytes]]]:
        """Per partition the encoded sketches of the given fields, and entries of the drawn items in them.

        A sketch is None if its group has none in that partition.
        """
        with self._connection.pipeline(transaction=True) as pipeline:
            # In one go: a drawn item that is in a sketch is in the list, too.
            for partition in partitions:
                pipeline.hmget(self._keys.pool(partition), fields)
                pipeline.lrange(self._keys.drawn(partition), 0, -1)
            replies = pipeline.execute()
        return list(zip(replies[::2], replies[1::2], strict=True))

    def items(self, wanted: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Records of pooled items, by partition and hash; None of one that has left the pool."""
        with self._connection.pipeline(transaction=False) as pipeline:
            for partition, item in wanted:
                pipeline.hget(self._keys.items(partition), pack_hash(item))
            replies: list[bytes | None] = pipeline.execute()
        return replies

    def are_used(self, request_ids: Sequence[str]) -> list[bool]:
        """Whether each is the first request for a gold item that was requested at any time."""
        with translate_redis_errors():
            return [bool(one) for one in self._connection.client.smismember(self._keys.gold, request_ids)]

    def issue(
        self, *, epoch: int, assessment: str, payment: Payment, now: float, draws: Sequence[Draw]
    ) -> list[IssueStatus]:
        """Turn pooled items into label requests: draw, mark, take from the budget, put in the outbox.

        An item that was requested before costs nothing: its label counts as drawn once more. `epoch` is the
        leader's. If the bucket has changed since `payment` was computed, nothing is issued.

        Raises:
            FenceRefused: a newer leader has written.
        """
        if not draws:
            return []
        keys = self._keys
        names = [keys.open, keys.deadlines, keys.outbox, keys.budget, keys.tallies, keys.outcomes]
        names += [keys.barred, keys.gold]
        arguments: list[Argument] = [epoch, payment.window, payment.labels, assessment]
        arguments += [now, self._closed_seconds, records_per_bucket(self._outcome_limit)]
        arguments += [self._outcome_limit, payment.stored, payment.from_reserve]
        if (spending := payment.spending) is None:
            arguments += ["", 0, 0.0, 0.0]
        else:
            arguments += [spending.window, spending.reserve_used, repr(spending.tokens), repr(spending.at)]
        arguments.append(len(draws))
        for draw in draws:
            vendor = draw.open.vendor
            location = locate_record(draw.request_id)
            if draw.first_request:
                names += [keys.labelled(draw.first_request), keys.undecided]
                arguments += [b"", draw.first_request]
            elif draw.open.gold:
                names += [keys.gold, keys.gold]
                arguments += [b"", b""]
            else:
                names += [keys.pool(draw.partition), keys.drawn(draw.partition)]
                arguments += [draw.field, pack_hash(draw.item_hash)]
            names += [keys.request(draw.request_id), keys.asked(location.bucket)]
            names.append(claimable_key(keys, vendor if vendor in self._claiming else ""))
            arguments += [draw.request_id, location.field, item_digest(draw.item_id, vendor), draw.fact]
            arguments += [draw.message, msgspec.json.encode(draw.open), draw.deadline, int(draw.open.gold)]
        statuses = self._run_fenced("issue_requests", names, arguments)
        return [status.decode() for status in statuses]

    def due_requests(self, *, now: float, limit: int = 500) -> list[DueRequest]:
        """Requests whose deadline has passed, oldest first."""
        client, keys = self._connection.client, self._keys
        with translate_redis_errors():
            ids = [i.decode() for i in client.zrangebyscore(keys.deadlines, "-inf", now, 0, limit)]
            if not ids:
                return []
            pipeline = client.pipeline(transaction=False)
            pipeline.hmget(keys.open, ids)
            for request_id in ids:
                pipeline.hget(keys.request(request_id), "message")
            opened, *messages = pipeline.execute()
        return [
            DueRequest(request_id, msgspec.json.decode(text, type=OpenRequest), message)
            for request_id, text, message in zip(ids, opened, messages, strict=True)
            if text is not None and message is not None
        ]

    def renew(self, *, epoch: int, renewals: Sequence[Renewal], now: float) -> list[ExpiryStatus]:
        """Expire due requests, or issue them again; those whose answer is on its way a minute later.

        Raises:
            FenceRefused: a newer leader has written.
        """
        if not renewals:
            return []
        keys = self._keys
        names = [keys.open, keys.deadlines, keys.outbox, keys.budget, keys.tallies, keys.claims]
        names += [keys.barred, keys.outcomes]
        arguments: list[Argument] = [epoch, now, _ON_ITS_WAY_SECONDS, self._outcome_limit, len(renewals)]
        for renewal in renewals:
            attempt, before, vendor = renewal.due.open.attempt, renewal.due.open.vendor, renewal.vendor
            again = msgspec.structs.replace(renewal.due.open, attempt=attempt + 1, vendor=vendor)
            location = locate_record(renewal.due.request_id)
            names += [keys.request(renewal.due.request_id), keys.asked(location.bucket)]
            names.append(claimable_key(keys, before))
            names.append(claimable_key(keys, vendor if vendor in self._claiming else ""))
            arguments += [renewal.due.request_id, location.field, attempt]
            arguments += ["" if renewal.deadline is None else renewal.deadline, renewal.message]
            arguments.append(msgspec.json.encode(again))
            arguments.append(b"" if vendor == before else item_digest(renewal.item_id, vendor))
            arguments.append(encode_packed(LabelFact("", now, "", before, EXPIRED)))
        statuses = self._run_fenced("expire_requests", names, arguments)
        return [status.decode() for status in statuses]

    def read_outbox(self) -> dict[str, bytes]:
        """Messages to publish, by `request id/attempt`."""
        with translate_redis_errors():
            return {k.decode(): v for k, v in self._connection.client.hgetall(self._keys.outbox).items()}

    def remove_published(self, entries: Sequence[str]) -> None:
        """Remove published messages from the outbox."""
        if entries:
            with translate_redis_errors():
                self._connection.client.hdel(self._keys.outbox, *entries)
