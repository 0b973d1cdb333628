"""The loop that owns a consumer: poll, hand over, flush, back off.

Steps never touch the client. Rebalances are noted, and acted on between polls. Redis's offsets count: on
assignment the step says where to read from, whatever Kafka has committed. Kafka's offsets are committed too,
for tools that show lag.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from consumers.continuity import Continuity, Progress
from consumers.polling import POLL_MS, Poller, Rebalances
from service.domain.errors import FlushRefused, Refused, TooManyBadMessages, Unavailable, Unreadable
from service.kafka.topic_metadata import TopicLog
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 10.0
_PROBE_SECONDS = 3.0

State = Literal["starting", "running", "waiting", "refused", "paused", "unreadable", "stopped"]


class Step(Protocol):
    """What a loop feeds; all its methods take and give offsets of one partition of one topic."""

    topic_kind: str

    def assign(self, partition: int, default_offset: int) -> int:
        """Own a partition; the offset to read from."""

    def revoke(self, partition: int) -> None:
        """Own a partition no more."""

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Take a batch, whole or not at all."""

    def passed(self, partition: int, position: int) -> None:
        """What stands before a position was taken, or will never be there."""

    def flush(self, partition: int, now: float) -> int:
        """Store what was taken; the offset up to which everything is stored.

        Args:
            partition: that is owned.
            now: by the loop's stopwatch, which knows no date.
        """


