"""Records of another shape, and what a mapping reads from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from schema_values import Registered

from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.mapping import RecordMapper
from consumers.formats.messages import TopicMessages
from consumers.formats.native import WirePrediction
from consumers.formats.records import decode_records
from consumers.formats.registered import RegisteredValues
from service.config.mapping import PredictionMapping
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

CLASSES = {"sorter": ["cat", "dog", "owl"]}
MAPPING: dict[str, Any] = {
    "model": {"value": "sorter"},
    "item_id": "$.request.id",
    "predicted_class": {"path": "$.out[0].label", "names": {0: "cat", 1: "dog"}},
    "score": "$.out[0].p",
    "time": {"path": "$.ts", "unit": "ms", "required": False},
    "attributes": {"region": "$.request['the region']", "host": "$headers.host"},
}
RECORD: dict[str, Any] = {
    "request": {"id": 17, "the region": "north"},
    "out": [{"label": 1, "p": 0.75}],
    "ts": 1_769_860_800_250,
}


@dataclass
class Record:
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None


def topic(mapping: dict[str, Any], schemas: dict[int, RegisteredSchema] | None = None) -> MappedTopic:
    settings = PredictionMapping.model_validate(mapping)
    registered = RegisteredValues(Registered(schemas or {}), cached=10)
    mapper = RecordMapper(settings.mapping(), CLASSES)
    return MappedTopic(TopicMessages(PREDICTION_TYPE, registered=registered, mapper=mapper).rewrite)


def read(
    value: bytes | dict[str, Any], mapping: dict[str, Any] = MAPPING, **of_record: Any
) -> WirePrediction | BadMessage:
    content = json.dumps(value).encode() if isinstance(value, dict) else value
    schemas = of_record.pop("schemas", None)
    decoded = decode_records(
        [Record(content, **of_record)], message_bytes=1_000_000, formats=topic(mapping, schemas)
    )
    assert len(decoded.predictions) + len(decoded.errors) == 1
    return decoded.predictions[0] if decoded.predictions else decoded.errors[0][2]


def good(value: bytes | dict[str, Any], mapping: dict[str, Any] = MAPPING, **more: Any) -> WirePrediction:
    found = read(value, mapping, **more)
    assert isinstance(found, WirePrediction), found
    return found


def refusal(value: bytes | dict[str, Any], mapping: dict[str, Any] = MAPPING, **more: Any) -> tuple[str, str]:
    found = read(value, mapping, **more)
    assert isinstance(found, BadMessage), found
    return found.reason, found.detail
