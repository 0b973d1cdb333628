"""What Kafka has of a topic, asked for through a consumer; and its errors, told in Credence's words."""

from __future__ import annotations

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


def told(error: KafkaError) -> Unavailable:
    """The same error in Credence's words: Kafka is away, or it refuses."""
    if isinstance(error, GroupAuthorizationFailedError):
        return Refused("kafka", error, "grant READ on the consumer groups of `kafka.group_prefix`")
    if isinstance(error, AuthorizationError):
        return Refused(
            "kafka", error, "grant READ on the topics that are read, WRITE on those that are written"
        )
    if isinstance(error, UnknownTopicOrPartitionError):
        return Refused("kafka", error, "the topic does not exist; `credence topics create` makes it")
    return Unavailable("kafka", error)


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
        """Id of the topic that has the name, as last heard; None from a broker without such ids."""
        # No public call of the client gives it; its version is pinned.
        topic_id: UUID | None = self._consumer._cluster.topic_id(self._topic)  # noqa: SLF001
        return None if topic_id is None or topic_id == _NO_ID else str(topic_id)

    def refresh(self) -> None:
        """Learn anew who has the name, and who leads its partitions; a tenth of a second apart at least.

        Raises:
            Unavailable: Kafka cannot tell now, or there is no such topic.
        """
        consumer = self._consumer
        try:
            # Not its `refresh_metadata`: one of ours that fails would end the client's own, for ever.
            update = consumer._cluster.request_update()  # noqa: SLF001 - as for the identity
            consumer._net.run(consumer._manager.wait_for, update, _TIMEOUT_MS)  # noqa: SLF001
        except KafkaError as error:
            raise told(error) from error

    def partition_count(self) -> int:
        """How many partitions the topic has, as last heard."""
        # The public call would ask Kafka, and wait for it.
        return len(self._consumer._cluster.partitions_for_topic(self._topic) or ())  # noqa: SLF001

    def first_offset(self, tp: TopicPartition) -> int:
        """Offset of the first record that a partition still has.

        Raises:
            Unavailable: Kafka cannot tell now.
        """
        try:
            first: int = self._consumer.beginning_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp]
        except KafkaError as error:
            raise told(error) from error
        return first

    def end_offset(self, tp: TopicPartition) -> int:
        """Offset behind the last record that is committed.

        Raises:
            Unavailable: Kafka cannot tell now.
        """
        try:
            end: int = self._consumer.end_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp]
        except KafkaError as error:
            raise told(error) from error
        return end
