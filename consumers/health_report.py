"""One consumer's report of its health, written to Redis at its start, and then by its loop every few seconds.

A report is a look at the clock of Redis, and one small write. If Redis does not answer, there is none: the
consumer is then shown as silent.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from time import monotonic

from kafka import TopicPartition

from consumers.assignment import Assignment
from consumers.polling import Poller
from service.domain.errors import Unavailable
from service.kafka.topic_metadata import TopicLog
from service.store.consumer_health import ConsumerHealth, HealthStore

log = logging.getLogger(__name__)

REPORT_SECONDS = 5.0
_TIDY_SECONDS = 3_600.0
"""Between two removals of old reports."""


class HealthReporter:
    """Reports one consumer; it outlives the loop, which is replaced after a record that cannot be read.

    Args:
        store: of the reports.
        role: `predictions` or `labels`.
        member: host and port where the process serves its metrics.
        clock: seconds since the epoch.
    """

    def __init__(self, store: HealthStore, *, role: str, member: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._role = role
        self._member = member
        self._clock = clock
        self._started_at = clock()
        self._state, self._state_since = "", self._started_at
        self._partitions: tuple[int, ...] = ()
        self._assigned_at = self._started_at
        self._due_at = self._tidy_at = -math.inf

    def announce(self) -> None:
        """Report that this consumer starts, before it has a loop; its loop reports again."""
        now = self._clock()
        try:
            self._store.report(
                ConsumerHealth(
                    role=self._role,
                    member=self._member,
                    state="starting",
                    state_since=now,
                    written_at=now,
                    started_at=self._started_at,
                    assigned_at=now,
                    clock_ahead=self._store.clock_ahead(now),
                )
            )
        except Unavailable as error:
            log.debug("no report of this consumer", extra={"role": self._role, "cause": str(error)})

    def is_due(self) -> bool:
        """Whether the last report is `REPORT_SECONDS` old."""
        return monotonic() >= self._due_at

    def report(
        self, state: str, cause: str, assignment: Assignment, poller: Poller, topic_log: TopicLog
    ) -> str | None:
        """Write the report; returns the id of the data in Redis, None if it has none.

        Args:
            state: of the loop.
            cause: why it waits or is paused; empty while it runs.
            assignment: its partitions.
            poller: of its client.
            topic_log: of its topic.

        Raises:
            Unavailable: Redis does not answer.
        """
        self._due_at = monotonic() + REPORT_SECONDS
        now = self._clock()
        self._enter(state, now)
        partitions = tuple(sorted(tp.partition for tp in assignment.owned | assignment.pending))
        if partitions != self._partitions:
            self._partitions, self._assigned_at = partitions, now
        refusals = assignment.step.refusals
        refusals.log_due(now)
        behind = backlog(assignment, poller, topic_log, ask=state == "paused")
        waiting_since = [since for records, since in behind.values() if records]
        identity = self._store.report(
            ConsumerHealth(
                role=self._role,
                member=self._member,
                state=self._state,
                state_since=self._state_since,
                written_at=now,
                started_at=self._started_at,
                cause=cause,
                partitions=partitions,
                assigned_at=self._assigned_at,
                partition_count=topic_log.partition_count(),
                lag_records=sum(records for records, _ in behind.values()),
                lag_seconds=max(0.0, now - min(waiting_since, default=now)),
                refused=refusals.by_reason(),
                clock_ahead=self._store.clock_ahead(now),
            )
        )
        self.report_counts(assignment)
        if monotonic() >= self._tidy_at:
            self._tidy_at = monotonic() + _TIDY_SECONDS
            self._store.remove_forgotten(now)
        return identity

    def everyone_has_read(self, since: float) -> bool:
        """Whether all consumers of this role have reported since then that they lag behind nothing.

        Raises:
            Unavailable: Redis does not answer.
        """
        members = [one for one in self._store.consumers(self._clock()) if one.role == self._role]
        covered = {partition for one in members for partition in one.partitions}
        return len(covered) >= max((one.partition_count for one in members), default=1) and all(
            one.state == "running" and not one.lag_records and one.written_at > since for one in members
        )

    def report_counts(self, assignment: Assignment) -> None:
        """Add what is lost and processed since the last report; without Redis the next one has it."""
        now = self._clock()
        losses, refusals = assignment.continuity.losses, assignment.step.refusals
        try:
            self._store.losses.add(losses, now)
            losses.clear()
            self._store.intake.add(refusals.unreported(self._role), now)
            refusals.reported()
        except Unavailable as error:
            log.debug("no report of counts", extra={"role": self._role, "cause": str(error)})

    def leave(self) -> None:
        """Remove the report of a consumer that stops as it was asked to; what it lost and refused stays."""
        try:
            self._store.remove(self._role, self._member)
        except Unavailable as error:
            log.debug("the report of this consumer stays for a day", extra={"cause": str(error)})

    def _enter(self, state: str, now: float) -> None:
        if state == "starting" and self._state == "unreadable":
            return  # a new loop, which has not come past the record yet
        if state != self._state:
            self._state, self._state_since = state, now


def backlog(
    assignment: Assignment, poller: Poller, topic_log: TopicLog, *, ask: bool
) -> dict[TopicPartition, tuple[int, float]]:
    """Records of each owned partition that are not processed, and when the newest processed one was written.

    Args:
        assignment: the partitions.
        poller: knows positions, and the log ends as of the last fetch.
        topic_log: knows the log ends.
        ask: whether to ask Kafka for log ends, as nothing is fetched.
    """
    ends: dict[TopicPartition, int] = {}
    if ask and assignment.owned:
        try:
            ends = topic_log.end_offsets(assignment.owned)
        except Unavailable as error:
            log.debug("log ends are those of the last fetch", extra={"cause": str(error)})
    found = {}
    for tp in assignment.owned:
        position, end = poller.position_and_end(tp, 0)
        waiting = assignment.unprocessed.get(tp)
        since = assignment.read_to.get(tp, math.inf)
        if waiting:
            position, since = waiting[0].offset, min(since, waiting[0].timestamp / 1000)
        found[tp] = max(0, max(end, ends.get(tp, 0)) - position), since
    return found
