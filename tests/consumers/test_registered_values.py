"""One suite holds all decoders to the same messages; and what is special to each of them."""

from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest
from schema_values import (
    AVRO_LABEL,
    AVRO_PREDICTION,
    ENCODERS,
    PROTO_PREDICTION,
    SCHEMAS,
    Registered,
    avro,
    framed,
    proto,
)

from consumers.formats.messages import TopicMessages
from consumers.formats.native import WirePrediction, decode_label
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, decode_records
from consumers.formats.registered import RegisteredValues
from service.domain.errors import BadMessage
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

LONGEST = 1_048_576
BASE: dict[str, Any] = {"model": "sorter", "item_id": "a", "predicted_class": "cat", "score": 0.5}

VALID: dict[str, dict[str, Any]] = {
    "a class and its score": BASE,
    "probabilities alone": {"model": "sorter", "item_id": "a", "probabilities": [0.25, 0.75]},
    "attributes": BASE | {"attributes": {"region": "north", "größe": "klein"}},
    "a time": BASE | {"time": "2026-01-31T12:00:00.250Z"},
    "a payload": BASE | {"payload": 'a text with "quotes" and \n lines'},
    "a payload elsewhere": BASE | {"payload_uri": "s3://items/a"},
    "no score, as it is refused later": {"model": "sorter", "item_id": "a", "predicted_class": "cat"},
}
INVALID: dict[str, dict[str, Any]] = {
    "no model": {"item_id": "a", "predicted_class": "cat", "score": 0.5},
    "no item": {"model": "sorter", "predicted_class": "cat", "score": 0.5},
    "an empty model": BASE | {"model": ""},
    "an item id that is too long": BASE | {"item_id": "a" * 257},
    "one probability": {"model": "sorter", "item_id": "a", "probabilities": [1.0]},
}


@dataclass
class Record:
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None


@pytest.fixture
def registry() -> Registered:
    return Registered(SCHEMAS)


@pytest.fixture
def messages(registry: Registered) -> TopicMessages:
    return TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))


def decoded(messages: TopicMessages, *records: Record) -> DecodedRecords:
    return decode_records(records, message_bytes=LONGEST, formats=[messages, OpenInference({})])


def one(messages: TopicMessages, value: bytes, *headers: tuple[str, bytes]) -> WirePrediction | BadMessage:
    """What becomes of a record with one message."""
    found = decoded(messages, Record(value, headers))
    assert len(found.predictions) + len(found.errors) == 1
    return found.predictions[0] if found.predictions else found.errors[0][2]


def reason(messages: TopicMessages, value: bytes, *headers: tuple[str, bytes]) -> str:
    found = one(messages, value, *headers)
    assert isinstance(found, BadMessage)
    return found.reason


def as_native(prediction: WirePrediction | BadMessage) -> dict[str, Any]:
    assert isinstance(prediction, WirePrediction), prediction
    shown = {name: getattr(prediction, name) for name in prediction.__struct_fields__}
    for name in ("attributes", "payload"):
        shown[name] = json.loads(bytes(shown[name]) or b"null")
    return shown


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("message", VALID.values(), ids=VALID)
def test_a_message_says_the_same_in_every_format(
    messages: TopicMessages, encode: Any, message: dict[str, Any]
) -> None:
    expected = as_native(one(messages, json.dumps(message).encode()))
    assert as_native(one(messages, encode(message))) == expected


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("message", INVALID.values(), ids=INVALID)
def test_an_invalid_message_is_refused_for_the_same_reason_in_every_format(
    messages: TopicMessages, encode: Any, message: dict[str, Any]
) -> None:
    assert reason(messages, encode(message)) == reason(messages, json.dumps(message).encode())


def test_a_topic_may_hold_all_formats_at_once(messages: TopicMessages) -> None:
    records = [Record(encode(BASE | {"item_id": name})) for name, encode in ENCODERS.items()]
    assert [p.item_id for p in decoded(messages, *records).predictions] == list(ENCODERS)


