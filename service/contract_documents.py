"""The contract as documents: JSON Schemas, an AsyncAPI document, and a page for people.

All of them are made from the models in `service.contract`, so that they cannot say
anything but what is checked. `contract_files` is pure; `docs/contract/` is its output.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from service.contract import (
    CLOUDEVENTS_VERSION,
    EXAMPLES,
    LABEL_REQUEST_TYPE,
    LABEL_TYPE,
    MESSAGES,
    PREDICTION_TYPE,
    PROBABILITY_SUM_TOLERANCE,
    SCORE_TOLERANCE,
    cloudevents_headers,
)
from service.settings import KafkaSettings
from service.settings_reference import Schema, in_words, schema_of, table

CONTRACT_VERSION = "1.0.0"
"""Counts apart from the package: its first number is the `v1` of the event types."""

_TYPES = {"Prediction": PREDICTION_TYPE, "LabelRequest": LABEL_REQUEST_TYPE, "Label": LABEL_TYPE}
_PRODUCED = frozenset({"LabelRequest"})
_KAFKA = KafkaSettings()
_KAFKA_BINDING = {"bindingVersion": "0.5.0"}

# What the models' validators check across fields: pydantic cannot put Python code into a schema.
# That probabilities sum to 1, JSON Schema cannot say at all.
_ACROSS_FIELDS: dict[str, Schema] = {
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

_NUMBER = {"type": "string", "pattern": "^[0-9]+$"}
_ALWAYS_ON_DEAD_LETTERS = ("reason", "detail", "source-topic", "source-partition", "source-offset")
_DEAD_LETTER_HEADERS: Schema = {
    "type": "object",
    "required": [f"credence-{name}" for name in _ALWAYS_ON_DEAD_LETTERS],
    "properties": {
        "credence-reason": {"type": "string", "description": "why, in one word of a fixed list"},
        "credence-detail": {"type": "string", "description": "why, in a sentence that quotes no content"},
        "credence-source-topic": {"type": "string", "description": "topic that the message came from"},
        "credence-source-partition": {**_NUMBER, "description": "partition that it came from"},
        "credence-source-offset": {**_NUMBER, "description": "offset of its record"},
        "credence-source-index": {
            **_NUMBER,
            "description": "its position in an array, from 0; absent for a single message",
        },
        "credence-truncated": {
            **_NUMBER,
            "description": "length of the whole value in bytes; present when the value was cut",
        },
    },
}
_DEAD_LETTER_EXAMPLE: Schema = {
    "name": "DeadLetter",
    "headers": {
        "credence-reason": "missing_field",
        "credence-detail": "give predicted_class and score, or probabilities",
        "credence-source-topic": _KAFKA.topics.predictions,
        "credence-source-partition": "2",
        "credence-source-offset": "40812",
        "credence-source-index": "1",
    },
    "payload": {"model": "digits", "item_id": "img-000019"},
}


def contract_files() -> dict[str, str]:
    """Text of every file of `docs/contract/`, by name."""
    files = {schema_file(name): _json(message_schema(name)) for name in MESSAGES}
    return {**files, "asyncapi.json": _json(asyncapi_document()), "README.md": contract_page()}


def write_contract(directory: Path) -> list[Path]:
    """Write the files of `contract_files`; the directory is made where it is missing.

    Returns:
        The files that were written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in contract_files().items():
        paths.append(directory / name)
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def _json(document: Schema) -> str:
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
        "$id": f"urn:credence:{_TYPES[name]}",
        **schema_of(MESSAGES[name]),
        **_ACROSS_FIELDS[name],
        "examples": message_examples(name),
    }


