"""Polling the Kafka client; its errors become a broken log, `Unavailable`, or `Unreadable`."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    CorruptRecordError,
    FencedInstanceIdError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)

from consumers.continuity import Continuity
from service.domain.errors import Unreadable
from service.kafka.topic_metadata import translate_error

log = logging.getLogger(__name__)

POLL_MS = 200

_RECORD_CONTENT = re.compile(r"(?<=record structure):.*", re.DOTALL)


class Poller:
    """Polls one client, from the one thread that may; reports broken logs to `Continuity`."""

    def __init__(self, consumer: Any, continuity: Continuity) -> None:
        self._consumer = consumer
        self._continuity = continuity

    def poll(self) -> dict[TopicPartition, Sequence[Any]]:
        """The next records by partition; empty if none come within `POLL_MS`.

        Raises:
            Unavailable: Kafka does not answer, or refuses.
            Unreadable: the client cannot read on; do not poll again.
        """
        try:
            batches: dict[TopicPartition, Sequence[Any]] = self._consumer.poll(POLL_MS)
        except OffsetOutOfRangeError as error:
            self._continuity.note_out_of_range(error.args[0])
        except LogTruncationError as error:
            self._note_truncation(error)
        except (CorruptRecordError, UnsupportedCodecError) as error:
            # The client's message names partition and offset, or the codec. The rest of it quotes the record.
            where = _RECORD_CONTENT.sub("", str(error))
            remedy = "repair the replica that holds it, or delete the records up to it"
            raise Unreadable(f"a record cannot be read: {where}; {remedy}") from error
        except FencedInstanceIdError as error:
            raise Unreadable("another process has the same `kafka.instance_id`; give each its own") from error
        except KafkaError as error:
            raise translate_error(error) from error
        except Exception as error:
            # The client polls on for ever after such an error; its message may quote records.
            raise Unreadable(f"the Kafka client failed ({type(error).__name__})") from error
        else:
            return batches
        return {}

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Set a partition's position.

        A truncation that the client found at its former position is discarded: it may be of a topic that was
        deleted since, and would make the new one be read twice.
        """
        self._consumer.seek(tp, offset)
        try:
            self._consumer.position(tp, timeout_ms=0)  # raises what the client found, once
        except LogTruncationError as error:
            self._note_truncation(error, excluding=tp)
        except KafkaError:
            return

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Resume fetching these partitions, as far as they are paused."""
        if resumed := self._consumer.paused() & set(partitions):
            self._consumer.resume(*resumed)

    def pause_all(self) -> None:
        """Pause fetching all partitions; polls then only keep the membership."""
        if running := self._consumer.assignment() - self._consumer.paused():
            self._consumer.pause(*running)

    def position(self, tp: TopicPartition) -> int:
        """Offset of the next record that the client can return, between two polls; 0 if unknown.

        All before it was returned, or never will be: aborted transactions, and control records.
        """
        return self.position_and_end(tp, 0)[0]

    def position_and_end(self, tp: TopicPartition, next_offset: int) -> tuple[int, int]:
        """The client's position in a partition, and the high watermark; at least `next_offset` each.

        The position may be beyond the last returned record, which is before `next_offset`: control records of
        transactions have offsets too. If the partition was just revoked, both are `next_offset`.
        """
        try:
            position = self._consumer.position(tp, timeout_ms=0) or next_offset
            return max(position, next_offset), max(self._consumer.highwater(tp) or 0, next_offset)
        except LogTruncationError as error:
            self._note_truncation(error)  # the client raises it only once, whatever the call
            return next_offset, next_offset
        except KafkaError:
            return next_offset, next_offset

    def _note_truncation(self, error: LogTruncationError, *, excluding: TopicPartition | None = None) -> None:
        forks = error.divergent_offsets.items()
        self._continuity.note_diverged(
            {tp: fork.offset for tp, fork in forks if fork is not None and tp != excluding}
        )


def close_consumer(consumer: Any) -> None:
    """Close a client whose positions are stored already, and leave its group.

    The client's own thread may be receiving on a connection that it closes, which fails an assertion of its
    selector. The group was left before, and the connection ends with the process.
    """
    try:
        consumer.close(autocommit=False)
    except AssertionError:
        log.warning("a connection to Kafka was closed while it received data", exc_info=True)
