"""Predictions that wait to be sent: a bounded queue between the threads of a model and the one that sends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_OVERHEAD_BYTES = 256
"""What a record takes in memory besides its key and value."""


class Record(NamedTuple):
    """Key and value of a record of Kafka."""

    key: bytes
    value: bytes

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return len(self.key) + len(self.value) + _OVERHEAD_BYTES


@dataclass
class Counters:
    """What became of predictions; `logged` counts all of them, also those that still wait."""

    logged: int = 0
    delivered: int = 0
    dropped: int = 0  # the queue was full, or the producer closed
    failed: int = 0  # not a valid prediction, or refused by Kafka because of its size


class Outbox:
    """A queue that holds at most so many records and bytes, those that are being sent included.

    When it is full it drops the new record: the oldest one may be on its way, and what was once accepted is
    delivered. No call but those with `seconds` waits for longer than the others take.
    """

    def __init__(self, *, most_records: int, most_bytes: int) -> None:
        self.counters = Counters()
        self.problem = ""  # of the last prediction that failed
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._queue: deque[Record] = deque()
        self._records = self._bytes = 0
        self._is_closed = False
        # Reentrant, as a signal handler may log a prediction too.
        self._changed = threading.Condition(threading.RLock())

    def put(self, record: Record) -> bool:
        """Accept a record; False if it is dropped."""
        with self._changed:
            self.counters.logged += 1
            size = record.size
            is_full = self._records >= self._most_records or self._bytes + size > self._most_bytes
            if self._is_closed or is_full:
                self.counters.dropped += 1
                return False
            self._bytes += size
            self._records += 1
            self._queue.append(record)
            if len(self._queue) == 1:
                self._changed.notify_all()
            return True

    def refuse(self, problem: str) -> None:
        """Count a prediction that is not valid."""
        with self._changed:
            self.counters.logged += 1
            self.counters.failed += 1
            self.problem = problem

    def take(self, *, most_records: int, most_bytes: int, seconds: float) -> list[Record]:
        """The next records to send, in order; waits for so many seconds if there is none."""
        taken: list[Record] = []
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed, seconds)
            while self._queue and len(taken) < most_records and most_bytes > 0:
                most_bytes -= self._queue[0].size
                taken.append(self._queue.popleft())
        return taken

    def settle(self, delivered: Sequence[Record], failed: Sequence[Record], problem: str = "") -> None:
        """Forget records that were taken: Kafka has them, or refuses them for good."""
        with self._changed:
            if self._is_closed:
                return
            self.counters.delivered += len(delivered)
            self.counters.failed += len(failed)
            self.problem = problem or self.problem
            self._records -= len(delivered) + len(failed)
            self._bytes -= sum(record.size for record in (*delivered, *failed))
            self._changed.notify_all()

    def wait_until_empty(self, seconds: float | None) -> bool:
        """Wait until every record is delivered; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._records, seconds)

    def close(self) -> None:
        """Drop what is left, and accept nothing more."""
        with self._changed:
            self.counters.dropped += self._records
            self._records = self._bytes = 0
            self._queue.clear()
            self._is_closed = True
            self._changed.notify_all()
