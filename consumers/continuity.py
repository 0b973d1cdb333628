"""Where to read on: Redis's offset, if the log that it is of is still there.

Three things break a log under its reader, and each is told apart, counted and survived:

- its beginning is deleted (retention): what was not read is lost, and its number is known;
- it is deleted and made anew under its name: the new one is read from its beginning;
- its end is lost (an unclean election): what was read and is gone stays counted, and what has taken its place
  is read, from where the two part if Kafka knows, else from the end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Literal, Protocol

from kafka import TopicPartition

from service.kafka.topic_metadata import TopicLog
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)


class Progress(Protocol):
    """The stored offsets of one topic."""

    def settle(self, partition: int, topic_id: str, first_offset: int) -> int | None:
        """Have the stored offsets be of this topic; an offset that was of another one and is given up."""

    def added_later(self, partition: int, partition_count: int) -> bool:
        """Whether the topic got this partition after it was first read."""

    def rewind(self, partition: int, offset: int) -> None:
        """Go on from an offset below the stored ones."""


class Continuity:
    """Watches that offsets and log go together.

    Args:
        topic_log: what Kafka has.
        topic: its name.
        kind: of the topic, for metrics.
        progress: what Redis has.
        metrics: of the pipeline.
    """

    def __init__(
        self, topic_log: TopicLog, topic: str, kind: str, *, progress: Progress, metrics: PipelineMetrics
    ) -> None:
        self._log = topic_log
        self._topic = topic
        self._kind = kind
        self._progress = progress
        self._metrics = metrics
        self._identities: dict[TopicPartition, str] = {}
        self._out_of_range: dict[TopicPartition, int] = {}
        self._diverged: dict[TopicPartition, int] = {}

    def settle(self, tp: TopicPartition, first_offset: int) -> None:
        """Have a partition's stored offsets be of the topic that is there now.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        identity = self._log.identity
        if identity is None:
            return
        given_up = self._progress.settle(tp.partition, identity, first_offset)
        self._identities[tp] = identity
        if given_up is not None:
            self._broken(tp, "recreated", stored=given_up, next_offset=first_offset)

    def lost(self, tp: TopicPartition, *, stored: int, first_offset: int) -> None:
        """Tell of records that were deleted before they were read, if there are such."""
        if stored < first_offset:
            log.error(
                "records were deleted by the topic's retention before they were read",
                extra={"topic": self._topic, "partition": tp.partition, "lost": first_offset - stored},
            )
            self._metrics.records_lost(self._kind, first_offset - stored)

    def note_out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """The log does not hold these positions."""
        self._out_of_range |= positions

    def note_diverged(self, offsets: Mapping[TopicPartition, int]) -> None:
        """From these offsets on the log holds something else than was read."""
        self._diverged |= offsets

    def forget(self, tp: TopicPartition) -> None:
        """A partition is another process's now."""
        self._identities.pop(tp, None)
        self._out_of_range.pop(tp, None)
        self._diverged.pop(tp, None)

    def listen(self, owned: Collection[TopicPartition]) -> None:
        """Hear who has the topic's name now: then `made_anew` tells of all that was read before.

        A record does not tell which topic it is of, and the client asks for records by name. That the broker
        which is asked knows as much as the one that was read from is Kafka's to keep.

        Raises:
            Unavailable: Kafka cannot tell now.
        """
        if any(tp in self._identities for tp in owned):
            self._log.refresh()

    def broken(self, owned: Collection[TopicPartition]) -> set[TopicPartition]:
        """The partitions that must be taken over anew, once what was read of them is stored."""
        suspects = self._out_of_range.keys() | self._diverged.keys()
        return {tp for tp in owned if tp in suspects or self.made_anew(tp)}

    def mend(self, tp: TopicPartition) -> None:
        """Have the stored offset be one from which the partition can be taken over.

        Raises:
            Unavailable: Kafka or Redis cannot answer now; nothing is forgotten.
        """
        if tp in self._diverged or tp in self._out_of_range:
            self._log.refresh()
        if not self.made_anew(tp):
            self._rewind(tp)
        self.forget(tp)

    def made_anew(self, tp: TopicPartition) -> bool:
        """Whether the topic that has the name, as last heard, is not the one that a partition was of."""
        return self._log.identity not in (None, self._identities.get(tp))

    def _rewind(self, tp: TopicPartition) -> None:
        position, fork = self._out_of_range.get(tp), self._diverged.get(tp)
        if position is not None and fork is None:
            end = self._log.end_offset(tp)
            fork = end if position > end else None
        if fork is not None:
            self._progress.rewind(tp.partition, fork)
            self._broken(tp, "truncated", stored=position, next_offset=fork)

    def _broken(
        self,
        tp: TopicPartition,
        kind: Literal["recreated", "truncated"],
        *,
        stored: int | None,
        next_offset: int,
    ) -> None:
        meaning = {
            "recreated": "the topic was deleted and made anew; reading it from its beginning",
            "truncated": "the end of the log was lost, as by an unclean election; reading on where it parts",
        }
        log.error(
            meaning[kind],
            extra={"topic": self._topic, "partition": tp.partition, "stored": stored, "offset": next_offset},
        )
        self._metrics.log_broken(self._kind, kind)
