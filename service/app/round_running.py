"""The rounds of a process: made from its settings, started, and ended."""

from __future__ import annotations

import secrets
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from apscheduler.schedulers.background import BackgroundScheduler
from prometheus_client import CollectorRegistry

from service.app.monitor_wiring import model_monitor
from service.app.scheduler import RequestPublisher, Rounds, start_schedule
from service.app.wiring import request_store
from service.config.settings import Settings
from service.monitoring.snapshot import ModelSnapshot
from service.serving.prometheus import SnapshotCollector
from service.store.connection import Connection
from service.store.lease import LeaderLease
from service.telemetry.health import Check
from service.telemetry.instruments import PipelineMetrics


class RoundRunner:
    """Takes the snapshots of all models, and asks for labels where it may lead.

    Args:
        settings: of the process.
        connection: to Redis.
        hash_key: of the pools.
        producer: of label requests; None where this process only looks.
        board: where the latest snapshot of every model is put.
        registry: that snapshots are shown in.
        metrics: of the pipeline.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        *,
        hash_key: bytes,
        producer: Any,
        board: MutableMapping[str, ModelSnapshot],
        registry: CollectorRegistry,
        metrics: PipelineMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._tick_seconds = settings.schedule.tick_seconds
        self._clock = clock
        # One thread, so that however many models learn, rounds have the other cores.
        self._learner = ThreadPoolExecutor(1, thread_name_prefix="performance")
        self._scheduler: BackgroundScheduler | None = None
        seeds = np.random.SeedSequence(settings.seed if settings.seed is not None else secrets.randbits(128))
        monitors = {
            name: model_monitor(
                settings,
                name,
                connection,
                hash_key=hash_key,
                rng=np.random.default_rng(seed),
                executor=self._learner,
                performance_failed=partial(metrics.performance_failed, name),
            )
            for name, seed in zip(settings.models, seeds.spawn(len(settings.models)), strict=True)
        }
        metrics.learns_performance(name for name, model in settings.models.items() if model.positive_class)
        lease = publisher = None
        if producer is not None:
            lease = LeaderLease(connection, lease_seconds=settings.schedule.lease_seconds)
            metrics.may_lead({name: model.assessments for name, model in settings.models.items()})
            publisher = RequestPublisher(
                producer,
                settings.kafka.topics.label_requests,
                {name: request_store(settings, connection, name) for name in settings.models},
                metrics,
                vendor_topics={name: v.topic for name, v in settings.vendors.items() if v.topic is not None},
            )
        self._rounds = Rounds(
            monitors, board=board, lease=lease, publisher=publisher, metrics=metrics, clock=clock
        )
        registry.register(
            SnapshotCollector(lambda: list(board.values()), group_limit=settings.bounds.metric_groups)
        )

    def start(self, *, on_failure: Callable[[], None]) -> None:
        """Begin with the first round.

        Args:
            on_failure: called when a round raises what it should not; the process should then stop.
        """
        self._scheduler = start_schedule(self._rounds, tick_seconds=self._tick_seconds, on_failure=on_failure)

    def check(self) -> Check:
        """Whether there was a round of late."""
        last = self._rounds.last_success
        fresh = last is not None and self._clock() - last < 3 * self._tick_seconds + 5
        return Check("rounds", alive=True, ready=fresh, state="running" if fresh else "waiting")

    def stop(self) -> None:
        """Wait for the round that runs, and give the lease back."""
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=True)
            self._rounds.release()
        self._learner.shutdown(wait=False, cancel_futures=True)
