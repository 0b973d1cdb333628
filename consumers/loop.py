"""The loop that owns a consumer: poll, process, flush, back off.

Steps never touch the client. Rebalances are queued, and handled between polls. The offsets in Redis decide:
on assignment the step says where to read from, whatever is committed to Kafka. Offsets are committed to Kafka
too, for tools that show lag.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Literal

from kafka import TopicPartition

from consumers.assignment import Assignment, Rebalances, Step
from consumers.continuity import Continuity
from consumers.health_report import HealthReporter
from consumers.polling import POLL_MS, Poller, close_consumer
from consumers.store_watch import StoreWatch
from service.domain.errors import FlushRefused, Refused, TooManyBadMessages, Unavailable, Unreadable
from service.kafka.topic_metadata import TopicLog
from service.store.topics import TopicProgress
from service.telemetry.instruments import PipelineMetrics
from service.telemetry.outages import Outages

log = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 10.0
_PROBE_SECONDS = 3.0

State = Literal["starting", "running", "waiting", "refused", "paused", "unreadable", "stopped"]


class ConsumerLoop:
    """Runs one step over one topic.

    Args:
        consumer: a client of its own; the loop closes it.
        reporter: of this consumer's health.
        watch: makes the watch over Redis, which also commits offsets to Kafka with this client.
        clock: seconds since the epoch.
        start: where to begin with partitions that have no stored offset.
        flush_records: flushes as soon as so many records are not flushed.
        stopping: set to make the loop flush and end.
        outages: of the process.

    Attributes:
        state: as `/readyz` shows it.
        last_turn: when the last iteration began, in monotonic seconds.
    """

    def __init__(
        self,
        consumer: Any,
        topic: str,
        step: Step,
        *,
        progress: TopicProgress,
        reporter: HealthReporter,
        watch: Callable[[TopicLog, Any], StoreWatch],
        metrics: PipelineMetrics,
        clock: Callable[[], float],
        start: Literal["earliest", "latest"],
        flush_seconds: float,
        flush_records: int,
        stopping: threading.Event,
        outages: Outages,
    ) -> None:
        self.state: State = "starting"
        self._consumer = consumer
        self._step = step
        self._metrics = metrics
        self._clock = clock
        self._flush_seconds = flush_seconds
        self._flush_records = flush_records
        self._stopping = stopping
        self._outages = outages
        self._log = TopicLog(consumer, topic)
        self._continuity = Continuity(self._log, step.topic_kind, progress, metrics=metrics, clock=clock)
        self._poller = Poller(consumer, self._continuity)
        self._reporter = reporter
        self._store_watch = watch(self._log, consumer)
        self._rebalances = Rebalances(consumer)
        self._assignment = Assignment(
            self._rebalances,
            step,
            topic_log=self._log,
            continuity=self._continuity,
            poller=self._poller,
            progress=progress,
            store_watch=self._store_watch,
            metrics=metrics,
            start=start,
        )
        self._cause: Exception | None = None
        self._has_metadata = False
        self.last_turn = self._last_flush = self._last_contact = monotonic()
        self._backoff = 0.0
        self._resume_at = -math.inf

    def run(self) -> None:
        """Iterate until asked to stop; then flush and leave the group.

        Raises:
            Unreadable: the client cannot read on, and every further poll would fail in the same way. A loop
                with a new client may succeed.
        """
        self._consumer.subscribe([self._log.topic], listener=self._rebalances)
        try:
            while not self._stopping.is_set():
                self._turn()
            self._flush_before_leaving()
            self._reporter.report_counts(self._assignment)
            self._reporter.leave()
        except Unreadable as error:
            self.state, self._cause = "unreadable", error
            self._flush_before_leaving()
            self._report()
            raise
        finally:
            self.state = self.state if self.state in ("paused", "unreadable") else "stopped"
            for tp in self._assignment.owned | self._assignment.pending:
                self._assignment.release(tp)
            close_consumer(self._consumer)

    def _turn(self) -> None:
        now = self.last_turn = monotonic()
        self._assignment.handle_rebalances()
        if self._reporter.is_due():
            self._report()
        if now < self._resume_at or self.state == "paused":
            self._keep_membership()
            return
        try:
            self._fetch_metadata()
            self._process(self._assignment.unprocessed)
            self._recover_broken_partitions()
            if self._assignment.pending:
                self._assignment.start_pending()
                # Store their start offsets now, so that the next owner does not choose others.
                self._flush()
            self._process(self._poll())
            if self._is_flush_due():
                self._flush()
        except Unavailable as error:
            self._back_off(error)
        except TooManyBadMessages as error:
            self.state, self._cause = "paused", error
            self._metrics.consumer_paused.labels(self._step.topic_kind).set(1)
            log.critical("consumer paused", extra={"topic": self._log.topic, "cause": str(error)})
        else:
            self._backoff, self._cause = 0.0, None
            self._outages.works(self._step.topic_kind)
            if self._assignment.has_joined and not self._assignment.pending:
                self.state = "running"

    def _report(self) -> None:
        """Report this consumer's health, and look whether Redis has lost data."""
        if isinstance(self._cause, Unavailable) and self._cause.part == "redis":
            return
        owned, cause = self._assignment.owned, "" if self._cause is None else str(self._cause)
        try:
            store = self._reporter.report(self.state, cause, self._assignment, self._poller, self._log)
            self._store_watch.check_identity(store, owned)
            if self.state == "running":
                self._store_watch.check_labels(owned, is_read=self._reporter.everyone_has_read)
        except Unavailable as error:
            log.debug("no report of this consumer", extra={"topic": self._log.topic, "cause": str(error)})

    def _fetch_metadata(self) -> None:
        """Fetch the topic's metadata before the first poll, with which the client joins the group.

        A group leader without metadata of the topic assigns no partitions to anybody, and does not rebalance.
        """
        if not self._has_metadata:
            self._log.refresh()
            self._has_metadata = True

    def _poll(self) -> dict[TopicPartition, Sequence[Any]]:
        self._poller.resume(self._assignment.owned)
        batches = self._poller.poll()
        self._assignment.handle_rebalances()
        if batches:
            self._last_contact = monotonic()
        else:
            self._probe_if_silent()
        # Records of partitions revoked meanwhile are left to their new owner.
        return {tp: records for tp, records in batches.items() if tp in self._assignment.owned}

    def _probe_if_silent(self) -> None:
        """Ask Kafka for an offset if polls give no records: the topic is idle, unreachable or deleted."""
        if self._assignment.has_joined and monotonic() - self._last_contact > _PROBE_SECONDS:
            if self._assignment.owned:
                self._log.first_offset(min(self._assignment.owned))
            else:
                self._log.refresh()
            self._last_contact = monotonic()

    def _recover_broken_partitions(self) -> None:
        """Restart partitions whose log was truncated or whose topic was recreated, after a flush.

        Partitions of a recreated topic are not flushed: records since the last flush may be of the old topic
        or of the new one, which is read from its beginning.
        """
        if broken := self._continuity.find_broken(self._assignment.owned):
            self._flush()
            for tp in sorted(broken & self._assignment.owned):  # a refused flush has released its partition
                self._continuity.recover(tp)
                self._assignment.restart(tp)

    def _process(self, batches: dict[TopicPartition, Sequence[Any]]) -> None:
        kind = self._step.topic_kind
        self._assignment.unprocessed = dict(batches)
        positions = {
            tp: self._poller.position_and_end(tp, records[-1].offset + 1) for tp, records in batches.items()
        }
        for tp, records in batches.items():
            self._metrics.partition_held(
                kind,
                tp.partition,
                records=positions[tp][1] - records[0].offset,
                record_time=records[0].timestamp / 1000,
            )
        for tp, records in batches.items():
            self._step.process(tp.partition, records, self._clock())
            del self._assignment.unprocessed[tp]
            self._assignment.unflushed[tp] = self._assignment.unflushed.get(tp, 0) + len(records)
            position, end = positions[tp]
            record_time = self._assignment.read_to[tp] = records[-1].timestamp / 1000
            self._metrics.position(
                kind, tp.partition, offset=position, highwater=end, record_time=record_time
            )

    def _is_flush_due(self) -> bool:
        unflushed, waited = sum(self._assignment.unflushed.values()), monotonic() - self._last_flush
        return unflushed >= self._flush_records or waited >= self._flush_seconds or self._step.is_full

    def _flush(self) -> None:
        began = self._last_flush = monotonic()
        if self._assignment.unflushed:
            self._continuity.refresh_topic_id(self._assignment.owned)
        committed = {}
        for tp in sorted(self._assignment.owned):
            if self._continuity.is_recreated(tp):
                continue
            if tp not in self._assignment.unprocessed:
                self._step.advance(tp.partition, self._poller.position(tp))
            try:
                offset = self._step.flush(tp.partition, began)
            except FlushRefused as error:
                log.warning(
                    "flush refused; reading again from the stored offset",
                    extra={"topic": self._log.topic, "partition": tp.partition, "cause": str(error)},
                )
                self._metrics.flushes_refused.labels(self._step.topic_kind).inc()
                self._assignment.restart(tp)
                continue
            if self._assignment.unflushed.pop(tp, 0):
                committed[tp] = offset
        if committed:
            duration = monotonic() - began
            self._metrics.flush_duration.labels(self._step.topic_kind).observe(duration)
        self._store_watch.commit(committed)

    def _flush_before_leaving(self) -> None:
        try:
            if self.state not in ("paused", "unreadable"):
                self._process(dict(self._assignment.unprocessed))
            self._flush()
        except (Unavailable, TooManyBadMessages) as error:
            log.warning("records not flushed are read again after the restart", extra={"cause": str(error)})

    def _keep_membership(self) -> None:
        """Poll with all partitions paused: heartbeats go on, and nothing is read."""
        if not self._has_metadata:
            self._stopping.wait(POLL_MS / 1000)
            return
        self._poller.pause_all()
        try:
            batches = self._poller.poll()
        except Unavailable:
            # Not a retry of what failed, so the backoff does not grow.
            self._stopping.wait(POLL_MS / 1000)
            return
        self._assignment.handle_rebalances()
        for tp, records in batches.items():
            if tp in self._assignment.owned:  # fetched before the pause
                self._assignment.unprocessed[tp] = [*self._assignment.unprocessed.get(tp, ()), *records]

    def _back_off(self, error: Unavailable) -> None:
        self.state, self._cause = "refused" if isinstance(error, Refused) else "waiting", error
        self._backoff = min(max(self._backoff * 2, _FIRST_BACKOFF_SECONDS), _LONGEST_BACKOFF_SECONDS)
        self._resume_at = monotonic() + self._backoff
        self._metrics.backoffs.labels(self._step.topic_kind, error.part).inc()
        self._outages.failed(self._step.topic_kind, error.outage, str(error))
