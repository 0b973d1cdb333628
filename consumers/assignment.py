"""The partitions of one topic that Kafka assigns to this process, and the step that processes them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from queue import SimpleQueue
from typing import Any, Literal, Protocol

from kafka import TopicPartition

from consumers.continuity import Continuity
from consumers.polling import Poller
from consumers.refusals import Refusals
from consumers.store_watch import StoreWatch
from service.kafka.topic_metadata import Membership, TopicLog
from service.store.topics import TopicProgress
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

IDLE_CHECKPOINT_SECONDS = 10.0
"""How often a step stores its state though nothing has changed: so a Redis that has lost data is noticed."""


class Step(Protocol):
    """Processes the records of one topic; offsets are those of one partition.

    Attributes:
        topic_kind: `predictions` or `labels`.
        refusals: what it has refused.
    """

    topic_kind: str
    refusals: Refusals

    def assign(self, partition: int, default_offset: int) -> int:
        """Load a partition's stored state; the offset to read from.

        Raises:
            Unavailable: Redis does not answer.
        """

    def revoke(self, partition: int) -> None:
        """Drop a partition's state."""

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Process a batch completely, or its first records and fail without any effect of the others.

        Raises:
            Unavailable: Redis or Kafka does not answer; retry with the same batch.
            TooManyBadMessages: nothing of the other records was discarded.
        """

    @property
    def is_full(self) -> bool:
        """Whether it should be flushed now, because one flush of more would take too long."""

    def labels(self) -> int | None:
        """How many answers Redis counts, of all models; None if this step does not know.

        Raises:
            Unavailable: Redis does not answer.
        """

    def advance(self, partition: int, position: int) -> None:
        """Note that all records before a position were processed, or can no longer come."""

    def flush(self, partition: int, now: float) -> int:
        """Store the partition's state; the offset up to which it is stored. `now` is in monotonic seconds.

        Raises:
            FlushRefused: assign the partition again, and read on from the offset that this gives.
            Unavailable: Redis does not answer; flush again later.
        """


class Rebalances(Membership):
    """Queues rebalances for the loop; runs on the client's I/O thread, which must not block.

    Attributes:
        events: `revoked` or `assigned`, and the partitions.
    """

    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer)
        self.events: SimpleQueue[tuple[str, frozenset[TopicPartition]]] = SimpleQueue()

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Queue the revocation, and rejoin."""
        super().on_partitions_revoked(revoked)
        self.events.put(("revoked", frozenset(revoked)))

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Queue the assignment; nothing is read until the loop has started the partitions."""
        for tp in assigned:
            self._consumer.seek(tp, 0)  # else the client would fetch the offset committed to Kafka
            self._consumer.pause(tp)
        self.events.put(("assigned", frozenset(assigned)))

    def on_partitions_lost(self, lost: Any) -> None:
        """Queue the loss as a revocation: the group went on without this client."""
        self.events.put(("revoked", frozenset(lost)))


@dataclass(eq=False, repr=False)
class Assignment:
    """Takes over and gives up partitions as rebalances say.

    Attributes:
        pending: assigned partitions that are not read yet.
        owned: partitions that are read.
        unprocessed: records of owned partitions that were polled, and not processed yet.
        unflushed: how many records of each partition were processed since its last flush.
        read_to: when the last processed record of each partition was written, seconds since the epoch.
        has_joined: whether the group has ever assigned something to this client.
    """

    rebalances: Rebalances
    step: Step
    _: KW_ONLY
    topic_log: TopicLog
    continuity: Continuity
    poller: Poller
    progress: TopicProgress
    store_watch: StoreWatch
    metrics: PipelineMetrics
    start: Literal["earliest", "latest"]
    pending: set[TopicPartition] = field(init=False, default_factory=set)
    owned: set[TopicPartition] = field(init=False, default_factory=set)
    unprocessed: dict[TopicPartition, Sequence[Any]] = field(init=False, default_factory=dict)
    unflushed: dict[TopicPartition, int] = field(init=False, default_factory=dict)
    read_to: dict[TopicPartition, float] = field(init=False, default_factory=dict)
    has_joined: bool = field(init=False, default=False)

    def handle_rebalances(self) -> None:
        """Apply the rebalances that came since the last call."""
        while not self.rebalances.events.empty():
            event, partitions = self.rebalances.events.get()
            for tp in partitions:
                self.release(tp)
                self.store_watch.forget(tp)
                if event == "assigned":
                    self.pending.add(tp)
            self.has_joined = self.has_joined or event == "assigned"

    def release(self, tp: TopicPartition) -> None:
        """Drop what is in memory of a partition."""
        self.pending.discard(tp)
        self.owned.discard(tp)
        self.unprocessed.pop(tp, None)
        self.unflushed.pop(tp, None)
        self.read_to.pop(tp, None)
        self.continuity.forget(tp)
        self.step.revoke(tp.partition)
        self.metrics.partition_lost(self.step.topic_kind, tp.partition)

    def restart(self, tp: TopicPartition) -> None:
        """Drop what is in memory of a partition, and read it again from its stored offset."""
        self.release(tp)
        self.pending.add(tp)

    def start_pending(self) -> None:
        """Load pending partitions and seek to their stored offsets, or to the log start if that is later.

        Raises:
            Unavailable: Redis or Kafka does not answer; partitions not yet started stay pending.
        """
        self.topic_log.refresh()
        self.store_watch.check(self.pending)
        for tp in sorted(self.pending):
            first = self.topic_log.first_offset(tp)
            default = first if self._reads_from_beginning(tp) else self.topic_log.end_offset(tp)
            self.continuity.bind_topic(tp, first)
            stored = self.step.assign(tp.partition, default)
            self.continuity.report_lost(tp, stored=stored, first_offset=first)
            self.step.advance(tp.partition, first)
            offset = max(stored, first)
            self.poller.seek(tp, offset)
            self.pending.discard(tp)
            self.owned.add(tp)
            extra = {"topic": self.topic_log.topic, "partition": tp.partition, "offset": offset}
            log.info("partition assigned", extra=extra)

    def _reads_from_beginning(self, tp: TopicPartition) -> bool:
        """Whether a partition without a stored offset is read from its beginning; added ones always are."""
        if self.start == "earliest":
            return True
        return self.progress.added_later(tp.partition, self.topic_log.partition_count())
