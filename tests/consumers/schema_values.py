"""Messages as values of a schema registry: schemas of the contract in three languages, and their encoders."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import fastavro
from google.protobuf import json_format

from consumers.formats import protobuf_schema
from service.domain.errors import BadMessage
from service.kafka.schema_registry import RegisteredSchema


class Registered:
    """Schemas by their ids.

    Attributes:
        asked: ids that were asked for.
    """

    def __init__(self, schemas: Mapping[int, RegisteredSchema]) -> None:
        self.schemas = dict(schemas)
        self.asked: list[int] = []

    def schema(self, number: int) -> RegisteredSchema:
        self.asked.append(number)
        if number not in self.schemas:
            raise BadMessage("unknown_schema", "the registry has no schema of this id")
        return self.schemas[number]


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


AVRO_PREDICTION = {
    "type": "record",
    "name": "Prediction",
    "namespace": "tests",
    "fields": [
        {"name": "model", "type": optional("string")},
        {"name": "item_id", "type": optional("string")},
        {"name": "predicted_class", "type": optional("string")},
        {"name": "score", "type": optional("double")},
        {"name": "probabilities", "type": optional({"type": "array", "items": "double"})},
        {"name": "attributes", "type": optional({"type": "map", "values": "string"})},
        {"name": "time", "type": optional({"type": "long", "logicalType": "timestamp-millis"})},
        {"name": "payload", "type": optional("string")},
        {"name": "payload_uri", "type": optional("string")},
    ],
}

PROTO_PREDICTION = """
syntax = "proto3";
package tests;
import "google/protobuf/timestamp.proto";
message Unused { string name = 1; }
message Prediction {
  optional string model = 1;
  optional string item_id = 2;
  optional string predicted_class = 3;
  optional double score = 4;
  repeated double probabilities = 5;
  map<string, string> attributes = 6;
  google.protobuf.Timestamp time = 7;
  optional string payload = 8;
  optional string payload_uri = 9;
  message Nested { string a = 1; }
}
"""

AVRO_LABEL = {
    "type": "record",
    "name": "Label",
    "fields": [
        {"name": name, "type": optional("string")}
        for name in ("request_id", "model", "item_id", "true_class", "annotator")
    ],
}

SCHEMAS = {
    1: RegisteredSchema("AVRO", json.dumps(AVRO_PREDICTION), {}),
    2: RegisteredSchema("PROTOBUF", PROTO_PREDICTION, {}),
    3: RegisteredSchema("JSON", '{"type": "object"}', {}),
    4: RegisteredSchema("AVRO", json.dumps(AVRO_LABEL), {}),
}


def framed(number: int, content: bytes) -> bytes:
    """A value in the wire format of a registry."""
    return b"\0" + number.to_bytes(4) + content


def avro(schema: Any, message: Any, *, number: int = 1) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), message)
    return framed(number, out.getvalue())


@cache
def proto_class(text: str, name: str) -> Any:
    """The class of a message of a .proto text, as its producer has it."""
    from google.protobuf import descriptor_pool, message_factory  # noqa: PLC0415

    pool = descriptor_pool.DescriptorPool()
    for file in protobuf_schema.compile_schema(RegisteredSchema("PROTOBUF", text, {})).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def proto(
    message: Mapping[str, Any],
    *,
    text: str = PROTO_PREDICTION,
    name: str = "tests.Prediction",
    indexes: bytes = b"\x02\x02",
    number: int = 2,
) -> bytes:
    """A value of Protobuf; the message is the second of its file unless indexes say otherwise."""
    encoded = json_format.ParseDict(dict(message), proto_class(text, name)()).SerializeToString()
    return framed(number, indexes + encoded)


def _as_avro(message: Mapping[str, Any]) -> bytes:
    fields = dict(message)
    if isinstance(fields.get("time"), str):
        fields["time"] = datetime.fromisoformat(fields["time"])
    return avro(AVRO_PREDICTION, fields)


def _as_json(message: Mapping[str, Any]) -> bytes:
    return framed(3, json.dumps(message).encode())


ENCODERS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "native": lambda message: json.dumps(message).encode(),
    "avro": _as_avro,
    "protobuf": proto,
    "json schema": _as_json,
}
"""Values of messages, by format."""
