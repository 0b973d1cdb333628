"""A client that joins a group as `service.kafka.topic_metadata.join` has it is a member until it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from harness import wait_for
from reading import Topic

from service.config.settings import KafkaSettings
from service.domain.errors import Refused
from service.kafka.clients import build_consumer
from service.kafka.topic_metadata import join

PARTITIONS = 3
SHORT_POLL_MS = 50


@pytest.fixture
def topic(apache_kafka: ApacheKafka) -> Topic:
    return Topic(apache_kafka, partitions=PARTITIONS)


@contextmanager
def member(topic: Topic, **kafka: Any) -> Iterator[Any]:
    """A client that has joined a group of the topic's name."""
    servers = topic.kafka.bootstrap_servers.split(",")
    settings = KafkaSettings(bootstrap_servers=servers, group_prefix=topic.name, **kafka)
    with closing(build_consumer(settings, group="readers", without_offset="earliest")) as consumer:
        join(consumer, topic.name)
        yield consumer


def wait_for_partitions(consumer: Any, count: int) -> None:
    """Poll, a moment at a time, until so many partitions are the client's."""

    def assigned() -> bool:
        consumer.poll(timeout_ms=SHORT_POLL_MS)
        return len(consumer.assignment()) == count

    wait_for(assigned, seconds=60, what=f"{count} partitions")


def test_a_client_knows_its_topic_before_its_first_poll(topic: Topic) -> None:
    with member(topic) as consumer:
        assert len(consumer._cluster.partitions_for_topic(topic.name)) == PARTITIONS
        wait_for_partitions(consumer, PARTITIONS)


def test_a_member_that_polls_briefly_is_given_partitions_that_are_added(topic: Topic) -> None:
    with member(topic, metadata_seconds=0.5) as consumer:
        wait_for_partitions(consumer, PARTITIONS)
        for total in range(PARTITIONS + 1, PARTITIONS + 6):
            topic.add_partitions(total)
            wait_for_partitions(consumer, total)


def test_a_topic_that_does_not_exist_is_told(topic: Topic) -> None:
    topic.delete()
    with pytest.raises(Refused, match="credence topics create"), member(topic):
        pass