def message_examples(name: str) -> list[dict[str, Any]]:
    """Valid examples of one message; the first is the one of `service.contract`."""
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
    """Schema of a message's CloudEvents headers; required on what Credence sends, and only there."""
    properties: Schema = {
        "ce_specversion": {"const": CLOUDEVENTS_VERSION, "description": "version of CloudEvents"},
        "ce_id": {"type": "string", "minLength": 1, "description": "unique together with `ce_source`"},
        "ce_source": {"type": "string", "minLength": 1, "description": "who sent it, a URI reference"},
        "ce_type": {"const": _TYPES[name], "description": "what the value is"},
        "ce_time": {"type": "string", "format": "date-time", "description": "when it happened"},
        "content-type": {"type": "string", "description": "how the value is written"},
    }
    if name not in _PRODUCED:
        return {"type": "object", "properties": properties}
    properties["content-type"]["const"] = "application/json"
    return {"type": "object", "required": list(properties), "properties": properties}


def header_example(name: str) -> dict[str, str]:
    """The CloudEvents headers of a message's first example."""
    example = EXAMPLES[name]
    pairs = cloudevents_headers(
        event_type=_TYPES[name],
        event_id="/".join(str(example[key]) for key in ("request_id", "attempt") if key in example)
        or example["item_id"],
        source=f"/credence/models/{example['model']}" if name in _PRODUCED else "/factory/line-4",
        time=datetime.fromisoformat(example.get("time") or example["requested_at"]),
    )
    return {key: value.decode() for key, value in pairs}


