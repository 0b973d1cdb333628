"""One model's consumers, store and monitor on a real Redis, in one process and with a clock of its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry

from benchmarks.flushes import NoLetters, Record
from service.app.consumer_wiring import label_step, prediction_step
from service.app.monitor_wiring import model_monitor
from service.app.wiring import label_store, request_store
from service.config.settings import Settings
from service.monitoring.snapshot import ModelSnapshot
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.telemetry.instruments import PipelineMetrics

MODEL = "m"
DAY = 86_400.0


def settings_of(model: Mapping[str, Any], redis_url: str) -> Settings:
    """A configuration of one model, under a prefix of its own."""
    redis = {"url": redis_url, "prefix": secrets.token_hex(6)}
    return Settings.model_validate({"redis": redis, "models": {MODEL: dict(model)}})


class Site:
    """The service without Kafka.

    Args:
        settings: from `settings_of`.
        connection: to its Redis.
        rng: random numbers of policies, and of the pools' hash key.
        partitions: of the topic.
    """

    def __init__(
        self, settings: Settings, connection: Connection, rng: np.random.Generator, partitions: int
    ) -> None:
        hash_key = rng.bytes(16)
        self._requests = request_store(settings, connection, MODEL)
        self._labels = label_store(settings, connection, MODEL)
        metrics = PipelineMetrics(CollectorRegistry(), lambda: 0.0)
        self._step = prediction_step(
            settings, connection, hash_key=hash_key, dead_letters=NoLetters(), metrics=metrics
        )
        self._label_step = label_step(
            settings, connection, hash_key=hash_key, dead_letters=NoLetters(), metrics=metrics
        )
        self._label_step.assign(0, 0)
        self._received = 0
        self._monitor = model_monitor(settings, MODEL, connection, hash_key=hash_key, rng=rng.spawn(1)[0])
        self._partitions = range(partitions)
        for partition in self._partitions:
            self._step.assign(partition, 0)

    def take_in(self, partitions: Sequence[list[Record]], now: float) -> None:
        """Predictions, by partition."""
        for partition, records in enumerate(partitions):
            self._step.process(partition, records, now)

    def refresh(self, now: float) -> ModelSnapshot:
        """Store what was taken in, and estimate."""
        for partition in self._partitions:
            self._step.flush(partition, now)
        return self._monitor.refresh(now)

    def ask(self, now: float) -> list[dict[str, Any]]:
        """The label requests of a round."""
        self._monitor.ask(epoch=1, now=now)
        outbox = self._requests.read_outbox()
        self._requests.remove_published(list(outbox))
        return [json.loads(text) for text in outbox.values()]

    def answer(self, labels: Sequence[LabelEvent], now: float) -> None:
        """What labellers say."""
        if labels:
            self._labels.apply(0, labels, now=now)

    def receive(self, labels: Sequence[Mapping[str, Any]], now: float) -> None:
        """Labels as messages."""
        if labels:
            records = [
                Record(self._received + number, int(1_000 * now), json.dumps(label).encode())
                for number, label in enumerate(labels)
            ]
            self._received += len(records)
            self._label_step.process(0, records, now)


@contextmanager
def open_site(settings: Settings, rng: np.random.Generator, partitions: int = 1) -> Iterator[Site]:
    """A site, whose keys are deleted in the end."""
    with build_redis(settings.redis) as client:
        yield Site(settings, Connection(client, settings.redis.prefix), rng, partitions)
        for key in client.scan_iter(f"{settings.redis.prefix}:*", count=1_000):
            client.unlink(key)
