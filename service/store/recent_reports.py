"""Recent reports in Redis, for every process to show: losses, refused messages, failed calls of vendors.

They outlive the process that wrote them, as the alerts about them do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Generic, Literal, TypeVar

import msgspec

from service.store.connection import Connection, translate_redis_errors
from service.store.keys import intake_key, losses_key, vendor_calls_key

LossKind = Literal["deleted", "recreated", "truncated"]


class Loss(msgspec.Struct, frozen=True):
    """What one partition lost.

    Attributes:
        role: of the consumer that detected it, `predictions` or `labels`.
        kind: `deleted` by the topic's retention before they were read; `recreated`, the topic was; or
            `truncated`, the log lost its end.
        records: that were deleted; 0 where their number is not known.
        at: when it was detected, seconds since the epoch.
    """

    role: str
    kind: LossKind
    topic: str
    partition: int
    records: int
    at: float

    @property
    def name(self) -> str:
        """What tells it from other losses."""
        return f"{self.role}/{self.kind}/{self.partition}/{self.at}"


class RefusedMessages(msgspec.Struct, frozen=True):
    """Messages that are refused for one reason, and an example without message content.

    Attributes:
        count: how many.
        last_at: when the last one was refused, seconds since the epoch.
        topic: of the example, as `partition` and `offset`.
        index: its position in an array of predictions; None for a single message.
        field: name of the field that is wrong; empty if it is none, or not one alone.
        detail: why, in a sentence without message content.
    """

    reason: str
    count: int
    last_at: float
    topic: str
    partition: int
    offset: int
    index: int | None
    field: str
    detail: str


class Intake(msgspec.Struct, frozen=True):
    """Messages that one consumer processed in five minutes.

    Attributes:
        role: of the consumer, `predictions` or `labels`.
        process: a random id of the consumer.
        messages: all of them, refused ones included.
        refused: by reason.
        at: when the five minutes began, seconds since the epoch.
    """

    role: str
    process: str
    messages: int
    refused: tuple[RefusedMessages, ...]
    at: float

    @property
    def name(self) -> str:
        """What tells it from other reports; a later report of the same five minutes replaces it."""
        return f"{self.role}/{self.at:.0f}/{self.process}"


class VendorCalls(msgspec.Struct, frozen=True):
    """Calls of one vendor that one process answered in one minute.

    Attributes:
        process: a random id of the process.
        calls: all of them.
        failed: those with a status of 5xx.
        at: when the minute began, seconds since the epoch.
    """

    vendor: str
    process: str
    calls: int
    failed: int
    at: float

    @property
    def name(self) -> str:
        """What tells it from other reports; a later report of the same minute replaces it."""
        return f"{self.at:.0f}/{self.process}/{self.vendor}"


Report = TypeVar("Report", Loss, Intake, VendorCalls)

_encode = msgspec.json.Encoder().encode


class RecentReports(Generic[Report]):
    """Reports of one kind. Every method raises `Unavailable` while Redis cannot answer.

    Args:
        key: of the hash that holds them, by name.
        kind: their type.
        seconds: how long one is shown.
    """

    def __init__(self, connection: Connection, key: str, kind: type[Report], *, seconds: float) -> None:
        self._client = connection.client
        self._key = key
        self._decode: Callable[[bytes], Report] = msgspec.json.Decoder(kind).decode
        self._seconds = seconds

    def add(self, reports: Iterable[Report], now: float) -> None:
        """Store reports, which replace those with the same name; remove old ones."""
        if encoded := {report.name: _encode(report) for report in reports}:
            with translate_redis_errors():
                if not self._client.hset(self._key, mapping=encoded):
                    return  # all replaced earlier ones, after which old ones were removed
                if old := [name for name, report in self._reports() if not self._is_recent(report, now)]:
                    self._client.hdel(self._key, *old)

    def recent(self, now: float) -> list[Report]:
        """The reports that are shown, the earliest first."""
        with translate_redis_errors():
            found = [report for _, report in self._reports() if self._is_recent(report, now)]
        return sorted(found, key=lambda report: (report.at, report.name))

    def _is_recent(self, report: Report, now: float) -> bool:
        return now - report.at <= self._seconds

    def _reports(self) -> Iterator[tuple[bytes, Report]]:
        """All reports but those of another version of Credence that have other fields."""
        for name, report in self._client.hgetall(self._key).items():
            with suppress(msgspec.MsgspecError):
                yield name, self._decode(report)


def losses(connection: Connection) -> RecentReports[Loss]:
    """What consumers lost in the last hour, and in the five minutes in which an alert may still end."""
    return RecentReports(connection, losses_key(connection.prefix), Loss, seconds=3_900.0)


def intake(connection: Connection) -> RecentReports[Intake]:
    """Messages of at least the last hour."""
    return RecentReports(connection, intake_key(connection.prefix), Intake, seconds=3_900.0)


def vendor_calls(connection: Connection) -> RecentReports[VendorCalls]:
    """Calls of the last five minutes, and of the two in which an alert may still end."""
    return RecentReports(connection, vendor_calls_key(connection.prefix), VendorCalls, seconds=420.0)
