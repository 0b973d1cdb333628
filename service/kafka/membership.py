"""Membership of a consumer group that a client keeps."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener

from service.kafka.topic_metadata import TopicLog


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Makes a consumer rejoin its group after its partitions are revoked, for whatever reason."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - the library names it
        """Rejoin the group."""
        # If only changed metadata caused it (new partitions, a recreated topic), the client forgets to rejoin
        # when the poll times out, and is in no group from then on.
        self._consumer._coordinator.request_rejoin()  # noqa: SLF001 - no public call does

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Nothing to do."""


def join(consumer: Any, topic: str) -> None:
    """Subscribe a consumer that has not polled yet: with its next polls it joins its group, and stays in it.

    A consumer joins with its first poll, whatever metadata it has. If it leads the group and does not know
    the topic yet, it assigns no partitions, and may not rejoin later.

    Raises:
        Unavailable: Kafka cannot answer now, or there is no such topic.
    """
    consumer.subscribe([topic], listener=Membership(consumer))
    TopicLog(consumer, topic).refresh()
