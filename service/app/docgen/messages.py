"""Schemas, headers and examples of the wire messages, made from the models in `service.domain.messages`."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from service.app.docgen.schemas import Schema, schema_of
from service.config.settings import KafkaSettings
from service.domain.label_signatures import SIGNATURE_HEADER, VENDOR_HEADER
from service.domain.messages import (
    CLOUDEVENTS_VERSION,
    EXAMPLES,
    LABEL_REQUEST_TYPE,
    LABEL_TYPE,
    MESSAGES,
    PREDICTION_TYPE,
    cloudevents_headers,
)
from service.domain.open_inference import RESPONSE_CLOUDEVENTS_VERSIONS, RESPONSE_EXAMPLE, RESPONSE_TYPES

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
    },
}

SIGNATURE_HEADERS: Schema = {
    VENDOR_HEADER: {
        "type": "string",
        "description": "who answered, by its name in the configuration; needed where vendors are configured",
    },
    SIGNATURE_HEADER: {
        "type": "string",
        "pattern": "^v1=[0-9a-f]{64}$",
        "description": "`v1=` and a hexadecimal HMAC-SHA256 with the vendor's label key, of the vendor's "
        "name, a line feed and the record's value; needed where vendors are configured",
    },
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
        return [first, {**bare, "kind": "skip"}, correction, {**bare, "kind": "retraction"}]
    return [first]


def header_schema(name: str) -> Schema:
    """Schema of a message's headers; required on what Credence sends, and only there."""
    properties: Schema = {
        "ce_specversion": {"const": CLOUDEVENTS_VERSION, "description": "version of CloudEvents"},
        "ce_id": {"type": "string", "minLength": 1, "description": "unique together with `ce_source`"},
        "ce_source": {"type": "string", "minLength": 1, "description": "who sent it, a URI reference"},
        "ce_type": {"const": EVENT_TYPES[name], "description": "what the value is"},
        "ce_time": {"type": "string", "format": "date-time", "description": "when it happened"},
        "content-type": {"type": "string", "description": "how the value is written"},
    }
    if name == "Label":
        properties |= SIGNATURE_HEADERS
    if name not in PRODUCED:
        return {"type": "object", "properties": properties}
    properties["content-type"]["const"] = "application/json"
    return {"type": "object", "required": list(properties), "properties": properties}


def response_header_schema() -> Schema:
    """Schema of the CloudEvents headers of an inference response, as model servers write them."""
    schema = header_schema("Prediction")
    schema["properties"]["ce_specversion"] |= {"enum": list(RESPONSE_CLOUDEVENTS_VERSIONS)}
    schema["properties"]["ce_type"] |= {"enum": list(RESPONSE_TYPES)}
    for name in ("ce_specversion", "ce_type"):
        del schema["properties"][name]["const"]
    return schema


def response_header_example() -> dict[str, str]:
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
