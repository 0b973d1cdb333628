"""Makes the monitor of a model from the settings."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

import numpy as np

from service.app.pool_sizing import asked_pools
from service.app.wiring import cohort_store, model_keys, request_store
from service.config.settings import Settings
from service.monitoring.absent_watch import AbsentWatch
from service.monitoring.annotator_watch import AnnotatorWatch
from service.monitoring.background_job import ImmediateExecutor
from service.monitoring.background_performance import PerformanceWatch
from service.monitoring.further_labels import FurtherLabels
from service.monitoring.gold_requests import GoldQueue
from service.monitoring.monitor import ModelMonitor
from service.monitoring.request_builder import RequestBuilder, VendorAssignment
from service.monitoring.request_issuer import RequestIssuer
from service.monitoring.snapshot import ModelSnapshot
from service.store.checkpoints import CheckpointStore
from service.store.connection import Connection
from service.store.count_histories import CountHistoryStore
from service.store.drift_facts import DriftStore
from service.store.facts import FactReader
from service.store.labelled_items import LabelledItemStore
from service.store.records import GoldItem


def model_monitor(
    settings: Settings,
    model: str,
    connection: Connection,
    *,
    hash_key: bytes,
    rng: np.random.Generator,
    gold: Sequence[GoldItem] = (),
    executor: Executor | None = None,
    performance_failed: Callable[[], None] = lambda: None,
) -> ModelMonitor:
    """The monitor of one model; `gold` items are needed where it requests labels.

    What takes seconds to learn is learned in the executor; without one, within the round.
    """
    space = settings.cell_space(model)
    keys = model_keys(settings, model)
    model_settings = settings.models[model]
    learner, rest_seconds = executor or ImmediateExecutor(), settings.schedule.performance_seconds
    shares = {name: vendor.share for name, vendor in settings.vendors_of(model).items()}
    requests = request_store(settings, connection, model)
    return ModelMonitor(
        model,
        model_settings,
        space,
        reader=FactReader(connection, keys, space, decay=model_settings.traffic_decay_per_second),
        issuer=RequestIssuer(
            RequestBuilder(model, model_settings, space, VendorAssignment(shares, hash_key)),
            requests,
            FurtherLabels(model_settings, LabelledItemStore(connection, keys), hash_key),
            GoldQueue(model, gold, requests, hash_key=hash_key),
            asked_pools(settings, model, space),
            rng,
        ),
        drift_store=DriftStore(connection, keys),
        checkpoints=CheckpointStore(connection, keys),
        count_histories=CountHistoryStore(connection, keys),
        cohorts=cohort_store(settings, connection, model),
        outcome_limit=settings.bounds.outcomes,
        rng=rng,
        history_groups=settings.bounds.metric_groups,
        history_seconds=settings.http.history_hours * 3_600,
        performance=PerformanceWatch(
            model,
            model_settings,
            learner,
            rng.spawn(1)[0],
            rest_seconds=rest_seconds,
            on_failure=performance_failed,
        ),
        annotators=AnnotatorWatch(model, model_settings, learner, rest_seconds=rest_seconds),
        absent=AbsentWatch(model, model_settings, learner, rest_seconds=rest_seconds),
    )


def read_snapshots(settings: Settings, connection: Connection, models: Iterable[str]) -> list[ModelSnapshot]:
    """The current estimates of some models, for a command that changes nothing.

    It requests no labels, so it needs no hash key, and gives none to a Redis that has lost its own.
    """
    rng = np.random.default_rng(secrets.randbits(128))
    return [
        model_monitor(settings, name, connection, hash_key=bytes(16), rng=rng).refresh(time.time())
        for name in models
    ]
