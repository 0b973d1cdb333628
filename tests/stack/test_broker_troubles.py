"""Brokers that die, stop and move their work; nothing is lost, and nothing counted twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from harness import PATIENCE_SECONDS, wait_for
from kafka import KafkaConsumer
from reading import Reader, Topic
from store_site import NOW, Site, draws_of, issue, message, record

from consumers.dead_letter_producer import KafkaDeadLetters
from consumers.dead_letters import Rejected
from service.app.request_publisher import RequestPublisher
from service.config.settings import KafkaSettings
from service.domain.errors import BadMessage, Unavailable
from service.kafka.clients import build_producer
from service.store.connection import Connection

BREAKS = "credence_log_breaks_total"


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    """Three brokers, all of them well before and after every test."""
    with ApacheKafka(3) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def whole(kafka: ApacheKafka) -> Iterator[None]:
    yield
    kafka.resume()
    kafka.start()


def leader(topic: Topic) -> int:
    return int(topic.described()["leader_id"])


def test_the_leader_of_a_partition_is_killed(kafka: ApacheKafka, connection: Connection) -> None:
    topic = Topic(kafka, replicas=3, config={"min.insync.replicas": "2"})
    topic.send(100)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(100)
        old = leader(topic)
        kafka.brokers[old - 1].kill()
        wait_for(lambda: leader(topic) not in (old, -1), seconds=20, what="another leader")
        topic.send(100)
        reader.wait_for_count(200)
        assert reader.metric(BREAKS, kind="truncated") == 0


def test_the_leader_of_a_partition_stops_answering(kafka: ApacheKafka, connection: Connection) -> None:
    topic = Topic(kafka, replicas=3, config={"min.insync.replicas": "2"})
    topic.send(100)
    with Reader(topic, connection, session_timeout_seconds=6) as reader:
        reader.wait_for_count(100)
        old = kafka.brokers[leader(topic) - 1]
        old.pause()
        wait_for(lambda: leader(topic) not in (old.node_id, -1), seconds=20, what="another leader")
        topic.send(100)
        reader.wait_for_count(200)
        old.resume()
        topic.send(100)
        reader.wait_for_count(300)


def test_the_coordinator_of_the_group_is_killed(kafka: ApacheKafka, connection: Connection) -> None:
    topic = Topic(kafka, replicas=3)
    topic.send(100)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(100)
        with kafka.admin() as admin:
            logged = admin.describe_topics(["__consumer_offsets"])[0]["partitions"][0]
        kafka.brokers[logged["leader_id"] - 1].kill()
        topic.send(100)
        reader.wait_for_count(200)
        topic.send(100)
        reader.wait_for_count(300)


def test_a_log_that_loses_its_end_to_an_unclean_election_is_read_on_where_it_parts(
    kafka: ApacheKafka, connection: Connection
) -> None:
    topic, lagging, ahead = unclean_topic(kafka)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
        kafka.brokers[lagging - 1].kill()
        topic.send(20)
        reader.wait_for_count(30)
        elect(kafka, lagging=lagging, ahead=ahead, topic=topic)
        topic.send(5)
        reader.wait_for_count(30 + 5)
        assert reader.metric(BREAKS, kind="truncated") == 1
        topic.send(40)
        reader.wait_for_count(30 + 45)


def test_a_log_that_lost_its_end_while_nobody_read_is_read_on_from_its_end(
    kafka: ApacheKafka, connection: Connection
) -> None:
    topic, lagging, ahead = unclean_topic(kafka)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
        kafka.brokers[lagging - 1].kill()
        topic.send(20)
        reader.wait_for_count(30)
    elect(kafka, lagging=lagging, ahead=ahead, topic=topic)
    with Reader(topic, connection) as reader:
        wait_for(lambda: reader.metric(BREAKS, kind="truncated") == 1, seconds=20, what="the break")
        topic.send(5)
        reader.wait_for_count(30 + 5)


def unclean_topic(kafka: ApacheKafka) -> tuple[Topic, int, int]:
    """A topic of ten records on two brokers, which prefers to go on over losing nothing."""
    topic = Topic(kafka, replicas=2, config={"unclean.leader.election.enable": "true"})
    topic.send(10)
    ahead = leader(topic)
    (lagging,) = set(topic.described()["replica_nodes"]) - {ahead}
    return topic, lagging, ahead


def elect(kafka: ApacheKafka, *, lagging: int, ahead: int, topic: Topic) -> None:
    """Have the broker that has missed the end lead."""
    kafka.brokers[ahead - 1].kill()
    kafka.brokers[lagging - 1].start()
    wait_for(lambda: leader(topic) == lagging, seconds=30, what="an unclean election")


def test_dead_letters_wait_for_replicas_and_are_kept_once(kafka: ApacheKafka) -> None:
    topic = Topic(kafka, replicas=3, config={"min.insync.replicas": "3"})
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers.split(","))
    producer = build_producer(settings, name="dead-letters")
    letters = KafkaDeadLetters(producer, topic.name, message_bytes=1_000)

    def keep(offset: int) -> None:
        record = SimpleNamespace(
            topic="source", partition=0, offset=offset, timestamp=17, key=None, value=b"{", headers=()
        )
        letters.send([Rejected(record, BadMessage("malformed_json", "is no JSON"))])

    keep(0)
    missing = kafka.brokers[leader(topic) % 3]
    missing.kill()
    wait_for(lambda: len(topic.described()["isr_nodes"]) == 2, seconds=20, what="a smaller set in sync")
    with pytest.raises(Unavailable):
        keep(1)
    missing.start()
    wait_for(lambda: len(topic.described()["isr_nodes"]) == 3, seconds=30, what="all in sync")
    keep(1)
    producer.close()
    assert set(sources(topic)) == {"0", "1"}
    assert sources(topic).count("0") == 1


def test_label_requests_wait_for_replicas_and_keep_their_ids(
    kafka: ApacheKafka, connection: Connection
) -> None:
    topic = Topic(kafka, replicas=3, config={"min.insync.replicas": "3"})
    asked = {"ask": {"budget": {"labels": 9}}}
    site = Site(connection, {"m": {"classes": ["cat", "dog", "owl"], "assessments": asked}})
    site.take_in([record(number, message(number)) for number in range(10)])
    draws = draws_of(site)
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers.split(","))
    producer = build_producer(settings, name="requests")
    store = site.requests("m")
    publisher = RequestPublisher(producer, topic.name, {"m": store}, site._metrics)
    issue(site, draws[:2])
    assert publisher.publish(NOW) == 2
    missing = kafka.brokers[leader(topic) % 3]
    missing.kill()
    wait_for(lambda: len(topic.described()["isr_nodes"]) == 2, seconds=20, what="a smaller set in sync")
    issue(site, draws[2:5])
    with pytest.raises(Unavailable):
        publisher.publish(NOW)
    assert len(store.read_outbox()) == 3
    missing.start()
    wait_for(lambda: len(topic.described()["isr_nodes"]) == 3, seconds=30, what="all in sync")
    assert publisher.publish(NOW) == 3
    producer.close()
    assert store.read_outbox() == {}
    published = [json.loads(value)["item_id"] for value in values(topic)]
    assert set(published) == {draw.item_id for draw in draws[:5]}


def values(topic: Topic) -> list[bytes]:
    return [record.value for record in everything(topic)]


def sources(topic: Topic) -> list[str]:
    """Offsets that the dead letters in a topic tell of."""
    return [dict(record.headers)["credence-source-offset"].decode() for record in everything(topic)]


def everything(topic: Topic) -> list[Any]:
    """All records of a topic."""
    consumer = KafkaConsumer(
        bootstrap_servers=topic.kafka.bootstrap_servers.split(","), auto_offset_reset="earliest"
    )
    consumer.assign([topic.partition(0)])
    end = consumer.end_offsets([topic.partition(0)])[topic.partition(0)]
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while consumer.position(topic.partition(0)) < end:
        assert time.monotonic() < deadline, f"{topic.name} cannot be read"
        for records in consumer.poll(500).values():
            found += records
    consumer.close()
    return found
