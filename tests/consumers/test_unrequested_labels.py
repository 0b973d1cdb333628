"""Labels without a request: which are good, which are dead letters, and what is only counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from join_site import BEGIN, CLOSED_AT, SAMPLED, JoinSite, iso
from store_site import Record, Site

from service.domain.label_signatures import sign
from service.store.connection import Connection

KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
LABEL = {"model": "m", "item_id": "a", "true_class": "cat"}
OWN = {"predicted_class": "cat", "score": 0.8, "time": iso(BEGIN)}


def send(site: Site, *labels: dict[str, Any], headers: Any = ()) -> list[str]:
    """Labels in one batch; why some are dead letters."""
    step = site.label_step()
    step.assign(0, 0)
    records = [
        Record(n, json.dumps(label).encode(), headers=headers, timestamp=int(BEGIN * 1000))
        for n, label in enumerate(labels)
    ]
    step.process(0, records, BEGIN + 60)
    step.flush(0, BEGIN + 60)
    return site.letters.reasons


def test_a_model_that_is_not_configured_for_them_refuses_labels_without_a_request(
    connection: Connection,
) -> None:
    site = Site(connection, {"m": {"classes": ["cat", "dog"]}})
    assert send(site, LABEL) == ["missing_field"]
    (letter,) = site.letters.kept
    assert "unrequested_labels" in letter.error.detail


def test_a_label_that_cannot_be_joined_is_no_dead_letter(connection: Connection) -> None:
    site = JoinSite(connection, join_items=100)
    assert send(site, *(LABEL | {"item_id": str(number)} for number in range(50))) == []
    assert site.results == {"early": 50, "no_prediction": 40}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"true_class": "bird"}, "unknown_class"),
        ({"kind": "skip", "true_class": None}, "missing_field"),
        ({"prediction": OWN | {"predicted_class": "bird"}}, "unknown_class"),
        ({"prediction": OWN | {"score": 1.5}}, "invalid_field"),
        ({"probability": 0}, "invalid_field"),
        ({"item_id": None}, "invalid_field"),
    ],
)
def test_a_malformed_label_is_a_dead_letter(
    connection: Connection, change: dict[str, Any], reason: str
) -> None:
    site = JoinSite(connection)
    assert send(site, LABEL | change) == [reason]
    assert site.results == {}


def test_a_bad_label_does_not_keep_good_ones_from_joining(connection: Connection) -> None:
    site = JoinSite(connection)
    site.predict("ab")
    assert send(site, LABEL, LABEL | {"true_class": "bird"}, LABEL | {"item_id": "b"}) == ["unknown_class"]
    assert site.results == {"joined": 2}


def test_labels_of_requests_and_others_come_in_one_batch(connection: Connection) -> None:
    site = JoinSite(connection)
    site.predict("a")
    assert send(site, LABEL | {"request_id": "r"}, LABEL) == ["unknown_request"]
    assert site.results == {"joined": 1}


@pytest.mark.parametrize(
    ("probability", "reasons"),
    [(None, ["missing_field"]), (0.05, ["invalid_field"]), (0.1, []), (1, [])],
)
def test_a_label_of_a_sampled_item_states_a_probability_that_is_not_below_the_rate(
    connection: Connection, probability: float | None, reasons: list[str]
) -> None:
    site = JoinSite(connection, SAMPLED)
    assert send(site, LABEL | {"probability": probability}) == reasons


def test_a_retraction_of_a_sampled_item_needs_no_probability(connection: Connection) -> None:
    site = JoinSite(connection, SAMPLED)
    retraction = {"model": "m", "item_id": "a", "kind": "retraction"}
    assert send(site, retraction) == []


def signed(vendor: str, key: str, label: dict[str, Any]) -> list[tuple[str, bytes]]:
    return sign(key.encode(), vendor, json.dumps(label).encode())


def vendors_site(connection: Connection) -> JoinSite:
    return JoinSite(
        connection, vendors={name: {"label_keys": [key], "models": ["m"]} for name, key in KEYS.items()}
    )


TIMED = LABEL | {"time": iso(BEGIN + 10)}


def test_if_labels_are_signed_one_without_a_request_is_signed_by_any_configured_key(
    connection: Connection,
) -> None:
    site = vendors_site(connection)
    for name, key in KEYS.items():
        assert send(site, TIMED, headers=signed(name, key, TIMED)) == []
    assert site.results == {"early": 1, "unchanged": 1}


def test_if_labels_are_signed_one_without_a_request_and_signature_is_refused(connection: Connection) -> None:
    assert send(vendors_site(connection), TIMED) == ["unsigned_label"]


def test_if_labels_are_signed_one_with_another_key_is_refused(connection: Connection) -> None:
    headers = signed("acme", "c" * 32, TIMED)
    assert send(vendors_site(connection), TIMED, headers=headers) == ["bad_signature"]


def test_a_signed_label_without_a_request_needs_a_time(connection: Connection) -> None:
    assert send(vendors_site(connection), LABEL, headers=signed("acme", KEYS["acme"], LABEL)) == [
        "missing_field"
    ]


def test_an_outcome_says_who_gave_the_label_and_who_signed_it(connection: Connection) -> None:
    site = vendors_site(connection)
    site.predict("a")
    label = TIMED | {"annotator": "ana"}
    send(site, label, headers=signed("acme", KEYS["acme"], label))
    site.close(CLOSED_AT)
    assert [(e.label.annotator, e.label.vendor) for e in site.entries()] == [("ana", "acme")]


def test_the_attributes_of_a_prediction_in_a_label_are_bounded(connection: Connection) -> None:
    site = JoinSite(connection, attribute_length=8, further_attribute_bytes=20)
    attributes = {"a": "short", "b": "much too long", "c": "x" * 7, "d": "x" * 7}
    send(site, LABEL | {"prediction": OWN | {"attributes": attributes}})
    site.close(CLOSED_AT)
    (entry,) = site.entries()
    assert entry.fact.attributes == {"a": "short", "b": "__other__"}


def test_the_outcome_of_a_label_from_the_future_is_of_now(connection: Connection) -> None:
    site = JoinSite(connection)
    site.predict("a")
    assert site.label("a", time=BEGIN + 10**6, at=BEGIN + 70) == "joined"
    site.close(CLOSED_AT)
    assert [entry.label.time for entry in site.entries()] == [BEGIN + 70]


def test_a_label_from_the_future_that_is_read_again_does_not_undo_a_later_one(
    connection: Connection,
) -> None:
    site = JoinSite(connection)
    site.predict("a")
    assert send(site, LABEL | {"time": iso(BEGIN + 10**6)}) == []
    site.label("a", "dog", kind="correction", at=BEGIN + 1_000)
    step = site.label_step()
    step.assign(0, 0)
    again = Record(0, json.dumps(LABEL | {"time": iso(BEGIN + 10**6)}).encode(), timestamp=int(BEGIN * 1000))
    step.process(0, [again], BEGIN + 2_000)
    site.close(CLOSED_AT)
    assert site.outcomes() == {"a": "dog"}
