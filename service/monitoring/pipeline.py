"""The state of the pipeline: its consumers, its leader, the age of estimates, and what was lost or failed.

Consumers report their own health; nothing here asks them. The state is what all processes can know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.connection import Connection
from service.store.consumer_health import ROUNDS, ConsumerHealth, HealthStore
from service.store.lease import Leader, current_leader
from service.store.recent_reports import Intake, Loss, RefusedMessages, VendorCalls, vendor_calls
from service.store.resets import RedisReset, ResetStore

Role = Literal["predictions", "labels"]

ROLES: tuple[Role, ...] = ("predictions", "labels")

SILENT_SECONDS = 60.0
"""After so long without a report a consumer is silent: it reports every 5 s while it runs."""


@dataclass(frozen=True)
class RoleState:
    """The consumers of one topic.

    Attributes:
        reporting: consumers that are not silent.
        silent: the others.
        lag_records: records that are not processed, of the partitions of reporting consumers.
        lag_seconds: age of the last processed record of the partition that lags most; 0 while none waits.
        messages: processed in the last hour, refused ones included.
        refused: in the last hour by reason, of all consumers together, the most frequent first.
        unassigned: partitions that no reporting consumer has.
    """

    role: Role
    reporting: Sequence[ConsumerHealth]
    silent: Sequence[ConsumerHealth]
    lag_records: int
    lag_seconds: float
    messages: int
    refused: Sequence[RefusedMessages]
    unassigned: Sequence[int]

    @property
    def is_missing(self) -> bool:
        """Whether no consumer reports."""
        return not self.reporting

    @property
    def is_unread(self) -> bool:
        """Whether all partitions, or some, have no reader at this moment."""
        return bool(self.unassigned) or not any(one.partitions for one in self.reporting)

    def in_state(self, *states: str) -> list[ConsumerHealth]:
        """Reporting consumers in one of these states."""
        return [one for one in self.reporting if one.state in states]


@dataclass(frozen=True)
class PipelineState:
    """The pipeline at one time; times are seconds since the epoch.

    Attributes:
        read_at: when Redis was read.
        consumers: the newest report of each.
        leader: who requests labels; None if nobody does.
        reset: data that Redis lost, unless an operator has acknowledged it.
        estimates_at: when the oldest estimates of any model were computed; None before the first.
        losses: of the last hour, by partition.
        intake: messages processed and refused in the last hour, also by consumers that are gone.
        vendor_calls: to the vendor API, of the last minutes.
    """

    read_at: float
    consumers: Sequence[ConsumerHealth]
    leader: Leader | None
    reset: RedisReset | None
    estimates_at: float | None = None
    losses: Sequence[Loss] = ()
    intake: Sequence[Intake] = ()
    vendor_calls: Sequence[VendorCalls] = ()

    @property
    def failed_rounds(self) -> Sequence[ConsumerHealth]:
        """Processes that may lead, and whose last round failed."""
        rounds = [one for one in self.consumers if one.role == ROUNDS and one.state != "running"]
        return [one for one in rounds if self.read_at - one.written_at <= SILENT_SECONDS]

    def role(self, role: Role) -> RoleState:
        """The consumers of one topic, when Redis was read."""
        consumers = [one for one in self.consumers if one.role == role]
        reporting = [one for one in consumers if self.read_at - one.written_at <= SILENT_SECONDS]
        assigned = {partition for one in reporting for partition in one.partitions}
        count = max((one.partition_count for one in reporting), default=0)
        return RoleState(
            role=role,
            reporting=reporting,
            silent=[one for one in consumers if one not in reporting],
            lag_records=sum(one.lag_records for one in reporting),
            lag_seconds=max((one.lag_seconds for one in reporting), default=0.0),
            messages=sum(one.messages for one in self.intake if one.role == role),
            refused=_by_reason(refused for one in self.intake if one.role == role for refused in one.refused),
            unassigned=sorted(set(range(count)) - assigned),
        )


def read_pipeline(connection: Connection, *, now: float, estimates_at: float | None) -> PipelineState:
    """The state of the pipeline, as Redis has it.

    Args:
        connection: to Redis.
        now: seconds since the epoch.
        estimates_at: when the oldest estimates of any model were computed.

    Raises:
        Unavailable: Redis cannot answer now.
    """
    health = HealthStore(connection)
    return PipelineState(
        read_at=now,
        consumers=health.consumers(now),
        leader=current_leader(connection),
        reset=ResetStore(connection).reset(),
        estimates_at=estimates_at,
        losses=health.losses.recent(now),
        intake=health.intake.recent(now),
        vendor_calls=vendor_calls(connection).recent(now),
    )


def _by_reason(refused: Iterable[RefusedMessages]) -> list[RefusedMessages]:
    """Counts of several reports, added up; the example is that of the report with the highest count."""
    found: dict[str, RefusedMessages] = {}
    for one in sorted(refused, key=lambda each: -each.count):
        known = found.get(one.reason)
        found[one.reason] = (
            one
            if known is None
            else msgspec.structs.replace(
                known,
                count=known.count + one.count,
                last_at=max(known.last_at, one.last_at),
            )
        )
    return sorted(found.values(), key=lambda one: (-one.count, one.reason))
