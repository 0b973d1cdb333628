"""Whether a consumer group notices what Redis lost, with a real broker and a real Redis, one or clustered."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness import wait_for
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from consumers.store_watch import Stamp, StoreWatch
from service.kafka.topic_metadata import TopicLog
from service.store.connection import Connection
from service.store.keys import ModelKeys, identity_key
from service.store.resets import RedisReset, ResetStore
from service.store.topics import TopicProgress

FIRST, SECOND = 0, 1


@dataclass
class Watched:
    """A topic with two partitions, and watches over the Redis that keeps its offsets.

    Attributes:
        labels: what Redis counts.
        now: seconds since the epoch.
    """

    broker: str
    connection: Connection
    topic: str = field(default_factory=lambda: f"watched-{secrets.token_hex(4)}")
    labels: int | None = None
    now: float = field(default_factory=time.time)
    clients: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.broker)
        admin.create_topics([NewTopic(self.topic, num_partitions=2, replication_factor=1)])
        admin.close()
        producer = KafkaProducer(bootstrap_servers=self.broker)
        for partition in (FIRST, SECOND):
            for _ in range(10):
                producer.send(self.topic, b"x", partition=partition).get(timeout=20)
        producer.close()
        self.keys = ModelKeys(self.connection.prefix, "m", "0" * 8)

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    def watch(self, *partitions: int, models: str = "m") -> StoreWatch:
        """A watch of a consumer that has just started, and checked its partitions."""
        client = KafkaConsumer(
            bootstrap_servers=self.broker, group_id=f"group-{self.topic}", enable_auto_commit=False
        )
        self.clients.append(client)
        client.assign([self.partition(number) for number in partitions])
        watch = StoreWatch(
            TopicLog(client, self.topic),
            client,
            resets=ResetStore(self.connection),
            progress=TopicProgress(self.connection, lambda number: [self.keys.shard(number)]),
            models=models,
            count_labels=lambda: self.labels,
            clock=lambda: self.now,
        )
        watch.check([self.partition(number) for number in partitions])
        return watch

    def store(self, *partitions: int) -> None:
        """Have Redis hold offsets, as a flush does."""
        for number in partitions:
            self.connection.client.hset(self.keys.shard(number), "next_offset", 10)

    def commit(self, watch: StoreWatch, *partitions: int) -> None:
        """Commit offsets, and wait for Kafka to have them."""
        watch.commit({self.partition(number): 10 for number in partitions})
        client = watch.consumer
        wait_for(
            lambda: all(client.committed(self.partition(number)) == 10 for number in partitions),
            seconds=20,
            what="the commit",
        )

    def empty_redis(self) -> None:
        for key in self.connection.client.scan_iter(match=f"{self.connection.prefix}:*"):
            self.connection.client.delete(key)

    def reset(self) -> RedisReset | None:
        return ResetStore(self.connection).reset()


@pytest.fixture
def watched(bootstrap_servers: str, connection: Connection) -> Iterator[Watched]:
    made = Watched(bootstrap_servers, connection)
    yield made
    for client in made.clients:
        client.close(autocommit=False)


def test_a_group_that_begins_reports_nothing(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST, SECOND), FIRST)
    watched.watch(FIRST, SECOND)
    assert watched.reset() is None


def test_an_emptied_redis_is_reported_by_consumers_that_have_all_started_again(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST, SECOND), FIRST, SECOND)
    watched.store(FIRST, SECOND)
    watched.empty_redis()
    watched.watch(FIRST)
    watched.watch(SECOND)
    found = watched.reset()
    assert found is not None
    assert (found.kind, found.records) == ("emptied", {watched.topic: 20})


def test_a_partition_that_was_never_read_is_not_lost(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST, SECOND), FIRST)
    watched.empty_redis()
    watched.watch(SECOND)
    assert watched.reset() is None
    watched.watch(FIRST)
    assert watched.reset() is not None


def test_an_acknowledged_loss_stays_acknowledged_whoever_starts_again(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST, SECOND), FIRST, SECOND)
    watched.empty_redis()
    watched.watch(FIRST)
    ResetStore(watched.connection).acknowledge()
    watched.watch(FIRST)
    watched.watch(SECOND)
    assert watched.reset() is None


def test_offsets_that_a_change_of_classes_left_without_a_shard_are_no_loss(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST), FIRST)
    watched.store(FIRST)
    watched.keys = ModelKeys(watched.connection.prefix, "m", "1" * 8)
    watched.watch(FIRST)
    assert watched.reset() is None


def test_a_redis_of_an_older_credence_is_taken_over_without_a_report(watched: Watched) -> None:
    watched.commit(watched.watch(FIRST), FIRST)
    watched.store(FIRST)
    watched.connection.client.delete(identity_key(watched.connection.prefix))
    watch = watched.watch(FIRST)
    assert watched.reset() is None
    watch.check_identity(None, [watched.partition(FIRST)])
    assert watched.reset() is None


def test_a_running_consumer_says_how_many_labels_were_lost_whatever_the_broker_keeps(
    watched: Watched,
) -> None:
    watched.labels = 500
    watch = watched.watch(FIRST)
    watched.commit(watch, FIRST)
    watched.empty_redis()
    watched.labels = 0
    watch.check_identity(None, [watched.partition(FIRST)])
    found = watched.reset()
    assert found is not None
    assert (found.labels_before, found.labels_now) == (500, 0)


def rolled_back(watched: Watched, is_read: Callable[[float], bool]) -> StoreWatch:
    """A watch that has seen more labels than there are, for longer than it waits."""
    watched.labels = 500
    watch = watched.watch(FIRST)
    watched.commit(watch, FIRST)
    watched.labels = 450
    owned = [watched.partition(FIRST)]
    watch.check_labels(owned, is_read=is_read)
    assert watched.reset() is None, "they may be read again"
    watched.now += 40
    watch.check_labels(owned, is_read=is_read)
    return watch


def test_a_redis_that_returned_to_an_older_state_is_reported_once_all_labels_are_read(
    watched: Watched,
) -> None:
    asked: list[float] = []
    watch = rolled_back(watched, lambda since: bool(asked.append(since)) or True)
    assert asked == [watched.now - 40]
    found = watched.reset()
    assert found is not None
    assert (found.kind, found.labels_before, found.labels_now) == ("rolled_back", 500, 450)
    ResetStore(watched.connection).acknowledge()
    watched.now += 100
    watch.check_labels([watched.partition(FIRST)], is_read=lambda _: True)
    watched.watch(FIRST).check_labels([watched.partition(FIRST)], is_read=lambda _: True)
    assert watched.reset() is None


def test_labels_that_are_still_to_be_read_again_are_not_lost(watched: Watched) -> None:
    watch = rolled_back(watched, lambda _: False)
    assert watched.reset() is None
    watched.labels = 500
    watch.check_labels([watched.partition(FIRST)], is_read=lambda _: True)
    watched.labels = 499
    watch.check_labels([watched.partition(FIRST)], is_read=lambda _: True)
    assert watched.reset() is None, "the wait begins again"


def test_fewer_labels_of_other_models_are_no_loss(watched: Watched) -> None:
    watched.labels = 500
    watched.commit(watched.watch(FIRST), FIRST)
    watched.labels = 100
    watch = watched.watch(FIRST, models="m, but not n")
    for _ in range(2):
        watch.check_labels([watched.partition(FIRST)], is_read=lambda _: True)
        watched.now += 100
    assert watched.reset() is None


@pytest.mark.parametrize("labels", [None, 0, 12])
def test_a_stamp_is_read_again_as_it_was_committed(labels: int | None) -> None:
    stamp = Stamp(7, "abc", "def", labels)
    assert Stamp.parse(7, stamp.metadata) == stamp


@pytest.mark.parametrize("metadata", ["", "anything", "credence1 abc def", "credence2 abc def 1"])
def test_commits_of_others_have_an_offset_and_nothing_more(metadata: str) -> None:
    assert Stamp.parse(7, metadata) == Stamp(7, "", "", None)
