"""Mappings that use every rule, and records of the shapes that they describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.mapping import RecordMapper
from consumers.formats.messages import TopicMessages
from consumers.formats.registered import RegisteredValues
from service.config.mapping import LabelMapping, PredictionMapping
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE

CLASSES = {"m": ["cat", "dog", "owl"], "n": ["cat", "dog"]}

_PREDICTIONS: list[dict[str, Any]] = [
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
    },
    {
        "model": {"value": "m"},
        "item_id": ["$.request.id", "$.case.id"],
        "probabilities": {"path": ["$.spread", "$.out[0].p"], "names": {"CAT": "cat", 1: "dog"}},
        "time": {"path": "$.ts"},
        "attributes": {
            "region": "$.request.meta.region",
            "host": {"path": "$headers.host", "required": True},
        },
        "all_attributes": "$.request.meta",
        "votes": {"first": {"path": "$.out[1].label", "names": {0: "cat"}}},
        "payload": "$.out",
        "payload_uri": "$.uri",
    },
]
_LABELS: list[dict[str, Any]] = [
    {
        "model": {"path": "$.model"},
        "item_id": ["$.item_id", "$.id"],
        "request_id": {"path": "$.request_id"},
        "true_class": {"path": ["$.true_class", "$.label"], "names": {"true": "cat", "false": "dog"}},
        "time": {"path": "$.time"},
        "annotator": "$.annotator",
    },
    {
        "model": {"value": "m"},
        "item_id": "$.request.id",
        "kind": {"path": "$.kind", "names": {1: "answer", 2: "retraction"}},
        "true_class": {"path": "$.out[0].label", "required": False},
        "time": {"path": "$.ts", "unit": "us"},
        "probability": "$.out[0].p",
    },
]
RECORDS: list[dict[str, Any]] = [
    {
        "request": {"id": 17, "meta": {"region": "north", "zone": 4, "on": True, "load": 0.5}},
        "out": [{"label": 1, "p": {"CAT": 0.5, "1": 0.25, "owl": 0.25}}, {"label": 0, "p": 0.25}],
        "spread": {"CAT": 0.5, "1": 0.25, "owl": 0.25},
        "ts": "2026-01-31T12:00:00Z",
        "uri": "s3://bucket/key",
        "kind": 1,
    },
    {
        "model": "m",
        "id": "a",
        "label": "cat",
        "score": "0.93",
        "p": [0.5, 0.25, 0.25],
        "ts": 1_769_860_800_250,
        "lists": [["x"], [1]],
        "annotator": "ana",
        "true_class": True,
        "request_id": "r",
    },
    {
        "name": "m",
        "id": 17.0,
        "predicted_class": "dog",
        "score": 1,
        "date": "1769860800000.5",
        "lists": [[2.5]],
    },
]
"""Values as records have them, before they are changed."""


def _topic(mapping: dict[str, Any]) -> Callable[[RegisteredValues], MappedTopic]:
    mapper = RecordMapper(PredictionMapping.model_validate(mapping).mapping(), CLASSES)
    return lambda values: MappedTopic(
        TopicMessages(PREDICTION_TYPE, registered=values, mapper=mapper).rewrite
    )


def _label_topic(mapping: dict[str, Any]) -> Callable[[RegisteredValues], TopicMessages]:
    mapper = RecordMapper(LabelMapping.model_validate(mapping).mapping(), CLASSES)
    return lambda values: TopicMessages(LABEL_TYPE, registered=values, mapper=mapper)


MAPPINGS = [_topic(mapping) for mapping in _PREDICTIONS]
LABEL_MAPPINGS = [_label_topic(mapping) for mapping in _LABELS]
