"""One process of Credence: it plays one or more roles.

It answers at its listeners at once, waits for Redis and Kafka as long as it takes, and stops as a whole when
one of its parts fails.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

import numpy as np
from kafka.errors import KafkaError
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from consumers.keeper import LoopKeeper
from consumers.loop import ConsumerLoop, Step
from consumers.topic_log import told
from service.clients import build_producer, build_redis
from service.errors import HashKeyChanged, Unavailable
from service.exposition import SnapshotCollector
from service.garbage import collect_rarely, keep_freed_memory
from service.health import Check, Health
from service.instruments import PipelineMetrics
from service.scheduler import RequestPublisher, Rounds, start_schedule
from service.settings import HttpSettings, MonitoringSettings, Settings
from service.snapshot import ModelSnapshot
from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.lease import LeaderLease, keep_hash_key, shared_hash_key
from service.store.topics import TopicProgress
from service.vendor_serving import VendorServing
from service.vendor_settings import VendorApiSettings
from service.web.api import SnapshotView
from service.web.app import WebServer, page_app
from service.web.monitoring import monitoring_app
from service.wiring import (
    dead_letters,
    label_step,
    model_monitor,
    prediction_step,
    reading_consumer,
    request_stores,
    topic_progress,
)

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
        self._board: dict[str, ModelSnapshot] = {}
        self._registry = CollectorRegistry()
        self._metrics = PipelineMetrics(self._registry, clock)
        self._health = Health()
        self._vendors = VendorServing(
            settings, registry=self._registry, clock=clock, stopping=self._stopping.is_set
        )
        self._learner: ThreadPoolExecutor | None = None
        self._connection: Connection

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
        if self._takes_snapshots:
            yield "page", page_app(self._view(), allowed_hosts=settings.http.allowed_hosts), settings.http
        if self._serves_vendors:
            yield "vendor_api", self._vendors.app(), settings.vendor_api

    def _view(self) -> SnapshotView:
        return SnapshotView(
            models=list(self._settings.models),
            board=self._board,
            tick_seconds=self._settings.schedule.tick_seconds,
            clock=self._clock,
        )

    @property
    def _takes_snapshots(self) -> bool:
        return bool(self._roles & {"schedule", "serve"})

    @property
    def _serves_vendors(self) -> bool:
        return "serve" in self._roles and self._vendors.wanted

    @contextmanager
    def _vendors_served(self) -> Iterator[None]:
        producer = self._patiently(self._vendors.producer) if self._serves_vendors else None
        with nullcontext() if producer is None else self._vendors.open(self._connection, producer):
            yield

    def _play(self, hash_key: bytes, producer: Any, letters: Any) -> None:
        keepers = list(self._keepers(hash_key, letters))
        if keepers:
            keep_freed_memory()
        for keeper in keepers:
            keeper.start()
        rounds = self._rounds(hash_key, producer)
        scheduler = None
        if rounds is not None:
            scheduler = start_schedule(
                rounds, tick_seconds=self._settings.schedule.tick_seconds, on_failure=self._fail
            )
        with self._vendors_served():
            self._health.started()
            if keepers:
                collect_rarely()
            while not self._stopping.wait(_HASH_KEY_SECONDS):
                self._keep_hash_key(hash_key)
            self._health.stopping()
            for keeper in keepers:
                keeper.join(_JOIN_SECONDS)
            if scheduler is not None and rounds is not None:
                scheduler.shutdown(wait=True)
                rounds.release()
            if self._learner is not None:
                self._learner.shutdown(wait=False, cancel_futures=True)

    def _patiently(self, make: Callable[[], Made]) -> Made | None:
        """What `make` gives, tried until Redis and Kafka answer; None when asked to stop before that."""
        while not self._stopping.is_set():
            try:
                return make()
            except Unavailable as error:
                cause: Exception = error
            except KafkaError as error:
                cause = told(error)
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

    def _keepers(self, hash_key: bytes, producer: Any) -> Iterable[LoopKeeper]:
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

    def _keeper(self, step: Step, topic: str, progress: TopicProgress) -> LoopKeeper:
        keeper = LoopKeeper(
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

    def _rounds(self, hash_key: bytes, producer: Any) -> Rounds | None:
        if not self._takes_snapshots:
            return None
        settings = self._settings
        # One thread, so that however many models learn, rounds have the other cores.
        self._learner = ThreadPoolExecutor(1, thread_name_prefix="performance")
        seeds = np.random.SeedSequence(settings.seed if settings.seed is not None else secrets.randbits(128))
        monitors = {
            name: model_monitor(
                settings,
                name,
                self._connection,
                hash_key=hash_key,
                rng=np.random.default_rng(seed),
                executor=self._learner,
                performance_failed=partial(self._metrics.performance_failed, name),
            )
            for name, seed in zip(settings.models, seeds.spawn(len(settings.models)), strict=True)
        }
        self._metrics.learns_performance(n for n, model in settings.models.items() if model.positive_class)
        lease = publisher = None
        if "schedule" in self._roles:
            lease = LeaderLease(self._connection, lease_seconds=settings.schedule.lease_seconds)
            stores = request_stores(settings, self._connection)
            self._metrics.may_lead({name: model.assessments for name, model in settings.models.items()})
            publisher = RequestPublisher(
                producer,
                settings.kafka.topics.label_requests,
                stores,
                self._metrics,
                vendor_topics={name: v.topic for name, v in settings.vendors.items() if v.topic is not None},
            )
        rounds = Rounds(
            monitors,
            board=self._board,
            lease=lease,
            publisher=publisher,
            metrics=self._metrics,
            clock=self._clock,
        )
        self._registry.register(SnapshotCollector(lambda: list(self._board.values())))

        def check() -> Check:
            fresh = (
                rounds.last_success is not None
                and self._clock() - rounds.last_success < 3 * settings.schedule.tick_seconds + 5
            )
            return Check("rounds", alive=True, ready=fresh, state="running" if fresh else "waiting")

        self._health.add(check)
        return rounds


def _listen(name: str, app: ASGIApp, at: Address) -> WebServer:
    if not isinstance(at, VendorApiSettings):
        return WebServer(app, name=name, host=at.host, port=at.port)
    files = (at.certificate_file, at.key_file)
    certificate = None if files[0] is None or files[1] is None else (files[0], files[1])
    return WebServer(
        app, name=name, host=at.host, port=at.port, certificate=certificate, connections=at.connections
    )