def asyncapi_document() -> Schema:
    """The AsyncAPI 3.0 document, seen from Credence: what it receives and what it sends."""
    topics, prefix = _KAFKA.topics, _KAFKA.group_prefix
    messages = {
        **{name: _message(name) for name in MESSAGES},
        "PredictionBatch": _batch_message(),
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
                "host": _KAFKA.bootstrap_servers[0],
                "protocol": "kafka",
                "description": "the default of `kafka.bootstrap_servers`",
            }
        },
        "channels": {
            "predictions": _channel(
                topics.predictions, "What the models say.", "Prediction", "PredictionBatch"
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
    for name, model in MESSAGES.items():
        schema = {**schema_of(model), **_ACROSS_FIELDS[name]}
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


def _dead_letter_message() -> Schema:
    return {
        "name": "DeadLetter",
        "title": "DeadLetter",
        "summary": "A message that was refused: its own text, and headers that say why and where it stood.",
        "contentType": "application/octet-stream",
        "headers": _DEAD_LETTER_HEADERS,
        "payload": {"description": "the refused message, byte for byte; it need not be JSON"},
        "bindings": _key("the key of the refused message's record, unchanged", nullable=True),
        "examples": [_DEAD_LETTER_EXAMPLE],
    }


def _key(description: str, *, nullable: bool = False) -> Schema:
    key_type = ["string", "null"] if nullable else "string"
    return {"kafka": {"key": {"type": key_type, "description": description}, **_KAFKA_BINDING}}


def contract_page() -> str:
    """The contract in words, for people: `README.md`."""
    topics = _KAFKA.topics
    headers = header_schema("LabelRequest")
    headers["properties"]["ce_type"] = {"description": "the message's type, see below"}
    rows = [
        (f"`{topics.predictions}`", "reads", "[Prediction](#prediction), or an array of them"),
        (f"`{topics.label_requests}`", "writes", "[LabelRequest](#labelrequest)"),
        (f"`{topics.labels}`", "reads", "[Label](#label)"),
        (f"`{topics.dead_letters}`", "writes", "[refused messages](#dead-letters)"),
    ]
    return _PAGE.format(
        channels=table(("topic (default name)", "Credence", "message"), rows),
        headers=_header_table(headers),
        dead_letter_headers=_header_table(_DEAD_LETTER_HEADERS),
        messages="\n\n".join(_message_section(name) for name in MESSAGES),
        score_tolerance=f"{SCORE_TOLERANCE:g}",
        sum_tolerance=f"{PROBABILITY_SUM_TOLERANCE:g}",
    )


def _message_section(name: str) -> str:
    schema = schema_of(MESSAGES[name])
    file = schema_file(name)
    parts = [f"## {name}", schema["description"], f"`ce_type`: `{_TYPES[name]}`. Schema: [{file}]({file})."]
    parts.append(_field_table(schema))
    for part, inner in schema.get("$defs", {}).items():
        parts += [f"`{part}`: {inner['description']}", _field_table(inner)]
    parts += [f"```json\n{_json(example)}```" for example in message_examples(name)]
    return "\n\n".join(parts)


def _field_table(schema: Schema) -> str:
    rows = []
    for name, field in schema["properties"].items():
        default = field.get("default")
        required = "yes" if name in schema["required"] else "no" if default is None else f"no, `{default}`"
        rows.append((f"`{name}`", in_words(field), required, field["description"]))
    return table(("field", "type", "required", "meaning"), rows)


def _header_table(schema: Schema) -> str:
    rows = [
        (f"`{name}`", f"`{header['const']}`" if "const" in header else "", header["description"])
        for name, header in schema["properties"].items()
    ]
    return table(("header", "value", "meaning"), rows)


_PAGE = """\
# The wire contract

Credence talks over Kafka topics to the models that it watches and to the people who label. This page and
the files beside it are made from `service/contract.py` by `credence contract`; change them there.
[asyncapi.json](asyncapi.json) says the same for machines.

{channels}

## Records

- The **value** is the JSON of one message, in UTF-8.
- The **key** is the item id. It keeps what is said of one item in order.
- The **headers** follow CloudEvents 1.0, binary mode. What Credence writes always has all of them. What it
  reads need not have any; but a `ce_specversion` or `ce_type` that does not fit is refused.

{headers}

Rules for everything that Credence reads:

- Keys that are not listed are ignored, so a newer producer does no harm.
- Values are not converted: `"0.9"` is no number, and `1` is no class name.
- Times are RFC 3339 with their offset from UTC. Without `time`, `ce_time` counts; without both, the record's
  own time. A time in the future is not believed.
- Longest value and payload are configured: `bounds.message_bytes`, `bounds.payload_bytes`.
- What cannot be used goes to the dead-letter topic and stops nothing. A flood of it stops the consumer.

{messages}

## Rules of predictions

- A record holds one prediction, or an array of them. Of an array, each is accepted or refused by itself; the
  record's key then only chooses the partition.
- A score or probability up to {score_tolerance} outside [0, 1] is clipped; further out it is refused.
- `probabilities` has one entry per configured class, in that order, and sums to 1, give or take
  {sum_tolerance}.
- The predicted class need not be the most probable one: a threshold or a cost may have chosen it.
- Delivering a record again counts nothing twice. A producer that sends an item as a new record says that the
  model saw it once more.

## Rules of labels

What a label does depends on what is known of its request:

| kind | open | answered | skipped | retracted |
| --- | --- | --- | --- | --- |
| `answer` | taken | nothing if it agrees, else a conflict | a conflict | a conflict |
| `skip` | taken | a conflict | nothing | a conflict |
| `correction` | taken | replaces the answer | taken | taken |
| `retraction` | refused | takes the answer back | refused | nothing |

A conflict is refused as `conflicting_label`, a retraction of no answer as `nothing_to_retract`.

- **Duplicates.** The same label again (kind, class, annotator and time) changes nothing, whatever came
  between. Give `time`, so that a label which is sent twice can be recognised.
- **Late labels.** A request that is not answered by its deadline may be issued again, with the same id and
  the next `attempt`; an answer to any attempt is good. After the last one the request expires, and every
  label for it is refused: `expired_request`.
- **Corrections and retractions** are taken for `bounds.correction_days` after the first answer; then the
  request is forgotten, and they are refused: `unknown_request`.
- `item_id` must be the one of the request, or the label is refused: `item_mismatch`.

## Dead letters

The value is the refused message, byte for byte (of an array, the element alone), under its record's key.
Every reason, and what to do about it, is in [dead-letters.md](../dead-letters.md).

{dead_letter_headers}
"""
