"""A consumer with a name of its own gets its partitions back without waiting for its session to end."""

from __future__ import annotations

import time

import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, wait_for
from reading import Reader, Topic

from service.domain.errors import Unreadable
from service.store.connection import Connection

SESSION_SECONDS = 120.0
"""Never waited for: who waits for it comes much too late."""


@pytest.fixture
def named(deploy: Deploy, apache_kafka: ApacheKafka) -> Deploy:
    def make(**keys: object) -> object:
        deployment = deploy(broker=apache_kafka.bootstrap_servers)
        deployment.configure("kafka", session_timeout_seconds=SESSION_SECONDS, **keys)
        return deployment

    return make


def test_a_named_consumer_that_was_killed_reads_on_at_once(named: Deploy) -> None:
    deployment = named(instance_id="pod-0")
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=40, what="ready")
        deployment.send_predictions(range(100))
        wait_for(lambda: deployment.predictions_stored() == 100, seconds=20, what="100 stored")
        process.kill()
    killed = time.monotonic()
    deployment.send_predictions(range(100, 200))
    with deployment.process("consume", "predictions"):
        wait_for(lambda: deployment.predictions_stored() >= 200, seconds=60, what="200 stored")
        assert deployment.predictions_stored() == 200
    assert time.monotonic() - killed < SESSION_SECONDS / 2


def test_a_consumer_whose_name_another_one_takes_says_so(
    apache_kafka: ApacheKafka, connection: Connection
) -> None:
    topic = Topic(apache_kafka)
    topic.send(10)
    with Reader(topic, connection, instance_id="pod-0") as first:
        first.wait_for_count(10)
        with Reader(topic, connection, instance_id="pod-0") as second:
            # Kafka tells the first one when it commits what it has read.
            wait_for(lambda: topic.send(1) or first.failure, seconds=60, what="the end of the first")
            assert isinstance(first.failure, Unreadable)
            assert "kafka.instance_id" in str(first.failure)
            second.wait_for_count(topic.sent)
