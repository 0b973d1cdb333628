"""Membership of a consumer group that a client keeps."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener

from service.kafka.topic_metadata import TopicLog


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Has a client whose partitions are revoked join its group anew, whatever made that.

    Args:
        consumer: the client.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - the library names it
        """The client joins anew."""
        # If only changed metadata made it (new partitions, a topic made anew), it forgets that it does as
        # soon as a poll's time is over, and is nobody's member from then on.
        self._consumer._coordinator.request_rejoin()  # noqa: SLF001 - no public call does

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Nothing is to be done."""


def join(consumer: Any, topic: str) -> None:
    """Subscribe a client to a topic: with its next polls it joins its group, and stays in it.

    A client joins with its first poll, whatever it knows. One that leads the group and has not heard of the
    topic yet gives nobody anything; and may forget to join anew once it has.

    Args:
        consumer: has not polled yet.
        topic: that it reads.

    Raises:
        Unavailable: Kafka cannot tell now who leads the topic's partitions, or there is no such topic.
    """
    consumer.subscribe([topic], listener=Membership(consumer))
    TopicLog(consumer, topic).refresh()
