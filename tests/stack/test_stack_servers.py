"""The servers that the other tests of this folder rely on."""

from __future__ import annotations

import secrets

import pytest
from apache_kafka import ApacheKafka
from harness import wait_for
from kafka import KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from service.domain.errors import EmbeddedServerError


def test_a_broker_that_was_killed_comes_back_with_what_it_had() -> None:
    with ApacheKafka() as kafka:
        (broker,) = kafka.brokers
        topic = secrets.token_hex(4)
        with kafka.admin() as admin:
            admin.create_topics([NewTopic(topic, 1, 1)], wait_for_metadata=True)
        broker.kill()
        broker.start()
        with kafka.admin() as admin:
            assert topic in admin.list_topics()


def test_a_broker_that_is_paused_answers_when_it_is_resumed() -> None:
    with ApacheKafka() as kafka:
        (broker,) = kafka.brokers
        topic = secrets.token_hex(4)
        with kafka.admin() as admin:
            admin.create_topics([NewTopic(topic, 1, 1)], wait_for_metadata=True)
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        producer.send(topic, b"before").get(timeout=20)
        broker.pause()
        sent = producer.send(topic, b"meanwhile")
        with pytest.raises(KafkaError):
            sent.get(timeout=1)
        broker.resume()
        assert sent.get(timeout=20).offset == 1
        producer.close()


def test_three_brokers_serve_on_when_one_is_killed() -> None:
    with ApacheKafka(3) as kafka:
        topic = secrets.token_hex(4)
        with kafka.admin() as admin:
            admin.create_topics([NewTopic(topic, 1, 3)], wait_for_metadata=True)
            # Another broker than the one that made the topic may be asked, and learn of it a moment later.
            partition = wait_for(
                lambda: next(iter(admin.describe_topics([topic])[0]["partitions"]), None),
                seconds=20,
                what="a description of the topic",
            )
        kafka.brokers[partition["leader_id"] - 1].kill()
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers.split(","))
        assert producer.send(topic, b"x").get(timeout=20).offset == 0
        producer.close()


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(EmbeddedServerError, match=r"num\.io\.threads"):
        ApacheKafka(config={"num.io.threads": "many"})


def test_nothing_is_left_of_a_cluster_that_is_closed() -> None:
    with ApacheKafka() as kafka:
        (broker,) = kafka.brokers
        child = broker.child
    assert child is not None
    wait_for(lambda: child.process.poll() is not None, seconds=1, what="the end of the broker")
    assert not broker.folder.exists()
