"""Who sends predictions cannot steer which are labelled, nor learn it from another model's requests."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats
from store_site import NOW, Record, Site, message, record

from service.store.connection import Connection
from service.store.requests import LabelEvent

ASK = {"policy": "random", "budget": {"labels": 400}, "max_in_flight": 400}


def models(*names: str) -> dict[str, Any]:
    model = {"classes": ["cat", "dog"], "score_bins": 2, "assessments": {"ask": ASK}}
    return dict.fromkeys(names, model)


def requested(site: Site, model: str = "m") -> list[str]:
    return [json.loads(text)["item_id"] for text in site.requests(model).outbox().values()]


def asked(site: Site, model: str = "m", *, rounds: int = 1) -> list[str]:
    """Items that have been asked for after some rounds, without answers."""
    monitor = site.monitor(model)
    for _ in range(rounds):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
    return requested(site, model)


def test_requests_of_one_model_do_not_show_which_items_of_another_are_drawn(connection: Connection) -> None:
    site = Site(connection, models("m", "n"))
    fields = [message(i, model=model) for i in range(2_000) for model in ("m", "n")]
    site.take_in([record(0, *fields)])
    both = set(asked(site, "m")) & set(asked(site, "n"))
    # 400 of 2,000 twice, independently: hypergeometric.
    assert stats.hypergeom(2_000, 400, 400).cdf(len(both)) == pytest.approx(0.5, abs=0.499)


def test_an_id_that_repeats_is_drawn_as_often_as_its_share_of_the_traffic(connection: Connection) -> None:
    site = Site(connection, models("m"))
    rng = np.random.default_rng(1)
    records: list[Record] = []
    for n in range(2_000):
        favourite = bool(rng.random() < 0.5)
        item = f"favourite-{n % 3}" if favourite else f"{n}"
        records.append(record(n, message(item, score=0.9), timestamp=int(1_000 * (NOW - 2_000 + n))))
    site.take_in(records)
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    tallies = site.reader("m").requests().tallies
    repeated = tallies["shared", "ask"] + 3
    assert len([item for item in requested(site) if item.startswith("favourite")]) == 3
    assert stats.binomtest(repeated, 400, 0.5).pvalue > 1e-3


def test_an_id_that_repeats_with_good_predictions_does_not_hide_bad_ones(connection: Connection) -> None:
    site = Site(connection, models("m"))
    records = [
        record(
            n,
            message(f"favourite-{n % 6}" if n % 2 else f"{n}", score=0.9),
            timestamp=int(1_000 * (NOW - 2_000 + n)),
        )
        for n in range(2_000)
    ]
    site.take_in(records)
    monitor = site.monitor("m")
    for _ in range(3):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        waiting = [json.loads(text) for text in site.requests("m").outbox().values()]
        site.requests("m").published(list(site.requests("m").outbox()))
        answer_all(site, waiting)
    accuracy = monitor.refresh(NOW).groupings["all"]
    # Favourites are right and half of the traffic; all others are wrong.
    assert accuracy.accuracy_lower[0] < 0.5 < accuracy.accuracy_upper[0]


def answer_all(site: Site, waiting: list[dict[str, Any]]) -> None:
    labels = [
        LabelEvent(
            one["request_id"],
            one["item_id"],
            "answer",
            "cat" if one["item_id"].startswith("favourite") else "dog",
            f"{n:016x}",
            NOW,
            "ana",
        )
        for n, one in enumerate(waiting)
    ]
    if labels:
        site.requests("m").apply(0, labels, now=NOW)


def test_items_that_are_dated_back_are_drawn_as_often_as_the_bound_allows(connection: Connection) -> None:
    site = Site(connection, models("m"), bounds={"lateness_hours": 24})
    rng = np.random.default_rng(3)
    records = []
    for n in range(4_000):
        hidden = bool(rng.random() < 0.5)
        claimed = "2026-01-15T08:00:00Z" if hidden else "2027-01-15T08:00:00Z"
        records.append(record(n, message(f"hidden-{n}" if hidden else f"{n}", time=claimed)))
    site.take_in(records)
    drawn = asked(site)
    # Of two items the one that is dated back by a day weighs 2^(-1/7) of the other; a year, nothing.
    weight = 2 ** (-1 / 7)
    found = sum(item.startswith("hidden") for item in drawn)
    assert stats.binomtest(found, len(drawn), weight / (1 + weight)).pvalue > 1e-3
