"""The AsyncAPI 3.0 document."""

from __future__ import annotations

import json

from service.app.docgen.messages import (
    ACROSS_FIELDS,
    DEAD_LETTER_EXAMPLE,
    DEAD_LETTER_HEADERS,
    DEFAULTS,
    header_example,
    header_schema,
    message_examples,
    response_header_example,
    response_header_schema,
)
from service.app.docgen.schemas import Schema, schema_of
from service.domain.messages import MESSAGES, Message
from service.domain.open_inference import RESPONSE_EXAMPLE, InferenceResponse

CONTRACT_VERSION = "1.0.0"
"""Counts apart from the package: its first number is the `v1` of the event types."""

_KAFKA_BINDING = {"bindingVersion": "0.5.0"}


def asyncapi_document() -> Schema:
    """The AsyncAPI 3.0 document, seen from Credence: what it receives and what it sends."""
    topics, prefix = DEFAULTS.topics, DEFAULTS.group_prefix
    messages = {
        **{name: _message(name) for name in MESSAGES},
        "PredictionBatch": _batch_message(),
        "InferenceResponse": _response_message(),
        "DeadLetter": _dead_letter_message(),
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Credence",
            "version": CONTRACT_VERSION,
            "description": "Watches deployed classifiers with few labels. Topic names are the defaults.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": DEFAULTS.bootstrap_servers[0],
                "protocol": "kafka",
                "description": "the default of `kafka.bootstrap_servers`",
            }
        },
        "channels": {
            "predictions": _channel(
                topics.predictions,
                "What the models say.",
                "Prediction",
                "PredictionBatch",
                "InferenceResponse",
            ),
            "label-requests": _channel(topics.label_requests, "What people are asked.", "LabelRequest"),
            "labels": _channel(topics.labels, "What people answer.", "Label"),
            "dead-letters": _channel(topics.dead_letters, "Messages that were refused.", "DeadLetter"),
        },
        "operations": {
            "receivePredictions": _operation("receive", "predictions", group=f"{prefix}.predictions"),
            "sendLabelRequests": _operation("send", "label-requests"),
            "receiveLabels": _operation("receive", "labels", group=f"{prefix}.labels"),
            "sendDeadLetters": _operation("send", "dead-letters"),
        },
        "components": {"messages": messages, "schemas": _component_schemas()},
    }


def _component_schemas() -> Schema:
    schemas: Schema = {}
    models: dict[str, type[Message]] = MESSAGES | {"InferenceResponse": InferenceResponse}
    for name, model in models.items():
        schema = {**schema_of(model), **ACROSS_FIELDS.get(name, {})}
        schemas.update({**schema.pop("$defs", {}), name: schema})
    # AsyncAPI's own tools resolve references from the root of the document only.
    moved: Schema = json.loads(json.dumps(schemas).replace('"#/$defs/', '"#/components/schemas/'))
    return moved


def _channel(topic: str, summary: str, *messages: str) -> Schema:
    return {
        "address": topic,
        "summary": summary,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"kafka": {"topic": topic, **_KAFKA_BINDING}},
    }


def _operation(action: str, channel: str, *, group: str = "") -> Schema:
    binding = {"groupId": {"type": "string", "const": group}, **_KAFKA_BINDING}
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        **({"bindings": {"kafka": binding}} if group else {}),
    }


def _message(name: str) -> Schema:
    return {
        "name": name,
        "title": name,
        "summary": schema_of(MESSAGES[name])["description"].split("\n\n")[0],
        "contentType": "application/json",
        "headers": header_schema(name),
        "payload": {"$ref": f"#/components/schemas/{name}"},
        "bindings": _key("the item id"),
        "examples": [
            {"headers": header_example(name), "payload": example} for example in message_examples(name)
        ],
    }


def _batch_message() -> Schema:
    return {
        **_message("Prediction"),
        "name": "PredictionBatch",
        "title": "PredictionBatch",
        "summary": "Several predictions in one record; each is accepted or refused by itself.",
        "payload": {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}},
        "bindings": _key("any; it chooses the partition and nothing else"),
        "examples": [{"headers": header_example("Prediction"), "payload": message_examples("Prediction")}],
    }


def _response_message() -> Schema:
    return {
        "name": "InferenceResponse",
        "title": "InferenceResponse",
        "summary": schema_of(InferenceResponse)["description"],
        "description": "Each row is accepted or refused by itself. README.md says what its tensors must be.",
        "contentType": "application/json",
        "headers": response_header_schema(),
        "payload": {"$ref": "#/components/schemas/InferenceResponse"},
        "bindings": _key("any, or none; it chooses the partition and nothing else", nullable=True),
        "examples": [{"headers": response_header_example(), "payload": RESPONSE_EXAMPLE}],
    }


def _dead_letter_message() -> Schema:
    return {
        "name": "DeadLetter",
        "title": "DeadLetter",
        "summary": "A message that was refused: its own text, and headers that say why and where it stood.",
        "contentType": "application/octet-stream",
        "headers": DEAD_LETTER_HEADERS,
        "payload": {"description": "the refused message, byte for byte; it need not be JSON"},
        "bindings": _key("the key of the refused message's record, unchanged", nullable=True),
        "examples": [DEAD_LETTER_EXAMPLE],
    }


def _key(description: str, *, nullable: bool = False) -> Schema:
    key_type = ["string", "null"] if nullable else "string"
    return {"kafka": {"key": {"type": key_type, "description": description}, **_KAFKA_BINDING}}