def test_a_schema_is_asked_for_once(messages: TopicMessages, registry: Registered) -> None:
    decoded(messages, *[Record(ENCODERS["avro"](BASE)) for _ in range(5)])
    assert registry.asked == [1]


def test_no_more_schemas_are_kept_than_configured(registry: Registered) -> None:
    messages = TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=1))
    for name in ("avro", "json schema", "avro"):
        one(messages, ENCODERS[name](BASE))
    assert registry.asked == [1, 3, 1]


def test_a_value_of_an_unknown_schema_is_refused(messages: TopicMessages) -> None:
    assert reason(messages, framed(99, b"{}")) == "unknown_schema"


def test_a_schema_that_the_registry_says_is_unsupported_is_asked_for_once() -> None:
    class Unsupported(Registered):
        def schema(self, number: int) -> RegisteredSchema:
            super().schema(number)
            raise BadMessage("unsupported_schema", "it has more than 100 references")

    registry = Unsupported(SCHEMAS)
    messages = TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))
    assert [reason(messages, framed(1, b"{}")) for _ in range(3)] == ["unsupported_schema"] * 3
    assert registry.asked == [1]


def test_a_value_that_ends_within_its_prefix_is_refused(messages: TopicMessages) -> None:
    assert reason(messages, b"\0\0\0") == "malformed_record"


def test_without_a_registry_its_values_are_no_json() -> None:
    assert reason(TopicMessages(PREDICTION_TYPE), ENCODERS["avro"](BASE)) == "malformed_json"


def test_headers_of_another_event_are_refused_in_every_format(messages: TopicMessages) -> None:
    for encode in ENCODERS.values():
        assert reason(messages, encode(BASE), ("ce_type", b"com.example.other")) == "unsupported_event"


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_a_value_that_is_cut_or_continued_is_refused(messages: TopicMessages, name: str) -> None:
    value = ENCODERS[name](BASE | {"attributes": {"region": "north"}})
    assert reason(messages, value[:-3]) == "malformed_record"
    assert reason(messages, value + b"\xff") == "malformed_record"


def test_a_text_of_json_schema_that_is_no_json_is_refused(messages: TopicMessages) -> None:
    assert reason(messages, framed(3, b"{")) == "malformed_json"
    assert reason(messages, framed(3, b"\xff")) == "malformed_json"


def test_labels_are_read_in_every_format(registry: Registered) -> None:
    label = {"request_id": "r", "model": "sorter", "item_id": "a", "true_class": "cat"}
    messages = TopicMessages(LABEL_TYPE, registered=RegisteredValues(registry, cached=10))
    for value in (json.dumps(label).encode(), avro(AVRO_LABEL, label, number=4)):
        assert decode_label(messages.rewrite(Record(value))).true_class == "cat"


# Avro


def with_schema(
    registry: Registered, schema: Any, number: int = 20, kind: str = "AVRO", **others: str
) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    registry.schemas[number] = RegisteredSchema(kind, text, others)


def fields(*more: dict[str, Any]) -> dict[str, Any]:
    return AVRO_PREDICTION | {"fields": [*AVRO_PREDICTION["fields"], *more]}


def test_a_field_that_is_added_to_a_schema_is_ignored(messages: TopicMessages, registry: Registered) -> None:
    schema = fields({"name": "version", "type": "int"})
    with_schema(registry, schema)
    assert as_native(one(messages, avro(schema, BASE | {"version": 3}, number=20)))["score"] == 0.5


def test_a_field_that_was_renamed_is_found_by_its_alias(
    messages: TopicMessages, registry: Registered
) -> None:
    renamed = [
        {"name": "label", "type": "string", "aliases": ["predicted_class"]}
        if field["name"] == "predicted_class"
        else field
        for field in AVRO_PREDICTION["fields"]
    ]
    schema = AVRO_PREDICTION | {"fields": renamed}
    with_schema(registry, schema)
    old, new = ENCODERS["avro"](BASE), avro(schema, BASE | {"label": "dog"}, number=20)
    assert [p.predicted_class for p in decoded(messages, Record(old), Record(new)).predictions] == [
        "cat",
        "dog",
    ]


