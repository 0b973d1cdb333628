"""The dead-letter topic, as consumers write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from consumers.dead_letter_format import LONGEST_KEY, letter_headers
from consumers.dead_letters import Rejected
from service.kafka.topic_metadata import translate_error

_SEND_SECONDS = 10.0
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_ALWAYS_FITS_BYTES = 4_096
"""What is kept of a value that the broker or the client refuses as too large."""

_IN_FLIGHT = 1_000
"""Letters that wait in the client at a time; an array may hold very many bad elements."""

_Place = tuple[int, int | None, int | None]


class KafkaDeadLetters:
    """Sends rejected messages to the dead-letter topic, with where they stood and why they are refused.

    A letter that the client has taken is never given to it again: when a reply fails to come, `send` raises,
    and the next `send` waits for the same letter. The client itself resends under one sequence number,
    which the broker knows. So a letter is written once, as long as its partition stays with this process and
    the client does not fail for good.

    Args:
        producer: of bytes; idempotent, waits for all in-sync replicas, and keeps trying for long.
        topic: the dead-letter topic.
        source_topic: where the messages come from.
        message_bytes: longest value that is kept; of a longer one, its beginning is.
        send_seconds: longest time that one call waits for the broker.
    """

    def __init__(
        self,
        producer: Any,
        topic: str,
        *,
        source_topic: str,
        message_bytes: int,
        send_seconds: float = _SEND_SECONDS,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._source_topic = source_topic
        self._message_bytes = message_bytes
        self._send_seconds = send_seconds
        self._given: dict[int, dict[_Place, Any]] = {}
        """By source partition: what the client was given for messages not all of which are kept yet."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once the topic has them all.

        Raises:
            Unavailable: Kafka cannot take them now; give the same ones again later.
        """
        try:
            for first in range(0, len(rejected), _IN_FLIGHT):
                self._keep(rejected[first : first + _IN_FLIGHT])
        except KafkaError as error:
            raise translate_error(error) from error
        for partition in {letter.partition for letter in rejected}:
            del self._given[partition]

    def _keep(self, letters: Sequence[Rejected]) -> None:
        for letter in letters:
            given = self._given.setdefault(letter.partition, {})
            if _place(letter) not in given:
                given[_place(letter)] = self._give(letter)
        self._producer.flush(timeout=self._send_seconds)
        if too_large := self._await(letters):
            for letter in too_large:
                self._given[letter.partition][_place(letter)] = self._give_cut(letter)
            self._producer.flush(timeout=self._send_seconds)
            if self._await(too_large):
                # The topic takes next to nothing; better to wait for an operator than to lose a letter.
                raise MessageSizeTooLargeError

    def _await(self, letters: Sequence[Rejected]) -> list[Rejected]:
        """Wait until Kafka has them; those that it finds too large."""
        too_large: list[Rejected] = []
        failure: KafkaError | None = None
        for letter in letters:
            given = self._given[letter.partition]
            future = given[_place(letter)]
            try:
                future.get(timeout=self._send_seconds)
            except _TOO_LARGE:
                too_large.append(letter)
            except KafkaError as error:
                failure = error
                if not future.is_done:
                    break
                # It has failed for good, and is given anew the next time.
                del given[_place(letter)]
        if failure is not None:
            raise failure
        return too_large

    def _give(self, letter: Rejected) -> Any:
        try:
            return self._produce(letter, letter.key, letter.value[: self._message_bytes])
        except _TOO_LARGE:
            return self._give_cut(letter)

    def _give_cut(self, letter: Rejected) -> Any:
        key = None if letter.key is None else letter.key[:LONGEST_KEY]
        return self._produce(letter, key, letter.value[:_ALWAYS_FITS_BYTES])

    def _produce(self, letter: Rejected, key: bytes | None, value: bytes) -> Any:
        whole = value == letter.value and key == letter.key
        return self._producer.send(
            self._topic,
            key=key,
            value=value,
            headers=letter_headers(
                letter, self._source_topic, value_bytes=None if whole else len(letter.value)
            ),
        )


def _place(letter: Rejected) -> _Place:
    return letter.offset, letter.index, letter.timestamp_ms
