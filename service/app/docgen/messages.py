"""Schemas and examples of the wire messages, made from their models; and the AsyncAPI document."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import yaml

from service.app.docgen.generated_files import page_template
from service.app.docgen.schemas import Schema, schema_of
from service.config.settings import KafkaSettings
from service.domain.messages import (
    EXAMPLES,
    LABEL_REQUEST_TYPE,
    LABEL_TYPE,
    MESSAGES,
    PREDICTION_TYPE,
    Message,
    cloudevents_headers,
)
from service.domain.open_inference import (
    RESPONSE_CLOUDEVENTS_VERSIONS,
    RESPONSE_EXAMPLE,
    RESPONSE_TYPES,
    InferenceResponse,
)

DEFAULTS = KafkaSettings()
"""Topics and groups as they are named without configuration."""

EVENT_TYPES = {"Prediction": PREDICTION_TYPE, "LabelRequest": LABEL_REQUEST_TYPE, "Label": LABEL_TYPE}
PRODUCED = frozenset({"LabelRequest"})

# What the models' validators check across fields: pydantic cannot put Python code into a schema.
# That probabilities sum to 1, JSON Schema cannot say at all.
ACROSS_FIELDS: dict[str, Schema] = {
    "Prediction": {
        "anyOf": [
            {
                "required": ["predicted_class", "score"],
                "properties": {"predicted_class": {"type": "string"}, "score": {"type": "number"}},
            },
            {"required": ["probabilities"], "properties": {"probabilities": {"type": "array"}}},
        ],
        "not": {
            "required": ["payload", "payload_uri"],
            "properties": {"payload": {"not": {"type": "null"}}, "payload_uri": {"type": "string"}},
        },
    },
    "LabelRequest": {},
    "Label": {
        "if": {"properties": {"kind": {"enum": ["answer", "correction"]}}},
        "then": {"required": ["true_class"], "properties": {"true_class": {"type": "string"}}},
        "else": {"properties": {"true_class": {"type": "null"}}},
        "anyOf": [
            {
                "required": ["request_id"],
                "properties": {
                    "request_id": {"type": "string"},
                    "probability": {"type": "null"},
                    "prediction": {"type": "null"},
                },
            },
            {
                "properties": {
                    "request_id": {"type": "null"},
                    "kind": {"enum": ["answer", "correction", "retraction"]},
                },
            },
        ],
    },
}

_LABELLED_PREDICTION = {
    "predicted_class": "1",
    "score": 0.9,
    "attributes": {"camera": "dock"},
    "time": "2026-01-31T12:00:00Z",
}


def json_text(document: Schema | list[Schema]) -> str:
    """Indented JSON, with the innermost lists on one line: the example has ten probabilities."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return re.sub(r"\[\n[^\[\]{}]*\]", lambda found: _on_one_line(found[0]), text) + "\n"


def _on_one_line(values: str) -> str:
    return re.sub(r"\s*\n\s*", " ", values).replace("[ ", "[").replace(" ]", "]")


def schema_file(name: str) -> str:
    """Name of the file that holds a message's JSON Schema."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower() + ".schema.json"


def message_schema(name: str) -> Schema:
    """The JSON Schema, draft 2020-12, of one message."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:credence:{EVENT_TYPES[name]}",
        **schema_of(MESSAGES[name]),
        **ACROSS_FIELDS[name],
        "examples": message_examples(name),
    }


def message_examples(name: str) -> list[dict[str, Any]]:
    """Valid examples of one message; the first is the one of `service.domain.messages`."""
    first = EXAMPLES[name]
    if name == "Prediction":
        second = {"model": first["model"], "item_id": "img-000018", "predicted_class": "3", "score": 0.87}
        return [first, {**second, "time": first["time"]}]
    if name == "Label":
        bare = {key: value for key, value in first.items() if key != "true_class"}
        correction = {**first, "kind": "correction", "true_class": "1"}
        unrequested = {key: first[key] for key in ("model", "item_id", "true_class", "time")}
        return [
            first,
            {**bare, "kind": "skip"},
            correction,
            {**bare, "kind": "retraction"},
            unrequested,
            {**unrequested, "probability": 0.05, "prediction": _LABELLED_PREDICTION},
        ]
    return [first]


def _response_header_example() -> dict[str, str]:
    """CloudEvents headers of the example of an inference response."""
    return {
        "ce_specversion": RESPONSE_CLOUDEVENTS_VERSIONS[0],
        "ce_id": RESPONSE_EXAMPLE["id"],
        "ce_source": "http://localhost:9081/",
        "ce_type": RESPONSE_TYPES[0],
        "ce_time": "2026-01-31T12:00:00Z",
        "content-type": "application/json",
    }


def header_example(name: str) -> dict[str, str]:
    """The CloudEvents headers of a message's first example."""
    example = EXAMPLES[name]
    pairs = cloudevents_headers(
        event_type=EVENT_TYPES[name],
        event_id="/".join(str(example[key]) for key in ("request_id", "attempt") if key in example)
        or example["item_id"],
        source=f"/credence/models/{example['model']}" if name in PRODUCED else "/factory/line-4",
        time=datetime.fromisoformat(example.get("time") or example["requested_at"]),
    )
    return {key: value.decode() for key, value in pairs}


def asyncapi_document() -> Schema:
    """The AsyncAPI 3.0 document, seen from Credence: what it receives and what it sends."""
    document: Schema = yaml.safe_load(page_template("asyncapi.yaml").format(kafka=DEFAULTS))
    messages = document["components"]["messages"]
    for name, model in MESSAGES.items():
        examples = [{"headers": header_example(name), "payload": each} for each in message_examples(name)]
        messages[name] |= {"summary": _summary(model), "examples": examples}
    batch = {"headers": header_example("Prediction"), "payload": message_examples("Prediction")}
    messages["PredictionBatch"]["examples"] = [batch]
    response = {"headers": _response_header_example(), "payload": RESPONSE_EXAMPLE}
    messages["InferenceResponse"] |= {"summary": _summary(InferenceResponse), "examples": [response]}
    document["components"] = {
        "messages": {
            name: {"name": name, "title": name, "contentType": document["defaultContentType"]} | message
            for name, message in messages.items()
        },
        "schemas": _schemas(),
    }
    return document


def _summary(model: type[Message]) -> str:
    summary: str = schema_of(model)["description"]
    return summary.partition("\n\n")[0]


def _schemas() -> Schema:
    schemas: Schema = {}
    models: dict[str, type[Message]] = MESSAGES | {"InferenceResponse": InferenceResponse}
    for name, model in models.items():
        schema = {**schema_of(model), **ACROSS_FIELDS.get(name, {})}
        schemas.update({**schema.pop("$defs", {}), name: schema})
    # AsyncAPI's own tools resolve references from the root of the document only.
    moved: Schema = json.loads(json.dumps(schemas).replace('"#/$defs/', '"#/components/schemas/'))
    return moved
