"""A producer outlives its client, which some errors end for good."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from apache_kafka import ApacheKafka
from kafka.errors import InvalidTimestampError, KafkaTimeoutError, MessageSizeTooLargeError
from reading import Topic

from service.config.settings import KafkaSettings
from service.kafka.clients import build_producer
from service.kafka.producer import LastingProducer

A_DAY_MS = 86_400_000


@pytest.fixture
def producer(apache_kafka: ApacheKafka) -> Iterator[LastingProducer]:
    made = build_producer(KafkaSettings(bootstrap_servers=[apache_kafka.bootstrap_servers]), name="test")
    yield made
    made.close(timeout=5)


def test_records_are_sent_after_one_whose_clock_ran_a_day_ahead(
    apache_kafka: ApacheKafka, producer: LastingProducer
) -> None:
    topic = Topic(apache_kafka)
    ahead = producer.send(topic.name, value=b"ahead", timestamp_ms=int(time.time() * 1000) + A_DAY_MS)
    with pytest.raises(InvalidTimestampError):
        ahead.get(timeout=60)
    assert producer.send(topic.name, value=b"now").get(timeout=60).offset == 0


def test_a_record_that_is_too_large_costs_no_client(
    apache_kafka: ApacheKafka, producer: LastingProducer
) -> None:
    topic = Topic(apache_kafka)
    client = producer._client
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic.name, value=bytes(2_000_000))
    producer.send(topic.name, value=b"small").get(timeout=60)
    assert producer._client is client


@pytest.mark.parametrize("idempotent", [True, False])
def test_records_are_sent_after_one_that_could_not_be_delivered_in_time(idempotent: bool) -> None:
    with ApacheKafka() as kafka:
        topic = Topic(kafka)
        settings = KafkaSettings(bootstrap_servers=[kafka.bootstrap_servers])
        # In this time a broker on a busy machine has to take the first one and the third.
        producer = build_producer(settings, name="test", delivery_seconds=8, idempotent=idempotent)
        producer.send(topic.name, value=b"first").get(timeout=60)
        kafka.pause()
        with pytest.raises(KafkaTimeoutError):
            producer.send(topic.name, value=b"second").get(timeout=60)
        kafka.resume()
        producer.send(topic.name, value=b"third").get(timeout=60)
        producer.close(timeout=5)


def test_a_producer_that_ends_with_something_unsent_says_so_and_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ApacheKafka() as kafka:
        topic = Topic(kafka)
        producer = build_producer(KafkaSettings(bootstrap_servers=[kafka.bootstrap_servers]), name="test")
        producer.send(topic.name, value=b"first").get(timeout=60)
        kafka.pause()
        producer.send(topic.name, value=b"second")
        producer.close(timeout=0.5)
        assert "a producer ends with records that are not sent" in caplog.messages
        assert producer._client._closed
        assert not producer._client._sender.is_alive()
        kafka.resume()
