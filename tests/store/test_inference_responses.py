"""Inference responses on their way in, on a real Redis: each row counts once, a bad one can be sent again."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from store_site import NOW, Site, assert_same_facts, message, record

from service.domain.errors import TooManyBadMessages
from service.store.connection import Connection
from service.store.records import PoolRecord, decode_pool_record

ASK = {"ask": {"budget": {"labels": 1_000}}}
MODELS: dict[str, Any] = {
    "m": {
        "classes": ["cat", "dog", "owl"],
        "score_bins": 4,
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": ASK,
    },
    "n": {
        "classes": ["0", "1"],
        "tensors": {"probabilities": "predict_proba", "predicted_class": "predict"},
        "assessments": ASK,
    },
}
ROWS = [
    message("a", attributes={"region": "north"}),
    message("b", predicted_class="dog", score=0.125, attributes={"region": "south"}),
    message("c", predicted_class="owl", attributes={"region": "north"}),
]


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS)


def tensor(name: str, data: list[Any], datatype: str = "BYTES") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}


def response(rows: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """A response that says what these native messages say."""
    outputs = [tensor(name, [row[name] for row in rows]) for name in ("item_id", "predicted_class")]
    outputs.append(tensor("score", [row["score"] for row in rows], "FP64"))
    outputs.append(tensor("attributes.region", [row["attributes"]["region"] for row in rows]))
    return {"model_name": "m", "id": "r", "outputs": outputs} | fields


def pooled(site: Site, model: str = "m") -> dict[str, PoolRecord]:
    values = site.connection.client.hvals(site.keys(model).items(0))
    return {kept.item_id: kept for kept in map(decode_pool_record, values)}


def test_a_response_leaves_the_facts_that_its_rows_leave_as_native_messages(connection: Connection) -> None:
    native, packed = (Site(Connection(connection.client, f"{connection.prefix}{i}"), MODELS) for i in "12")
    native.take_in([record(0, *ROWS)])
    packed.take_in([record(0, response(ROWS))])
    assert packed.letters.kept == []
    assert_same_facts(packed.facts("m"), native.facts("m"))


def test_the_rows_of_a_response_that_is_delivered_again_count_once(site: Site) -> None:
    for _ in range(2):
        site.take_in([record(0, response(ROWS)), record(1, message("d"))])
    assert site.reader("m").traffic().traffic.predictions == 4
    assert pooled(site).keys() == {"a", "b", "c", "d"}


def test_tensors_have_the_names_that_the_model_s_settings_give_them(site: Site) -> None:
    outputs = [
        {"name": "predict_proba", "datatype": "FP64", "shape": [2, 2], "data": [0.25, 0.75, 0.5, 0.5]},
        {"name": "predict", "datatype": "INT64", "shape": [2, 1], "data": [1, 0]},
    ]
    site.take_in([record(0, {"model_name": "n", "id": "r", "outputs": outputs})])
    assert site.letters.kept == []
    said = {item: (kept.predicted_class, kept.score) for item, kept in pooled(site, "n").items()}
    assert said == {"r/0": ("1", 0.75), "r/1": ("0", 0.5)}


def test_a_position_is_no_class_of_a_label_set_that_has_names(site: Site) -> None:
    outputs = response(ROWS)["outputs"]
    outputs[1] = tensor("predicted_class", [0, 1, 2], "INT64")
    site.take_in([record(0, response(ROWS, outputs=outputs))])
    assert site.letters.reasons == ["unknown_class"] * 3
    assert pooled(site) == {}


def test_a_response_of_a_model_that_is_not_configured_is_one_dead_letter(site: Site) -> None:
    refused = record(0, response(ROWS, model_name="z"), key=b"k")
    site.take_in([refused, record(1, message("d"))])
    (letter,) = site.letters.kept
    assert (letter.error.reason, letter.index, letter.value) == ("unknown_model", None, refused.value)
    assert pooled(site).keys() == {"d"}


BAD_ROWS = [ROWS[0], ROWS[1] | {"score": 2.0}, ROWS[2] | {"predicted_class": 5}, ROWS[0] | {"item_id": "d"}]


def test_every_bad_row_is_a_dead_letter_of_its_own(site: Site) -> None:
    site.take_in([record(0, message("before")), record(1, response(BAD_ROWS), key=b"k")])
    assert pooled(site).keys() == {"before", "a", "d"}
    assert [
        (letter.record.offset, letter.index, letter.record.key, letter.error.reason)
        for letter in site.letters.kept
    ] == [
        (1, 1, b"k", "invalid_score"),
        (1, 2, b"k", "invalid_field"),
    ]
    assert [json.loads(letter.value) for letter in site.letters.kept] == BAD_ROWS[1:3]


def test_the_dead_letter_of_a_row_can_be_fixed_and_redriven_by_itself(site: Site) -> None:
    site.take_in([record(0, response(BAD_ROWS))])
    score, name = (json.loads(letter.value) for letter in site.letters.kept)
    site.take_in([record(1, score | {"score": 0.125}), record(2, name | {"predicted_class": "owl"})])
    assert len(site.letters.kept) == 2
    assert pooled(site).keys() == {"a", "b", "c", "d"}
    assert site.reader("m").traffic().traffic.predictions == 4


def test_rows_count_as_of_the_time_that_their_event_tells(site: Site) -> None:
    headers = [
        ("ce_type", b"org.kubeflow.serving.inference.response"),
        ("ce_specversion", b"1.0"),
        ("ce_time", b"2026-01-31T12:00:00Z"),
    ]
    site.take_in([record(0, response(ROWS), headers=headers)])
    assert {kept.time for kept in pooled(site).values()} == {1_769_860_800.0}


def test_bad_rows_count_one_by_one_towards_the_bad_message_limit(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=10)
    step = site.prediction_step()
    step.assign(0, 0)
    rows = [ROWS[0] | {"item_id": str(i), "score": 2.0 if i < 6 else 0.5} for i in range(10)]
    with pytest.raises(TooManyBadMessages, match="6 of the last 10"):
        step.process(0, [record(0, response(rows))], NOW)
    assert site.letters.kept == []


def test_very_many_bad_rows_are_written_out_in_linear_time(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=10**6)
    rows = [ROWS[0] | {"item_id": str(i), "score": "high"} for i in range(5_000)]
    began = time.process_time()
    site.take_in([record(0, response(rows))])
    assert [letter.index for letter in site.letters.kept] == list(range(5_000))
    assert json.loads(site.letters.kept[-1].value) == rows[-1]
    assert time.process_time() - began < 5, "writing all rows out again for every one takes much longer"
