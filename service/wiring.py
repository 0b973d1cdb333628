"""Puts the parts together: the one place where clients are made.

A process plays one or more roles. It answers on its HTTP port at once, waits for Redis and Kafka as long
as it takes, and stops as a whole when one of its parts fails.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

import numpy as np
from kafka.errors import KafkaError
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from consumers.bounded_records import bound_batches
from consumers.dead_letters import DeadLetterSink, FloodGate
from consumers.fast_fetch import use_fast_fetch
from consumers.formats.open_inference import OpenInference
from consumers.ingest import ModelIngest
from consumers.kafka_dead_letters import KafkaDeadLetters
from consumers.labels import LabelStep
from consumers.loop import ConsumerLoop, Step
from consumers.predictions import PredictionStep
from consumers.topic_log import told
from service.cells import CellSpace, CombinationDirectory
from service.clients import build_consumer, build_producer, build_redis
from service.errors import HashKeyChanged, Unavailable, Unreadable
from service.exposition import SnapshotCollector
from service.garbage import collect_rarely
from service.health import Check, Health
from service.metrics import PipelineMetrics
from service.monitor import ModelMonitor
from service.scheduler import RequestPublisher, Rounds, start_schedule
from service.settings import Settings
from service.snapshot import ModelSnapshot
from service.store.connection import Connection
from service.store.facts import FactReader
from service.store.keys import ModelKeys
from service.store.lease import LeaderLease, keep_hash_key, shared_hash_key
from service.store.requests import RequestStore
from service.store.shards import DirectoryStore, ShardStore
from service.store.topics import TopicProgress
from service.web.api import SnapshotView
from service.web.app import WebServer, build_app

log = logging.getLogger(__name__)

Role = Literal["predictions", "labels", "schedule", "serve"]
ALL_ROLES: frozenset[Role] = frozenset({"predictions", "labels", "schedule", "serve"})

STALLED_SECONDS = 120.0
"""A loop that has not turned for so long is taken for dead."""

_LETTER_SECONDS = 86_400.0
"""So long a dead letter is sent under one sequence number; sent under another, it might be there twice."""

_JOIN_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_HASH_KEY_SECONDS = 1.0
_REREAD_SECONDS = 20.0
"""Between two tries to read a record that cannot be read; each moves the partitions of the group."""

Made = TypeVar("Made")


def model_keys(settings: Settings, model: str, space: CellSpace) -> ModelKeys:
    """Names of one model's keys; the layout changes with whatever changes the meaning of stored shards."""
    layout = space.fingerprint(settings.bounds.slots_per_cell, settings.models[model].traffic_half_life_days)
    return ModelKeys(settings.redis.prefix, model, layout)


def request_store(settings: Settings, connection: Connection, keys: ModelKeys) -> RequestStore:
    """The label requests of one model."""
    return RequestStore(
        connection,
        keys,
        closed_seconds=int(settings.bounds.correction_days * 86_400),
        outcome_limit=settings.bounds.outcomes,
    )


def flood_gate(settings: Settings) -> FloodGate:
    """What tells a flood of bad messages from a few."""
    limits = settings.dead_letters
    return FloodGate(ratio=limits.flood_ratio, window=limits.flood_window)


def prediction_step(
    settings: Settings,
    connection: Connection,
    *,
    hash_key: bytes,
    dead_letters: DeadLetterSink,
    metrics: PipelineMetrics,
) -> PredictionStep:
    """What takes in the predictions of all models."""
    models = {}
    for name, model in settings.models.items():
        space = settings.cell_space(name)
        keys = model_keys(settings, name, space)
        models[name] = ModelIngest(
            space,
            directory=DirectoryStore(connection, keys, partial(CombinationDirectory, space)),
            shards=ShardStore(
                connection,
                keys,
                slots=settings.bounds.slots_per_cell,
                decay=model.traffic_decay_per_second,
                hash_key=hash_key,
            ),
            payload_bytes=settings.bounds.payload_bytes,
            keep_probabilities=len(model.classes) <= settings.bounds.probability_classes,
        )
    return PredictionStep(
        models,
        responses=OpenInference({name: model.tensors for name, model in settings.models.items()}),
        dead_letters=dead_letters,
        flood_gate=flood_gate(settings),
        metrics=metrics,
        message_bytes=settings.bounds.message_bytes,
        hash_key=hash_key,
    )


