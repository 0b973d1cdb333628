"""A topic of Apache Kafka, and a consumer that reads it as a process of Credence does."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self

from apache_kafka import ApacheKafka
from harness import wait_for
from kafka import KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.errors import KafkaError
from store_site import Site, message

from consumers.health_report import HealthReporter
from consumers.loop import ConsumerLoop
from consumers.store_watch import StoreWatch
from service.config.settings import KafkaSettings
from service.kafka.clients import build_consumer
from service.store.connection import Connection
from service.store.consumer_health import HealthStore
from service.store.resets import ResetStore
from service.store.topics import TopicProgress
from service.telemetry.outages import Outages

MODELS = {"m": {"classes": ["cat", "dog", "owl"]}}


class Topic:
    """A topic of predictions, with a name of its own.

    Attributes:
        sent: numbers of the items whose predictions it was sent.
    """

    def __init__(
        self,
        kafka: ApacheKafka,
        *,
        partitions: int = 1,
        replicas: int = 1,
        config: dict[str, str] | None = None,
    ) -> None:
        self.kafka = kafka
        self.name = f"t{secrets.token_hex(6)}"
        self._new = NewTopic(self.name, partitions, replicas, topic_configs=config or {})
        self.sent = 0
        self.create()

    def create(self) -> None:
        with self.kafka.admin() as admin:
            admin.create_topics([self._new], raise_errors=True)
            admin.wait_for_topics([self.name])

    def delete(self) -> None:
        with self.kafka.admin() as admin:
            admin.delete_topics([self.name])
            wait_for(lambda: self.name not in admin.list_topics(), seconds=20, what="the deletion")

    def add_partitions(self, total: int) -> None:
        with self.kafka.admin() as admin:
            admin.create_partitions({self.name: NewPartitions(total)})
        wait_for(lambda: self.described(total - 1)["leader_id"] >= 0, seconds=20, what="the new partitions")

    def delete_records(self, before: int, partition: int = 0) -> None:
        with self.kafka.admin() as admin:
            admin.delete_records({self.partition(partition): before})

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.name, number)

    def described(self, partition: int = 0) -> dict[str, Any]:
        """What Kafka tells of one partition: leader, replicas, those in sync."""

        def ask() -> dict[str, Any] | None:
            try:
                with self.kafka.admin(request_timeout_ms=2_000, bootstrap_timeout_ms=2_000) as admin:
                    logged = admin.describe_topics([self.name])[0]["partitions"]
            except KafkaError:  # a broker that it asked is away, and it does not ask another one
                return None
            return next((each for each in logged if each["partition_index"] == partition), None)

        logged: dict[str, Any] = wait_for(ask, seconds=20, what="a description of the topic")
        return logged

    def values(self, count: int) -> Iterable[bytes]:
        """Predictions of items that were not sent yet."""
        for _ in range(count):
            self.sent += 1
            yield json.dumps(message(f"{self.name}-{self.sent}")).encode()

    def send(self, count: int, partition: int = 0, **options: Any) -> None:
        """Send so many predictions, and wait for the broker to have them."""
        servers = self.kafka.internal_servers.split(",")
        producer = KafkaProducer(bootstrap_servers=servers, acks="all", **options)
        futures = [producer.send(self.name, value, partition=partition) for value in self.values(count)]
        for future in futures:
            future.get(timeout=30)
        producer.close(timeout=10)


class Reader:
    """Reads a topic into Redis in a thread of its own, until it is left.

    Args:
        topic: what is read.
        connection: to Redis; readers with the same one follow one another.
        flush_seconds: longest time that facts wait in memory.
        kafka: settings.
    """

    def __init__(
        self,
        topic: Topic,
        connection: Connection,
        *,
        start: str = "earliest",
        flush_seconds: float = 0.05,
        **kafka: Any,
    ) -> None:
        plain = {
            "bootstrap_servers": topic.kafka.bootstrap_servers.split(","),
            "group_prefix": topic.name,
            "session_timeout_seconds": 6,
            "metadata_seconds": 1,
        }
        self.site = Site(connection, MODELS)
        settings = KafkaSettings.model_validate(plain | kafka)
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self.consumer = build_consumer(settings, group="predictions")
        step = self.site.prediction_step()
        progress = TopicProgress(connection, lambda partition: [self.site.keys("m").shard(partition)])
        self.loop = ConsumerLoop(
            self.consumer,
            topic.name,
            step,
            progress=progress,
            reporter=HealthReporter(
                HealthStore(connection), role=step.topic_kind, member=topic.name, clock=time.time
            ),
            watch=partial(
                StoreWatch,
                resets=ResetStore(connection),
                progress=progress,
                models="m",
                count_labels=step.labels,
                clock=time.time,
            ),
            metrics=self.site._metrics,
            clock=time.time,
            start=start,
            flush_seconds=flush_seconds,
            flush_records=5_000,
            stopping=self.stopping,
            outages=Outages(),
        )
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.loop.run()
        except Exception as error:  # noqa: BLE001 - the test's thread tells of it
            self.failure = error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While it is as slow as can be: it turns, but polls nothing."""
        self.loop._resume_at = float("inf")
        turned = self.loop.last_turn
        wait_for(lambda: self.loop.last_turn > turned, seconds=10, what="a turn")
        wait_for(lambda: not self.consumer._fetcher.in_flight_fetches(), seconds=10, what="the last fetch")
        yield
        self.loop._resume_at = 0.0

    def counted(self) -> int:
        """How many predictions the stored traffic counts."""
        return self.site.reader("m").traffic().traffic.predictions

    def wait_for_count(self, count: int) -> None:
        """Wait until so many are counted; more are too many."""
        wait_for(lambda: self.counted() >= count or self.failure, seconds=40, what=f"{count} predictions")
        assert self.failure is None, self.failure
        assert self.counted() == count

    def wait_for_state(self, state: str) -> None:
        wait_for(lambda: self.loop.state == state, seconds=40, what=f"the state {state}")

    def metric(self, name: str, **labels: str) -> float:
        return self.site.registry.get_sample_value(name, {"topic": "predictions"} | labels) or 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the consumer does not stop"
