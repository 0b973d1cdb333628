"""What is believed of performance is kept current beside the rounds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pytest
from deferred_jobs import Later

from service.config.model import ModelSettings
from service.domain.errors import Unavailable
from service.monitoring.background_job import ImmediateExecutor
from service.monitoring.background_performance import PerformanceWatch
from service.monitoring.performance_facts import PerformanceFacts
from service.statistics.binary.score_bins import UNLABELLED
from service.store.records import PoolRecord

NOW = 1_800_000_000.0
REST = 30.0
CURVE = {"task": "performance", "positive_class": "spam", "budget": {"labels": 50}}


def facts() -> PerformanceFacts:
    rng = np.random.default_rng(0)
    return PerformanceFacts(rng.random(60), np.ones(60), np.full(60, UNLABELLED), np.ones(60), (0.5,))


class Watched:
    """A watch whose facts are counted."""

    def __init__(self, executor: Executor, **assessments: Any) -> None:
        self.reads = 0
        self.failures = 0
        settings = ModelSettings.model_validate(
            {"classes": ["ham", "spam"], "assessments": assessments or {"curve": CURVE}}
        )
        self.watch = PerformanceWatch(
            "m",
            settings,
            executor,
            np.random.default_rng(0),
            rest_seconds=REST,
            on_failure=self._failed,
        )

    def refresh(self, at: float, inputs: PerformanceFacts | None = None) -> list[str]:
        """Names of the assessments with an estimate after a refresh."""

        def read() -> list[PoolRecord]:
            self.reads += 1
            return []

        self.watch.refresh(read, lambda _: facts() if inputs is None else inputs, now=NOW + at)
        return list(self.watch.snapshots)

    def _failed(self) -> None:
        self.failures += 1


def test_a_round_waits_neither_for_the_pool_nor_for_learning() -> None:
    later = Later()
    watched = Watched(later)
    assert watched.refresh(0) == []
    assert watched.reads == 0
    later.run()
    assert watched.reads == 1
    assert watched.refresh(1) == []
    later.run()
    assert watched.refresh(2) == ["curve"]
    assert watched.watch.snapshots["curve"].taken_at == NOW + 1


def test_facts_are_not_read_while_it_learns_nor_while_it_rests() -> None:
    later = Later()
    watched = Watched(later)
    for at in range(5):
        watched.refresh(at)
        later.run()
    watched.refresh(2 + REST - 1)
    later.run()
    assert watched.reads == 1
    watched.refresh(2 + REST)
    later.run()
    assert watched.reads == 2


def test_a_pool_that_is_away_is_reported_and_read_again() -> None:
    watched = Watched(ImmediateExecutor())

    def away() -> list[PoolRecord]:
        raise Unavailable("redis", ConnectionError())

    with pytest.raises(Unavailable):
        watched.watch.refresh(away, lambda _: facts(), now=NOW)
    assert watched.failures == 0
    assert watched.refresh(REST) == ["curve"]


def test_every_assessment_of_performance_is_learned() -> None:
    watched = Watched(
        ImmediateExecutor(), one=CURVE, other=CURVE | {"threshold": 0.9}, plain={"budget": {"labels": 1}}
    )
    assert watched.refresh(0) == ["one", "other"]


def test_where_nobody_asks_no_fact_is_read() -> None:
    watched = Watched(ImmediateExecutor(), plain={"budget": {"labels": 1}})
    assert watched.refresh(0) == []
    assert watched.reads == 0


def test_a_failure_is_reported_and_what_was_known_stays(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(ImmediateExecutor())
    watched.refresh(0)
    before = watched.watch.snapshots["curve"]
    broken = PerformanceFacts(np.array([np.nan]), np.ones(1), np.full(1, UNLABELLED), np.ones(1), (0.5,))
    with caplog.at_level(logging.ERROR):
        watched.refresh(REST, broken)
    assert watched.watch.snapshots["curve"] is before
    assert watched.failures == 1
    assert "could not be learned" in caplog.text


def test_a_failure_is_known_until_learning_has_succeeded_for_five_minutes() -> None:
    watched = Watched(ImmediateExecutor())
    broken = PerformanceFacts(np.array([np.nan]), np.ones(1), np.full(1, UNLABELLED), np.ones(1), (0.5,))
    watched.refresh(0)
    assert watched.watch.failures(NOW) == {}
    watched.refresh(REST, broken)
    assert watched.watch.failures(NOW + 3_600) == {"curve": NOW + REST}
    watched.refresh(2 * REST)
    assert watched.watch.failures(NOW + 299 + REST) == {"curve": NOW + REST}
    assert watched.watch.failures(NOW + 300 + REST) == {}


def test_without_facts_it_rests_and_looks_again() -> None:
    watched = Watched(ImmediateExecutor())
    watched.watch.refresh(list, lambda _: None, now=NOW)
    assert watched.refresh(1) == []
    assert watched.refresh(REST) == ["curve"]


def test_facts_that_cannot_be_read_do_not_end_a_round(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(ImmediateExecutor())

    def broken(_: Sequence[PoolRecord]) -> PerformanceFacts:
        raise IndexError

    with caplog.at_level(logging.ERROR):
        watched.watch.refresh(list, broken, now=NOW)
    assert watched.failures == 1
    assert "cannot be read" in caplog.text
