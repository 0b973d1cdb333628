"""What values become by a mapping: ids, numbers and times that are no plain ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from mapped_records import MAPPING, RECORD, good, refusal
from schema_values import avro

from consumers.formats.native import WirePrediction
from service.kafka.schema_registry import RegisteredSchema

SPREAD: dict[str, Any] = {
    "model": {"value": "sorter"},
    "item_id": "$.id",
    "probabilities": {"path": "$.p", "names": {"feline": "cat"}},
}
NAN, INFINITY = float("nan"), float("inf")


def written(item: Any, item_type: Any, *, score: float = 0.75) -> tuple[bytes, RegisteredSchema]:
    """A value of Avro, and its schema."""
    schema = {
        "type": "record",
        "name": "Scored",
        "fields": [{"name": "id", "type": item_type}, {"name": "p", "type": "double"}],
    }
    return avro(schema, {"id": item, "p": score}), RegisteredSchema("AVRO", json.dumps(schema), {})


AVRO = MAPPING | {"item_id": "$.id", "score": "$.p", "predicted_class": {"value": "cat"}}


def item_of(item: Any, item_type: Any) -> WirePrediction:
    value, schema = written(item, item_type)
    return good(value, AVRO, schemas={1: schema})


def test_a_time_of_hundreds_of_digits_is_refused() -> None:
    reason, detail = refusal(RECORD | {"ts": 10**400})
    assert reason == "invalid_field"
    assert detail.startswith("time: it is out of range")


@pytest.mark.parametrize("depth", range(900, 1000, 5))
@pytest.mark.parametrize("field", ["request", "out", "ts"])
def test_a_field_of_any_depth_is_refused_at_the_most(field: str, depth: int) -> None:
    nested: dict[str, Any] = {"request": '{"id": %s}', "out": '[{"label": %s, "p": 0.5}]', "ts": "%s"}
    deep = nested[field] % ("[" * depth + "]" * depth)
    others = ", ".join(f'"{name}": {json.dumps(RECORD[name])}' for name in RECORD if name != field)
    assert refusal(f'{{"{field}": {deep}, {others}}}'.encode())[0] in ("malformed_json", "invalid_field")


@pytest.mark.parametrize("score", [NAN, INFINITY, -INFINITY])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    value, schema = written("a", "string", score=score)
    assert refusal(value, AVRO, schemas={1: schema})[0] == "invalid_score"


@pytest.mark.parametrize("text", ["nan", "inf", "0_5", "1_0", "\u0660.\u0665", "1e999", "", "0x1", " 0.5"])
def test_text_is_a_number_only_as_json_writes_one(text: str) -> None:
    record = RECORD | {"out": [{"label": 1, "p": text}]}
    assert refusal(record)[0] in ("invalid_field", "invalid_score")


@pytest.mark.parametrize("text", ["0.75", "75e-2", "+0.75"])
def test_a_number_may_be_text(text: str) -> None:
    assert good(RECORD | {"out": [{"label": 1, "p": text}]}).score == 0.75


@pytest.mark.parametrize(
    ("number", "scale", "item"),
    [
        ("17", 2, "17"),
        ("17.50", 2, "17.5"),
        ("1700", 0, "1700"),
        ("0.0000001", 10, "0.0000001"),
        ("-0.00", 2, "0"),
    ],
)
def test_an_id_that_is_a_decimal_has_no_digits_but_its_own(number: str, scale: int, item: str) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": scale}
    assert item_of(Decimal(number), decimal).item_id == item


@pytest.mark.parametrize("number", [NAN, INFINITY])
def test_an_id_is_a_finite_number(number: float) -> None:
    value, schema = written(number, "double")
    assert refusal(value, AVRO, schemas={1: schema}) == (
        "invalid_field",
        "item_id: the number is not finite",
    )


def test_a_number_that_is_not_finite_is_no_attribute() -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "p", "type": "double"}]
    floats = {"type": "map", "values": "double"}
    record = {"type": "record", "name": "Scored", "fields": [*fields, {"name": "meta", "type": floats}]}
    found = good(
        avro(record, {"id": "a", "p": 0.5, "meta": {"x": NAN, "y": 2.0}}),
        AVRO | {"attributes": {}, "all_attributes": "$.meta"},
        schemas={1: RegisteredSchema("AVRO", json.dumps(record), {})},
    )
    assert json.loads(bytes(found.attributes)) == {"y": "2"}


def test_two_probabilities_of_one_class_are_refused() -> None:
    record = {"id": "a", "p": {"cat": 0.9, "feline": 0.25, "dog": 0.25, "owl": 0.5}}
    assert refusal(record, SPREAD) == (
        "invalid_probabilities",
        "probabilities: several names stand for one class",
    )
