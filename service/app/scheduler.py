"""When a round is due. APScheduler keeps the time; a clock that is set forward or back moves no round."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.events import EVENT_SCHEDULER_SHUTDOWN
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

log = logging.getLogger(__name__)


def start_schedule(
    tick: Callable[[], None], *, tick_seconds: float, on_failure: Callable[[], None]
) -> BackgroundScheduler:
    """Tick at once, then every `tick_seconds`; a late or overlapping tick is merged into one.

    If a tick raises an unexpected error, `on_failure` is called; the process should then stop.
    """

    def guarded() -> None:
        try:
            tick()
        except Exception:
            log.critical("the round failed", exc_info=True)
            on_failure()

    interval = timedelta(seconds=tick_seconds)
    scheduler = BackgroundScheduler(timezone=UTC)
    job = scheduler.add_job(
        guarded,
        EveryTick(interval),
        next_run_time=datetime.now(UTC),
        max_instances=1,
        coalesce=True,
        misfire_grace_time=None,
    )
    ended = threading.Event()
    scheduler.add_listener(lambda _: ended.set(), EVENT_SCHEDULER_SHUTDOWN)
    scheduler.start()
    threading.Thread(target=_mind_the_clock, args=(job, interval, ended), name="clock", daemon=True).start()
    return scheduler


class EveryTick(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Due one tick from now, so that ticks skipped by a clock set forward are not made up one by one."""

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:  # noqa: ARG002
        """When the tick after the one at `previous_fire_time` is due."""
        return now + self._interval

    def __str__(self) -> str:
        return f"every {self._interval.total_seconds():g} s"


def _mind_the_clock(job: Any, interval: timedelta, ended: threading.Event) -> None:
    """Tick now if the clock was set back: APScheduler would wait until it shows the same time again."""
    while not ended.wait(interval.total_seconds()):
        now = datetime.now(UTC)
        if job.next_run_time - now > 2 * interval:
            with suppress(JobLookupError):  # the scheduler ends just now
                job.modify(next_run_time=now)