class ConsumerLoop:
    """Runs one step over one topic.

    Args:
        consumer: a client of its own; the loop closes it.
        topic: name of the topic.
        step: what is fed.
        progress: the stored offsets of the topic.
        metrics: of the pipeline.
        clock: seconds since the epoch.
        start: where to begin with partitions that have no stored offset.
        flush_seconds: longest time that facts wait in memory.
        flush_records: most records that wait in memory.
        stopping: set when the loop is to flush and end.
        stopwatch: seconds since any moment; never goes back, whatever happens to the clock.
    """

    def __init__(
        self,
        consumer: Any,
        topic: str,
        step: Step,
        *,
        progress: Progress,
        metrics: PipelineMetrics,
        clock: Callable[[], float],
        start: Literal["earliest", "latest"],
        flush_seconds: float,
        flush_records: int,
        stopping: threading.Event,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state: State = "starting"
        self.last_turn = stopwatch()
        self._consumer = consumer
        self._topic = topic
        self._step = step
        self._metrics = metrics
        self._clock = clock
        self._start = start
        self._flush_seconds = flush_seconds
        self._flush_records = flush_records
        self._rebalances = Rebalances(consumer)
        self._progress = progress
        self._log = TopicLog(consumer, topic)
        self._continuity = Continuity(self._log, topic, step.topic_kind, progress=progress, metrics=metrics)
        self._poller = Poller(consumer, self._continuity)
        self._stopping = stopping
        self._knows_topic = False
        self._joined = False
        self._pending: set[TopicPartition] = set()
        self._owned: set[TopicPartition] = set()
        self._held: dict[TopicPartition, Sequence[Any]] = {}
        self._unflushed: dict[TopicPartition, int] = {}
        self._stopwatch = stopwatch
        self._last_flush = stopwatch()
        self._last_heard = stopwatch()
        self._backoff = 0.0
        self._resume_at = -math.inf

    def run(self) -> None:
        """Turn until asked to stop; then flush what is held and leave the group.

        Raises:
            Unreadable: a record cannot be read. The client would spin from here on, so this loop ends;
                another one, with a client of its own, may go on.
        """
        self._consumer.subscribe([self._topic], listener=self._rebalances)
        try:
            while not self._stopping.is_set():
                self._turn()
            self._flush_before_leaving()
        except Unreadable:
            self.state = "unreadable"
            self._flush_before_leaving()
            raise
        finally:
            self.state = self.state if self.state in ("paused", "unreadable") else "stopped"
            for tp in self._owned | self._pending:
                self._release(tp)
            self._consumer.close(autocommit=False)

    def _turn(self) -> None:
        now = self.last_turn = self._stopwatch()
        self._note_rebalances()
        if now < self._resume_at or self.state == "paused":
            self._keep_membership()
            return
        try:
            self._know_topic()
            self._process(self._held)
            self._mend()
            if self._take_over():
                self._flush()
            self._process(self._poll())
            if self._flush_due():
                self._flush()
        except Unavailable as error:
            self._back_off(error)
        except TooManyBadMessages as error:
            self.state = "paused"
            self._metrics.consumer_paused(self._step.topic_kind)
            log.critical(
                "consumer paused: too many bad messages", extra={"topic": self._topic, "cause": str(error)}
            )
        else:
            self._backoff = 0.0
            if self._joined and not self._pending:
                self.state = "running"

    def _know_topic(self) -> None:
        """Know the topic's partitions before the first poll.

        The client joins the group with the first poll, whatever it knows. One that leads the group and has
        not heard of the topic yet gives nobody anything, and is content with that.
        """
        if not self._knows_topic:
            self._log.refresh()
            self._knows_topic = True

    def _poll(self) -> dict[TopicPartition, Sequence[Any]]:
        self._poller.read(self._owned)
        batches = self._poller.poll()
        self._note_rebalances()
        if batches:
            self._last_heard = self._stopwatch()
        else:
            self._probe_when_silent()
        # A partition that is revoked meanwhile is another process's, which reads the same.
        return {tp: records for tp, records in batches.items() if tp in self._owned}

    def _probe_when_silent(self) -> None:
        """Tell a quiet topic from a broker that is away, or a topic that is; poll() gives nothing for all."""
        if self._joined and self._stopwatch() - self._last_heard > _PROBE_SECONDS:
            if self._owned:
                self._log.first_offset(min(self._owned))
            else:
                self._log.refresh()
            self._last_heard = self._stopwatch()

    def _mend(self) -> None:
        """Have partitions whose log has broken be taken over anew; what was read of them is stored before.

        Not of a topic that was made anew: what was read since the last flush may be of either one, and the
        new one is read from its beginning.
        """
        if broken := self._continuity.broken(self._owned):
            self._flush()
            for tp in sorted(broken & self._owned):  # a flush that is refused has released one
                self._continuity.mend(tp)
                self._reopen(tp)

    def _note_rebalances(self) -> None:
        while not self._rebalances.events.empty():
            event, partitions = self._rebalances.events.get()
            for tp in partitions:
                self._release(tp)
                if event == "assigned":
                    self._pending.add(tp)
            self._joined = self._joined or event == "assigned"

    def _release(self, tp: TopicPartition) -> None:
        self._pending.discard(tp)
        self._owned.discard(tp)
        self._held.pop(tp, None)
        self._unflushed.pop(tp, None)
        self._continuity.forget(tp)
        self._step.revoke(tp.partition)
        self._metrics.partition_lost(self._step.topic_kind, tp.partition)

    def _reopen(self, tp: TopicPartition) -> None:
        """Take a partition over anew, from its stored offset."""
        self._release(tp)
        self._pending.add(tp)

    def _take_over(self) -> bool:
        """Own the partitions that are this process's by now; whether there were some.

        Where they are read from is to be stored at once: who comes after must not choose anew.
        """
        if not self._pending:
            return False
        self._log.refresh()
        for tp in sorted(self._pending):
            first = self._log.first_offset(tp)
            default = first if self._begins_at_first(tp) else self._log.end_offset(tp)
            self._continuity.settle(tp, first)
            stored = self._step.assign(tp.partition, default)
            self._continuity.lost(tp, stored=stored, first_offset=first)
            self._step.passed(tp.partition, first)
            self._poller.seek(tp, max(stored, first))
            self._pending.discard(tp)
            self._owned.add(tp)
            log.info(
                "partition taken over",
                extra={"topic": self._topic, "partition": tp.partition, "offset": max(stored, first)},
            )
        return True

    def _begins_at_first(self, tp: TopicPartition) -> bool:
        """Whether a partition without a stored offset is read from its beginning: all, or one added later."""
        if self._start == "earliest":
            return True
        return self._progress.added_later(tp.partition, self._log.partition_count())

    def _process(self, batches: dict[TopicPartition, Sequence[Any]]) -> None:
        self._held = dict(batches)
        ends = {tp: self._poller.ends(tp, records[-1].offset + 1) for tp, records in batches.items()}
        for tp, records in batches.items():
            self._metrics.partition_held(
                self._step.topic_kind,
                tp.partition,
                records=ends[tp][1] - records[0].offset,
                record_time=records[0].timestamp / 1000,
            )
        for tp, records in batches.items():
            self._step.process(tp.partition, records, self._clock())
            del self._held[tp]
            self._unflushed[tp] = self._unflushed.get(tp, 0) + len(records)
            self._metrics.position(
                self._step.topic_kind,
                tp.partition,
                offset=ends[tp][0],
                highwater=ends[tp][1],
                record_time=records[-1].timestamp / 1000,
            )

    def _flush_due(self) -> bool:
        waiting = sum(self._unflushed.values())
        return waiting >= self._flush_records or self._stopwatch() - self._last_flush >= self._flush_seconds

    def _flush(self) -> None:
        began = self._last_flush = self._stopwatch()
        if self._unflushed:
            self._continuity.listen(self._owned)
        committed = {}
        for tp in sorted(self._owned):
            if self._continuity.made_anew(tp):
                continue
            if tp not in self._held:
                self._step.passed(tp.partition, self._poller.position(tp))
            try:
                offset = self._step.flush(tp.partition, began)
            except FlushRefused as error:
                log.warning(
                    "flush refused; reading again from the stored offset",
                    extra={"topic": self._topic, "partition": tp.partition, "cause": str(error)},
                )
                self._metrics.flush_refused(self._step.topic_kind)
                self._reopen(tp)
                continue
            if self._unflushed.pop(tp, 0):
                committed[tp] = OffsetAndMetadata(offset, "", -1)
        if committed:
            self._metrics.flushed(self._step.topic_kind, self._stopwatch() - began)
            self._commit(committed)

    def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Tell Kafka how far everything is stored, for tools that show lag; Redis's offsets decide."""
        try:
            self._consumer.commit_async(offsets, callback=_ignore_commit)
        except KafkaError as error:
            _ignore_commit(offsets, error)

    def _flush_before_leaving(self) -> None:
        try:
            if self.state not in ("paused", "unreadable"):
                self._process(dict(self._held))
            self._flush()
        except (Unavailable, TooManyBadMessages) as error:
            log.warning(
                "not everything was flushed; it is read again after the restart", extra={"cause": str(error)}
            )

    def _keep_membership(self) -> None:
        """Poll with everything paused: heartbeats go on, and nothing is read.

        What fails here has failed already: the waiting goes on, and grows no longer for it.
        """
        if not self._knows_topic:
            self._stopping.wait(POLL_MS / 1000)
            return
        self._poller.read_nothing()
        try:
            batches = self._poller.poll()
        except Unavailable:
            # This is no try of what is waited for, so it does not wait longer for that.
            self._stopping.wait(POLL_MS / 1000)
            return
        self._note_rebalances()
        for tp, records in batches.items():
            if tp in self._owned:  # was fetched before the pause
                self._held[tp] = [*self._held.get(tp, ()), *records]

    def _back_off(self, error: Unavailable) -> None:
        self.state = "refused" if isinstance(error, Refused) else "waiting"
        self._backoff = min(max(self._backoff * 2, _FIRST_BACKOFF_SECONDS), _LONGEST_BACKOFF_SECONDS)
        self._resume_at = self._stopwatch() + self._backoff
        self._metrics.backed_off(self._step.topic_kind, error.part)
        log.warning(
            "waiting", extra={"topic": self._topic, "cause": str(error), "backoff_seconds": self._backoff}
        )


def _ignore_commit(offsets: Any, result: Any) -> None:
    """Kafka's offsets serve tools that show lag; Redis's decide where to go on."""
    if isinstance(result, Exception):
        log.debug("offset commit failed", extra={"cause": type(result).__name__, "partitions": len(offsets)})
