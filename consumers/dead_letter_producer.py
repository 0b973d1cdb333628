"""The producer of the dead-letter topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from consumers.dead_letter_format import LONGEST_KEY, letter_headers
from consumers.dead_letters import Place, Rejected
from service.kafka.topic_metadata import translate_errors

_SEND_SECONDS = 10.0
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_ALWAYS_FITS_BYTES = 4_096
"""Longest value of a letter after the broker or the client has refused it as too large."""

_IN_FLIGHT = 1_000
"""Letters in flight at a time; an array may hold very many bad elements."""


class KafkaDeadLetters:
    """Sends rejected messages to the dead-letter topic, with their place and the reason.

    A letter that the client has accepted is never produced again: if no reply comes, `send` raises, and the
    next `send` waits for the same letter. The client's own retries are idempotent. So a letter is written
    once, as long as its partition stays with this process and the client does not give up on it.

    Args:
        producer: of bytes; idempotent, waits for all in-sync replicas, with a long delivery timeout.
        topic: the dead-letter topic.
        message_bytes: longest value; a longer one is truncated.
        send_seconds: longest time that one call waits for the broker.
    """

    def __init__(
        self,
        producer: Any,
        topic: str,
        *,
        message_bytes: int,
        send_seconds: float = _SEND_SECONDS,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._message_bytes = message_bytes
        self._send_seconds = send_seconds
        self._futures: dict[int, dict[Place, Any]] = {}
        """Futures of produced letters by source partition, until all of one `send` are stored."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once all are stored.

        Raises:
            Unavailable: Kafka does not store them now; send the same ones again later.
        """
        with translate_errors():
            for first in range(0, len(rejected), _IN_FLIGHT):
                self._store(rejected[first : first + _IN_FLIGHT])
        for partition in {letter.record.partition for letter in rejected}:
            del self._futures[partition]

    def _store(self, letters: Sequence[Rejected]) -> None:
        for letter in letters:
            futures = self._futures.setdefault(letter.record.partition, {})
            if letter.place not in futures:
                futures[letter.place] = self._produce(letter)
        self._producer.flush(timeout=self._send_seconds)
        if too_large := self._await(letters):
            for letter in too_large:
                self._futures[letter.record.partition][letter.place] = self._produce_truncated(letter)
            self._producer.flush(timeout=self._send_seconds)
            if self._await(too_large):
                # The topic accepts hardly anything; better to wait for an operator than to lose a letter.
                raise MessageSizeTooLargeError

    def _await(self, letters: Sequence[Rejected]) -> list[Rejected]:
        """Wait until letters are stored; those refused as too large."""
        too_large: list[Rejected] = []
        failure: KafkaError | None = None
        for letter in letters:
            futures = self._futures[letter.record.partition]
            future = futures[letter.place]
            try:
                future.get(timeout=self._send_seconds)
            except _TOO_LARGE:
                too_large.append(letter)
            except KafkaError as error:
                failure = error
                if not future.is_done:
                    break
                # The client has given up; the next `send` produces it again.
                del futures[letter.place]
        if failure is not None:
            raise failure
        return too_large

    def _produce(self, letter: Rejected) -> Any:
        try:
            return self._produce_parts(letter, letter.record.key, letter.value[: self._message_bytes])
        except _TOO_LARGE:
            return self._produce_truncated(letter)

    def _produce_truncated(self, letter: Rejected) -> Any:
        key = letter.record.key and letter.record.key[:LONGEST_KEY]
        return self._produce_parts(letter, key, letter.value[:_ALWAYS_FITS_BYTES])

    def _produce_parts(self, letter: Rejected, key: bytes | None, value: bytes) -> Any:
        value_bytes = None if value == letter.value and key == letter.record.key else len(letter.value)
        headers = letter_headers(letter, value_bytes=value_bytes)
        return self._producer.send(self._topic, key=key, value=value, headers=headers)
