"""Estimates of performance, learned in the background because that takes seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

import numpy as np

from service.config.assessments import PerformanceSettings
from service.config.model import ModelSettings
from service.domain.errors import Unavailable
from service.monitoring.background_job import BackgroundJob
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.score_gains import answered_by_score
from service.store.records import PoolRecord

log = logging.getLogger(__name__)

_LATELY_SECONDS = 300.0  # as far back as an alert counts failures
POOLED_SCORES = 2_000  # unlabelled items that performance is learned from, at most


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
        self._reading = BackgroundJob[Sequence[PoolRecord]](self.executor, self.rest_seconds)
        self._learning = {
            name: BackgroundJob[PerformanceSnapshot](self.executor, self.rest_seconds)
            for name in self._assessments
        }
        self._snapshots: dict[str, PerformanceSnapshot] = {}
        self._failed_at: dict[str, float] = {}
        self._failing: set[str] = set()

    @property
    def snapshots(self) -> Mapping[str, PerformanceSnapshot]:
        """The latest estimates, by assessment; an assessment without one yet is left out."""
        return dict(self._snapshots)

    def snapshots_with(
        self, index: GroupIndex, ledger: OutcomeLedger, *, now: float
    ) -> Mapping[str, PerformanceSnapshot]:
        """The latest estimates; what further labels are worth allows for those that came since."""
        found = self.snapshots
        if all(one.gains is None for one in found.values()):
            return found
        answered = answered_by_score(index, ledger, now=now)
        return {
            name: one if one.gains is None else replace(one, gains=one.gains.after(answered))
            for name, one in found.items()
        }

    def failures(self, now: float) -> dict[str, float]:
        """When learning last failed, by assessment: those that have not succeeded since, or failed lately."""
        return {
            name: at
            for name, at in self._failed_at.items()
            if name in self._failing or now - at < _LATELY_SECONDS
        }

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
        if not all(learning.is_due(now) for learning in self._learning.values()):
            return
        if self._reading.is_due(now):
            self._reading.start(pool)
        if (reading := self._reading.take(now)) is not None:
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
            self._note_failure(self._assessments, now)
            log.exception("the inputs of performance learning cannot be read", extra={"model": self.model})
            return
        if inputs is None:
            return
        for name, settings in self._assessments.items():
            self._learning[name].start(
                assess_performance,
                inputs,
                settings,
                self.rng.spawn(1)[0],
                interval=self.settings.interval,
                now=now,
            )
        self._take(now)

    def _take(self, now: float) -> None:
        for name, learning in self._learning.items():
            if (learned := learning.take(now)) is None:
                continue
            error = learned.exception()
            if error is None:
                self._snapshots[name] = learned.result()
                self._failing.discard(name)
            else:
                self._note_failure([name], now)
                log.error(
                    "performance could not be learned; the previous estimate is kept",
                    extra={"model": self.model, "assessment": name},
                    exc_info=error,
                )

    def _note_failure(self, names: Collection[str], now: float) -> None:
        self.on_failure()
        self._failing.update(names)
        self._failed_at |= dict.fromkeys(names, now)
