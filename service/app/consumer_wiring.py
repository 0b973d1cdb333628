"""Makes the consumers of a process from its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from consumers.assignment import Step
from consumers.bounded_records import bound_batches
from consumers.dead_letter_producer import KafkaDeadLetters
from consumers.dead_letters import BadMessageLimit, DeadLetterSink
from consumers.fast_fetch import use_fast_fetch
from consumers.formats.arrow import arrow_rows
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import Format
from consumers.health_report import HealthReporter
from consumers.ingest import ModelIngest
from consumers.label_checks import LabelChecks
from consumers.labels import LabelStep
from consumers.predictions import PredictionStep
from consumers.store_watch import StoreWatch
from consumers.unrequested import UnrequestedJoins
from service.app.pool_sizing import asked_pools, pool_sizes
from service.app.wiring import join_store, label_store, model_keys, process_name
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.pool_key import PoolKey
from service.kafka.clients import build_consumer
from service.store.connection import Connection
from service.store.consumer_health import HealthStore
from service.store.resets import ResetStore
from service.store.shards import ShardStore
from service.store.topics import TopicProgress
from service.telemetry.instruments import PipelineMetrics


def shard_store(
    settings: Settings, connection: Connection, model: str, *, space: CellSpace, hash_key: bytes
) -> ShardStore:
    """The shards of one model."""
    pools = asked_pools(settings, model, space)
    return ShardStore(
        connection,
        model_keys(settings, model),
        space,
        pool_ids=pools,
        pool_sizes=pool_sizes(settings, model, pools),
        pool_key=PoolKey(hash_key, model),
        decay=settings.models[model].traffic_decay_per_second,
        draw_decay=settings.models[model].draw_decay_per_second,
        drift=settings.models[model].drift,
        join_items=None if settings.models[model].unrequested_labels is None else settings.bounds.join_items,
        join_seconds=settings.bounds.join_days * 86_400,
    )


def reading_consumer(settings: Settings, *, group: str) -> Any:
    """A consumer of bytes that fetches and bounds as configured; `group` ends its group's name.

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


def dead_letters(settings: Settings, producer: Any) -> KafkaDeadLetters:
    """Sink for the bad messages of one topic."""
    return KafkaDeadLetters(
        producer, settings.kafka.topics.dead_letters, message_bytes=settings.bounds.message_bytes
    )


def bad_message_limit(settings: Settings) -> BadMessageLimit:
    """Limit on the share of bad messages, as configured."""
    limits = settings.dead_letters
    return BadMessageLimit(ratio=limits.pause_ratio, window=limits.pause_window)


def prediction_formats(settings: Settings) -> list[Format]:
    """Formats of predictions besides the native one; the first that accepts a record decodes it."""
    return [
        arrow_rows,
        OpenInference({name: model.tensors for name, model in settings.models.items()}),
    ]


def prediction_step(
    settings: Settings,
    connection: Connection,
    *,
    hash_key: bytes,
    dead_letters: DeadLetterSink,
    metrics: PipelineMetrics,
) -> PredictionStep:
    """The step that ingests the predictions of all models."""
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
        formats=prediction_formats(settings),
        dead_letters=dead_letters,
        bad_message_limit=bad_message_limit(settings),
        metrics=metrics,
        message_bytes=settings.bounds.message_bytes,
        hash_key=hash_key,
        lateness_seconds=settings.bounds.lateness_seconds,
    )


def label_step(
    settings: Settings,
    connection: Connection,
    *,
    hash_key: bytes,
    dead_letters: DeadLetterSink,
    metrics: PipelineMetrics,
) -> LabelStep:
    """The step that applies the labels of all models."""
    return LabelStep(
        {name: label_store(settings, connection, name) for name in settings.models},
        label_checks(settings),
        dead_letters=dead_letters,
        bad_message_limit=bad_message_limit(settings),
        metrics=metrics,
        unrequested=unrequested_joins(settings, connection, hash_key=hash_key),
    )


def unrequested_joins(
    settings: Settings, connection: Connection, *, hash_key: bytes
) -> dict[str, UnrequestedJoins]:
    """What joins labels without a request, of the models that take them."""
    return {
        name: UnrequestedJoins(
            join_store(settings, connection, name),
            settings.cell_space(name),
            model=name,
            hash_key=hash_key,
            sampling_rate=model.unrequested_labels.sampling_rate,
        )
        for name, model in settings.models.items()
        if model.unrequested_labels is not None
    }


def label_checks(settings: Settings) -> LabelChecks:
    """What every label must fulfil."""
    return LabelChecks(
        {name: frozenset(model.classes) for name, model in settings.models.items()},
        {name for name, model in settings.models.items() if model.labels_per_item.several},
        unrequested={
            name: model.unrequested_labels.sampling_rate
            for name, model in settings.models.items()
            if model.unrequested_labels is not None
        },
        label_keys={name: vendor.label_key_bytes() for name, vendor in settings.vendors.items()},
        vendors={name: frozenset(settings.vendors_of(name)) for name in settings.models},
        message_bytes=settings.bounds.message_bytes,
    )


def health_reporter(
    settings: Settings, connection: Connection, *, role: str, clock: Callable[[], float]
) -> HealthReporter:
    """Reports the health of this process's consumer of one topic."""
    return HealthReporter(HealthStore(connection), role=role, member=process_name(settings), clock=clock)


def store_watch(
    settings: Settings,
    connection: Connection,
    step: Step,
    *,
    progress: TopicProgress,
    clock: Callable[[], float],
) -> Callable[..., StoreWatch]:
    """Makes the watch over Redis of one loop, from its topic's log and its client."""
    names = "\0".join(sorted(settings.models))
    return partial(
        StoreWatch,
        resets=ResetStore(connection),
        progress=progress,
        models=hashlib.blake2b(names.encode(), digest_size=4).hexdigest(),
        count_labels=step.labels,
        clock=clock,
    )
