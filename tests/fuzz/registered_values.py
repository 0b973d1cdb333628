"""Records of other formats made by a script, and what must hold for any of them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import json_mutators as mutators
from schema_values import ENCODERS, SCHEMAS, Registered, framed

from consumers.formats.mapping import RecordMapper
from consumers.formats.messages import TopicMessages
from consumers.formats.native import decode_predictions
from consumers.formats.registered import RegisteredValues
from service.config.mapping import PredictionMapping
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

REASONS = {
    *("malformed_json", "malformed_record", "unknown_schema", "message_too_large", "unsupported_event"),
    *("missing_field", "invalid_field", "unknown_model", "invalid_probabilities"),
}
LONGEST_DETAIL = 200

EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "id", "type": ["null", "string", "long", {"type": "string", "logicalType": "uuid"}]},
        {"name": "label", "type": {"type": "enum", "name": "E", "symbols": ["cat", "dog"]}},
        {"name": "p", "type": ["double", "float", {"type": "map", "values": "double"}]},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 4}},
        {
            "name": "decimal",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2},
        },
        {"name": "date", "type": {"type": "int", "logicalType": "date"}},
        {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "lists", "type": {"type": "array", "items": {"type": "array", "items": "bytes"}}},
        {"name": "flag", "type": ["null", "boolean"]},
    ],
}
EVERYTHING_PROTO = """
syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Everything {
  google.protobuf.Struct id = 1;
  google.protobuf.Value label = 2;
  map<string, double> p = 3;
  google.protobuf.Timestamp ts = 4;
  google.protobuf.Duration duration = 5;
  google.protobuf.FieldMask mask = 6;
  google.protobuf.Any any = 7;
  repeated Everything many = 8;
  google.protobuf.BytesValue wrapped = 9;
  oneof one { sint64 a = 10; fixed32 b = 11; bool c = 12; }
  map<bool, Everything> flags = 13;
}
"""
REGISTRY = Registered(
    SCHEMAS
    | {
        5: RegisteredSchema("AVRO", json.dumps(EVERYTHING), {}),
        6: RegisteredSchema("PROTOBUF", EVERYTHING_PROTO, {}),
    }
)
_VALUES = RegisteredValues(REGISTRY, cached=100)
_MAPPING = PredictionMapping.model_validate(
    {
        "model": {"path": ["$.model", "$.name"], "required": False},
        "item_id": ["$.id", "$.item_id", "$key"],
        "predicted_class": {"path": ["$.label", "$.predicted_class"], "names": {"cat": "dog"}},
        "score": {"path": "$.score", "required": False},
        "probabilities": {"path": ["$.p", "$.probabilities"], "required": False},
        "time": {"path": ["$.ts", "$.date", "$.time"], "unit": "ms"},
        "attributes": {"a": "$.lists[0][0]", "b": "$headers.ce_source"},
        "all_attributes": "$",
        "payload": "$",
    }
)
TOPICS = [
    TopicMessages(PREDICTION_TYPE, registered=_VALUES),
    TopicMessages(
        PREDICTION_TYPE, registered=_VALUES, mapper=RecordMapper(_MAPPING.mapping(), {"m": ["cat", "dog"]})
    ),
]
_EVENT_HEADERS = [
    ("content-type", b"application/cloudevents+json"),
    ("content-type", b"application/cloudevents-batch+json"),
]


@dataclass
class Record:
    value: bytes
    headers: list[tuple[str, bytes | None]]
    key: bytes | None = None


def record(chooser: mutators.Chooser, rest: bytes = b"") -> Record:
    """A record of one of the formats, mostly damaged; `rest` are bytes to choose content from."""
    value = _value(chooser, rest)
    headers = mutators.headers(chooser)
    if chooser.below(3) == 0:
        event = {"specversion": "1.0", "type": PREDICTION_TYPE, "source": "s", "time": "2026-01-31T12:00:00Z"}
        event["data_base64"] = base64.b64encode(value).decode()
        value = mutators.damaged(chooser, json.dumps(event).encode())
        header = mutators.pick(chooser, _EVENT_HEADERS)
        if header is _EVENT_HEADERS[1]:
            value = b"[" + value + b"]"
        headers = [*headers, header]
    return Record(value, headers, mutators.pick(chooser, [None, b"k", b"\xff"]))


def _value(chooser: mutators.Chooser, rest: bytes) -> bytes:
    kind = chooser.below(4)
    if kind == 0:
        return framed(mutators.pick(chooser, [1, 2, 3, 4, 5, 6, 99]), rest)
    if kind == 1:
        encode = mutators.pick(chooser, [*ENCODERS.values()])
        return mutators.damaged(chooser, encode(mutators.BASES[chooser.below(2)]))
    if kind == 2:
        return mutators.value(chooser)
    return rest


def formats_stand(given: Record) -> None:
    """Every format gives messages or a reason, in proportion to what it is given."""
    for topic in TOPICS:
        found = _rewritten(topic, given)
        if isinstance(found, BadMessage):
            assert found.reason in REASONS, found
            assert len(found.detail) <= LONGEST_DETAIL, found.detail
            continue
        assert len(found) <= 100_000 + 200 * len(given.value)
        for _, decoded in decode_predictions(found):
            if isinstance(decoded, BadMessage):
                assert len(decoded.detail) <= LONGEST_DETAIL, decoded.detail


def _rewritten(topic: TopicMessages, given: Record) -> bytes | BadMessage:
    try:
        return topic.rewrite(given)
    except BadMessage as error:
        return error
