"""Makes the parts of a process from its settings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from consumers.bounded_records import bound_batches
from consumers.dead_letter_producer import KafkaDeadLetters
from consumers.dead_letters import DeadLetterSink, FloodGate
from consumers.fast_fetch import use_fast_fetch
from consumers.formats.open_inference import OpenInference
from consumers.ingest import ModelIngest
from consumers.labels import LabelStep
from consumers.predictions import PredictionStep
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.pool_key import PoolKey, pool_ids
from service.kafka.clients import build_consumer
from service.monitoring.background_performance import InPlace, PerformanceWatch
from service.monitoring.monitor import ModelMonitor
from service.monitoring.vendor_routing import VendorAssignment
from service.serving.vendor_api.desk import ModelDesk, VendorDesk
from service.serving.vendor_api.labels import LabelWriter
from service.store.checkpoints import CheckpointStore
from service.store.claims import ClaimStore
from service.store.connection import Connection
from service.store.facts import FactReader
from service.store.idempotency import RUNNING_SECONDS, IdempotencyRecords
from service.store.keys import ModelKeys
from service.store.request_history import AskedRequests
from service.store.requests import RequestStore
from service.store.shards import PoolSizes, ShardStore
from service.store.topics import TopicProgress
from service.store.traffic_checkpoints import MarkStore
from service.telemetry.instruments import PipelineMetrics, VendorMetrics


def model_keys(settings: Settings, model: str, space: CellSpace) -> ModelKeys:
    """Names of one model's keys; the layout changes with whatever changes the meaning of stored shards."""
    layout = space.fingerprint(settings.models[model].traffic_half_life_days)
    return ModelKeys(settings.redis.prefix, model, layout)


POOLED_PER_LABEL = 2
"""Pooled items of a group per label of the budgets that may go to it: all of a budget can be spent before the
next predictions come, even where chance leaves a group few items above its bound."""

FEWEST_POOLED = 16
"""Items of a group that are pooled for small budgets."""


def asked_pools(settings: Settings, model: str, space: CellSpace) -> dict[str, str]:
    """Pool ids of the groupings that assessments of a model ask by."""
    chosen = settings.models[model]
    return pool_ids(
        space,
        [asked.asked_grouping for asked in chosen.assessments.values()],
        half_life_hours=chosen.draw_half_life_hours,
    )


def pool_sizes(settings: Settings, model: str, pools: Mapping[str, str]) -> PoolSizes:
    """How many items are pooled; all labels of a budget may go to one group before the next predictions come.

    Args:
        settings: of the process.
        model: its name.
        pools: pool ids, by the grouping that asks.
    """
    budgets = Counter[str]()
    for asked in settings.models[model].assessments.values():
        budgets[asked.asked_grouping] += asked.budget.labels
    return PoolSizes(
        {pool: max(FEWEST_POOLED, POOLED_PER_LABEL * budgets[grouping]) for grouping, pool in pools.items()},
        settings.bounds.pool_items,
    )


def shard_store(
    settings: Settings, connection: Connection, model: str, *, space: CellSpace, hash_key: bytes
) -> ShardStore:
    """The shards of one model."""
    pools = asked_pools(settings, model, space)
    return ShardStore(
        connection,
        model_keys(settings, model, space),
        space,
        pool_ids=pools,
        pool_sizes=pool_sizes(settings, model, pools),
        pool_key=PoolKey(hash_key, model),
        decay=settings.models[model].traffic_decay_per_second,
        draw_decay=settings.models[model].draw_decay_per_second,
    )


def request_store(settings: Settings, connection: Connection, keys: ModelKeys) -> RequestStore:
    """The label requests of one model."""
    vendors = settings.vendors_of(keys.model)
    return RequestStore(
        connection,
        keys,
        closed_seconds=int(settings.bounds.correction_days * 86_400),
        outcome_limit=settings.bounds.outcomes,
        claiming=[name for name, vendor in vendors.items() if vendor.token_sha256],
    )


def request_stores(settings: Settings, connection: Connection) -> dict[str, RequestStore]:
    """The label requests of every model."""
    return {
        name: request_store(settings, connection, model_keys(settings, name, settings.cell_space(name)))
        for name in settings.models
    }


def claim_stores(settings: Settings, connection: Connection) -> dict[str, ClaimStore]:
    """The claims of every model's requests."""
    return {
        name: ClaimStore(connection, model_keys(settings, name, settings.cell_space(name)))
        for name in settings.models
    }


def reading_consumer(settings: Settings, *, group: str) -> Any:
    """A consumer of bytes that fetches and bounds as configured.

    Args:
        settings: of the process.
        group: suffix of the consumer group's name.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached, or they refuse.
    """
    consumer = build_consumer(settings.kafka, group=group)
    if settings.kafka.fast_fetch:
        use_fast_fetch(consumer)
    bounds = settings.bounds
    if bounds.batch_bytes is not None:
        bound_batches(consumer, batch_bytes=bounds.batch_bytes, message_bytes=bounds.message_bytes)
    return consumer


