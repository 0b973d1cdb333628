"""The rounds: every replica refreshes its snapshot; the one that leads asks for labels.

APScheduler keeps the time, with jobs in memory: what must happen once in a cluster is guarded by the
leader's lease and its epoch, not by the schedule. A clock that is moved, forward or back, moves no round.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from apscheduler.events import EVENT_SCHEDULER_SHUTDOWN
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from kafka.errors import KafkaError

from service.domain.errors import FenceRefused, Unavailable
from service.domain.messages import LABEL_REQUEST_TYPE, cloudevents_headers
from service.kafka.topic_metadata import translate_error
from service.monitoring.monitor import ModelMonitor
from service.monitoring.snapshot import ModelSnapshot
from service.store.lease import LeaderLease
from service.store.requests import RequestStore
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

_PUBLISH_SECONDS = 10.0

_RECALL_REST = 9.0
"""After earlier beliefs were computed anew, so many times as long is rested from it: a tenth of the time."""


class _Request(msgspec.Struct):
    item_id: str
    vendor: str = ""


class RequestPublisher:
    """Sends what is in the outboxes to the label-requests topic, or to the topic of the vendor that is asked.

    A message leaves the outbox after Kafka has it, so one may be sent twice, with the same request id
    and attempt.

    Args:
        producer: of bytes.
        topic: of those vendors that have none of their own, and where there are no vendors.
        stores: label requests by model.
        metrics: of the pipeline.
        vendor_topics: by vendor.
    """

    def __init__(
        self,
        producer: Any,
        topic: str,
        stores: Mapping[str, RequestStore],
        metrics: PipelineMetrics,
        vendor_topics: Mapping[str, str] | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._stores = stores
        self._metrics = metrics
        self._vendor_topics = vendor_topics or {}

    def publish(self, now: float) -> int:
        """Send all that waits; how many were sent.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; what waits is sent later.
        """
        return sum(self._publish_model(model, store, now) for model, store in self._stores.items())

    def _publish_model(self, model: str, store: RequestStore, now: float) -> int:
        outbox = store.outbox()
        if not outbox:
            return 0
        try:
            futures = [self._send(model, entry, message, now) for entry, message in outbox.items()]
            self._producer.flush(timeout=_PUBLISH_SECONDS)
            for future in futures:
                future.get(timeout=_PUBLISH_SECONDS)
        except KafkaError as error:
            raise translate_error(error) from error
        store.published(list(outbox))
        self._metrics.published(model, len(outbox))
        return len(outbox)

    def _send(self, model: str, entry: str, message: bytes, now: float) -> Any:
        request = msgspec.json.decode(message, type=_Request)
        return self._producer.send(
            self._vendor_topics.get(request.vendor, self._topic),
            key=request.item_id.encode(),
            value=message,
            headers=cloudevents_headers(
                event_type=LABEL_REQUEST_TYPE,
                event_id=entry,
                source=f"/credence/models/{model}",
                time=datetime.fromtimestamp(now, UTC),
            ),
        )


class Rounds:
    """What happens at every tick.

    Args:
        monitors: of all models.
        board: where the latest snapshot of every model is put.
        lease: of the leader; None where this process only looks.
        publisher: of label requests; None where this process only looks.
        metrics: of the pipeline.
        clock: seconds since the epoch.
        stopwatch: seconds since any moment, which never goes back.
    """

    def __init__(
        self,
        monitors: Mapping[str, ModelMonitor],
        *,
        board: MutableMapping[str, ModelSnapshot],
        lease: LeaderLease | None,
        publisher: RequestPublisher | None,
        metrics: PipelineMetrics,
        clock: Callable[[], float],
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monitors = monitors
        self._lease = lease
        self._publisher = publisher
        self._metrics = metrics
        self._clock = clock
        self._stopwatch = stopwatch
        self._board = board
        self._recall_at = -math.inf
        self.last_success: float | None = None

    def tick(self) -> None:
        """Refresh all snapshots; if this process leads, ask and publish. What is away is waited for."""
        try:
            self._look()
            self._ask()
        except Unavailable as error:
            self._metrics.round_failed(error.part)
            log.warning("round given up", extra={"cause": str(error)})
        else:
            self.last_success = self._clock()

    def _look(self) -> None:
        began = self._stopwatch()
        for name, monitor in self._monitors.items():
            self._board[name] = monitor.refresh(self._clock())
        self._metrics.snapshot_taken(self._stopwatch() - began)
        self._recall()

    def _recall(self) -> None:
        began = self._stopwatch()
        if began < self._recall_at:
            return
        now = self._clock()
        for monitor in self._monitors.values():
            monitor.recall(now)
        self._recall_at = began + (1 + _RECALL_REST) * (self._stopwatch() - began)

    def _ask(self) -> None:
        if self._lease is None or self._publisher is None:
            return
        try:
            epoch = self._lease.hold()
        except Unavailable:
            self._metrics.leading(False)
            raise
        self._metrics.leading(epoch is not None)
        if epoch is None:
            return
        try:
            for name, monitor in self._monitors.items():
                done = monitor.ask(epoch=epoch, now=self._clock())
                for assessment, count in done.issued.items():
                    aimed = done.aimed[assessment]
                    self._metrics.requests_chosen(name, assessment, policy=count - aimed, drift=aimed)
                for assessment, count in done.shortfall.items():
                    self._metrics.draws_short(name, assessment, count)
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
            self._metrics.leading(False)
            self._lease.release()
            log.warning("no longer the leader", extra={"cause": str(error)})
            return
        self._publisher.publish(self._clock())

    def release(self) -> None:
        """Let another replica lead at once."""
        if self._lease is not None:
            self._metrics.leading(False)
            try:
                self._lease.release()
            except Unavailable as error:
                log.warning("the lease ends by itself", extra={"cause": str(error)})


def start_schedule(
    rounds: Rounds, *, tick_seconds: float, on_failure: Callable[[], None]
) -> BackgroundScheduler:
    """Tick at once, then every `tick_seconds`; a late or overlapping tick is merged into one.

    Args:
        rounds: what happens.
        tick_seconds: time between two ticks.
        on_failure: called when a tick raises what it should not; the process should then stop.
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
    """Due one tick from now; so ticks that a clock set forward has skipped are not counted up one by one."""

    def __init__(self, tick: timedelta) -> None:
        self._tick = tick

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:  # noqa: ARG002
        """When the tick behind the one at `previous_fire_time` is due."""
        return now + self._tick

    def __str__(self) -> str:
        return f"every {self._tick.total_seconds():g} s"


def _mind_the_clock(job: Any, tick: timedelta, ended: threading.Event) -> None:
    """Tick now whenever the clock was set back: APScheduler would wait until it shows the same time again."""
    while not ended.wait(tick.total_seconds()):
        now = datetime.now(UTC)
        if job.next_run_time - now > 2 * tick:
            with suppress(JobLookupError):  # the scheduler ends just now
                job.modify(next_run_time=now)
