"""Layouts: other classes begin a new one, and one is removed without touching anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store_site import Site, message, record

from service.store.connection import Connection
from service.store.layouts import LayoutStore, StoredLayout

CLASSES = ["cat", "dog", "owl"]
REGION = {"region": {"by": "attribute", "attribute": "region"}}
DEVICE = {"device": {"by": "attribute", "attribute": "device"}}
ASK = {"ask": {"budget": {"labels": 1_000}}}
LEGS = {"legs": {"by": "superclass", "superclasses": {"four": ["cat", "dog"], "two": ["owl"]}}}
CLASS = {"class": {"by": "predicted_class"}}


def taken_in(
    connection: Connection,
    groupings: dict[str, Any],
    count: int,
    *,
    model: str = "m",
    classes: Sequence[str] = CLASSES,
) -> Site:
    """A deployment with one model, which has taken in so many predictions of two partitions each."""
    site = Site(connection, {model: {"classes": [*classes], "groupings": groupings, "assessments": ASK}})
    attributes = {"region": "north", "device": "a"}
    for partition in (0, 1):
        items = [message(f"{partition}-{n}", model=model, attributes=attributes) for n in range(count)]
        site.take_in([record(offset, item) for offset, item in enumerate(items)], partition)
    return site


def layouts(connection: Connection) -> list[StoredLayout]:
    return LayoutStore(connection).all()


def test_a_layout_shows_what_its_traffic_counts_and_its_pool_holds(connection: Connection) -> None:
    site = taken_in(connection, REGION, 5)
    (stored,) = layouts(connection)
    assert (stored.model, stored.layout) == ("m", site.keys("m").layout)
    assert (stored.partitions, stored.predictions, stored.pooled) == ((0, 1), 10, 10)


def test_other_classes_begin_a_layout_and_leave_the_old_one(connection: Connection) -> None:
    taken_in(connection, REGION, 5)
    taken_in(connection, REGION, 3, classes=[*CLASSES, "emu"])
    assert sorted(stored.predictions for stored in layouts(connection)) == [6, 10]


def test_groupings_that_are_added_or_taken_away_keep_the_layout(connection: Connection) -> None:
    taken_in(connection, REGION | CLASS, 5)
    taken_in(connection, DEVICE | LEGS, 8)
    assert [stored.predictions for stored in layouts(connection)] == [16]


def test_a_layout_is_removed_with_all_its_keys_and_no_other_key(connection: Connection) -> None:
    site = taken_in(connection, REGION, 5)
    connection.client.hset(site.keys("m").drift, "pins", b"[]")
    before = set(connection.client.scan_iter(match=f"{connection.prefix}:*"))
    new = taken_in(connection, DEVICE, 3, classes=[*CLASSES, "emu"])
    new.labels("m").apply(0, [], now=0.0)  # what labels leave is of no layout
    everything = set(connection.client.scan_iter(match=f"{connection.prefix}:*"))
    old = next(stored for stored in layouts(connection) if stored.layout != new.keys("m").layout)
    LayoutStore(connection).remove([old])
    left = set(connection.client.scan_iter(match=f"{connection.prefix}:*"))
    assert left == everything - before
    assert new.keys("m").labels(0).encode() in left


def test_layouts_of_several_models_are_removed_together(connection: Connection) -> None:
    for model in ("m", "another", "retired"):
        taken_in(connection, REGION, 3, model=model)
    LayoutStore(connection).remove(layouts(connection))
    assert layouts(connection) == []


def test_layouts_of_a_model_that_is_not_configured_any_more_are_reported(connection: Connection) -> None:
    taken_in(connection, REGION, 5, model="retired")
    taken_in(connection, REGION, 3)
    assert [(stored.model, stored.predictions) for stored in layouts(connection)] == [
        ("m", 6),
        ("retired", 10),
    ]


def test_layouts_of_another_prefix_are_not_reported(connection: Connection) -> None:
    taken_in(Connection(connection.client, f"{connection.prefix}-other"), REGION, 5)
    assert layouts(connection) == []


def test_a_layout_in_use_that_is_removed_is_made_again_from_the_topic(connection: Connection) -> None:
    site = taken_in(connection, REGION, 5)
    facts = site.facts("m")
    LayoutStore(connection).remove(layouts(connection))
    assert layouts(connection) == []
    taken_in(connection, REGION, 5)
    assert site.facts("m") == facts
