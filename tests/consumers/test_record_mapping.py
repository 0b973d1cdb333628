"""Records of another shape, read by a mapping: existing topics need no change of their producer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from mapped_records import CLASSES, MAPPING, RECORD, Record, good, refusal
from schema_values import avro, framed, proto

from consumers.formats.mapping import RecordMapper
from consumers.formats.messages import TopicMessages
from consumers.formats.native import decode_label
from service.config.mapping import LabelMapping
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema


def test_fields_are_found_by_paths_headers_and_constants() -> None:
    found = good(RECORD, headers=(("host", b"gate"),))
    assert (found.model, found.item_id, found.predicted_class, found.score) == ("sorter", "17", "dog", 0.75)
    assert found.time == datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
    assert json.loads(bytes(found.attributes)) == {"region": "north", "host": "gate"}


def test_the_key_of_a_record_may_be_the_item() -> None:
    assert good(RECORD, MAPPING | {"item_id": "$key"}, key=b"item-7").item_id == "item-7"


def test_of_several_paths_the_first_that_leads_to_something_counts() -> None:
    mapping = MAPPING | {"item_id": ["$.missing", "$.request.none", "$.request.id"]}
    assert good(RECORD, mapping).item_id == "17"


def test_a_required_path_that_leads_nowhere_is_named() -> None:
    record = RECORD | {"request": {}}
    assert refusal(record) == ("missing_field", "item_id: there is nothing at $.request.id")


@pytest.mark.parametrize(
    "record", [{}, {"out": {}}, {"out": []}, {"out": "text"}, {"out": [None]}, {"out": [3]}]
)
def test_a_path_through_something_else_leads_nowhere(record: dict[str, Any]) -> None:
    assert refusal({"request": {"id": "a"}} | record)[0] == "missing_field"


def test_a_field_may_be_required_or_not() -> None:
    without_time = {key: value for key, value in RECORD.items() if key != "ts"}
    assert good(without_time).time is None
    required = MAPPING | {"time": {"path": "$.ts", "unit": "ms", "required": True}}
    assert refusal(without_time, required) == ("missing_field", "time: there is nothing at $.ts")
    region = MAPPING | {"attributes": {"region": {"path": "$.nowhere", "required": True}}}
    assert refusal(RECORD, region) == ("missing_field", "attributes.region: there is nothing at $.nowhere")


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("s", 1_769_860_800),
        ("s", 1_769_860_800.0),
        ("s", "1769860800"),
        ("ms", 1_769_860_800_000),
        ("us", 1_769_860_800_000_000),
        ("ns", 1_769_860_800_000_000_000),
        (None, "2026-01-31T12:00:00Z"),
    ],
)
def test_times_are_numbers_of_a_unit_or_text(unit: str | None, value: Any) -> None:
    mapping = MAPPING | {"time": {"path": "$.ts", "unit": unit}}
    assert good(RECORD | {"ts": value}, mapping).time == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "value"), [("s", 1e300), ("s", True), ("s", "yesterday"), ("s", []), (None, 5), (None, "5")]
)
def test_a_time_that_is_none_is_refused(unit: str | None, value: Any) -> None:
    mapping = MAPPING | {"time": {"path": "$.ts", "unit": unit}}
    reason, detail = refusal(RECORD | {"ts": value}, mapping)
    assert reason == "invalid_field"
    assert detail.startswith("time")


SPREAD = {
    "model": "$.model",
    "item_id": "$.id",
    "probabilities": {"path": "$.p", "names": {"feline": "cat"}},
}


def test_probabilities_are_a_list_or_named() -> None:
    record = {"model": "sorter", "id": "a"}
    assert good(record | {"p": [0.25, 0.25, 0.5]}, SPREAD).probabilities == [0.25, 0.25, 0.5]
    named = {"owl": 0.5, "feline": 0.125, "dog": 0.375}
    assert good(record | {"p": named}, SPREAD).probabilities == [0.125, 0.375, 0.5]


@pytest.mark.parametrize("named", [{}, {"cat": 1.0}, {"cat": 0.5, "dog": 0.5, "owl": 0.0, "cow": 0.0}])
def test_named_probabilities_are_of_the_model_s_classes(named: dict[str, float]) -> None:
    assert refusal({"model": "sorter", "id": "a", "p": named}, SPREAD)[0] == "invalid_probabilities"


def test_named_probabilities_of_an_unknown_model_are_refused() -> None:
    assert refusal({"model": "other", "id": "a", "p": {"cat": 1.0}}, SPREAD)[0] == "unknown_model"
    optional = SPREAD | {"model": {"path": "$.model", "required": False}}
    assert refusal({"id": "a", "p": {"cat": 1.0}}, optional)[0] == "unknown_model"


def test_an_object_may_hold_all_attributes() -> None:
    mapping = MAPPING | {"attributes": {"id": "$.request.id"}, "all_attributes": "$.request.meta"}
    meta = {"region": "north", "floor": 3, "indoor": True, "nested": {"a": 1}, "none": None}
    found = good(RECORD | {"request": {"id": "x", "meta": meta}}, mapping)
    assert json.loads(bytes(found.attributes)) == {
        "region": "north",
        "floor": "3",
        "indoor": "true",
        "id": "x",
    }


def test_votes_are_classes_by_name() -> None:
    mapping = MAPPING | {
        "votes": {"rival": {"path": "$.rival", "names": {0: "cat"}}, "third": "$.third", "fourth": "$.none"}
    }
    assert good(RECORD | {"rival": 0, "third": "owl"}, mapping).votes == {"rival": "cat", "third": "owl"}


def test_a_payload_may_be_anything() -> None:
    mapping = MAPPING | {"payload": "$.input", "payload_uri": "$.uri"}
    found = good(RECORD | {"input": {"text": "hello", "n": [1, 2.5, None]}}, mapping)
    assert json.loads(bytes(found.payload)) == {"text": "hello", "n": [1, 2.5, None]}
    assert good(RECORD | {"uri": "s3://a"}, mapping).payload_uri == "s3://a"


@pytest.mark.parametrize("value", [{}, [], {"a": 1}])
def test_an_id_is_a_text_or_a_number(value: Any) -> None:
    reason, detail = refusal(RECORD | {"request": {"id": value}})
    assert (reason, detail) == ("invalid_field", "item_id: expected a string or a number")


@pytest.mark.parametrize("value", [b"", b"null", b"5", b"[]", b"[{}]", b"\xff", b"{", b"[" * 100_000])
def test_a_record_that_is_no_object_is_refused(value: bytes) -> None:
    assert refusal(value)[0] in ("malformed_json", "invalid_field")


def test_a_record_that_looks_native_is_mapped_all_the_same() -> None:
    native = {"model": "their model", "item_id": "theirs", "predicted_class": "cat", "score": 0.5}
    assert good(RECORD | native).item_id == "17"
    assert refusal(native)[0] == "missing_field"
    assert refusal(json.dumps([native]).encode())[0] == "invalid_field"


def test_a_record_that_its_headers_call_native_is_not_mapped() -> None:
    native = {"model": "sorter", "item_id": "native", "predicted_class": "cat", "score": 0.5}
    headers = (("ce_specversion", b"1.0"), ("ce_type", PREDICTION_TYPE.encode()))
    assert good(native, headers=headers).item_id == "native"


def test_events_of_other_types_are_mapped() -> None:
    headers = (("ce_specversion", b"1.0"), ("ce_type", b"com.example.scored"))
    assert good(RECORD, headers=headers).item_id == "17"
    assert refusal(RECORD, headers=(("ce_specversion", b"7"),))[0] == "unsupported_event"


NESTED_AVRO = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {
            "name": "request",
            "type": {
                "type": "record",
                "name": "Request",
                "fields": [{"name": "id", "type": "long"}, {"name": "region", "type": "string"}],
            },
        },
        {
            "name": "out",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Out",
                    "fields": [
                        {"name": "label", "type": {"type": "enum", "name": "L", "symbols": ["CAT", "DOG"]}},
                        {"name": "p", "type": "float"},
                    ],
                },
            },
        },
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
OF_AVRO = MAPPING | {
    "predicted_class": {"path": "$.out[0].label", "names": {"CAT": "cat", "DOG": "dog"}},
    "attributes": {"region": "$.request.region"},
}


def test_an_existing_topic_of_nested_avro_is_read_by_a_mapping_alone() -> None:
    message = {
        "request": {"id": 17, "region": "north"},
        "out": [{"label": "DOG", "p": 0.75}],
        "ts": datetime(2026, 1, 31, 12, tzinfo=UTC),
    }
    schemas = {1: RegisteredSchema("AVRO", json.dumps(NESTED_AVRO), {})}
    found = good(avro(NESTED_AVRO, message), OF_AVRO, schemas=schemas)
    assert (found.item_id, found.predicted_class, found.score, found.time) == (
        "17",
        "dog",
        0.75,
        message["ts"],
    )


PROTO = """
syntax = "proto3";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Scored {
  message Request { int64 id = 1; google.protobuf.Struct meta = 2; }
  enum Label { CAT = 0; DOG = 1; }
  Request request = 1;
  Label label = 2;
  google.protobuf.DoubleValue p = 3;
  google.protobuf.Timestamp ts = 4;
  map<string, double> spread = 5;
  int32 number = 6;
  bytes input = 7;
}
"""


def test_an_existing_topic_of_protobuf_is_read_by_a_mapping_alone() -> None:
    mapping = {
        "model": {"value": "sorter"},
        "item_id": "$.request.id",
        "predicted_class": {"path": "$.label", "names": {"CAT": "cat", "DOG": "dog"}},
        "score": "$.p",
        "time": "$.ts",
        "all_attributes": "$.request.meta",
        "attributes": {"number": "$.number"},
        "payload": "$.input",
    }
    message = {
        "request": {"id": "17", "meta": {"region": "north", "list": [1]}},
        "p": 0.75,
        "ts": "2026-01-31T12:00:00Z",
        "input": "AAEC",
    }
    value = proto(message, text=PROTO, name="Scored", indexes=b"\0", number=1)
    found = good(value, mapping, schemas={1: RegisteredSchema("PROTOBUF", PROTO, {})})
    # An enum and an integer that are 0 are not on the wire, and are there all the same.
    assert (found.item_id, found.predicted_class, found.score) == ("17", "cat", 0.75)
    assert found.time == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert json.loads(bytes(found.attributes)) == {"region": "north", "number": "0"}
    assert json.loads(bytes(found.payload)) == "AAEC"


def test_an_existing_topic_of_kserve_s_answers_is_read_by_a_mapping_alone() -> None:
    answer = {
        "model_name": "iris",
        "id": "5b1f0c6e",
        "outputs": [
            {"name": "label", "datatype": "INT64", "shape": [1], "data": [2]},
            {"name": "p", "datatype": "FP32", "shape": [1, 3], "data": [0.125, 0.125, 0.75]},
        ],
    }
    mapping = {
        "model": {"path": "$.model_name", "names": {}},
        "item_id": "$.id",
        "predicted_class": {"path": "$.outputs[0].data[0]", "names": {0: "cat", 1: "dog", 2: "owl"}},
        "probabilities": "$.outputs[1].data",
    }
    found = good(answer, mapping)
    assert (found.model, found.item_id, found.predicted_class) == ("iris", "5b1f0c6e", "owl")
    assert found.probabilities == [0.125, 0.125, 0.75]


def test_json_schema_is_mapped_like_json() -> None:
    value = framed(1, json.dumps(RECORD).encode())
    assert good(value, schemas={1: RegisteredSchema("JSON", "{}", {})}).item_id == "17"


def test_labels_are_mapped_too() -> None:
    settings = LabelMapping.model_validate(
        {
            "model": {"value": "sorter"},
            "item_id": "$.case.id",
            "true_class": {"path": "$.verdict", "names": {True: "dog", False: "cat"}},
            "time": {"path": "$.at", "unit": "s"},
        }
    )
    messages = TopicMessages(LABEL_TYPE, mapper=RecordMapper(settings.mapping(), CLASSES))
    value = json.dumps({"case": {"id": 5}, "verdict": True, "at": 1_769_860_800}).encode()
    label = decode_label(messages.rewrite(Record(value)))
    assert (label.item_id, label.true_class, label.time) == (
        "5",
        "dog",
        datetime(2026, 1, 31, 12, tzinfo=UTC),
    )


def test_no_detail_quotes_the_record() -> None:
    secret = "a secret of the record"
    for record in (
        RECORD | {"ts": secret},
        RECORD | {"request": {"id": [secret]}},
        RECORD | {"out": [{"label": 1, "p": secret}]},
    ):
        assert secret not in refusal(record)[1]
