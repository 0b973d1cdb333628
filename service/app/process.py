"""One process of Credence: it plays one or more roles.

It answers at its listeners at once, waits for Redis and Kafka as long as it takes, and stops as a whole when
one of its parts fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from kafka.errors import KafkaError
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from consumers.loop import ConsumerLoop
from consumers.step import Step
from consumers.supervisor import ConsumerSupervisor
from service.app.consumer_wiring import dead_letters, label_step, prediction_step, reading_consumer
from service.app.memory_tuning import collect_rarely, keep_freed_memory
from service.app.wiring import topic_progress
from service.config.settings import HttpSettings, MonitoringSettings, Settings
from service.config.vendors import VendorApiSettings
from service.domain.errors import HashKeyChanged, Unavailable
from service.kafka.clients import build_producer
from service.kafka.topic_metadata import translate_error
from service.serving.web.monitoring import monitoring_app
from service.serving.web.server import WebServer
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.lease import keep_hash_key, shared_hash_key
from service.store.topics import TopicProgress
from service.telemetry.health import Health
from service.telemetry.instruments import PipelineMetrics, VendorMetrics

log = logging.getLogger(__name__)

Role = Literal["predictions", "labels", "schedule", "serve"]
ALL_ROLES: frozenset[Role] = frozenset({"predictions", "labels", "schedule", "serve"})

_LETTER_SECONDS = 86_400.0
"""So long a dead letter is sent under one sequence number; sent under another, it might be there twice."""

_JOIN_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_HASH_KEY_SECONDS = 1.0

Made = TypeVar("Made")
Address = MonitoringSettings | HttpSettings | VendorApiSettings


class Application:
    """One process of Credence.

    Args:
        settings: validated.
        roles: what it does.
        clock: seconds since the epoch.
    """

    def __init__(
        self, settings: Settings, roles: Collection[Role], clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._roles = frozenset(roles)
        self._clock = clock
        self._stopping = threading.Event()
        self._asked_to_stop: SimpleQueue[None] = SimpleQueue()
        self._failed = False
        self._registry = CollectorRegistry()
        self._metrics = PipelineMetrics(self._registry, clock)
        self._health = Health()
        self._connection: Connection
        vendor_metrics = VendorMetrics(self._registry)
        # With statistics and FastAPI, which take a second to import: consumers need neither.
        self._snapshots = None
        if self._roles & {"schedule", "serve"}:
            from service.app.snapshot_serving import SnapshotServing  # noqa: PLC0415

            self._snapshots = SnapshotServing(
                settings, registry=self._registry, metrics=self._metrics, clock=clock
            )
        self._vendors = None
        if "serve" in self._roles and any(vendor.token_sha256 for vendor in settings.vendors.values()):
            from service.app.vendor_listener import VendorServing  # noqa: PLC0415

            self._vendors = VendorServing(
                settings, metrics=vendor_metrics, clock=clock, stopping=self._stopping.is_set
            )

    def stop(self) -> None:
        """Ask the process to stop; callable from a signal handler.

        An event cannot be set there: what the signal interrupts may hold its lock.
        """
        self._asked_to_stop.put(None)

    def _await_stop(self) -> None:
        self._asked_to_stop.get()
        self._stopping.set()

    def run(self) -> int:
        """Play the roles until asked to stop; the exit code.

        Raises:
            OSError: an address cannot be listened on.
        """
        threading.Thread(target=self._await_stop, name="await-stop", daemon=True).start()
        with ExitStack() as listeners:
            for name, app, at in self._listeners():
                server = _listen(name, app, at)
                listeners.callback(server.stop)
                log.info("listening", extra={"listener": name, "host": at.host, "port": server.port})
            hash_key = self._patiently(self._connect)
            kafka = self._settings.kafka
            # A role that writes nothing to Kafka needs no right there: a producer without any would fail.
            producer = letters = None
            if "schedule" in self._roles:
                producer = self._patiently(lambda: build_producer(kafka, name="producer"))
            if self._roles & {"predictions", "labels"}:
                letters = self._patiently(
                    lambda: build_producer(kafka, name="dead-letters", delivery_seconds=_LETTER_SECONDS)
                )
            if hash_key is not None and not self._stopping.is_set():
                self._play(hash_key, producer, letters)
            for each in (producer, letters):
                if each is not None:
                    each.close(timeout=5)
        log.info("stopped", extra={"failed": self._failed})
        return 1 if self._failed else 0

    def _listeners(self) -> Iterator[tuple[str, ASGIApp, Address]]:
        """Name, application and address of each. The first is closed last: scrapes go on till the end."""
        settings = self._settings
        yield "monitoring", monitoring_app(self._registry, self._health), settings.monitoring
        if self._snapshots is not None:
            yield "page", self._snapshots.page(), settings.http
        if self._vendors is not None:
            yield "vendor_api", self._vendors.app(), settings.vendor_api

    @contextmanager
    def _vendors_served(self) -> Iterator[None]:
        vendors = self._vendors
        producer = None if vendors is None else self._patiently(vendors.producer)
        if vendors is None or producer is None:
            yield
            return
        with vendors.open(self._connection, producer):
            yield

    def _play(self, hash_key: bytes, producer: Any, letters: Any) -> None:
        keepers = list(self._keepers(hash_key, letters))
        if keepers:
            keep_freed_memory()
        for keeper in keepers:
            keeper.start()
        runner = None
        if self._snapshots is not None:
            runner = self._snapshots.runner(self._connection, hash_key=hash_key, producer=producer)
            self._health.add(runner.check)
            runner.start(on_failure=self._fail)
        with self._vendors_served():
            self._health.started()
            if keepers:
                collect_rarely()
            while not self._stopping.wait(_HASH_KEY_SECONDS):
                self._keep_hash_key(hash_key)
            self._health.stopping()
            for keeper in keepers:
                keeper.join(_JOIN_SECONDS)
            if runner is not None:
                runner.stop()

    def _patiently(self, make: Callable[[], Made]) -> Made | None:
        """What `make` gives, tried until Redis and Kafka answer; None when asked to stop before that."""
        while not self._stopping.is_set():
            try:
                return make()
            except Unavailable as error:
                cause: Exception = error
            except KafkaError as error:
                cause = translate_error(error)
            log.warning("waiting at the start", extra={"cause": str(cause)})
            self._stopping.wait(_RETRY_SECONDS)
        return None

    def _connect(self) -> bytes:
        """Reach Redis; the pool's hash key."""
        redis = self._settings.redis
        self._connection = Connection(build_redis(redis), redis.prefix)
        return self._settings.hash_key_bytes() or shared_hash_key(self._connection)

    def _keep_hash_key(self, hash_key: bytes) -> None:
        if self._settings.hash_key is not None:
            return
        try:
            keep_hash_key(self._connection, hash_key)
        except Unavailable as error:
            log.debug("the hash key is looked at later", extra={"cause": str(error)})
        except HashKeyChanged as error:
            log.critical("stopping", extra={"cause": str(error)})
            self._fail()

    def _fail(self) -> None:
        self._failed = True
        self._stopping.set()

    def _keepers(self, hash_key: bytes, producer: Any) -> Iterable[ConsumerSupervisor]:
        """What reads the topics of this process's roles."""
        settings, connection, topics = self._settings, self._connection, self._settings.kafka.topics
        if "predictions" in self._roles:
            self._metrics.takes_predictions(settings.models)
            step = prediction_step(
                settings,
                connection,
                hash_key=hash_key,
                dead_letters=dead_letters(settings, producer, source_topic=topics.predictions),
                metrics=self._metrics,
            )
            progress = topic_progress(settings, connection, ModelKeys.shard)
            yield self._keeper(step, topics.predictions, progress)
        if "labels" in self._roles:
            self._metrics.takes_labels(settings.models)
            labels = label_step(
                settings,
                connection,
                dead_letters=dead_letters(settings, producer, source_topic=topics.labels),
                metrics=self._metrics,
            )
            yield self._keeper(labels, topics.labels, topic_progress(settings, connection, ModelKeys.labels))

    def _keeper(self, step: Step, topic: str, progress: TopicProgress) -> ConsumerSupervisor:
        keeper = ConsumerSupervisor(
            step.topic_kind,
            topic,
            lambda: self._loop(step, topic, progress),
            metrics=self._metrics,
            stopping=self._stopping,
            on_failure=self._fail,
        )
        self._health.add(keeper.check)
        return keeper

    def _loop(self, step: Step, topic: str, progress: TopicProgress) -> ConsumerLoop | None:
        settings = self._settings
        consumer = self._patiently(lambda: reading_consumer(settings, group=step.topic_kind))
        if consumer is None:
            return None
        return ConsumerLoop(
            consumer,
            topic,
            step,
            progress=progress,
            metrics=self._metrics,
            clock=self._clock,
            start=settings.kafka.start,
            flush_seconds=settings.kafka.flush_seconds,
            flush_records=settings.kafka.flush_records,
            stopping=self._stopping,
        )


def _listen(name: str, app: ASGIApp, at: Address) -> WebServer:
    if not isinstance(at, VendorApiSettings):
        return WebServer(app, name=name, host=at.host, port=at.port)
    files = (at.certificate_file, at.key_file)
    certificate = None if files[0] is None or files[1] is None else (files[0], files[1])
    return WebServer(
        app, name=name, host=at.host, port=at.port, certificate=certificate, connections=at.connections
    )
