"""A budget that renews lasts its period: with other leaders, old snapshots, and suspected groups."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from store_site import NOW, Site, draws_of, issue, message, record

from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.monitor import ModelMonitor
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.requests import Payment, Renewal, Spending

DAY = 86_400.0
MIDNIGHT = NOW // DAY * DAY + DAY
LABELS = 100
BURST = 10
RESERVE = 20


def site_of(
    connection: Connection, *, predictions: int = 1_000, grouping: str = "region", **budget: float
) -> Site:
    asked: dict[str, Any] = {
        "policy": "random",
        "grouping": grouping,
        "budget": {"labels": LABELS, "per_days": 1, **budget},
        "max_in_flight": 1_000,
        "lease_seconds": 1e7,
    }
    model = {
        "classes": ["cat", "dog", "owl"],
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"ask": asked},
        "alerts": {"min_accuracy": 0.9, "min_labels": 5, "confidence": 0.8},
    }
    site = Site(connection, {"m": model})
    send(site, 0, predictions)
    return site


def send(site: Site, first: int, count: int, *, now: float = MIDNIGHT) -> None:
    """Predictions number `first` and following, half of each region, that arrive now."""
    regions = ["north", "south"]
    sent = [
        message(i, predicted_class="cat", score=0.95, attributes={"region": regions[i % 2]})
        for i in range(first, first + count)
    ]
    site.take_in(
        [record(first + i, each, timestamp=int(now * 1_000)) for i, each in enumerate(sent)], now=now
    )


def hours(site: Site, monitor: ModelMonitor, count: int) -> list[int]:
    """Requests that are issued in every hour of a day with even traffic."""
    issued = []
    for hour in range(count):
        send(site, 1_000 + 40 * hour, 40, now=MIDNIGHT + 3_600 * hour)
        issued.append(ask(monitor, MIDNIGHT + 3_600 * hour))
    return issued


def ask(monitor: ModelMonitor, now: float, *, epoch: int = 1) -> int:
    monitor.refresh(now)
    return monitor.ask(epoch=epoch, now=now).issued["ask"]


def state(monitor: ModelMonitor, now: float) -> AssessmentSnapshot:
    return monitor.refresh(now).assessments["ask"]


def answer(site: Site, now: float, *, weak: str = "") -> None:
    """Answer what is open: predictions are right, but a third of the weak region's are wrong."""
    store = site.requests("m")
    events = []
    for text in store.read_outbox().values():
        one = json.loads(text)
        opened = site.reader("m").requests().open[one["request_id"]]
        true_class = "dog" if opened.group == weak and int(one["item_id"]) % 3 == 0 else "cat"
        events.append(
            LabelEvent(one["request_id"], one["item_id"], "answer", true_class, "0" * 16, now, "ana")
        )
    site.labels("m").apply(0, events, now=now)
    store.remove_published(list(store.read_outbox()))


def test_the_first_round_takes_the_burst_and_later_ones_what_has_arrived(connection: Connection) -> None:
    monitor = site_of(connection).monitor("m")
    assert ask(monitor, MIDNIGHT) == BURST
    assert ask(monitor, MIDNIGHT + 5) == 0
    assert ask(monitor, MIDNIGHT + 3 * 3_600) == pytest.approx(3 * (LABELS - RESERVE - BURST) / 24, abs=1)


def test_a_day_of_rounds_leaves_the_reserve_alone(connection: Connection) -> None:
    site = site_of(connection, predictions=20)
    monitor = site.monitor("m")
    issued = hours(site, monitor, 24)
    assert sum(issued) == pytest.approx(LABELS - RESERVE, abs=4)
    assert max(issued[1:]) <= 5
    assert state(monitor, MIDNIGHT + DAY - 1).budget.reserve == RESERVE


def test_a_new_leader_goes_on_where_the_last_one_was(connection: Connection) -> None:
    site = site_of(connection)
    assert ask(site.monitor("m", 1), MIDNIGHT) == BURST
    assert ask(site.monitor("m", 2), MIDNIGHT + 5, epoch=2) == 0


def test_leaders_with_an_old_picture_spend_one_burst_alone(connection: Connection) -> None:
    site = site_of(connection)
    monitors = [site.monitor("m", seed) for seed in range(3)]
    for monitor in monitors:
        monitor.refresh(MIDNIGHT)
    assert [monitor.ask(epoch=1, now=MIDNIGHT).issued["ask"] for monitor in monitors] == [BURST, 0, 0]


def test_a_group_that_is_estimated_too_low_gets_the_reserve(connection: Connection) -> None:
    site = site_of(connection, burst=0.4)
    monitor = site.monitor("m")
    assert ask(monitor, MIDNIGHT) == 40
    answer(site, MIDNIGHT + 1, weak="south")
    assert state(monitor, MIDNIGHT + 2).budget.reserve == RESERVE
    monitor.ask(epoch=1, now=MIDNIGHT + 2)
    opened = site.reader("m").requests().open.values()
    assert [one.group for one in opened] == ["south"] * RESERVE
    after = state(monitor, MIDNIGHT + 3).budget
    assert (after.reserve, after.remaining) == (0, LABELS - 40 - RESERVE)


def test_while_no_group_is_suspected_the_reserve_is_not_touched(connection: Connection) -> None:
    site = site_of(connection, burst=1.0)
    monitor = site.monitor("m")
    assert ask(monitor, MIDNIGHT) == LABELS - RESERVE
    answer(site, MIDNIGHT + 1)
    assert ask(monitor, MIDNIGHT + 2) == 0
    assert not state(monitor, MIDNIGHT + 2).budget.is_exhausted


def test_what_another_leader_has_spent_meanwhile_stops_a_payment(connection: Connection) -> None:
    site = site_of(connection, predictions=4, grouping="all")
    draws = draws_of(site)
    first = Payment("ask|7", 100, Spending(7, 0, 2.0, NOW))
    assert issue(site, draws[:1], payment=first) == ["issued"]
    assert issue(site, draws[1:2], payment=first) == ["budget"]
    stored = site.reader("m").requests().buckets["ask"]
    assert Spending.parse(stored) == Spending(7, 0, 1.0, NOW)
    second = replace(first, spending=Spending.parse(stored), stored=stored, from_reserve=1)
    assert issue(site, draws[1:3], payment=second) == ["issued", "issued"]
    stored = site.reader("m").requests().buckets["ask"]
    assert Spending.parse(stored) == Spending(7, 1, 0.0, NOW)


def test_what_the_reserve_paid_is_the_reserves_again_once_it_expires_unanswered(
    connection: Connection,
) -> None:
    site = site_of(connection, predictions=4, grouping="all")
    payment = Payment("ask|7", 100, Spending(7, 0, 2.0, NOW), from_reserve=1)
    assert issue(site, draws_of(site)[:2], payment=payment) == ["issued", "issued"]
    store = site.requests("m")
    late = NOW + 100
    store.renew(epoch=1, renewals=[Renewal(due) for due in store.due_requests(now=late)], now=late)
    facts = site.reader("m").requests()
    assert facts.budget["ask|7"] == 0
    assert Spending.parse(facts.buckets["ask"]) == Spending(7, 0, 1.0, NOW)


def test_items_that_cost_nothing_take_no_token(connection: Connection) -> None:
    site = site_of(connection, predictions=2, grouping="all")
    draws = draws_of(site)
    payment = Payment("ask|7", 100, Spending(7, 0, 2.0, NOW))
    assert issue(site, [draws[0], draws[0]], payment=payment) == ["issued", "gone"]
    assert Spending.parse(site.reader("m").requests().buckets["ask"]).tokens == 1.0
