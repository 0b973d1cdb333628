"""The rounds of a process, and the status page that shows their snapshots."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from apscheduler.schedulers.background import BackgroundScheduler
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from service.app.monitor_wiring import model_monitor
from service.app.scheduler import RequestPublisher, Rounds, start_schedule
from service.app.wiring import request_store
from service.config.settings import Settings
from service.monitoring.snapshot import ModelSnapshot
from service.serving.prometheus import SnapshotCollector
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.store.connection import Connection
from service.store.lease import LeaderLease
from service.telemetry.health import Check
from service.telemetry.instruments import PipelineMetrics


@dataclass
class RoundRunner:
    """Takes and shows snapshots of all models, and requests labels if it may lead.

    Attributes:
        settings: of the process.
        registry: gets the metrics of all snapshots.
        metrics: of the pipeline.
        clock: seconds since the epoch.
    """

    settings: Settings
    registry: CollectorRegistry
    metrics: PipelineMetrics
    clock: Callable[[], float]
    _board: dict[str, ModelSnapshot] = field(default_factory=dict, init=False)
    _rounds: Rounds = field(init=False)
    _scheduler: BackgroundScheduler = field(init=False)

    def __post_init__(self) -> None:
        # One thread, so that rounds have the other cores however many models learn.
        self._learner = ThreadPoolExecutor(1, thread_name_prefix="performance")

    def page(self) -> ASGIApp:
        """The application of the status page; it shows nothing before the first round."""
        view = SnapshotView(
            models=list(self.settings.models),
            board=self._board,
            tick_seconds=self.settings.schedule.tick_seconds,
            clock=self.clock,
        )
        return page_app(view, allowed_hosts=self.settings.http.allowed_hosts)

    def start(
        self, connection: Connection, *, hash_key: bytes, producer: Any, on_failure: Callable[[], None]
    ) -> None:
        """Begin with the first round.

        Args:
            connection: to Redis.
            hash_key: of the pools.
            producer: of label requests; None if this process never leads.
            on_failure: called when a round raises an unexpected error; the process should then stop.
        """
        settings, metrics = self.settings, self.metrics
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
        board = self._board
        self._rounds = Rounds(
            monitors, board=board, lease=lease, publisher=publisher, metrics=metrics, clock=self.clock
        )
        self.registry.register(
            SnapshotCollector(lambda: list(board.values()), group_limit=settings.bounds.metric_groups)
        )
        self._scheduler = start_schedule(
            self._rounds, tick_seconds=self.settings.schedule.tick_seconds, on_failure=on_failure
        )

    def check(self) -> Check:
        """Whether there was a round recently."""
        last = self._rounds.last_success
        fresh = last is not None and self.clock() - last < 3 * self.settings.schedule.tick_seconds + 5
        return Check("rounds", alive=True, ready=fresh, state="running" if fresh else "waiting")

    def stop(self) -> None:
        """Wait for the current round, and release the lease."""
        self._scheduler.shutdown(wait=True)
        self._rounds.release()
        self._learner.shutdown(wait=False, cancel_futures=True)
