"""Logs that are no longer what was read: truncated, made anew, grown. Every count stays exact."""

from __future__ import annotations

import time

import pytest
from apache_kafka import ApacheKafka
from harness import wait_for
from kafka import KafkaProducer
from reading import Reader, Topic

from service.store.connection import Connection
from service.store.recent_reports import Loss, losses

LOST = "credence_records_lost_total"
BREAKS = "credence_log_breaks_total"


@pytest.fixture
def topic(apache_kafka: ApacheKafka) -> Topic:
    return Topic(apache_kafka)


def reported(connection: Connection) -> list[Loss]:
    """What every process can know of losses."""
    return losses(connection).recent(time.time())


def test_a_topic_that_is_made_later_is_told_and_then_read(topic: Topic, connection: Connection) -> None:
    topic.delete()
    with Reader(topic, connection) as reader:
        reader.wait_for_state("refused")
        topic.create()
        topic.send(10)
        reader.wait_for_count(10)
        reader.wait_for_state("running")


def test_records_deleted_under_a_running_consumer_are_counted_as_lost(
    topic: Topic, connection: Connection
) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
        with reader.paused():
            topic.send(100)
            topic.delete_records(40)
        reader.wait_for_count(10 + 70)
        assert reader.metric(LOST) == 30
        wait_for(lambda: reported(connection), seconds=20, what="a report of the loss")
    [loss] = reported(connection)
    assert (loss.role, loss.kind, loss.topic, loss.records) == ("predictions", "deleted", topic.name, 30)


def test_records_deleted_while_nobody_reads_are_counted_as_lost(topic: Topic, connection: Connection) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
    topic.send(100)
    topic.delete_records(40)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10 + 70)
        assert reader.metric(LOST) == 30


def test_a_loss_is_counted_once_though_nothing_comes_after_it(topic: Topic, connection: Connection) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
    topic.send(20)
    topic.delete_records(30)
    with Reader(topic, connection) as reader:
        wait_for(lambda: reader.metric(LOST) == 20, seconds=20, what="the loss")
    with Reader(topic, connection) as reader:
        reader.wait_for_state("running")
        assert reader.metric(LOST) == 0


def test_what_was_aborted_and_then_deleted_is_not_lost(topic: Topic, connection: Connection) -> None:
    producer = KafkaProducer(bootstrap_servers=topic.kafka.bootstrap_servers, transactional_id=topic.name)
    producer.init_transactions()
    topic.send(1)
    producer.begin_transaction()
    for value in topic.values(10):
        producer.send(topic.name, value, partition=0)
    producer.flush()
    producer.abort_transaction()
    producer.close()
    with Reader(topic, connection) as reader:
        reader.wait_for_count(1)
        stored = reader.site.keys("m").shard(0)
        wait_for(
            lambda: connection.client.hget(stored, "next_offset") == b"12", seconds=30, what="the position"
        )
    topic.delete_records(12)
    with Reader(topic, connection) as reader:
        reader.wait_for_state("running")
        assert reader.metric(LOST) == 0


def test_where_a_partition_is_read_from_is_stored_before_anything_of_it_is_read(
    topic: Topic, connection: Connection
) -> None:
    topic.send(10)
    with Reader(topic, connection, start="latest", flush_seconds=3_600) as reader:
        reader.wait_for_state("running")
        stored = reader.site.keys("m").shard(0)
        assert connection.client.hget(stored, "next_offset") == b"10"


def test_records_that_were_read_and_then_deleted_are_not_lost(topic: Topic, connection: Connection) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
        topic.delete_records(10)
        topic.send(5)
        reader.wait_for_count(15)
        assert reader.metric(LOST) == 0


def test_a_consumer_that_is_to_start_at_the_end_reads_what_is_left_of_a_truncated_log(
    topic: Topic, connection: Connection
) -> None:
    with Reader(topic, connection, start="latest") as reader:
        reader.wait_for_state("running")
        topic.send(10)
        reader.wait_for_count(10)
        with reader.paused():
            topic.send(20)
            topic.delete_records(15)
        reader.wait_for_count(10 + 15)
        assert reader.metric(LOST) == 5


@pytest.mark.parametrize("after", [3, 30])
def test_a_topic_made_anew_while_nobody_reads_is_read_from_its_beginning(
    topic: Topic, connection: Connection, after: int
) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
    topic.delete()
    topic.create()
    topic.send(after)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10 + after)
        assert reader.metric(BREAKS, kind="recreated") == 1
    assert [loss.kind for loss in reported(connection)] == ["recreated"], "before it stopped"
    with Reader(topic, connection) as reader:
        topic.send(1)
        reader.wait_for_count(10 + after + 1)
        assert reader.metric(BREAKS, kind="recreated") == 0


@pytest.mark.parametrize("after", [3, 30])
def test_a_topic_made_anew_under_a_running_consumer_is_read_from_its_beginning(
    topic: Topic, connection: Connection, after: int
) -> None:
    topic.send(10)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(10)
        topic.delete()
        topic.create()
        topic.send(after)
        reader.wait_for_count(10 + after)
        topic.send(1)
        reader.wait_for_count(10 + after + 1)


def test_partitions_that_are_added_are_read_from_their_beginning(
    topic: Topic, connection: Connection
) -> None:
    topic.send(10)
    with Reader(topic, connection, start="latest") as reader:
        reader.wait_for_state("running")
        topic.send(10)
        reader.wait_for_count(10)
        topic.add_partitions(3)
        topic.send(5, partition=2)
        reader.wait_for_count(15)


def test_predictions_of_an_aborted_transaction_do_not_count(topic: Topic, connection: Connection) -> None:
    producer = KafkaProducer(bootstrap_servers=topic.kafka.bootstrap_servers, transactional_id=topic.name)
    producer.init_transactions()
    with Reader(topic, connection) as reader:
        for commits in (True, False, True):
            producer.begin_transaction()
            for value in topic.values(10):
                producer.send(topic.name, value, partition=0)
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        topic.send(1)
        reader.wait_for_count(21)
    with Reader(topic, connection) as reader:
        topic.send(1)
        reader.wait_for_count(22)
        assert reader.metric(LOST) == 0
    producer.close()


def test_a_transaction_that_is_open_is_waited_for(topic: Topic, connection: Connection) -> None:
    producer = KafkaProducer(bootstrap_servers=topic.kafka.bootstrap_servers, transactional_id=topic.name)
    producer.init_transactions()
    topic.send(1)
    with Reader(topic, connection) as reader:
        producer.begin_transaction()
        for value in topic.values(10):
            producer.send(topic.name, value, partition=0)
        producer.flush()
        topic.send(5)
        reader.wait_for_count(1)
        producer.commit_transaction()
        reader.wait_for_count(16)
    producer.close()
