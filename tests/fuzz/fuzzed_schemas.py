"""Schemas of a registry that have something of everything, by their ids."""

from __future__ import annotations

import json
from typing import Any

from schema_values import AVRO_LABEL, AVRO_PREDICTION, PROTO_PREDICTION
from schema_values import SCHEMAS as OF_THE_CONTRACT

from service.kafka.schema_registry import RegisteredSchema

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
NESTED = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {
            "name": "request",
            "type": {
                "type": "record",
                "name": "Case",
                "fields": [
                    {"name": "id", "type": "long", "aliases": ["number"]},
                    {"name": "meta", "type": {"type": "map", "values": ["null", "string", "double"]}},
                ],
            },
        },
        {"name": "model", "type": "string", "default": "m"},
        {"name": "case", "type": "Case", "aliases": ["item_id"]},
        {"name": "spread", "type": {"type": "map", "values": "double"}, "aliases": ["probabilities"]},
        {"name": "out", "type": {"type": "array", "items": ["null", "Case"]}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
GROUPS_PROTO = """
syntax = "proto2";
message Old {
  required string item_id = 1;
  optional string predicted_class = 2 [default = "cat"];
  optional double score = 3 [default = 0.5];
  optional string model = 4 [default = "m"];
  repeated group Case = 5 { optional int64 id = 6; repeated sint32 many = 7 [packed = true]; }
  enum Kind { CAT = 0; DOG = 5; }
  optional Kind kind = 8;
  repeated fixed64 fixed = 9 [packed = true];
  map<int32, Old> inner = 10;
  extensions 100 to 200;
}
extend Old { optional Old more = 100; }
"""

AVRO: dict[int, Any] = {1: AVRO_PREDICTION, 4: AVRO_LABEL, 5: EVERYTHING, 7: NESTED}
"""Avro schemas by id."""

PROTO = {2: PROTO_PREDICTION, 6: EVERYTHING_PROTO, 8: GROUPS_PROTO}
"""Texts of .proto files by id."""

PROTO_MESSAGES = {
    2: [("tests.Prediction", b"\x02\x02")],
    6: [("Everything", b"\0")],
    8: [("Old", b"\0"), ("Old", b"\x02\0"), ("Old.Case", b"\x04\0\0")],
}
"""Messages of every file, each with the indexes that name it."""

SCHEMAS = (
    OF_THE_CONTRACT
    | {number: RegisteredSchema("AVRO", json.dumps(schema), {}) for number, schema in AVRO.items()}
    | {number: RegisteredSchema("PROTOBUF", text, {}) for number, text in PROTO.items()}
)
"""All of them, with those of the contract."""
