"""The AsyncAPI 3.0 document."""

from __future__ import annotations

import json

import yaml

from service.app.docgen.generated_files import page_template
from service.app.docgen.messages import (
    ACROSS_FIELDS,
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


def asyncapi_document() -> Schema:
    """The AsyncAPI 3.0 document, seen from Credence: what it receives and what it sends."""
    document: Schema = yaml.safe_load(page_template("asyncapi.yaml").format(kafka=DEFAULTS))
    messages = document["components"]["messages"]
    for name, model in MESSAGES.items():
        examples = [{"headers": header_example(name), "payload": each} for each in message_examples(name)]
        messages[name] |= {"summary": _summary(model), "headers": header_schema(name), "examples": examples}
    header, predictions = header_example("Prediction"), message_examples("Prediction")
    messages["PredictionBatch"] |= {
        "headers": header_schema("Prediction"),
        "examples": [{"headers": header, "payload": predictions}],
    }
    messages["InferenceResponse"] |= {
        "summary": _summary(InferenceResponse),
        "headers": response_header_schema(),
        "examples": [{"headers": response_header_example(), "payload": RESPONSE_EXAMPLE}],
    }
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
