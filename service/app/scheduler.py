"""The rounds: every replica refreshes its snapshot; the leader requests labels.

APScheduler keeps the time, with jobs in memory. The leader's lease and its epoch, not the schedule, ensure
what must happen once in a cluster. A clock that is set forward or back moves no round.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from apscheduler.events import EVENT_SCHEDULER_SHUTDOWN
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from service.domain.errors import FenceRefused, Unavailable
from service.domain.messages import LABEL_REQUEST_TYPE, cloudevents_headers
from service.kafka.topic_metadata import translated_errors
from service.monitoring.monitor import ModelMonitor
from service.monitoring.snapshot import ModelSnapshot
from service.store.lease import LeaderLease
from service.store.requests import RequestStore
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

_PUBLISH_SECONDS = 10.0

_RECALL_REST = 9.0
"""Pause after recomputing earlier estimates, as a multiple of the time that took: a tenth of the time."""


class _Request(msgspec.Struct):
    item_id: str
    vendor: str = ""


@dataclass(frozen=True)
class RequestPublisher:
    """Sends label requests from the outboxes to the topics of their vendors, or to the common topic.

    A message leaves the outbox after Kafka has it, so it may be sent twice, with the same request id and
    attempt.

    Attributes:
        producer: of bytes.
        topic: of vendors without a topic of their own, and where there are no vendors.
        stores: label requests by model.
        metrics: of the pipeline.
        vendor_topics: by vendor.
    """

    producer: Any
    topic: str
    stores: Mapping[str, RequestStore]
    metrics: PipelineMetrics
    vendor_topics: Mapping[str, str] = field(default_factory=dict)

    def publish(self, now: float) -> int:
        """Send all requests in the outboxes; returns their number.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; the rest is sent later.
        """
        return sum(self._publish_model(model, store, now) for model, store in self.stores.items())

    def _publish_model(self, model: str, store: RequestStore, now: float) -> int:
        outbox = store.outbox()
        if not outbox:
            return 0
        with translated_errors():
            futures = [self._send(model, entry, message, now) for entry, message in outbox.items()]
            self.producer.flush(timeout=_PUBLISH_SECONDS)
            for future in futures:
                future.get(timeout=_PUBLISH_SECONDS)
        store.published(list(outbox))
        self.metrics.published(model, len(outbox))
        return len(outbox)

    def _send(self, model: str, entry: str, message: bytes, now: float) -> Any:
        request = msgspec.json.decode(message, type=_Request)
        return self.producer.send(
            self.vendor_topics.get(request.vendor, self.topic),
            key=request.item_id.encode(),
            value=message,
            headers=cloudevents_headers(
                event_type=LABEL_REQUEST_TYPE,
                event_id=entry,
                source=f"/credence/models/{model}",
                time=datetime.fromtimestamp(now, UTC),
            ),
        )


@dataclass
class Rounds:
    """The work of every tick.

    Attributes:
        monitors: of all models.
        board: gets the latest snapshot of every model.
        lease: of the leader; None if this process never leads.
        publisher: of label requests; None if this process never leads.
        metrics: of the pipeline.
        clock: seconds since the epoch.
        stopwatch: seconds since any moment; never goes back.
        last_success: when the last complete round ended, by the clock.
    """

    monitors: Mapping[str, ModelMonitor]
    board: MutableMapping[str, ModelSnapshot]
    lease: LeaderLease | None
    publisher: RequestPublisher | None
    metrics: PipelineMetrics
    clock: Callable[[], float]
    stopwatch: Callable[[], float] = time.monotonic
    last_success: float | None = field(default=None, init=False)
    _recall_at: float = field(default=-math.inf, init=False)

    def tick(self) -> None:
        """Refresh all snapshots; if this process leads, request labels. Gives up if Redis or Kafka fails."""
        try:
            self._look()
            self._ask()
        except Unavailable as error:
            self.metrics.round_failed(error.part)
            log.warning("round given up", extra={"cause": str(error)})
        else:
            self.last_success = self.clock()

    def _look(self) -> None:
        began = self.stopwatch()
        for name, monitor in self.monitors.items():
            self.board[name] = monitor.refresh(self.clock())
        self.metrics.snapshot_taken(self.stopwatch() - began)
        self._recall()

    def _recall(self) -> None:
        began = self.stopwatch()
        if began < self._recall_at:
            return
        now = self.clock()
        for monitor in self.monitors.values():
            monitor.recall(now)
        self._recall_at = began + (1 + _RECALL_REST) * (self.stopwatch() - began)

    def _ask(self) -> None:
        if self.lease is None or self.publisher is None:
            return
        try:
            epoch = self.lease.hold()
        except Unavailable:
            self.metrics.leading(False)
            raise
        self.metrics.leading(epoch is not None)
        if epoch is None:
            return
        try:
            for name, monitor in self.monitors.items():
                done = monitor.ask(epoch=epoch, now=self.clock())
                for assessment, count in done.issued.items():
                    aimed = done.aimed[assessment]
                    self.metrics.requests_chosen(name, assessment, policy=count - aimed, drift=aimed)
                for assessment, count in done.shortfall.items():
                    self.metrics.draws_short(name, assessment, count)
                if any(done.issued.values()) or done.expired or done.reissued:
                    log.info(
                        "asked for labels",
                        extra={
                            "model": name,
                            "issued": done.issued,
                            "aimed": done.aimed,
                            "expired": done.expired,
                            "reissued": done.reissued,
                        },
                    )
        except FenceRefused as error:
            # Redis may have forgotten this epoch and know a higher one: a new lease brings a new epoch.
            self.metrics.leading(False)
            self.lease.release()
            log.warning("no longer the leader", extra={"cause": str(error)})
            return
        self.publisher.publish(self.clock())

    def release(self) -> None:
        """Let another replica lead at once."""
        if self.lease is not None:
            self.metrics.leading(False)
            try:
                self.lease.release()
            except Unavailable as error:
                log.warning("the lease ends by itself", extra={"cause": str(error)})


def start_schedule(
    rounds: Rounds, *, tick_seconds: float, on_failure: Callable[[], None]
) -> BackgroundScheduler:
    """Tick at once, then every `tick_seconds`; a late or overlapping tick is merged into one.

    Args:
        rounds: the work.
        tick_seconds: between two ticks.
        on_failure: called when a tick raises an unexpected error; the process should then stop.
    """

    def guarded() -> None:
        try:
            rounds.tick()
        except Exception:
            log.critical("the round failed", exc_info=True)
            on_failure()

    tick = timedelta(seconds=tick_seconds)
    scheduler = BackgroundScheduler(timezone=UTC)
    job = scheduler.add_job(
        guarded,
        EveryTick(tick),
        next_run_time=datetime.now(UTC),
        max_instances=1,
        coalesce=True,
        misfire_grace_time=None,
    )
    ended = threading.Event()
    scheduler.add_listener(lambda _: ended.set(), EVENT_SCHEDULER_SHUTDOWN)
    scheduler.start()
    threading.Thread(target=_mind_the_clock, args=(job, tick, ended), name="clock", daemon=True).start()
    return scheduler


class EveryTick(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Due one tick from now, so that ticks skipped by a clock set forward are not made up one by one."""

    def __init__(self, tick: timedelta) -> None:
        self._tick = tick

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:  # noqa: ARG002
        """When the tick after the one at `previous_fire_time` is due."""
        return now + self._tick

    def __str__(self) -> str:
        return f"every {self._tick.total_seconds():g} s"


def _mind_the_clock(job: Any, tick: timedelta, ended: threading.Event) -> None:
    """Tick now if the clock was set back: APScheduler would wait until it shows the same time again."""
    while not ended.wait(tick.total_seconds()):
        now = datetime.now(UTC)
        if job.next_run_time - now > 2 * tick:
            with suppress(JobLookupError):  # the scheduler ends just now
                job.modify(next_run_time=now)
