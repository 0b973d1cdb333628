"""The decoders that are fuzzed, each with inputs that are made for it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import json_mutators as mutators
from arrow_mutators import arrow_stream
from avro_mutators import avro_schema, avro_value
from decoder_properties import labels_stand, predictions_stand
from fuzzed_schemas import AVRO, PROTO, PROTO_MESSAGES, SCHEMAS
from json_trees import tree
from mapped_topics import LABEL_MAPPINGS, MAPPINGS, RECORDS
from properties import decoders_agree_with_the_contract, decoders_stand, headers_stand
from protobuf_mutators import proto_text, proto_value
from schema_values import AVRO_PREDICTION, PROTO_PREDICTION, Registered, avro, framed, proto_class

from consumers.formats.arrow import CONTENT_TYPE, arrow_rows
from consumers.formats.messages import TopicMessages
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import Formats
from consumers.formats.registered import RegisteredValues
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.domain.open_inference import RESPONSE_EXAMPLE, RESPONSE_TYPES
from service.kafka.schema_registry import RegisteredSchema

Chooser = mutators.Chooser
Headers = list[tuple[str, bytes | None]]


@dataclass
class Record:
    """What a Kafka client gives."""

    value: bytes | None
    headers: Headers
    key: bytes | None = None


@dataclass(frozen=True)
class Decoders:
    """How both topics are read.

    Attributes:
        predictions: formats of the predictions topic.
        labels: rewrites a record of the labels topic.
    """

    predictions: Formats
    labels: Callable[[Any], bytes]

    def stand(self, records: Sequence[Record]) -> int:
        """Take records for predictions, and for labels; how many bytes they have."""
        predictions_stand(records, self.predictions)
        for record in records[:1]:
            labels_stand(record, self.labels)
        return sum(len(record.value or b"") for record in records)


def decoders_of(registered: RegisteredValues) -> Decoders:
    """The decoders of a deployment with a schema registry, as `service.app.format_wiring` makes them."""
    responses = OpenInference({"m": {"score": "p"}}, others={})
    messages = TopicMessages(PREDICTION_TYPE, registered=registered, formats=[responses])
    labels = TopicMessages(LABEL_TYPE, registered=registered)
    return Decoders([arrow_rows, messages, responses], labels.rewrite)


_TOGETHER = 80
"""Values of one schema in an input: enough for columns."""

_AVRO_FIELDS = [field["name"] for field in AVRO_PREDICTION["fields"]]
_USUAL = [
    avro(AVRO_PREDICTION, dict.fromkeys(_AVRO_FIELDS) | {"model": "m", "item_id": "a"} | fields)
    for fields in (
        {"predicted_class": "cat", "score": 0.5},
        {"predicted_class": "\u00fc", "score": 1.0, "time": datetime(2026, 1, 31, tzinfo=UTC)},
        {"predicted_class": "cat", "score": 0.5, "attributes": {"camera": "dock", "region": "eu"}},
        {"predicted_class": "cat", "score": 0.25, "payload_uri": "s3://a", "model": "n"},
    )
]

_VALUES = RegisteredValues(Registered(SCHEMAS), cached=100)
_DECODERS = decoders_of(_VALUES)
_MAPPED = [
    Decoders(predictions(_VALUES), labels(_VALUES).rewrite)
    for predictions, labels in zip(MAPPINGS, LABEL_MAPPINGS, strict=True)
]

_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "s",
    "type": PREDICTION_TYPE,
    "time": "2026-01-31T12:00:00Z",
}
_EVENT_TYPES: list[tuple[str, bytes | None]] = [
    ("content-type", b"application/cloudevents+json"),
    ("content-type", b"application/cloudevents+json; charset=UTF-8"),
    ("content-type", b"application/cloudevents-batch+json"),
    ("content-type", b"application/cloudevents-batch+json"),
]
_RESPONSES: list[dict[str, Any]] = [
    RESPONSE_EXAMPLE,
    {
        "model_name": "m",
        "id": "r",
        "parameters": {"attributes.camera": "dock", "other": 1},
        "outputs": [
            {"name": "probabilities", "datatype": "FP32", "shape": [3, 3], "data": [0.5, 0.25, 0.25] * 3},
            {"name": "time", "datatype": "BYTES", "shape": [3], "data": ["2026-01-31T12:00:00Z"] * 3},
        ],
    },
    {
        "model_name": "m",
        "outputs": [
            {"name": "item_id", "datatype": "INT64", "shape": [2, 1], "data": [[17], [18]]},
            {"name": "probabilities", "datatype": "FP64", "shape": [2, 2], "data": [[0.5, 0.5], [1, 0]]},
            {"name": "payload_uri", "datatype": "BYTES", "shape": [2], "data": ["s3://a", "s3://b"]},
            {"name": "attributes.shift", "datatype": "BYTES", "shape": [2], "data": ["day", "night"]},
            {"name": "binary", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
        ],
    },
]


def _native(chooser: Chooser) -> int:
    text = mutators.value(chooser)
    decoders_stand(text)
    if chooser.below(4) == 3:
        decoders_agree_with_the_contract(mutators.message(chooser))
    records = [Record(text, mutators.headers(chooser)) for _ in range(_few(chooser))]
    records += [Record(mutators.message(chooser), []) for _ in records[1:]]
    headers_stand(records[0].headers)
    return _DECODERS.stand(records)


def _events(chooser: Chooser) -> int:
    data = _data(chooser)
    kind = mutators.pick(chooser, [PREDICTION_TYPE, PREDICTION_TYPE, LABEL_TYPE, RESPONSE_TYPES[0], "other"])
    event = _EVENT | {"type": kind} | data
    header = mutators.pick(chooser, _EVENT_TYPES)
    is_batch = header in _EVENT_TYPES[2:]
    text = tree(chooser, [event] * _few(chooser) if is_batch else event)
    headers: Headers = [header]
    if chooser.below(4) == 3:
        headers += mutators.headers(chooser)
    return _DECODERS.stand([Record(mutators.damaged(chooser, text), headers)])


def _data(chooser: Chooser) -> dict[str, Any]:
    """Data of an event: a message, an array, a response, or any value in base64."""
    how = chooser.below(8)
    if how <= 2:
        return {"data": mutators.pick(chooser, mutators.BASES)}
    if how == 3:
        return {"data": mutators.BASES[:3]}
    if how == 4:
        return {"data": mutators.pick(chooser, _RESPONSES)}
    value = (
        _avro_record(chooser) if how == 5 else _proto_record(chooser) if how == 6 else mutators.value(chooser)
    )
    return {"data_base64": base64.b64encode(value).decode()}


def _inference(chooser: Chooser) -> int:
    text = tree(chooser, mutators.pick(chooser, _RESPONSES))
    declared: Headers = [("ce_type", mutators.pick(chooser, RESPONSE_TYPES).encode())]
    headers = mutators.pick(chooser, [[], [], declared, [*declared, ("ce_specversion", b"0.3")]])
    if chooser.below(16) == 15:
        headers = mutators.headers(chooser)
    return _DECODERS.stand([Record(mutators.damaged(chooser, text), headers)])


def _mapped(chooser: Chooser) -> int:
    kind = chooser.below(4)
    text = (
        tree(chooser, mutators.pick(chooser, RECORDS))
        if kind <= 1
        else _avro_record(chooser)
        if kind == 2
        else _proto_record(chooser)
    )
    headers: Headers = [("host", b"gate"), *mutators.headers(chooser)]
    if chooser.below(8) == 7:
        event = _EVENT | {"type": "other", "data_base64": base64.b64encode(text).decode()}
        text, headers = tree(chooser, event), [_EVENT_TYPES[0]]
    record = Record(mutators.damaged(chooser, text), headers, mutators.pick(chooser, [None, b"k", b"\xff"]))
    return mutators.pick(chooser, _MAPPED).stand([record])


def _avro_record(chooser: Chooser) -> bytes:
    number = mutators.pick(chooser, [*AVRO])
    return framed(number, avro_value(chooser, AVRO[number]))


def _proto_record(chooser: Chooser) -> bytes:
    number = mutators.pick(chooser, [*PROTO])
    name, indexes = mutators.pick(chooser, PROTO_MESSAGES[number])
    if chooser.below(64) == 63:
        indexes = mutators.pick(chooser, [b"", b"\x02", b"\x40", b"\xff" * 11, b"\x04\x00\x00", b"\x01"])
    return framed(number, indexes + proto_value(chooser, proto_class(PROTO[number], name).DESCRIPTOR))


def _json_schema(chooser: Chooser) -> int:
    text = mutators.value(chooser) if chooser.below(2) else tree(chooser, mutators.pick(chooser, _RESPONSES))
    return _DECODERS.stand([Record(framed(3, text), mutators.headers(chooser))])


def _prefixes(chooser: Chooser) -> int:
    number = mutators.pick(chooser, [*SCHEMAS, 0, 99, 2**31, 2**32 - 1])
    content = mutators.pick(chooser, [b"", b"\0", b"\0" * 40, b"{}", mutators.message(chooser)])
    value = framed(number, content)
    how = chooser.below(4)
    if how == 0:
        value = value[: chooser.below(8)]
    elif how == 1:
        value = mutators.pick(chooser, [b"\0", b"\1", b"\2", b"\0\0\0", b"\xff\xff\xff\xff"]) + value
    return _DECODERS.stand([Record(mutators.damaged(chooser, value), mutators.headers(chooser))])


def _binary(
    make: Callable[[Chooser], bytes], *declared: tuple[str, bytes | None]
) -> Callable[[Chooser], int]:
    """Values of a binary format: mostly as they were made, some with bytes damaged."""

    def use(chooser: Chooser) -> int:
        headers = mutators.headers(chooser) if chooser.below(8) == 7 else [*declared] * chooser.below(2)
        value = make(chooser)
        if chooser.below(8) == 7:
            value = mutators.damaged(chooser, value)
        records = [Record(value, headers)]
        records += [Record(make(chooser), headers) for _ in range(_few(chooser) - 1)]
        return _DECODERS.stand(records)

    return use


def _avro_together(chooser: Chooser) -> int:
    """Values of one schema, as many as are read together, among a few that may be odd."""
    values = [mutators.pick(chooser, _USUAL) for _ in range(4)] * (_TOGETHER // 4)
    for _ in range(chooser.below(4)):
        odd = _framed_prediction(chooser) if chooser.below(2) else mutators.pick(chooser, _USUAL)
        values[chooser.below(len(values))] = mutators.damaged(chooser, odd)
    return _DECODERS.stand([Record(value, []) for value in values])


def _framed_prediction(chooser: Chooser) -> bytes:
    return framed(1, avro_value(chooser, AVRO_PREDICTION))


def _avro_schemas(chooser: Chooser) -> int:
    text = avro_schema(chooser, mutators.pick(chooser, [*AVRO.values()]))
    base = mutators.pick(chooser, [AVRO_PREDICTION, *AVRO.values()])
    return _read_by(RegisteredSchema("AVRO", text, {}), framed(1, avro_value(chooser, base)))


def _proto_schemas(chooser: Chooser) -> int:
    number = mutators.pick(chooser, [*PROTO])
    text = proto_text(chooser, PROTO[number])
    references = {"other.proto": proto_text(chooser, PROTO_PREDICTION)} if chooser.below(4) == 3 else {}
    name, indexes = mutators.pick(chooser, PROTO_MESSAGES[number])
    value = indexes + proto_value(chooser, proto_class(PROTO[number], name).DESCRIPTOR)
    return _read_by(RegisteredSchema("PROTOBUF", text, references), framed(1, value))


def _read_by(schema: RegisteredSchema, value: bytes) -> int:
    """Use a schema and a value; how many bytes they have."""
    decoders = decoders_of(RegisteredValues(Registered({1: schema}), cached=1))
    return len(schema.text) + decoders.stand([Record(value, [])])


def _few(chooser: Chooser) -> int:
    """Mostly one; some decoders take several together."""
    return mutators.pick(chooser, [1, 1, 1, 3])


TARGETS: dict[str, Callable[[Chooser], int]] = {
    "native": _native,
    "events": _events,
    "inference": _inference,
    "mapping": _mapped,
    "avro": _binary(_avro_record),
    "avro_together": _avro_together,
    "protobuf": _binary(_proto_record),
    "json_schema": _json_schema,
    "prefixes": _prefixes,
    "arrow": _binary(arrow_stream, ("content-type", CONTENT_TYPE)),
    "avro_schemas": _avro_schemas,
    "protobuf_schemas": _proto_schemas,
}
"""By the name of a decoder: gives it an input that a chooser makes, checks all that must hold, and returns
how many bytes the input has."""

SLOW = {"protobuf_schemas": 1_000, "avro_together": 10}
"""Of a million inputs, how many share one: protoc runs for every .proto, and many values are one input."""
