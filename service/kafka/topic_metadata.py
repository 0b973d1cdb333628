"""Metadata of a topic, read through a consumer, and the translation of Kafka's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from kafka import TopicPartition
from kafka.errors import (
    AuthorizationError,
    GroupAuthorizationFailedError,
    KafkaError,
    UnknownTopicOrPartitionError,
)

from service.domain.errors import Refused, Unavailable

_TIMEOUT_MS = 5_000
_NO_ID = UUID(int=0)


def translate_error(error: KafkaError) -> Unavailable:
    """The client's error as `Unavailable`, or as `Refused` with a remedy."""
    if isinstance(error, GroupAuthorizationFailedError):
        return Refused("kafka", error, "grant READ on the consumer groups of `kafka.group_prefix`")
    if isinstance(error, AuthorizationError):
        return Refused("kafka", error, "grant READ on the topics that are read, WRITE on the others")
    if isinstance(error, UnknownTopicOrPartitionError):
        return Refused("kafka", error, "the topic does not exist; create it with `credence topics create`")
    return Unavailable("kafka", error)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of the Kafka client as `Unavailable`."""
    try:
        yield
    except KafkaError as error:
        raise translate_error(error) from error


class TopicLog:
    """One topic, as the consumer's client knows it.

    Args:
        consumer: of the topic; asked between two polls, from the thread that polls.
        topic: its name.
    """

    def __init__(self, consumer: Any, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic

    @property
    def identity(self) -> str | None:
        """Id of the topic with this name, by the newest metadata; None from a broker without such ids."""
        # No public call of the client gives it; its version is pinned.
        topic_id: UUID | None = self._consumer._cluster.topic_id(self._topic)  # noqa: SLF001
        return None if topic_id is None or topic_id == _NO_ID else str(topic_id)

    def refresh(self) -> None:
        """Request new metadata: the topic's id and the leaders of its partitions.

        The client does so at most every tenth of a second.

        Raises:
            Unavailable: Kafka cannot answer now, or there is no such topic.
        """
        consumer = self._consumer
        with translated_errors():
            # Not its `refresh_metadata`: one of ours that fails would end the client's own, for ever.
            update = consumer._cluster.request_update()  # noqa: SLF001 - as for the identity
            consumer._net.run(consumer._manager.wait_for, update, _TIMEOUT_MS)  # noqa: SLF001

    def partition_count(self) -> int:
        """Number of partitions, by the newest metadata."""
        # The public call would ask Kafka, and wait for it.
        return len(self._consumer._cluster.partitions_for_topic(self._topic) or ())  # noqa: SLF001

    def first_offset(self, tp: TopicPartition) -> int:
        """Offset of the first record that a partition still has.

        Raises:
            Unavailable: Kafka cannot answer now.
        """
        with translated_errors():
            return int(self._consumer.beginning_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp])

    def end_offset(self, tp: TopicPartition) -> int:
        """Offset after the last committed record.

        Raises:
            Unavailable: Kafka cannot answer now.
        """
        with translated_errors():
            return int(self._consumer.end_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp])
