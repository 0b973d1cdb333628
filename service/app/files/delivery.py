"""Sends records to Kafka, few at a time, and waits until each is acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka.errors import MessageSizeTooLargeError, RecordListTooLargeError

from service.app.files.records import Record
from service.config.settings import KafkaSettings
from service.domain.errors import BadMessage
from service.kafka.clients import build_producer
from service.kafka.topic_metadata import translate_errors

DELIVERY_SECONDS = 60.0
"""How long the client retries a record: a broker that restarts is back by then."""

_IN_FLIGHT = 5_000
_IN_FLIGHT_BYTES = 16_777_216
_CLOSE_SECONDS = 5.0

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class _Sent(NamedTuple):
    number: int
    size: int
    future: Any


class Delivery:
    """The records of one file on their way to a topic.

    Args:
        producer: of bytes; waits for all in-sync replicas.
        topic: that the records go to.
        on_refusal: called with the number of a row, and why Kafka does not take its record; the others go on.

    Attributes:
        acknowledged: records that Kafka has.
    """

    def __init__(self, producer: Any, topic: str, *, on_refusal: Callable[[int, BadMessage], None]) -> None:
        self._producer = producer
        self._topic = topic
        self._on_refusal = on_refusal
        self._sent: deque[_Sent] = deque()
        self._bytes = 0
        self.acknowledged = 0

    def send(self, number: int, record: Record) -> None:
        """Send the record of a row, and the one beside it; waits while too many are on their way.

        Raises:
            Unavailable: Kafka does not take it, or an earlier one, in time; or it refuses.
        """
        size = len(record.key) + len(record.value)
        while len(self._sent) >= _IN_FLIGHT or (self._sent and self._bytes + size > _IN_FLIGHT_BYTES):
            self._await_first()
        with translate_errors(self._topic):
            try:
                future = self._producer.send(
                    self._topic, key=record.key, value=record.value, headers=list(record.headers)
                )
            except _TOO_LARGE:
                self._on_refusal(number, _too_large())
                return
        self._sent.append(_Sent(number, size, future))
        self._bytes += size
        if record.beside is not None:
            self.send(number, record.beside)

    def finish(self) -> None:
        """Return once Kafka has all records.

        Raises:
            Unavailable: it does not take one of them in time, or refuses.
        """
        while self._sent:
            self._await_first()

    def close(self) -> int | None:
        """Close the producer, and count what Kafka has by then.

        Returns:
            The number of the first row whose record Kafka may not have; None if it has all.
        """
        self._producer.close(timeout=_CLOSE_SECONDS)
        while self._sent and self._sent[0].future.succeeded():
            self._await_first()
        return self._sent[0].number if self._sent else None

    def _await_first(self) -> None:
        number, size, future = self._sent[0]
        with translate_errors(self._topic):
            try:
                future.get(timeout=DELIVERY_SECONDS)
            except _TOO_LARGE:
                self._on_refusal(number, _too_large())
            else:
                self.acknowledged += 1
        self._sent.popleft()
        self._bytes -= size


def open_delivery(
    kafka: KafkaSettings, topic: str, *, on_refusal: Callable[[int, BadMessage], None]
) -> Delivery:
    """A delivery with a producer of its own.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached.
    """
    producer = build_producer(kafka, name="files", delivery_seconds=DELIVERY_SECONDS)
    return Delivery(producer, topic, on_refusal=on_refusal)


def _too_large() -> BadMessage:
    return BadMessage("message_too_large", "the message is larger than Kafka accepts")
