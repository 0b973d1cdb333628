"""Counts of earlier times in Redis: what the leader keeps, every process finds the same problems from."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pytest
from store_site import NOW, Site, message, record

from service.domain.errors import FenceRefused
from service.monitoring.problem import Problem
from service.monitoring.problems import problems
from service.store.connection import Connection
from service.store.count_histories import CountHistoryStore, CountsAt
from service.store.labels import LabelEvent

HOUR, DAY = 3_600.0, 86_400.0
ASKS: dict[str, Any] = {
    "grouping": "all",
    "policy": "random",
    "budget": {"labels": 10_000},
    "max_in_flight": 5,
    "lease_seconds": HOUR,
    "max_attempts": 1,
}
MODELS = {
    "m": {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "label_half_life_days": 1,
        "alerts": {"min_labels": 5},
        "assessments": {"ask": ASKS},
        # Only counts are looked at. Intervals that allow for what nobody answers take thrice as long, and a
        # prior that is learned twice as long.
        "unanswered": {"expired": "at_random"},
        "prior": "informed_jeffreys",
    }
}
COUNTS = CountsAt(NOW, 7, {"past": 1}, 5, {"ask": 2}, {"ask": 1}, {}, NOW - 1, None)


def predictions(site: Site, begin: int, count: int, *, at: float = NOW) -> None:
    when = int(1_000 * at)
    site.take_in([record(i, message(i), timestamp=when) for i in range(begin, begin + count)])


def live(site: Site, begin: float, hours: float, *, every: float = HOUR) -> None:
    """A leader asks, and nobody answers."""
    monitor = site.monitor("m")
    for now in np.arange(begin, begin + hours * HOUR, every).tolist():
        monitor.refresh(now)
        monitor.ask(epoch=1, now=now)


def known_to_others(site: Site, now: float) -> dict[str, Problem]:
    """The problems that a process finds which has just started, by kind."""
    taken = site.monitor("m", seed=8).refresh(now)
    return {one.kind: one for one in problems(taken, now)}


def test_what_is_kept_is_read_by_every_process(connection: Connection) -> None:
    keys = Site(connection, MODELS).keys("m")
    leader, replica = (CountHistoryStore(connection, keys) for _ in range(2))
    assert replica.history() == ()
    for history in ((COUNTS,), (COUNTS, COUNTS)):
        leader.keep(history, epoch=3)
        assert replica.history() == leader.history() == history
    with pytest.raises(FenceRefused):
        replica.keep((), epoch=2)


def test_requests_that_expire_unanswered_are_known_to_a_process_that_has_just_started(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS)
    predictions(site, 0, 400)
    live(site, NOW, 26)
    found = known_to_others(site, NOW + 26 * HOUR)
    assert found["requests_unanswered"].subject == "ask"
    assert (found["requests_unanswered"].amount or 0) >= 20
    assert found["labels_stale"].alerts == ("CredenceLabelsStale",)


def test_on_its_first_day_a_model_has_no_requests_that_nobody_answered(connection: Connection) -> None:
    site = Site(connection, MODELS)
    predictions(site, 0, 400)
    live(site, NOW, 20)
    found = known_to_others(site, NOW + 20 * HOUR)
    assert not {"requests_unanswered", "labels_stale"} & found.keys()


def test_draws_that_find_no_item_are_known_to_a_process_that_has_just_started(connection: Connection) -> None:
    asks = ASKS | {"max_in_flight": 50, "max_attempts": 100}
    site = Site(connection, {"m": MODELS["m"] | {"assessments": {"ask": asks}}})
    monitor = site.monitor("m")
    for minute in range(50):
        predictions(site, minute, 1)
        monitor.refresh(NOW + 60 * minute)
        monitor.ask(epoch=1, now=NOW + 60 * minute)
    assert known_to_others(site, NOW + 50 * 60)["pool_exhausted"].subject == "ask"


def test_clipped_times_are_counted_once_and_known_to_every_process(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds={"lateness_hours": 1})
    late = {"time": dt.datetime.fromtimestamp(NOW - 2 * DAY, dt.UTC).isoformat()}
    predictions(site, 0, 100)
    live(site, NOW - 1_500, 0.4, every=300)
    site.take_in([record(100 + i, message(100 + i, **late)) for i in range(20)])
    site.take_in([record(100 + i, message(100 + i, **late)) for i in range(20)])
    assert site.reader("m").traffic().clipped == {"past": 20}
    clipped = known_to_others(site, NOW)["times_clipped"]
    assert (clipped.subject, clipped.amount) == ("past", 1.0)


def test_an_accuracy_that_fell_within_a_week_is_known_to_a_process_that_has_just_started(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS)
    for week, right in ((0, True), (1, False)):
        begun = NOW + 8 * DAY * (week - 1)
        predictions(site, 400 * week, 400, at=begun)
        monitor = site.monitor("m")
        for turn in range(12):
            now = begun + 60 * turn
            monitor.refresh(now)
            monitor.ask(epoch=1, now=now)
            answer(site, right=right, now=now)
    taken = site.monitor("m", seed=8).refresh(NOW + HOUR)
    assert "CredenceModelAccuracyDropped" in {alert for one in problems(taken, NOW) for alert in one.alerts}


def answer(site: Site, *, right: bool, now: float) -> None:
    """Answer every open request; all items were called cats."""
    opened = site.reader("m").requests().open
    waiting = [json.loads(text) for text in site.requests("m").read_outbox().values()]
    asked = {one["request_id"]: one["item_id"] for one in waiting if one["request_id"] in opened}
    true_class = "cat" if right else "dog"
    events = [
        LabelEvent(request, item, "answer", true_class, f"{int(item):016x}", now, "ana")
        for request, item in asked.items()
    ]
    site.labels("m").apply(0, events, now=now)
