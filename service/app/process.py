"""One process of Credence: it plays one or more roles.

Its listeners answer at once; it waits for Redis and Kafka for as long as it takes. If one of its parts fails,
the whole process stops.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from kafka.errors import KafkaError
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from consumers.assignment import Step
from consumers.health_report import HealthReporter
from consumers.loop import ConsumerLoop
from consumers.supervisor import ConsumerSupervisor
from service.app.consumer_wiring import (
    dead_letters,
    health_reporter,
    label_step,
    prediction_step,
    reading_consumer,
    store_watch,
)
from service.app.memory_tuning import collect_rarely, keep_freed_memory
from service.app.wiring import connect, pool_hash_key, topic_progress
from service.config.settings import HttpSettings, MonitoringSettings, Settings
from service.config.vendors import VendorApiSettings
from service.domain.errors import HashKeyChanged, Unavailable
from service.kafka.clients import build_producer
from service.kafka.topic_metadata import translate_error
from service.serving.web.monitoring import monitoring_app
from service.serving.web.server import WebServer
from service.store.connection import Connection
from service.store.joins import JOIN_RESULTS
from service.store.lease import keep_hash_key
from service.store.topics import TopicProgress
from service.telemetry.health import Health
from service.telemetry.instruments import PipelineMetrics, VendorMetrics
from service.telemetry.outages import Outages

log = logging.getLogger(__name__)

Role = Literal["predictions", "labels", "schedule", "serve"]

_LETTER_SECONDS = 86_400.0
"""How long a dead letter is retried under one sequence number; under another it could arrive twice."""

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

    Raises:
        ConfigurationError: a file of gold items cannot be used.
    """

    def __init__(
        self, settings: Settings, roles: Collection[Role], clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._roles = frozenset(roles)
        self._clock = clock
        self._stopping = threading.Event()
        self._stop_requests: SimpleQueue[None] = SimpleQueue()
        self._failed = False
        self._registry = CollectorRegistry()
        self._metrics = PipelineMetrics(self._registry, clock)
        self._health = Health()
        self._outages = Outages()
        self._connection: Connection
        vendor_metrics = VendorMetrics(self._registry)
        # With statistics and FastAPI, which take a second to import: consumers need neither.
        self._rounds = self._vendors = None
        if self._roles & {"schedule", "serve"}:
            from service.app.gold_files import read_gold  # noqa: PLC0415
            from service.app.rounds import Rounds  # noqa: PLC0415

            self._rounds = Rounds(
                settings,
                gold=read_gold(settings) if "schedule" in self._roles else {},
                registry=self._registry,
                metrics=self._metrics,
                clock=clock,
                outages=self._outages,
            )
            if "serve" in self._roles and settings.has_http_apis:
                from service.app.vendor_wiring import VendorServing  # noqa: PLC0415

                self._vendors = VendorServing(settings, vendor_metrics, clock, self._stopping.is_set)

    def stop(self) -> None:
        """Ask the process to stop; callable from a signal handler.

        An event cannot be set there: what the signal interrupts may hold its lock.
        """
        self._stop_requests.put(None)

    def _await_stop(self) -> None:
        self._stop_requests.get()
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
        if self._rounds is not None:
            yield "page", self._rounds.page(), settings.http
        if self._vendors is not None:
            yield "vendor_api", self._vendors.app(), settings.vendor_api

    def _play(self, hash_key: bytes, producer: Any, letters: Any) -> None:
        supervisors = list(self._supervisors(hash_key, letters))
        if supervisors:
            keep_freed_memory()
        for supervisor in supervisors:
            supervisor.start()
        rounds, vendors = self._rounds, self._vendors
        if rounds is not None:
            rounds.start(self._connection, hash_key=hash_key, producer=producer, on_failure=self._fail)
            self._health.add(rounds.check)
            self._health.report_models(rounds.statuses)
        with ExitStack() as served:
            if vendors is not None:
                vendors.start(self._connection, self._patiently, served)
            self._health.started()
            if supervisors:
                collect_rarely()
            while not self._stopping.wait(_HASH_KEY_SECONDS):
                self._keep_hash_key(hash_key)
                if vendors is not None:
                    vendors.report_calls()
            self._health.stopping()
            for supervisor in supervisors:
                supervisor.join(_JOIN_SECONDS)
            if rounds is not None:
                rounds.stop()

    def _patiently(self, make: Callable[[], Made]) -> Made | None:
        """The result of `make`, retried until Redis and Kafka answer; None if the process stops first."""
        source = threading.current_thread().name
        while not self._stopping.is_set():
            try:
                made = make()
            except Unavailable as error:
                unavailable = error
            except KafkaError as error:
                unavailable = translate_error(error)
            else:
                self._outages.works(source, contact=True)
                return made
            self._outages.failed(source, unavailable.outage, str(unavailable))
            self._stopping.wait(_RETRY_SECONDS)
        return None

    def _connect(self) -> bytes:
        """Reach Redis; returns the pools' hash key."""
        self._connection = connect(self._settings)
        return pool_hash_key(self._settings, self._connection)

    def _keep_hash_key(self, hash_key: bytes) -> None:
        if self._settings.hash_key is not None:
            return
        try:
            keep_hash_key(self._connection, hash_key)
        except Unavailable as error:
            log.debug("the hash key is checked later", extra={"cause": str(error)})
        except HashKeyChanged as error:
            log.critical("stopping", extra={"cause": str(error)})
            self._fail()

    def _fail(self) -> None:
        self._failed = True
        self._stopping.set()

    def _supervisors(self, hash_key: bytes, producer: Any) -> Iterable[ConsumerSupervisor]:
        """The consumers of this process's roles."""
        settings, connection, metrics = self._settings, self._connection, self._metrics
        topics = settings.kafka.topics
        if "predictions" in self._roles:
            metrics.start_prediction_counters(settings.models)
            letters = dead_letters(settings, producer)
            step = prediction_step(
                settings, connection, hash_key=hash_key, dead_letters=letters, metrics=metrics
            )
            progress = topic_progress(settings, connection, lambda keys: keys.shard)
            yield self._supervisor(step, topics.predictions, progress)
        if "labels" in self._roles:
            metrics.start_label_counters(settings.models)
            letters = dead_letters(settings, producer)
            labels = label_step(
                settings, connection, hash_key=hash_key, dead_letters=letters, metrics=metrics
            )
            metrics.start_unrequested_counters(labels.unrequested, JOIN_RESULTS)
            progress = topic_progress(settings, connection, lambda keys: keys.labels)
            yield self._supervisor(labels, topics.labels, progress)

    def _supervisor(self, step: Step, topic: str, progress: TopicProgress) -> ConsumerSupervisor:
        reporter = health_reporter(self._settings, self._connection, role=step.topic_kind, clock=self._clock)
        reporter.announce()
        supervisor = ConsumerSupervisor(
            step.topic_kind,
            topic,
            lambda: self._loop(step, topic, progress, reporter),
            metrics=self._metrics,
            stopping=self._stopping,
            on_failure=self._fail,
        )
        self._health.add(supervisor.check)
        return supervisor

    def _loop(
        self, step: Step, topic: str, progress: TopicProgress, reporter: HealthReporter
    ) -> ConsumerLoop | None:
        settings = self._settings
        consumer = self._patiently(lambda: reading_consumer(settings, group=step.topic_kind))
        if consumer is None:
            return None
        return ConsumerLoop(
            consumer,
            topic,
            step,
            progress=progress,
            reporter=reporter,
            watch=store_watch(settings, self._connection, step, progress=progress, clock=self._clock),
            metrics=self._metrics,
            clock=self._clock,
            start=settings.kafka.start,
            flush_seconds=settings.kafka.flush_seconds,
            flush_records=settings.kafka.flush_records,
            stopping=self._stopping,
            outages=self._outages,
        )


def _listen(name: str, app: ASGIApp, at: Address) -> WebServer:
    if not isinstance(at, VendorApiSettings):
        return WebServer(app, name=name, host=at.host, port=at.port)
    files = (at.certificate_file, at.key_file)
    certificate = None if files[0] is None or files[1] is None else (files[0], files[1])
    return WebServer(
        app, name=name, host=at.host, port=at.port, certificate=certificate, connections=at.connections
    )
