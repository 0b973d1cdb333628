"""The thread that takes predictions from a queue to Kafka, however long Kafka is unavailable."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka.errors import (
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from service.client.outbox import Outbox, Record
from service.domain.errors import CredenceError, failure_in_words
from service.kafka.topic_metadata import translate_error

log = logging.getLogger("service.client")

_RECORDS, _BYTES = 500, 1_048_576
"""The most that is on its way: Kafka's client holds a copy of it."""

_LOOK_SECONDS = 0.5
_BACKOFF_SECONDS = 0.5
_CLOSE_SECONDS = 1.0
_REMIND_SECONDS = 60.0
_OF_ONE_RECORD = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidRecordError)


class Sender(threading.Thread):
    """Delivers what is in an outbox, until it is stopped.

    Args:
        outbox: is emptied in order.
        make: makes a producer of Kafka; may raise `Unavailable` or `ConfigurationError`, and is then called
            again later.
        topic: that records go to.
    """

    def __init__(self, outbox: Outbox, make: Callable[[], Any], topic: str) -> None:
        super().__init__(name="credence-client", daemon=True)
        self._outbox = outbox
        self._make = make
        self._topic = topic
        self._stop_requested = threading.Event()
        self._starting = threading.Lock()
        self._lost = 0  # predictions that were reported as lost
        self._reported_at: dict[str, float] = {}

    def try_to_start(self) -> bool:
        """Start, unless it has started or another caller is starting it; whether this call has.

        If the system gives no further thread, it says so in the log, and a later call may start it.
        """
        # Does not wait: the caller may be a signal handler that has interrupted the other caller.
        if not self._starting.acquire(blocking=False):
            return False
        try:
            if self.ident is None:
                self.start()
                return True
        except (RuntimeError, OSError, MemoryError) as error:
            self._warn("predictions wait until a thread can be started: %s", _in_words(error))
        finally:
            self._starting.release()
        return False

    def stop(self) -> None:
        """Stop, and give up what is on its way."""
        self._stop_requested.set()

    def run(self) -> None:
        """Deliver until stopped."""
        producer: Any = None
        batch: list[Record] = []
        while not self._stop_requested.is_set():
            try:
                self._report_losses()
                batch = batch or self._outbox.take(
                    most_records=_RECORDS, most_bytes=_BYTES, seconds=_LOOK_SECONDS
                )
                if batch and producer is None:
                    producer = self._make()
                batch, failure = self._deliver(producer, batch)
                if failure is not None:
                    self._wait(failure)
            except CredenceError as error:
                self._wait(error)
            except Exception as error:  # noqa: BLE001 - without this thread nothing would be sent any more
                self._warn("predictions wait, as sending them has failed: %s", _in_words(error))
                self._close(producer)
                producer = None
                self._stop_requested.wait(_BACKOFF_SECONDS)
        self._close(producer)

    def _close(self, producer: Any) -> None:
        try:
            if producer is not None:
                producer.close(timeout=_CLOSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - the thread goes on with another one
            self._warn("a producer of Kafka could not be closed: %s", _in_words(error))

    def _wait(self, error: KafkaError | CredenceError) -> None:
        if self._stop_requested.is_set():
            return
        cause = translate_error(error, self._topic) if isinstance(error, KafkaError) else error
        self._warn("predictions wait until Kafka takes them: %s", cause)
        self._stop_requested.wait(_BACKOFF_SECONDS)

    def _deliver(
        self, producer: Any, batch: Sequence[Record]
    ) -> tuple[list[Record], KafkaError | CredenceError | None]:
        """Send records and wait for Kafka to have them; those that have to be sent again, and why.

        The producer retries a record under one sequence number for a day. Only after that, or if its client
        fails for good, is a record that Kafka may have sent again.
        """
        sent: list[tuple[Record, Any]] = []
        delivered: list[Record] = []
        refused: list[tuple[Record, KafkaError]] = []
        failure: KafkaError | CredenceError | None = None
        for record in batch:
            try:
                sent.append((record, producer.send(self._topic, key=record.key, value=record.value)))
            except _OF_ONE_RECORD as error:
                refused.append((record, error))
            except (KafkaError, CredenceError) as error:
                failure = error
                break
        rest = batch[len(sent) + len(refused) :]
        again: list[Record] = []
        for record, future in sent:
            try:
                self._await(future)
                delivered.append(record)
            except _OF_ONE_RECORD as error:
                refused.append((record, error))
            except KafkaError as error:
                failure = error
                again.append(record)
        problem = f"Kafka refuses the record: {type(refused[-1][1]).__name__}" if refused else ""
        self._outbox.settle(delivered, [record for record, _ in refused], problem)
        return [*again, *rest], failure

    def _await(self, future: Any) -> None:
        while not future.is_done and not self._stop_requested.is_set():
            try:
                future.get(timeout=_LOOK_SECONDS)
            except KafkaTimeoutError:
                self._report_losses()
        future.get(timeout=0)

    def _report_losses(self) -> None:
        # Not in the thread of the model, which a handler of logs might keep waiting.
        counters = self._outbox.counters
        lost = counters.dropped + counters.failed
        text = "%d predictions are lost so far: %d dropped as the queue was full, %d failed; last failure: %s"
        if lost > self._lost and self._warn(
            text, lost, counters.dropped, counters.failed, self._outbox.problem or "none"
        ):
            self._lost = lost

    def _warn(self, text: str, *values: object) -> bool:
        """Log a warning, each kind at most once a minute; whether it was logged."""
        now = time.monotonic()
        if now - self._reported_at.get(text, -_REMIND_SECONDS) < _REMIND_SECONDS:
            return False
        self._reported_at[text] = now
        log.warning(text, *values)
        return True


def _in_words(error: Exception) -> str:
    """Type of an error, and what the operating system says; never its text, which may quote predictions."""
    kind, words = type(error).__name__, failure_in_words(error)
    return kind if words == kind else f"{kind}, {words}"
