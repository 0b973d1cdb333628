"""Whether the stored offsets still fit the log they are offsets of.

Three events break a log under its reader. Each is recognised, counted and recovered from:

- retention deletes the beginning of the log: unread records are lost, and their number is known;
- the topic is deleted and recreated under its name: the new topic is read from its beginning;
- the log is truncated (unclean leader election): records that were read and are gone stay counted. What
  replaces them is read from the offset of divergence, or from the log end where Kafka does not know that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from kafka import TopicPartition

from service.kafka.topic_metadata import TopicLog
from service.store.recent_reports import Loss, LossKind
from service.store.topics import TopicProgress
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

_BREAKS = {
    "recreated": "the topic was deleted and recreated; reading it from its beginning",
    "truncated": "the log was truncated, as by an unclean leader election; reading on where it diverges",
}


@dataclass(eq=False, repr=False)
class Continuity:
    """Compares stored offsets with the log, and resets them where the log was truncated or recreated.

    Attributes:
        clock: seconds since the epoch.
        losses: what was lost and is not reported yet; the reporter removes it.
    """

    topic_log: TopicLog
    topic_kind: str
    progress: TopicProgress
    _: KW_ONLY
    metrics: PipelineMetrics
    clock: Callable[[], float]
    losses: list[Loss] = field(init=False, default_factory=list)
    _topic_ids: dict[TopicPartition, str] = field(init=False, default_factory=dict)
    _out_of_range: dict[TopicPartition, int] = field(init=False, default_factory=dict)
    _diverged: dict[TopicPartition, int] = field(init=False, default_factory=dict)

    def bind_topic(self, tp: TopicPartition, first_offset: int) -> None:
        """Bind a partition's stored offsets to the current topic id; reset them if they are of another topic.

        Raises:
            Unavailable: Redis does not answer.
        """
        topic_id = self.topic_log.identity
        if topic_id is None:
            return
        abandoned = self.progress.bind_topic(tp.partition, topic_id, first_offset)
        self._topic_ids[tp] = topic_id
        if abandoned is not None:
            self._report_break(tp, "recreated", stored=abandoned, next_offset=first_offset)

    def report_lost(self, tp: TopicPartition, *, stored: int, first_offset: int) -> None:
        """Log and count records that retention deleted before they were read."""
        if stored < first_offset:
            log.error(
                "records were deleted by the topic's retention before they were read",
                extra={
                    "topic": self.topic_log.topic,
                    "partition": tp.partition,
                    "lost": first_offset - stored,
                },
            )
            self.metrics.records_lost.labels(self.topic_kind).inc(first_offset - stored)
            self._note(tp, "deleted", records=first_offset - stored)

    def note_out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Remember positions that Kafka calls out of range."""
        self._out_of_range |= positions

    def note_diverged(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Remember offsets from which on the log differs from what was read."""
        self._diverged |= offsets

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition, as it is revoked or restarted."""
        self._topic_ids.pop(tp, None)
        self._out_of_range.pop(tp, None)
        self._diverged.pop(tp, None)

    def refresh_topic_id(self, owned: Collection[TopicPartition]) -> None:
        """Fetch the topic id after reading, so that `is_recreated` covers all records read so far.

        Records carry no topic id, and the client fetches by name. That the broker which answers is not behind
        the one that served the records is up to Kafka.

        Raises:
            Unavailable: Kafka does not answer.
        """
        if any(tp in self._topic_ids for tp in owned):
            self.topic_log.refresh()

    def find_broken(self, owned: Collection[TopicPartition]) -> set[TopicPartition]:
        """Partitions to flush, recover and restart."""
        suspects = self._out_of_range.keys() | self._diverged.keys()
        return {tp for tp in owned if tp in suspects or self.is_recreated(tp)}

    def recover(self, tp: TopicPartition) -> None:
        """Rewind a partition's stored offset to where its log can be read; then forget the partition.

        Raises:
            Unavailable: Kafka or Redis does not answer; nothing is forgotten.
        """
        if tp in self._diverged or tp in self._out_of_range:
            self.topic_log.refresh()
        if not self.is_recreated(tp):
            self._rewind(tp)
        self.forget(tp)

    def is_recreated(self, tp: TopicPartition) -> bool:
        """Whether the cached topic id is another one than that of the partition when it was assigned."""
        return self.topic_log.identity not in (None, self._topic_ids.get(tp))

    def _rewind(self, tp: TopicPartition) -> None:
        position, fork = self._out_of_range.get(tp), self._diverged.get(tp)
        if position is not None and fork is None:
            end = self.topic_log.end_offset(tp)
            fork = end if position > end else None
        if fork is not None:
            self.progress.rewind(tp.partition, fork)
            self._report_break(tp, "truncated", stored=position, next_offset=fork)

    def _report_break(
        self,
        tp: TopicPartition,
        kind: Literal["recreated", "truncated"],
        *,
        stored: int | None,
        next_offset: int,
    ) -> None:
        log.error(
            _BREAKS[kind],
            extra={
                "topic": self.topic_log.topic,
                "partition": tp.partition,
                "stored": stored,
                "offset": next_offset,
            },
        )
        self.metrics.log_breaks.labels(self.topic_kind, kind).inc()
        self._note(tp, kind)

    def _note(self, tp: TopicPartition, kind: LossKind, *, records: int = 0) -> None:
        self.losses.append(Loss(self.topic_kind, kind, tp.topic, tp.partition, records, self.clock()))
