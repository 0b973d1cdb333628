"""The health of every consumer, as it reports it to Redis, so that every process can show it.

A report holds no message content: a refused message is named by its place, and by the field that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from service.store.connection import Connection, translate_redis_errors
from service.store.keys import consumers_key, identity_key
from service.store.recent_reports import RefusedMessages, intake, losses

ROUNDS = "rounds"
"""Role in the reports of processes that may lead."""

FORGOTTEN_SECONDS = 86_400.0
"""After so long without a report a consumer is no longer shown, and its report is removed."""


class ConsumerHealth(msgspec.Struct, frozen=True):
    """One consumer's report; times are seconds since the epoch, by its own clock.

    Attributes:
        role: `predictions` or `labels`; or `rounds`, of which only state and cause are known.
        member: host and port where the process serves its metrics.
        state: of its loop, such as `running` or `paused`.
        state_since: when it got into this state.
        cause: why it waits or is paused, in a sentence; empty while it runs.
        partitions: assigned to it.
        assigned_at: when they last changed.
        partition_count: of the topic; 0 while unknown.
        lag_records: records of its partitions that are not processed yet.
        lag_seconds: age of the last processed record while others wait; 0 while none waits.
        refused: since it started, by reason, the most frequent first.
        clock_ahead: seconds by which its clock is ahead of Redis's; None if unknown.
    """

    role: str
    member: str
    state: str
    state_since: float
    written_at: float
    started_at: float
    cause: str = ""
    partitions: tuple[int, ...] = ()
    assigned_at: float = 0.0
    partition_count: int = 0
    lag_records: int = 0
    lag_seconds: float = 0.0
    refused: tuple[RefusedMessages, ...] = ()
    clock_ahead: float | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ConsumerHealth).decode


class HealthStore:
    """The reports of all consumers. Every method raises `Unavailable` while Redis cannot answer.

    Attributes:
        losses: what consumers lost lately.
        intake: messages that they processed and refused lately.
    """

    def __init__(self, connection: Connection) -> None:
        self.losses = losses(connection)
        self.intake = intake(connection)
        self._connection = connection
        self._key = consumers_key(connection.prefix)

    def clock_ahead(self, now: float) -> float:
        """Seconds by which a clock that shows `now` is ahead of Redis's."""
        with translate_redis_errors():
            seconds, microseconds = self._connection.client.time()
        return now - (float(seconds) + float(microseconds) / 1e6)

    def report(self, health: ConsumerHealth) -> str | None:
        """Replace a consumer's report; returns the id of the data in this Redis, None if it has none."""
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.hset(self._key, _field(health.role, health.member), _encode(health))
            pipeline.hget(identity_key(self._connection.prefix), "id")
            _, identity = pipeline.execute()
        return None if identity is None else identity.decode()

    def remove(self, role: str, member: str) -> None:
        """Remove the report of a consumer that stops."""
        with translate_redis_errors():
            self._connection.client.hdel(self._key, _field(role, member))

    def remove_forgotten(self, now: float) -> None:
        """Remove the reports of consumers that have been silent for `FORGOTTEN_SECONDS`."""
        if old := [health for health in self._reports(now) if _is_forgotten(health, now)]:
            with translate_redis_errors():
                self._connection.client.hdel(self._key, *(_field(one.role, one.member) for one in old))

    def consumers(self, now: float) -> list[ConsumerHealth]:
        """The newest report of every consumer that is not forgotten, by role and member.

        Times are by the clock that shows `now`: both clocks are compared with Redis's.
        """
        shown = (health for health in self._reports(now) if not _is_forgotten(health, now))
        return sorted(shown, key=lambda health: (health.role, health.member))

    def _reports(self, now: float) -> Iterator[ConsumerHealth]:
        """All reports but those of another version of Credence that have other fields."""
        ahead = self.clock_ahead(now)
        with translate_redis_errors():
            reports = self._connection.client.hvals(self._key)
        for report in reports:
            with suppress(msgspec.MsgspecError):
                yield _by_clock(_decode(report), ahead)


def _by_clock(health: ConsumerHealth, ahead: float) -> ConsumerHealth:
    """A report with the times of a clock that is so many seconds ahead of Redis's."""
    if health.clock_ahead is None:
        return health
    later = ahead - health.clock_ahead
    return msgspec.structs.replace(
        health,
        state_since=health.state_since + later,
        written_at=health.written_at + later,
        started_at=health.started_at + later,
        assigned_at=health.assigned_at + later,
        refused=tuple(msgspec.structs.replace(one, last_at=one.last_at + later) for one in health.refused),
    )


def _field(role: str, member: str) -> str:
    return f"{role}/{member}"


def _is_forgotten(health: ConsumerHealth, now: float) -> bool:
    return now - health.written_at > FORGOTTEN_SECONDS