def topic_progress(
    settings: Settings, connection: Connection, key: Callable[[ModelKeys, int], str]
) -> TopicProgress:
    """How far all models together have come in a topic.

    Args:
        settings: of the process.
        connection: to Redis.
        key: where a model keeps that, of a partition.
    """
    keys = [model_keys(settings, name, settings.cell_space(name)) for name in settings.models]
    return TopicProgress(connection, lambda partition: [key(each, partition) for each in keys])


def dead_letters(settings: Settings, producer: Any, *, source_topic: str) -> KafkaDeadLetters:
    """Where what cannot be used of a topic is kept."""
    return KafkaDeadLetters(
        producer,
        settings.kafka.topics.dead_letters,
        source_topic=source_topic,
        message_bytes=settings.bounds.message_bytes,
    )


def flood_gate(settings: Settings) -> FloodGate:
    """What tells a flood of bad messages from a few."""
    limits = settings.dead_letters
    return FloodGate(ratio=limits.pause_ratio, window=limits.pause_window)


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
        models[name] = ModelIngest(
            space,
            shards=shard_store(settings, connection, name, space=space, hash_key=hash_key),
            pool_key=PoolKey(hash_key, name),
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
        lateness_seconds=settings.bounds.lateness_seconds,
    )


def label_step(
    settings: Settings, connection: Connection, *, dead_letters: DeadLetterSink, metrics: PipelineMetrics
) -> LabelStep:
    """What takes in the labels of all models."""
    return LabelStep(
        request_stores(settings, connection),
        {name: frozenset(model.classes) for name, model in settings.models.items()},
        label_keys={name: vendor.label_key_bytes() for name, vendor in settings.vendors.items()},
        vendors={name: frozenset(settings.vendors_of(name)) for name in settings.models},
        dead_letters=dead_letters,
        flood_gate=flood_gate(settings),
        metrics=metrics,
        message_bytes=settings.bounds.message_bytes,
    )


def vendor_desk(
    settings: Settings,
    connection: Connection,
    producer: Any,
    *,
    metrics: VendorMetrics,
    clock: Callable[[], float],
) -> VendorDesk:
    """What serves vendors over HTTP."""
    claims = claim_stores(settings, connection)
    label_keys = {name: vendor.label_key_bytes() for name, vendor in settings.vendors.items()}
    models = {
        name: ModelDesk(
            classes=tuple(model.classes),
            vendors=frozenset(settings.vendors_of(name)),
            claims=claims[name],
            asked=AskedRequests(
                connection,
                model_keys(settings, name, settings.cell_space(name)),
                remembered_seconds=int(settings.bounds.correction_days * 86_400),
            ),
        )
        for name, model in settings.models.items()
    }
    return VendorDesk(
        models,
        labels=LabelWriter(
            producer, settings.kafka.topics.labels, {name: keys[0] for name, keys in label_keys.items()}
        ),
        calls=IdempotencyRecords(
            connection, running_seconds=RUNNING_SECONDS + math.ceil(settings.vendor_api.wait_seconds)
        ),
        claim_keys=label_keys,
        metrics=metrics,
        clock=clock,
    )


def model_monitor(
    settings: Settings,
    model: str,
    connection: Connection,
    *,
    hash_key: bytes,
    rng: np.random.Generator,
    executor: Executor | None = None,
    performance_failed: Callable[[], None] = lambda: None,
) -> ModelMonitor:
    """The monitor of one model.

    Args:
        settings: of the process.
        model: its name.
        connection: to Redis.
        hash_key: of the deployment.
        rng: random numbers.
        executor: where performance is learned; within the round if absent.
        performance_failed: called when that failed.
    """
    space = settings.cell_space(model)
    keys = model_keys(settings, model, space)
    model_settings = settings.models[model]
    return ModelMonitor(
        model,
        model_settings,
        space,
        reader=FactReader(connection, keys, space, decay=model_settings.traffic_decay_per_second),
        requests=request_store(settings, connection, keys),
        mark_store=MarkStore(connection, keys),
        pool_ids=asked_pools(settings, model, space),
        checkpoints=CheckpointStore(connection, keys),
        outcome_limit=settings.bounds.outcomes,
        rng=rng,
        history_groups=settings.bounds.metric_groups,
        history_seconds=settings.http.history_hours * 3_600,
        assignment=VendorAssignment(
            {name: vendor.share for name, vendor in settings.vendors_of(model).items()}, hash_key
        ),
        performance=PerformanceWatch(
            model,
            model_settings,
            executor or InPlace(),
            rng.spawn(1)[0],
            rest_seconds=settings.schedule.performance_seconds,
            failed=performance_failed,
        ),
    )
