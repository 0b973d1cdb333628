"""Mapped records on their way in, on a real Redis: they count as native ones, and dead letters keep them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from store_site import Site, assert_same_facts, message, record

from consumers.formats.native import decode_label
from service.store.connection import Connection

MODELS: dict[str, Any] = {
    "m": {
        "classes": ["cat", "dog", "owl"],
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"ask": {"budget": {"labels": 1_000}}},
    }
}
MAPPING = {
    "model": {"value": "m"},
    "item_id": "$.id",
    "predicted_class": {"path": "$.label", "names": {0: "cat", 1: "dog"}},
    "score": "$.p",
    "attributes": {"region": "$.where"},
}


def site(connection: Connection, name: str, **kafka: Any) -> Site:
    return Site(Connection(connection.client, f"{connection.prefix}{name}"), MODELS, kafka=kafka)


@pytest.fixture
def mapped(connection: Connection) -> Site:
    return site(connection, "mapped", mapping=MAPPING)


def theirs(number: int, **changes: Any) -> dict[str, Any]:
    return {"id": number, "label": number % 2, "p": 0.5, "where": "north"} | changes


def test_mapped_records_leave_the_facts_of_native_ones(connection: Connection, mapped: Site) -> None:
    native = site(connection, "native")
    names = ["cat", "dog"]
    native.take_in(
        [
            record(
                at, message(str(at), predicted_class=names[at % 2], score=0.5, attributes={"region": "north"})
            )
            for at in range(10)
        ]
    )
    mapped.take_in([record(at, theirs(at)) for at in range(10)])
    assert mapped.letters.kept == []
    assert_same_facts(mapped.facts("m"), native.facts("m"))


def test_a_dead_letter_has_the_record_as_it_was_so_it_can_be_replayed(mapped: Site) -> None:
    bad = [record(0, theirs(0, label=7)), record(1, theirs(1, id=None)), record(2, theirs(2, p=3.0))]
    mapped.take_in([*bad, record(3, theirs(3))])
    assert mapped.letters.reasons == ["unknown_class", "missing_field", "invalid_score"]
    assert [letter.value for letter in mapped.letters.kept] == [one.value for one in bad]
    assert [letter.index for letter in mapped.letters.kept] == [None] * 3
    fixed = json.loads(mapped.letters.kept[0].value) | {"label": 1}
    mapped.take_in([record(4, fixed)])
    assert mapped.reader("m").traffic().traffic.predictions == 2


def test_a_dead_letter_of_a_batch_of_events_has_the_event(mapped: Site) -> None:
    headers = [("content-type", b"application/cloudevents-batch+json")]
    events = [
        {"specversion": "1.0", "type": "com.example.scored", "data": theirs(at, label=label)}
        for at, label in enumerate([0, 7, 1])
    ]
    mapped.take_in([record(0, *events, headers=headers)])
    (letter,) = mapped.letters.kept
    assert (mapped.letters.reasons, letter.index) == (["unknown_class"], 1)
    assert json.loads(letter.value) == events[1]


def test_labels_are_decoded_by_their_mapping(connection: Connection) -> None:
    labels = site(
        connection,
        "labels",
        label_mapping={"model": {"value": "m"}, "item_id": "$.id", "request_id": "$.r", "true_class": "$.t"},
    )
    text = labels.label_step().checks.native_text(record(0, {"id": 5, "r": "request", "t": "dog"}))
    assert (decode_label(text).item_id, decode_label(text).true_class) == ("5", "dog")
