"""Schemas of the trials' registry, each in many versions, and values of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from schema_values import AVRO_PREDICTION, PROTO_PREDICTION, avro, framed, optional, proto

from benchmarks.schema_registry import Answer

Language = Literal["avro", "protobuf", "json schema"]
"""That a schema is in."""

Topic = Literal["predictions", "labels"]

UNKNOWN_SCHEMA = 999_999
"""An id that was never registered."""

_KINDS: Mapping[Language, str] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json schema": "JSON"}
_TOPICS: tuple[Topic, ...] = ("predictions", "labels")
_LANGUAGES = tuple(_KINDS)

_VERSIONS_OF_A_PROTO = 20
"""A .proto changes so much less often: every process that reads it runs protoc once."""

_PICTURE = {"type": "record", "name": "Picture", "fields": [{"name": "picture", "type": "long"}]}
_MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
_AVRO_FIELDS: Mapping[Topic, list[dict[str, Any]]] = {
    "predictions": [
        field | {"type": optional({"time": _MOMENT, "payload": _PICTURE}[field["name"]])}
        if field["name"] in ("time", "payload")
        else field
        for field in AVRO_PREDICTION["fields"]
    ],
    "labels": [
        {"name": name, "type": optional(_MOMENT if name == "time" else "string")}
        for name in ("request_id", "model", "item_id", "kind", "true_class", "annotator", "time")
    ],
}
_PROTO_TEXTS: Mapping[Topic, str] = {
    "predictions": PROTO_PREDICTION.replace("optional string payload =", "Nested payload =").replace(
        "message Nested { string a = 1; }", "message Nested { int64 picture = 1; }"
    ),
    "labels": """
syntax = "proto3";
package tests;
import "google/protobuf/timestamp.proto";
message Label {
  string request_id = 1;
  string model = 2;
  string item_id = 3;
  string kind = 4;
  optional string true_class = 5;
  string annotator = 6;
  google.protobuf.Timestamp time = 7;
}
""",
}
_PROTO_NAMES: Mapping[Topic, tuple[str, bytes]] = {
    "predictions": ("tests.Prediction", b"\x02\x02"),
    "labels": ("tests.Label", b"\0"),
}
"""The message of a file, and its indexes in front of a value."""


def compact(message: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    """JSON without blanks, as Credence itself writes the payload of a value that is not JSON."""
    return json.dumps(message, separators=(",", ":")).encode()


def answer_of(number: int) -> Answer | None:
    """What the registry answers for an id."""
    if not 0 < number < UNKNOWN_SCHEMA:
        return None
    number, language = divmod(number - 1, len(_LANGUAGES))
    version, topic = divmod(number, len(_TOPICS))
    schema = _schema(_LANGUAGES[language], _TOPICS[topic], version)
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"schema": text, "schemaType": _KINDS[_LANGUAGES[language]]}


def value_of(message: Mapping[str, Any], language: Language, topic: Topic, version: int) -> bytes:
    """A message as a value of one of the schemas."""
    if language == "protobuf":
        version //= _VERSIONS_OF_A_PROTO
    number = (
        1 + _LANGUAGES.index(language) + len(_LANGUAGES) * (version * len(_TOPICS) + _TOPICS.index(topic))
    )
    schema = _schema(language, topic, version)
    if language == "json schema":
        return framed(number, compact(message))
    if language == "protobuf":
        name, indexes = _PROTO_NAMES[topic]
        return proto(message, text=schema, name=name, indexes=indexes, number=number)
    fields = dict(message) | {_added(version): version}
    if "time" in fields:
        fields["time"] = datetime.fromisoformat(fields["time"])
    return avro(schema, fields, number=number)


def _schema(language: Language, topic: Topic, version: int) -> Any:
    """Every version has a field that no other one has, before those that are read."""
    if language == "json schema":
        return {"type": "object", "title": _added(version)}
    if language == "protobuf":
        return f"{_PROTO_TEXTS[topic]}\nmessage {_added(version).title()} {{ string name = 1; }}\n"
    added = {"name": _added(version), "type": "int"}
    return {"type": "record", "name": "Message", "fields": [added, *_AVRO_FIELDS[topic]]}


def _added(version: int) -> str:
    return f"version{version}"