def test_logical_types_and_enums_are_what_json_says_of_them(
    messages: TopicMessages, registry: Registered
) -> None:
    from datetime import UTC, datetime  # noqa: PLC0415
    from decimal import Decimal  # noqa: PLC0415
    from uuid import UUID  # noqa: PLC0415

    schema = {
        "type": "record",
        "name": "P",
        "fields": [
            {"name": "model", "type": "string"},
            {"name": "item_id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "predicted_class", "type": {"type": "enum", "name": "C", "symbols": ["cat", "dog"]}},
            {
                "name": "score",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            },
            {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
    with_schema(registry, schema)
    item, now = UUID(int=7), datetime(2026, 1, 31, 12, tzinfo=UTC)
    message = {"model": "m", "item_id": item, "predicted_class": "dog", "score": Decimal("0.75"), "time": now}
    found = one(messages, avro(schema, message, number=20))
    assert isinstance(found, WirePrediction)
    assert (found.item_id, found.predicted_class, found.score, found.time) == (str(item), "dog", 0.75, now)


@pytest.mark.parametrize(("length", "expected"), [(64, "missing_field"), (65, "malformed_record")])
def test_a_decimal_of_more_than_64_bytes_is_refused(
    messages: TopicMessages, registry: Registered, length: int, expected: str
) -> None:
    size = {"type": "fixed", "name": "F", "size": length}
    for number, stored in (20, "bytes"), (21, size):
        kind = stored if isinstance(stored, dict) else {"type": stored}
        decimal = kind | {"logicalType": "decimal", "precision": 100, "scale": 2}
        with_schema(
            registry, {"type": "record", "name": "P", "fields": [{"name": "a", "type": decimal}]}, number
        )
    prefix = bytes([2 * length % 128 | 128, 2 * length // 128])
    assert reason(messages, framed(20, prefix + b"\x7f" * length)) == expected
    assert reason(messages, framed(21, b"\x7f" * length)) == expected


def test_a_schema_may_refer_to_others(messages: TopicMessages, registry: Registered) -> None:
    score = {"type": "record", "name": "tests.Score", "fields": [{"name": "value", "type": "double"}]}
    schema = {"type": "record", "name": "P", "fields": [{"name": "of", "type": "tests.Score"}]}
    registry.schemas[20] = RegisteredSchema("AVRO", json.dumps(schema), {"tests.Score": json.dumps(score)})
    whole = schema | {"fields": [{"name": "of", "type": score}]}
    assert reason(messages, avro(whole, {"of": {"value": 0.5}}, number=20)) == "missing_field"


RECURSIVE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}
UNUSABLE: dict[str, Any] = {
    "recursive": RECURSIVE,
    "an array of nothing": {"type": "array", "items": "null"},
    "an array of empty records": {
        "type": "array",
        "items": {"type": "record", "name": "E", "fields": []},
    },
    "an array of records of nothings": {
        "type": "array",
        "items": {
            "type": "record",
            "name": "E",
            "fields": [{"name": "b", "type": "boolean"}]
            + [{"name": f"n{i}", "type": "null"} for i in range(100)],
        },
    },
    "doubled again and again": {
        "type": "record",
        "name": "R0",
        "fields": [
            {
                "name": "a",
                "type": {"type": "record", "name": "R1", "fields": [{"name": "n", "type": "null"}]},
            },
            *({"name": f"b{i}", "type": "R1"} for i in range(10_000)),
        ],
    },
    "a type that nobody defines": {"type": "array", "items": "Unknown"},
    "no schema": {"type": "nonsense"},
    "no object": 5,
    "no JSON": "{",
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_avro_schema_by_which_few_bytes_are_much_is_refused(
    messages: TopicMessages, registry: Registered, schema: Any
) -> None:
    with_schema(registry, schema)
    assert reason(messages, framed(20, b"\0" * 10)) == "unsupported_schema"
    assert reason(messages, framed(20, b"\0" * 10)) == "unsupported_schema"
    assert registry.asked == [20]


def test_a_schema_cannot_mark_itself_as_checked(messages: TopicMessages, registry: Registered) -> None:
    simple = {"type": "record", "name": "Node", "fields": [{"name": "a", "type": "int"}]}
    marks = {"__fastavro_parsed": True, "__named_schemas": {"Node": RECURSIVE}}
    schema = {
        "type": "record",
        "name": "P",
        "fields": [{"name": "first", "type": simple}, {"name": "second", "type": "Node"}],
    }
    with_schema(registry, schema | marks)
    assert reason(messages, framed(20, b"\2" + b"\2" * 500 + b"\0")) == "malformed_record"
    assert reason(messages, framed(20, b"\2\2")) == "missing_field"


def test_a_schema_that_is_nested_deeply_is_refused(messages: TopicMessages, registry: Registered) -> None:
    schema: Any = "string"
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    with_schema(registry, schema)
    assert reason(messages, framed(20, b"\x02" * 200)) == "unsupported_schema"
    with_schema(registry, "[" * 100_000, number=21)
    assert reason(messages, framed(21, b"\x02")) == "unsupported_schema"


LISTS = {
    "type": "record",
    "name": "L",
    "fields": [
        {"name": "lists", "type": {"type": "array", "items": {"type": "array", "items": "int"}}},
        {"name": "texts", "type": {"type": "map", "values": "bytes"}},
    ],
}
HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""The largest number that Avro has."""

SMALLEST = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
BOMBS: dict[str, bytes] = {
    "an array of very many": framed(30, HUGE),
    "an array of minus very many": framed(30, SMALLEST + b"\x02" * 20),
    "a map of very many": framed(30, b"\0" + HUGE),
    "a text that is very long": framed(30, b"\0\x02" + HUGE),
    "a text of negative length": framed(30, b"\0\x02\x02k" + SMALLEST),
    "numbers without an end": framed(30, b"\xff" * 1_000_000),
    "a megabyte of empty lists": framed(30, b"\x80\x89\x7a" + b"\0" * 1_000_000),
    "a megabyte of zeros": framed(30, b"\0" * 1_000_000),
    "a branch that the union has not": framed(1, b"\x7e" * 100),
    "a megabyte of empty messages": framed(31, b"\0" + b"\x0a\0" * 500_000),
    "a message nested deeply": framed(31, b"\0" + b"\x12\x80\x80\x40" * 250_000),
    "message indexes without an end": framed(31, b"\xff" * 1_000_000),
    "very many message indexes": framed(31, b"\xfe\xff\xff\xff\x0f" + b"\0" * 1_000),
    "a message index that is negative": framed(31, b"\x02\x01"),
    "a message index that is too high": framed(31, b"\x02\x08"),
}
WIDE = "\n".join(f"int32 f{i} = {i + 10};" for i in range(50))
PROTO_BOMBS = f"""
syntax = "proto3";
message P {{ repeated Wide many = 1; Deep deep = 2; }}
message Wide {{ {WIDE} }}
message Deep {{ Deep next = 2; }}
"""


@pytest.mark.parametrize("value", BOMBS.values(), ids=BOMBS)
def test_hostile_bytes_are_refused_in_time_and_memory_by_their_length(
    messages: TopicMessages, registry: Registered, value: bytes
) -> None:
    with_schema(registry, LISTS, number=30)
    with_schema(registry, PROTO_BOMBS, number=31, kind="PROTOBUF")
    one(messages, value[:5])  # compiles the schema
    began = time.process_time()
    tracemalloc.start()
    try:
        assert isinstance(one(messages, value), BadMessage)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 150 * len(value) + 5_000_000
    # It takes milliseconds; the bound leaves room for a slow machine that traces memory.
    assert time.process_time() - began < 5


# Protobuf


def test_the_first_message_of_a_file_has_a_short_index(messages: TopicMessages, registry: Registered) -> None:
    text = PROTO_PREDICTION.replace("message Unused { string name = 1; }", "")
    with_schema(registry, text, kind="PROTOBUF")
    for indexes in (b"\0", b"\x02\0"):
        value = proto(BASE, text=text, indexes=indexes, number=20)
        assert as_native(one(messages, value))["item_id"] == "a"


def test_a_message_may_be_nested_in_another(messages: TopicMessages) -> None:
    value = proto({"a": "x"}, name="tests.Prediction.Nested", indexes=b"\x04\x02\0")
    assert reason(messages, value) == "missing_field"


def test_a_number_without_presence_that_is_zero_is_no_score(
    messages: TopicMessages, registry: Registered
) -> None:
    text = PROTO_PREDICTION.replace("optional double", "double")
    with_schema(registry, text, kind="PROTOBUF")
    message = {"model": "sorter", "item_id": "a", "probabilities": [0.25, 0.75]}
    assert as_native(one(messages, proto(message, text=text, number=20)))["score"] is None


def test_a_proto_may_import_others(messages: TopicMessages, registry: Registered) -> None:
    score = 'syntax = "proto3"; package of; message Score { double value = 1; }'
    text = 'syntax = "proto3"; import "of/score.proto"; message P { of.Score score = 1; }'
    registry.schemas[20] = RegisteredSchema("PROTOBUF", text, {"of/score.proto": score})
    assert reason(messages, framed(20, b"\0")) == "missing_field"


@pytest.mark.parametrize("text", ["", "message {", 'syntax = "proto3"; import "missing.proto";'])
def test_a_proto_that_does_not_compile_is_refused(
    messages: TopicMessages, registry: Registered, text: str
) -> None:
    with_schema(registry, text, kind="PROTOBUF")
    assert reason(messages, framed(20, b"\0")) in ("unsupported_schema", "malformed_record")


@pytest.mark.parametrize("name", ["../escaped.proto", "/etc/escaped.proto", "a/../b.proto", "a\0b", ""])
def test_an_import_cannot_leave_its_folder(messages: TopicMessages, registry: Registered, name: str) -> None:
    text = 'syntax = "proto3"; message P {}'
    registry.schemas[20] = RegisteredSchema("PROTOBUF", text, {name: text})
    assert reason(messages, framed(20, b"\0")) == "unsupported_schema"


def test_a_schema_of_another_type_is_refused(messages: TopicMessages, registry: Registered) -> None:
    with_schema(registry, "x", kind="THRIFT")
    assert reason(messages, framed(20, b"\0")) == "unsupported_schema"


def with_fields(*fields: dict[str, Any]) -> dict[str, Any]:
    """An Avro schema of predictions that has these fields besides."""
    texts = [{"name": name, "type": "string"} for name in ("model", "item_id", "predicted_class")]
    return {"type": "record", "name": "Prediction", "fields": [*texts, *fields]}


def read_avro(schema: dict[str, Any], message: dict[str, Any]) -> WirePrediction | BadMessage:
    """What becomes of a message that this schema describes."""
    registry = Registered({1: RegisteredSchema("AVRO", json.dumps(schema), {})})
    topic = TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))
    return one(topic, avro(schema, message))


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_not_finite_is_refused_and_not_absent(score: float) -> None:
    schema = with_fields(
        {"name": "score", "type": "double"},
        {"name": "probabilities", "type": {"type": "array", "items": "double"}},
    )
    refused = read_avro(schema, BASE | {"score": score, "probabilities": [0.5, 0.5]})
    assert isinstance(refused, BadMessage)
    assert refused.reason == "invalid_score"


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "map", "values": ["null", "string"]},
        {
            "type": "record",
            "name": "Attributes",
            "fields": [{"name": "region", "type": ["null", "string"]}, {"name": "host", "type": "string"}],
        },
    ],
)
def test_an_attribute_of_avro_that_is_null_is_absent(kind: dict[str, Any]) -> None:
    schema = with_fields({"name": "score", "type": "double"}, {"name": "attributes", "type": kind})
    found = read_avro(schema, BASE | {"attributes": {"region": None, "host": "gate"}})
    assert isinstance(found, WirePrediction)
    assert json.loads(bytes(found.attributes)) == {"host": "gate"}
