"""Polling the client: what it has to tell, in Credence's words.

Callbacks of a rebalance run on the client's I/O thread, so they only note what happened. Errors that poll()
raises are told apart here: a log that has broken, Kafka that is away, a record that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from queue import SimpleQueue
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
from service.kafka.membership import Membership
from service.kafka.topic_metadata import translate_error

POLL_MS = 200

_OF_THE_RECORD = re.compile(r"(?<=record structure):.*", re.DOTALL)
_REMEDY = "mend its replica, or delete the records up to it"


class Rebalances(Membership):
    """Notes rebalances for the loop; runs on the client's I/O thread, where nothing may block.

    Attributes:
        events: `revoked` or `assigned`, and the partitions.
    """

    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer)
        self.events: SimpleQueue[tuple[str, frozenset[TopicPartition]]] = SimpleQueue()

    def on_partitions_revoked(self, revoked: Any) -> None:
        """The client joins anew."""
        super().on_partitions_revoked(revoked)
        self.events.put(("revoked", frozenset(revoked)))

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Partitions are this client's."""
        for tp in assigned:
            # Until the loop takes it over nothing of it is read, and nobody asks Kafka for an offset of it.
            self._consumer.seek(tp, 0)
            self._consumer.pause(tp)
        self.events.put(("assigned", frozenset(assigned)))

    def on_partitions_lost(self, lost: Any) -> None:
        """The group went on without this client."""
        self.events.put(("revoked", frozenset(lost)))


class Poller:
    """Asks one client for records, from the one thread that may.

    Args:
        consumer: the client.
        continuity: is told of logs that have broken.
    """

    def __init__(self, consumer: Any, continuity: Continuity) -> None:
        self._consumer = consumer
        self._continuity = continuity

    def poll(self) -> dict[TopicPartition, Sequence[Any]]:
        """The next records, as soon as there are some, or none.

        Raises:
            Unavailable: Kafka is away, or refuses.
            Unreadable: a record cannot be read; do not poll again.
        """
        try:
            batches: dict[TopicPartition, Sequence[Any]] = self._consumer.poll(POLL_MS)
        except OffsetOutOfRangeError as error:
            self._continuity.note_out_of_range(error.args[0])
        except LogTruncationError as error:
            self._note_truncation(error)
        except (CorruptRecordError, UnsupportedCodecError) as error:
            # Its text names partition and offset, or the codec; of a broken record it goes on with its bytes.
            where = _OF_THE_RECORD.sub("", str(error))
            raise Unreadable(f"a record cannot be read: {where}; {_REMEDY}") from error
        except FencedInstanceIdError as error:
            raise Unreadable("another process has the same `kafka.instance_id`; give each its own") from error
        except KafkaError as error:
            raise translate_error(error) from error
        except Exception as error:
            # Nor is it told what else the client may stumble over; it spins after that, too.
            raise Unreadable(f"the client cannot read on ({type(error).__name__})") from error
        else:
            return batches
        return {}

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Have the next record of a partition be the one at an offset.

        What the client has found out of the log behind another offset is void: it may be of a topic that was
        deleted since, and would have what is read of the new one be read twice.
        """
        self._consumer.seek(tp, offset)
        try:
            self._consumer.position(tp, timeout_ms=0)  # where the client tells such findings, once
        except LogTruncationError as error:
            self._note_truncation(error, but=tp)
        except KafkaError:
            return  # there was nothing to tell

    def read(self, partitions: Collection[TopicPartition]) -> None:
        """Read these from now on, as far as they are assigned."""
        if resumed := self._consumer.paused() & set(partitions):
            self._consumer.resume(*resumed)

    def read_nothing(self) -> None:
        """Read nothing from now on; polls keep the membership alone."""
        if running := self._consumer.assignment() - self._consumer.paused():
            self._consumer.pause(*running)

    def position(self, tp: TopicPartition) -> int:
        """The offset of the next record that the client gives of a partition; 0 where it does not know.

        It may lie behind records that it never gives: those of aborted transactions, and what marks the end
        of one. Ask between two polls.
        """
        return self.ends(tp, 0)[0]

    def ends(self, tp: TopicPartition, behind: int) -> tuple[int, int]:
        """Where the client stands in a partition, and its end.

        The client may stand further than behind the last record: the marker of a transaction, which it
        never gives, has an offset too. A partition that is revoked just now has none of the two.

        Args:
            tp: the partition.
            behind: the offset behind the last record that the client gave.
        """
        try:
            position = self._consumer.position(tp, timeout_ms=0) or behind
            return max(position, behind), max(self._consumer.highwater(tp) or 0, behind)
        except LogTruncationError as error:
            self._note_truncation(error)  # told once, to whoever asks first
            return behind, behind
        except KafkaError:
            return behind, behind

    def _note_truncation(self, error: LogTruncationError, *, but: TopicPartition | None = None) -> None:
        forks = error.divergent_offsets.items()
        self._continuity.note_diverged(
            {tp: fork.offset for tp, fork in forks if fork is not None and tp != but}
        )