def model_monitor(
    settings: Settings, model: str, connection: Connection, *, hash_key: bytes, rng: np.random.Generator
) -> ModelMonitor:
    """The monitor of one model."""
    space = settings.cell_space(model)
    keys = model_keys(settings, model, space)
    model_settings = settings.models[model]
    return ModelMonitor(
        model,
        model_settings,
        space,
        reader=FactReader(
            connection,
            keys,
            decay=model_settings.traffic_decay_per_second,
            cells_per_combination=space.cells_per_combination,
        ),
        requests=request_store(settings, connection, keys),
        slots=settings.bounds.slots_per_cell,
        hash_key=hash_key,
        rng=rng,
        metric_groups=settings.bounds.metric_groups,
        history_seconds=settings.http.history_hours * 3_600,
    )


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
            OSError: the HTTP address cannot be listened on.
        """
        threading.Thread(target=self._await_stop, name="await-stop", daemon=True).start()
        http = self._settings.http
        web = WebServer(self._web_app(), host=http.host, port=http.port)
        log.info("listening", extra={"host": http.host, "port": web.port})
        try:
            hash_key = self._patiently(self._connect)
            kafka = self._settings.kafka
            producer = self._patiently(lambda: build_producer(kafka, name="producer"))
            letters = self._patiently(
                lambda: build_producer(kafka, name="dead-letters", delivery_seconds=_LETTER_SECONDS)
            )
            if hash_key is not None and producer is not None and letters is not None:
                self._play(hash_key, producer, letters)
        finally:
            web.stop()
        log.info("stopped", extra={"failed": self._failed})
        return 1 if self._failed else 0

    def _web_app(self) -> Starlette:
        if not self._takes_snapshots:
            return build_app(self._registry, self._health)
        view = SnapshotView(
            models=list(self._settings.models),
            board=self._board,
            tick_seconds=self._settings.schedule.tick_seconds,
            clock=self._clock,
        )
        return build_app(self._registry, self._health, view)

    @property
    def _takes_snapshots(self) -> bool:
        return bool(self._roles & {"schedule", "serve"})

    def _play(self, hash_key: bytes, producer: Any, letters: Any) -> None:
        threads = [self._start_loop(*part) for part in self._steps(hash_key, letters)]
        rounds = self._rounds(hash_key, producer)
        scheduler = None
        if rounds is not None:
            scheduler = start_schedule(
                rounds, tick_seconds=self._settings.schedule.tick_seconds, on_failure=self._fail
            )
        self._health.started()
        if threads:
            collect_rarely()
        while not self._stopping.wait(_HASH_KEY_SECONDS):
            self._keep_hash_key(hash_key)
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        if scheduler is not None and rounds is not None:
            scheduler.shutdown(wait=True)
            rounds.release()
        producer.close(timeout=5)
        letters.close(timeout=5)

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

    def _steps(self, hash_key: bytes, producer: Any) -> Iterable[tuple[Step, str, TopicProgress]]:
        """What is fed, from which topic, and how far it has come."""
        topics = self._settings.kafka.topics
        keys = [
            model_keys(self._settings, name, self._settings.cell_space(name))
            for name in self._settings.models
        ]
        if "predictions" in self._roles:
            shards = TopicProgress(
                self._connection, lambda partition: [each.shard(partition) for each in keys]
            )
            step = prediction_step(
                self._settings,
                self._connection,
                hash_key=hash_key,
                dead_letters=self._dead_letters(producer, topics.predictions),
                metrics=self._metrics,
            )
            yield step, topics.predictions, shards
        if "labels" in self._roles:
            labels = TopicProgress(
                self._connection, lambda partition: [each.labels(partition) for each in keys]
            )
            yield self._label_step(producer), topics.labels, labels

    def _dead_letters(self, producer: Any, source_topic: str) -> KafkaDeadLetters:
        return KafkaDeadLetters(
            producer,
            self._settings.kafka.topics.dead_letters,
            source_topic=source_topic,
            message_bytes=self._settings.bounds.message_bytes,
        )

    def _label_step(self, producer: Any) -> LabelStep:
        settings = self._settings
        return LabelStep(
            self._request_stores(),
            {name: frozenset(model.classes) for name, model in settings.models.items()},
            dead_letters=self._dead_letters(producer, settings.kafka.topics.labels),
            flood_gate=flood_gate(settings),
            metrics=self._metrics,
            message_bytes=settings.bounds.message_bytes,
        )

    def _start_loop(self, step: Step, topic: str, progress: TopicProgress) -> threading.Thread:
        name = step.topic_kind
        loops: list[ConsumerLoop] = []

        def check() -> Check:
            if not loops:
                return Check(name, alive=True, ready=False, state="starting")
            loop = loops[-1]
            # One that cannot read on is no better after a restart.
            alive = loop.state == "unreadable" or time.monotonic() - loop.last_turn < STALLED_SECONDS
            return Check(name, alive=alive, ready=loop.state == "running", state=loop.state)

        def target() -> None:
            try:
                while (loop := self._loop(step, topic, progress)) is not None:
                    loops[:] = [loop]
                    if self._runs_to_its_end(loop, step.topic_kind, topic):
                        return
            except Exception:
                log.critical("the consumer failed", extra={"topic": topic}, exc_info=True)
                self._fail()

        self._health.add(check)
        thread = threading.Thread(target=target, name=f"consume-{name}", daemon=True)
        thread.start()
        return thread

    def _loop(self, step: Step, topic: str, progress: TopicProgress) -> ConsumerLoop | None:
        kafka = self._settings.kafka
        consumer = self._patiently(lambda: build_consumer(kafka, group=step.topic_kind))
        if consumer is None:
            return None
        if kafka.fast_fetch:
            use_fast_fetch(consumer)
        bounds = self._settings.bounds
        if bounds.batch_bytes is not None:
            bound_batches(consumer, batch_bytes=bounds.batch_bytes, message_bytes=bounds.message_bytes)
        return ConsumerLoop(
            consumer,
            topic,
            step,
            progress=progress,
            metrics=self._metrics,
            clock=self._clock,
            start=kafka.start,
            flush_seconds=kafka.flush_seconds,
            flush_records=kafka.flush_records,
            stopping=self._stopping,
        )

    def _runs_to_its_end(self, loop: ConsumerLoop, kind: str, topic: str) -> bool:
        """Whether it was asked to stop; if it could not read on, another one may try, after a while."""
        try:
            loop.run()
        except Unreadable as error:
            cause = str(error)
        else:
            return True
        self._metrics.backed_off(kind, "kafka")
        log.error(
            "the topic cannot be read on; mend the record's replica, or delete the records up to it",
            extra={"topic": topic, "cause": cause, "again_in_seconds": _REREAD_SECONDS},
        )
        return self._stopping.wait(_REREAD_SECONDS)

    def _rounds(self, hash_key: bytes, producer: Any) -> Rounds | None:
        if not self._takes_snapshots:
            return None
        settings = self._settings
        seeds = np.random.SeedSequence(settings.seed if settings.seed is not None else secrets.randbits(128))
        monitors = {
            name: model_monitor(
                settings, name, self._connection, hash_key=hash_key, rng=np.random.default_rng(seed)
            )
            for name, seed in zip(settings.models, seeds.spawn(len(settings.models)), strict=True)
        }
        asks = "schedule" in self._roles
        rounds = Rounds(
            monitors,
            board=self._board,
            lease=LeaderLease(self._connection, lease_seconds=settings.schedule.lease_seconds)
            if asks
            else None,
            publisher=RequestPublisher(
                producer, settings.kafka.topics.label_requests, self._request_stores(), self._metrics
            )
            if asks
            else None,
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

    def _request_stores(self) -> dict[str, RequestStore]:
        settings = self._settings
        return {
            name: request_store(
                settings, self._connection, model_keys(settings, name, settings.cell_space(name))
            )
            for name in settings.models
        }
