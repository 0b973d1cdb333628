"""The rounds: every replica refreshes its snapshots and shows them; the leader requests labels.

The leader's lease and its epoch, not the schedule, ensure what must happen once in a cluster.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from apscheduler.schedulers.background import BackgroundScheduler
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from service.app.monitor_wiring import model_monitor
from service.app.request_publisher import RequestPublisher
from service.app.rounds_report import RoundsReporter
from service.app.scheduler import start_schedule
from service.app.wiring import process_name, request_store
from service.config.settings import Settings
from service.domain.errors import FenceRefused, Unavailable
from service.monitoring.monitor import ModelMonitor
from service.monitoring.pipeline import ROLES, PipelineState, read_pipeline
from service.monitoring.pipeline_problems import pipeline_problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.problems import model_headline
from service.serving.prometheus import SnapshotCollector
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.store.connection import Connection
from service.store.consumer_health import HealthStore
from service.store.lease import LeaderLease
from service.store.records import GoldItem
from service.telemetry.health import Check
from service.telemetry.instruments import PipelineMetrics
from service.telemetry.outages import Outages

log = logging.getLogger(__name__)

_RECALL_REST = 9.0
"""Pause after recomputing earlier estimates, as a multiple of the time that took: a tenth of the time."""


class Rounds:
    """Takes and shows snapshots of all models, and requests labels if this process leads.

    The registry gets the metrics of all snapshots. `gold` items, by model, are needed where it leads.
    """

    _monitors: dict[str, ModelMonitor]
    _scheduler: BackgroundScheduler

    def __init__(
        self,
        settings: Settings,
        *,
        gold: Mapping[str, Sequence[GoldItem]],
        registry: CollectorRegistry,
        metrics: PipelineMetrics,
        clock: Callable[[], float],
        outages: Outages,
    ) -> None:
        self._settings = settings
        self._gold = gold
        self._outages = outages
        self._registry = registry
        self._metrics = metrics
        self._clock = clock
        self.snapshots: dict[str, ModelSnapshot] = {}
        """The latest of each model."""
        self._connection: Connection
        self._pipeline: PipelineState | None = None
        self._lease: LeaderLease | None = None
        self._publisher: RequestPublisher | None = None
        self._reporter: RoundsReporter | None = None
        # One thread, so that rounds have the other cores however many models learn.
        self._learner = ThreadPoolExecutor(1, thread_name_prefix="performance")
        self._last_success: float | None = None
        self._recall_at = -math.inf
        self._exhausted: set[tuple[str, str]] = set()

    def page(self) -> ASGIApp:
        """The application of the status page; it shows nothing before the first round."""
        view = SnapshotView(
            models=list(self._settings.models),
            board=self.snapshots,
            tick_seconds=self._settings.schedule.tick_seconds,
            clock=self._clock,
            pipeline=lambda: self._pipeline,
        )
        return page_app(view, allowed_hosts=self._settings.http.allowed_hosts)

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
        settings, metrics = self._settings, self._metrics
        self._connection = connection
        seeds = np.random.SeedSequence(settings.seed if settings.seed is not None else secrets.randbits(128))
        self._monitors = {
            name: model_monitor(
                settings,
                name,
                connection,
                hash_key=hash_key,
                gold=self._gold.get(name, ()),
                rng=np.random.default_rng(seed),
                executor=self._learner,
                performance_failed=partial(self._count_performance_failure, name),
            )
            for name, seed in zip(settings.models, seeds.spawn(len(settings.models)), strict=True)
        }
        metrics.start_performance_counters(
            name for name, model in settings.models.items() if model.positive_class
        )
        if producer is not None:
            self._lease = LeaderLease(
                connection,
                lease_seconds=settings.schedule.lease_seconds,
                name=process_name(settings),
                clock=self._clock,
            )
            self._reporter = RoundsReporter(
                HealthStore(connection), member=process_name(settings), clock=self._clock
            )
            metrics.start_request_counters(
                {name: model.assessments for name, model in settings.models.items()}
            )
            self._publisher = RequestPublisher(
                producer,
                settings.kafka.topics.label_requests,
                {name: request_store(settings, connection, name) for name in settings.models},
                metrics,
                vendor_topics={name: v.topic for name, v in settings.vendors.items() if v.topic is not None},
            )
        self._registry.register(
            SnapshotCollector(
                lambda: list(self.snapshots.values()),
                group_limit=settings.bounds.metric_groups,
                clock=self._clock,
            )
        )
        self._scheduler = start_schedule(
            self._tick, tick_seconds=settings.schedule.tick_seconds, on_failure=on_failure
        )

    def check(self) -> Check:
        """Whether there was a round recently."""
        last = self._last_success
        fresh = last is not None and self._clock() - last < 3 * self._settings.schedule.tick_seconds + 5
        return Check("rounds", alive=True, ready=fresh, state="running" if fresh else "waiting")

    def statuses(self) -> dict[str, str]:
        """The status of every model: its worst problem's severity, or why there is none."""
        tick_seconds, now = self._settings.schedule.tick_seconds, self._clock()
        pipeline = pipeline_problems(self._pipeline, now)
        return {
            name: model_headline(
                self.snapshots.get(name), pipeline=pipeline, now=now, tick_seconds=tick_seconds
            ).status
            for name in self._settings.models
        }

    def stop(self) -> None:
        """Wait for the current round, and let another replica lead at once."""
        self._scheduler.shutdown(wait=True)
        if self._lease is not None:
            self._metrics.leader.set(0)
            try:
                self._lease.release()
            except Unavailable as error:
                log.warning("the lease expires by itself", extra={"cause": str(error)})
        if self._reporter is not None:
            self._reporter.leave()
        self._learner.shutdown(wait=False, cancel_futures=True)

    def _count_performance_failure(self, model: str) -> None:
        self._metrics.performance_failures.labels(model).inc()

    def _tick(self) -> None:
        """Refresh all snapshots; if this process leads, request labels. Gives up if Redis or Kafka fails."""
        failure = None
        try:
            self._refresh()
            self._recall()
            if self._lease is not None and self._publisher is not None:
                self._request_labels(self._lease, self._publisher)
        except Unavailable as error:
            failure = error
            self._metrics.rounds_failed.labels(error.part).inc()
            self._outages.failed("rounds", error.outage, str(error))
        else:
            self._outages.works("rounds")
            self._last_success = self._clock()
        if self._reporter is not None:
            self._reporter.report(failure)
        self._read_pipeline()

    def _read_pipeline(self) -> None:
        """Read the state of the pipeline; the last one stays if Redis does not answer."""
        taken = [snapshot.taken_at for snapshot in self.snapshots.values()]
        try:
            state = read_pipeline(self._connection, now=self._clock(), estimates_at=min(taken, default=None))
        except Unavailable as error:
            log.debug("the health of the pipeline is read in the next round", extra={"cause": str(error)})
            return
        self._pipeline = state
        self._metrics.redis_lost_data(state.reset is not None)
        for role in ROLES:
            self._metrics.topic_unread.labels(role).set(state.role(role).is_unread)

    def _refresh(self) -> None:
        began = time.monotonic()
        for name, monitor in self._monitors.items():
            self.snapshots[name] = monitor.refresh(self._clock())
        self._metrics.snapshot_duration.observe(time.monotonic() - began)

    def _recall(self) -> None:
        """Recompute earlier estimates, in a tenth of the time."""
        began = time.monotonic()
        if began < self._recall_at:
            return
        now = self._clock()
        for monitor in self._monitors.values():
            monitor.recall(now)
        self._recall_at = began + (1 + _RECALL_REST) * (time.monotonic() - began)

    def _request_labels(self, lease: LeaderLease, publisher: RequestPublisher) -> None:
        try:
            epoch = lease.hold()
        except Unavailable:
            self._metrics.leader.set(0)
            raise
        self._metrics.leader.set(epoch is not None)
        if epoch is None:
            return
        try:
            for name, monitor in self._monitors.items():
                self._issue_requests(name, monitor, epoch)
        except FenceRefused as error:
            # Redis may have forgotten this epoch and know a higher one: a new lease brings a new epoch.
            self._metrics.leader.set(0)
            lease.release()
            log.warning("no longer the leader", extra={"cause": str(error)})
            return
        publisher.publish(self._clock())

    def _issue_requests(self, model: str, monitor: ModelMonitor, epoch: int) -> None:
        done = monitor.ask(epoch=epoch, now=self._clock())
        self._log_budgets(model)
        for assessment, count in done.issued.items():
            aimed, filled = done.aimed[assessment], done.filled.get(assessment, 0)
            gold = done.gold.get(assessment, 0)
            policy = count - aimed - filled - gold
            chosen = {"policy": policy, "drift": aimed, "reference": filled, "gold": gold}
            for reason, number in chosen.items():
                self._metrics.requests_chosen.labels(model, assessment, reason).inc(number)
        for assessment, count in done.shortfall.items():
            self._metrics.draws_short.labels(model, assessment).inc(count)
        if any(done.issued.values()) or done.expired or done.reissued:
            counts = {key: getattr(done, key) for key in ("issued", "aimed", "expired", "reissued")}
            log.info("labels requested", extra={"model": model, **counts})

    def _log_budgets(self, model: str) -> None:
        """Log once that a budget is exhausted, and once that it allows labels again."""
        for name, state in self.snapshots[model].assessments.items():
            key, exhausted = (model, name), state.budget.is_exhausted
            if exhausted == (key in self._exhausted):
                continue
            self._exhausted ^= {key}
            event = "the label budget is exhausted" if exhausted else "the label budget has labels again"
            log.warning(
                event, extra={"model": model, "assessment": name, "renews_at": state.budget.renews_at}
            )
