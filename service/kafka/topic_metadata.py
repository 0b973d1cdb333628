"""Metadata and offsets of a topic, read through its consumer; membership in its group; Kafka's errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from kafka import ConsumerRebalanceListener, TopicPartition
from kafka.errors import (
    AuthorizationError,
    GroupAuthorizationFailedError,
    KafkaError,
    UnknownTopicOrPartitionError,
)

from service.domain.errors import Refused, Unavailable

_TIMEOUT_MS = 5_000
_NO_ID = UUID(int=0)


def translate_error(error: KafkaError, topic: str = "") -> Unavailable:
    """`Refused` where Kafka denies access or has no such topic, else `Unavailable`."""
    if isinstance(error, GroupAuthorizationFailedError):
        return Refused("kafka", error, "grant READ on the consumer groups of `kafka.group_prefix`")
    if isinstance(error, AuthorizationError):
        return Refused(
            "kafka", error, "grant READ on the topics that are read, WRITE on those that are written"
        )
    if isinstance(error, UnknownTopicOrPartitionError):
        return Refused("kafka", error, absent_topic(topic))
    return Unavailable("kafka", error)


def absent_topic(topic: str = "") -> str:
    """What is wrong if a topic does not exist, and what to do."""
    name = f"topic {topic}" if topic else "the topic"
    return f"{name} does not exist; create it with `credence topics create`"


@contextmanager
def translate_errors(topic: str = "") -> Iterator[None]:
    """Raise errors of the Kafka client as `translate_error` has them; those of an absent topic name it."""
    try:
        yield
    except KafkaError as error:
        raise translate_error(error, topic) from error


class TopicLog:
    """Metadata and offsets of one topic, asked for between two polls, by the thread that polls.

    Methods that ask Kafka raise `Unavailable` if it does not answer.
    """

    def __init__(self, consumer: Any, topic: str) -> None:
        self.topic = topic
        self._consumer = consumer

    @property
    def identity(self) -> str | None:
        """Topic id in the cached metadata; None from a broker without topic ids."""
        # The client has no public call for it; its version is pinned.
        topic_id: UUID | None = self._consumer._cluster.topic_id(self.topic)  # noqa: SLF001
        return None if topic_id is None or topic_id == _NO_ID else str(topic_id)

    def refresh(self) -> None:
        """Refresh topic id, partitions and leaders; the client does so at most every 0.1 s.

        Raises:
            Unavailable: Kafka does not answer, or there is no such topic.
        """
        consumer = self._consumer
        with translate_errors(self.topic):
            # Not the client's `refresh_metadata`: if ours fails, its own refreshes end for good.
            update = consumer._cluster.request_update()  # noqa: SLF001 - as for the identity
            consumer._net.run(consumer._manager.wait_for, update, _TIMEOUT_MS)  # noqa: SLF001

    def partition_count(self) -> int:
        """Number of partitions in the cached metadata."""
        # The public call would wait for a request to Kafka.
        return len(self._consumer._cluster.partitions_for_topic(self.topic) or ())  # noqa: SLF001

    def first_offset(self, tp: TopicPartition) -> int:
        """Log start offset of a partition."""
        with translate_errors(self.topic):
            return int(self._consumer.beginning_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp])

    def end_offset(self, tp: TopicPartition) -> int:
        """Log end offset of a partition: the high watermark, or last stable offset for read_committed."""
        with translate_errors(self.topic):
            return int(self._consumer.end_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp])

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Log end offsets, in one request."""
        with translate_errors():
            ends = self._consumer.end_offsets(list(partitions), timeout_ms=_TIMEOUT_MS)
        return {tp: int(end) for tp, end in ends.items()}

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """Offsets that the consumer group has committed, with their metadata, in one request."""
        # The public call asks for one partition at a time.
        fetch = self._consumer._coordinator.fetch_committed_offsets  # noqa: SLF001
        with translate_errors():
            found = fetch(list(partitions), timeout_ms=_TIMEOUT_MS)
        return {tp: (int(one.offset), one.metadata or "") for tp, one in found.items()}


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Rebalance listener that makes a client rejoin its group after every revocation."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - the library names it
        """Rejoin the group."""
        # If changed metadata caused the rebalance (new partitions, a recreated topic), the client drops its
        # own rejoin when the poll times out, and is no member of the group from then on.
        self._consumer._coordinator.request_rejoin()  # noqa: SLF001 - no public call does

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""


def join(consumer: Any, topic: str) -> None:
    """Subscribe a client that has not polled yet to a topic, so that its next polls join the group.

    A client joins with its first poll, whatever metadata it has. A group leader without metadata of the topic
    assigns no partitions to anybody, and may not rejoin once it has them. So the metadata come first.

    Raises:
        Unavailable: Kafka does not answer, or there is no such topic.
    """
    consumer.subscribe([topic], listener=Membership(consumer))
    TopicLog(consumer, topic).refresh()
