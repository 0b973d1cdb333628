"""The dead-letter topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from consumers.dead_letters import Rejected
from service.errors import Unavailable

_SEND_SECONDS = 10.0
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_LONGEST_DETAIL = 500
_ALWAYS_FITS_BYTES = 4_096
"""What is kept of a value that the broker or the client refuses as too large."""


class KafkaDeadLetters:
    """Sends rejected messages to the dead-letter topic, with where they stood and why they are refused.

    Args:
        producer: of bytes; waits for all in-sync replicas.
        topic: the dead-letter topic.
        source_topic: where the messages come from.
        message_bytes: longest value that is kept; of a longer one, its beginning is.
    """

    def __init__(self, producer: Any, topic: str, *, source_topic: str, message_bytes: int) -> None:
        self._producer = producer
        self._topic = topic
        self._source_topic = source_topic
        self._message_bytes = message_bytes

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once the topic has them all.

        Raises:
            Unavailable: Kafka cannot take them now.
        """
        if not rejected:
            return
        try:
            if too_large := self._send(rejected, self._message_bytes):
                self._send(too_large, _ALWAYS_FITS_BYTES)
        except KafkaError as error:
            raise Unavailable("kafka", error) from error

    def _send(self, rejected: Sequence[Rejected], longest: int) -> list[Rejected]:
        """Send, with values cut to `longest` bytes; those that Kafka still finds too large."""
        too_large: list[Rejected] = []
        sent = []
        for letter in rejected:
            try:
                future = self._producer.send(
                    self._topic,
                    key=letter.key,
                    value=letter.value[:longest],
                    headers=self._headers(letter, longest),
                )
            except _TOO_LARGE:
                too_large.append(letter)
            else:
                sent.append((letter, future))
        self._producer.flush(timeout=_SEND_SECONDS)
        for letter, future in sent:
            try:
                future.get(timeout=_SEND_SECONDS)
            except _TOO_LARGE:
                too_large.append(letter)
        return too_large

    def _headers(self, letter: Rejected, longest: int) -> list[tuple[str, bytes]]:
        headers = {
            "credence-reason": letter.error.reason,
            "credence-detail": letter.error.detail[:_LONGEST_DETAIL],
            "credence-source-topic": self._source_topic,
            "credence-source-partition": str(letter.partition),
            "credence-source-offset": str(letter.offset),
        }
        if letter.index is not None:
            headers["credence-source-index"] = str(letter.index)
        if len(letter.value) > longest:
            headers["credence-truncated"] = str(len(letter.value))
        return [(name, content.encode()) for name, content in headers.items()]
