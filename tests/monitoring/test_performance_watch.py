"""What is believed of performance is kept current beside the rounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest

from service.config.model import ModelSettings
from service.domain.errors import Unavailable
from service.monitoring.background_performance import InPlace, PerformanceWatch
from service.monitoring.binary_performance import PerformanceFacts
from service.statistics.binary.score_bins import UNLABELLED
from service.store.records import PoolRecord

NOW = 1_800_000_000.0
REST = 30.0
CURVE = {"task": "performance", "positive_class": "spam", "budget": {"labels": 50}}


class Later(Executor):
    """Keeps what it is given until it is told to run it."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        for each in self.waiting:
            each()
        self.waiting = []


def facts() -> PerformanceFacts:
    rng = np.random.default_rng(0)
    return PerformanceFacts(rng.random(60), np.ones(60), np.full(60, UNLABELLED), np.ones(60))


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
            failed=self._failed,
        )

    def look(self, at: float, there: PerformanceFacts | None = None) -> list[str]:
        """What is known after a look."""

        def read() -> list[PoolRecord]:
            self.reads += 1
            return []

        self.watch.look(read, lambda _: facts() if there is None else there, now=NOW + at)
        return list(self.watch.known)

    def _failed(self) -> None:
        self.failures += 1


def test_a_round_waits_neither_for_the_pool_nor_for_learning() -> None:
    later = Later()
    watched = Watched(later)
    assert watched.look(0) == []
    assert watched.reads == 0
    later.run()
    assert watched.reads == 1
    assert watched.look(1) == []
    later.run()
    assert watched.look(2) == ["curve"]
    assert watched.watch.known["curve"].taken_at == NOW + 1


def test_facts_are_not_read_while_it_learns_nor_while_it_rests() -> None:
    later = Later()
    watched = Watched(later)
    for at in range(5):
        watched.look(at)
        later.run()
    watched.look(2 + REST - 1)
    later.run()
    assert watched.reads == 1
    watched.look(2 + REST)
    later.run()
    assert watched.reads == 2


def test_a_pool_that_is_away_is_told_and_read_again() -> None:
    watched = Watched(InPlace())

    def away() -> list[PoolRecord]:
        raise Unavailable("Redis", "it is away")

    with pytest.raises(Unavailable):
        watched.watch.look(away, lambda _: facts(), now=NOW)
    assert watched.failures == 0
    assert watched.look(REST) == ["curve"]


def test_every_assessment_of_performance_is_learned() -> None:
    watched = Watched(InPlace(), one=CURVE, other=CURVE | {"threshold": 0.9}, plain={"budget": {"labels": 1}})
    assert watched.look(0) == ["one", "other"]


def test_where_nobody_asks_no_fact_is_read() -> None:
    watched = Watched(InPlace(), plain={"budget": {"labels": 1}})
    assert watched.look(0) == []
    assert watched.reads == 0


def test_a_failure_is_told_and_what_was_known_stays(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(InPlace())
    watched.look(0)
    before = watched.watch.known["curve"]
    broken = PerformanceFacts(np.array([np.nan]), np.ones(1), np.full(1, UNLABELLED), np.ones(1))
    with caplog.at_level(logging.ERROR):
        watched.look(REST, broken)
    assert watched.watch.known["curve"] is before
    assert watched.failures == 1
    assert "could not be learned" in caplog.text


def test_a_failure_is_known_until_learning_has_succeeded_for_five_minutes() -> None:
    watched = Watched(InPlace())
    broken = PerformanceFacts(np.array([np.nan]), np.ones(1), np.full(1, UNLABELLED), np.ones(1))
    watched.look(0)
    assert watched.watch.failures(NOW) == {}
    watched.look(REST, broken)
    assert watched.watch.failures(NOW + 3_600) == {"curve": NOW + REST}
    watched.look(2 * REST)
    assert watched.watch.failures(NOW + 299 + REST) == {"curve": NOW + REST}
    assert watched.watch.failures(NOW + 300 + REST) == {}


def test_without_facts_it_rests_and_looks_again() -> None:
    watched = Watched(InPlace())
    watched.watch.look(list, lambda _: None, now=NOW)
    assert watched.look(1) == []
    assert watched.look(REST) == ["curve"]


def test_facts_that_cannot_be_read_do_not_end_a_round(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(InPlace())

    def broken(_: Sequence[PoolRecord]) -> PerformanceFacts:
        raise IndexError

    with caplog.at_level(logging.ERROR):
        watched.watch.look(list, broken, now=NOW)
    assert watched.failures == 1
    assert "cannot be read" in caplog.text
