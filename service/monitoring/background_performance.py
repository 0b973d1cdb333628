"""Estimates of performance, learned in the background because that takes seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.config.assessments import PerformanceSettings
from service.config.model import ModelSettings
from service.domain.errors import Unavailable
from service.monitoring.binary_performance import PerformanceFacts, PerformanceSnapshot, assess_performance
from service.store.records import PoolRecord

log = logging.getLogger(__name__)

POOLED_SCORES = 2_000  # unlabelled items that performance is learned from, at most


class ImmediateExecutor(Executor):
    """Runs every job at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job and return its result."""
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised when the result is read
            done.set_exception(error)
        return done


@dataclass(eq=False)
class PerformanceWatch:
    """Keeps the performance estimates of one model up to date, one for each assessment of performance."""

    model: str
    settings: ModelSettings
    executor: Executor  # learns them
    rng: np.random.Generator  # spawns a generator for every learning
    rest_seconds: float  # from the end of one learning to the next
    on_failure: Callable[[], None]  # called when learning fails

    def __post_init__(self) -> None:
        self._assessments = self.settings.assessments_of(PerformanceSettings)
        self._reading: Future[Sequence[PoolRecord]] | None = None
        self._learning: dict[str, Future[PerformanceSnapshot]] = {}
        self._snapshots: dict[str, PerformanceSnapshot] = {}
        self._due_at = -np.inf

    @property
    def snapshots(self) -> Mapping[str, PerformanceSnapshot]:
        """The latest estimates, by assessment; an assessment without one yet is left out."""
        return dict(self._snapshots)

    def refresh(
        self,
        pool: Callable[[], Sequence[PoolRecord]],
        facts: Callable[[Sequence[PoolRecord]], PerformanceFacts | None],
        *,
        now: float,
    ) -> None:
        """Collect finished estimates, and start learning again if it is due.

        `pool` reads unlabelled items with their payloads; this is slow, so it runs in the background. `facts`
        combines them with the facts of the round, and is called within a round.

        Raises:
            Unavailable: the pool cannot be read.
        """
        if not self._assessments:
            return
        self._take(now)
        if self._learning:
            return
        if self._reading is None:
            if now < self._due_at:
                return
            self._due_at = now + self.rest_seconds
            self._reading = self.executor.submit(pool)
        if self._reading.done():
            reading, self._reading = self._reading, None
            self._learn(reading, facts, now)

    def _learn(
        self,
        pool: Future[Sequence[PoolRecord]],
        facts: Callable[[Sequence[PoolRecord]], PerformanceFacts | None],
        now: float,
    ) -> None:
        try:
            inputs = facts(pool.result())
        except Unavailable:
            raise
        except Exception:
            # The rest of the round does not depend on this.
            self.on_failure()
            log.exception("the inputs of performance learning cannot be read", extra={"model": self.model})
            return
        if inputs is None:
            return
        for name, settings in self._assessments.items():
            self._learning[name] = self.executor.submit(
                assess_performance,
                inputs,
                settings,
                self.rng.spawn(1)[0],
                interval=self.settings.interval,
                now=now,
            )
        self._take(now)

    def _take(self, now: float) -> None:
        for name, learning in list(self._learning.items()):
            if not learning.done():
                continue
            del self._learning[name]
            self._due_at = now + self.rest_seconds
            error = learning.exception()
            if error is None:
                self._snapshots[name] = learning.result()
            else:
                self.on_failure()
                log.error(
                    "performance could not be learned; the previous estimate is kept",
                    extra={"model": self.model, "assessment": name},
                    exc_info=error,
                )
