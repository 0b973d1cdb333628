"""Consumer group membership that outlasts every rebalance."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener

from service.kafka.topic_metadata import TopicLog


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
    """Subscribe a client to a topic, so that its next polls join the group.

    A client joins with its first poll, whatever metadata it has. A group leader without metadata of the topic
    assigns no partitions to anybody, and may not rejoin once it has them. So the metadata come first.

    Args:
        consumer: a client that has not polled yet.
        topic: the topic to read.

    Raises:
        Unavailable: Kafka does not answer, or there is no such topic.
    """
    consumer.subscribe([topic], listener=Membership(consumer))
    TopicLog(consumer, topic).refresh()
