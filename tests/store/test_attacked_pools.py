"""Who sends predictions cannot steer which are labelled, nor learn it from another model's requests."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats
from store_site import NOW, Record, Site, message, record

from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.records import decode_pool_record

ASK = {"policy": "random", "budget": {"labels": 400}, "max_in_flight": 400}


def models(*names: str) -> dict[str, Any]:
    model = {"classes": ["cat", "dog"], "score_bins": 2, "assessments": {"ask": ASK}}
    return dict.fromkeys(names, model)


def requested(site: Site, model: str = "m") -> list[str]:
    return [json.loads(text)["item_id"] for text in site.requests(model).read_outbox().values()]


def requested_items(site: Site, model: str = "m", *, rounds: int = 1) -> list[str]:
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
    both = set(requested_items(site, "m")) & set(requested_items(site, "n"))
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
        waiting = [json.loads(text) for text in site.requests("m").read_outbox().values()]
        site.requests("m").remove_published(list(site.requests("m").read_outbox()))
        answer_all(site, waiting)
    accuracy = monitor.refresh(NOW).groupings["all"]
    # Favourites are right and half of the traffic; all others are wrong.
    assert accuracy.accuracy.lower[0] < 0.5 < accuracy.accuracy.upper[0]


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
        site.labels("m").apply(0, labels, now=NOW)


YEAR = 365 * 86_400


@pytest.mark.parametrize("lateness_hours", [24, None])
@pytest.mark.parametrize(
    ("claimed", "recorded"),
    [
        ("2027-01-14T08:00:00Z", NOW),
        ("2026-01-15T08:00:00Z", NOW),
        (..., NOW - YEAR),
        ("2026-01-15T08:00:00Z", NOW - YEAR),
        (..., NOW + YEAR),
        ("2028-01-15T08:00:00Z", NOW + YEAR),
        (..., -0.001),
    ],
    ids=["a day", "a year", "record", "both", "record in future", "both in future", "record without a time"],
)
def test_items_that_are_dated_wrongly_are_drawn_as_often_as_others(
    connection: Connection, claimed: Any, recorded: float, lateness_hours: float | None
) -> None:
    # With so short a half-life, items that count as a day old would never be drawn.
    short = {"m": models("m")["m"] | {"draw_half_life_hours": 1}}
    site = Site(connection, short, bounds={"lateness_hours": lateness_hours})
    rng = np.random.default_rng(3)
    records = [record(0, message("first", time="2027-01-15T08:00:00Z"))]
    for n in range(1, 4_000):
        if rng.random() < 0.5:
            records.append(record(n, message(f"hidden-{n}", time=claimed), timestamp=int(1_000 * recorded)))
        else:
            records.append(record(n, message(n, time="2027-01-15T08:00:00Z")))
    site.take_in(records)
    drawn = requested_items(site)
    found = sum(item.startswith("hidden") for item in drawn)
    assert len(drawn) == 400
    assert stats.binomtest(found, len(drawn), 0.5).pvalue > 1e-3


def test_a_time_in_the_future_brings_no_later_draws(connection: Connection) -> None:
    short = {"m": models("m")["m"] | {"draw_half_life_hours": 1}}
    site = Site(connection, short)
    early, late = NOW - 48 * 3_600, NOW - 3_600
    records = [record(0, message("first"), timestamp=int(1_000 * early))]
    records += [
        record(n, message(f"future-{n}"), timestamp=int(1_000 * (NOW + YEAR))) for n in range(1, 1_000)
    ]
    records += [record(n, message(n), timestamp=int(1_000 * late)) for n in range(1_000, 2_000)]
    # It is read again as a whole, a day after the last one came.
    site.take_in(records)
    assert not [item for item in requested_items(site) if item.startswith("future")]


def test_an_item_that_was_drawn_and_is_sent_again_is_drawn_by_its_share_of_the_traffic(
    connection: Connection,
) -> None:
    ask = ASK | {"budget": {"labels": 800}}
    site = Site(connection, {"m": models("m")["m"] | {"assessments": {"ask": ask}}})
    step, monitor = site.prediction_step(), site.monitor("m")
    step.assign(0, 0)
    claimed, start = "2027-01-15T06:00:00Z", int(1_000 * NOW) - 100_000

    def send(first: int, items: list[str]) -> None:
        sent = [
            record(first + n, message(item, time=claimed), timestamp=start + first + n)
            for n, item in enumerate(items)
        ]
        step.process(0, sent, NOW)
        step.flush(0, NOW)
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        step.flush(0, NOW)

    send(0, [str(n) for n in range(4_000)])
    waiting = [json.loads(text) for text in site.requests("m").read_outbox().values()]
    assert len(waiting) == 400
    answer_all(site, waiting)
    seen = [one["item_id"] for one in waiting[:40]]
    send(4_000, [f"other-{n}" for n in range(360)] + seen)
    # All of 4,400 predictions are as likely to be among the 800 that are drawn.
    shared = site.reader("m").requests().tallies.get(("shared", "ask"), 0)
    assert stats.binomtest(shared, 40, 800 / 4_400).pvalue > 1e-3


def test_reserved_names_from_a_producer_are_groups_of_their_own(connection: Connection) -> None:
    grouping = {"region": {"by": "attribute", "attribute": "region"}}
    site = Site(connection, {"m": models("m")["m"] | {"groupings": grouping}}, bounds={"attribute_values": 4})
    values = ["__other__", "__missing__", "\\\\__other__"]
    records = [record(n, message(n, attributes={"region": value})) for n, value in enumerate(values)]
    site.take_in([*records, record(3, message(3)), record(4, message(4, attributes={"region": "x" * 65}))])
    groups = site.monitor("m").refresh(NOW).groupings["region"].groups
    assert set(groups) == {
        "\\__other__",
        "\\__missing__",
        "\\\\\\__other__",
        "__missing__",
        "__other__",
    }


def test_labels_of_reserved_names_count_in_the_groups_of_their_predictions(connection: Connection) -> None:
    grouping = {"region": {"by": "attribute", "attribute": "region"}}
    site = Site(connection, {"m": models("m")["m"] | {"groupings": grouping}})
    site.take_in([record(n, message(n, attributes={"region": "__missing__"})) for n in range(9)])
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    answer_all(site, [json.loads(text) for text in site.requests("m").read_outbox().values()])
    region = monitor.refresh(NOW).groupings["region"]
    assert dict(zip(region.groups, region.beliefs.labels_counted.tolist(), strict=True)) == {
        "\\__missing__": 9
    }


def test_attributes_that_no_grouping_uses_take_no_more_than_their_bound(connection: Connection) -> None:
    grouping = {"region": {"by": "attribute", "attribute": "zone"}}
    settings = {"m": models("m")["m"] | {"groupings": grouping}}
    site = Site(connection, settings, bounds={"further_attribute_bytes": 100})
    large = {f"a{n:02d}": "x" * 200 for n in range(40)} | {"zone": "north"}
    site.take_in([record(0, message("large", attributes=large))])
    site.take_in([record(1, message("small", attributes={"b": "1", "a": "2", "zone": "south"}))])
    client, key = connection.client, site.keys("m").items(0)
    kept = {one.item_id: one.attributes for one in map(decode_pool_record, client.hvals(key))}
    assert kept["small"] == {"a": "2", "b": "1", "zone": "south"}
    assert kept["large"].keys() <= large.keys()
    assert "zone" in kept["large"]
    assert sum(len(name) + len(value) for name, value in kept["large"].items()) <= 100 + len("zonenorth")
