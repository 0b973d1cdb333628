"""The contract as files: JSON Schemas, the AsyncAPI document, and a page for people.

All of them are made from the models in `service.domain.messages`, so that they cannot say
anything but what is checked. `docs/contract/` is the output of `contract_files`.
"""

from __future__ import annotations

from typing import Never

from service.app.docgen.generated_files import page_template
from service.app.docgen.messages import (
    DEFAULTS,
    EVENT_TYPES,
    asyncapi_document,
    json_text,
    message_examples,
    message_schema,
    schema_file,
)
from service.app.docgen.schemas import Schema, in_words, schema_of, table
from service.config.vendors import VendorApiSettings
from service.domain.label_signatures import SIGNATURE_HEADER, VENDOR_HEADER
from service.domain.messages import MESSAGES, PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE
from service.domain.open_inference import (
    ATTRIBUTE_PREFIX,
    ATTRIBUTE_RULE,
    RESPONSE_CLOUDEVENTS_VERSIONS,
    RESPONSE_EXAMPLE,
    RESPONSE_EXAMPLE_ROWS,
    RESPONSE_TYPES,
    TENSOR_RULES,
    InferenceResponse,
)
from service.serving.ingestion.app import build_ingestion_api
from service.serving.vendor_api.app import build_vendor_api
from service.serving.vendor_api.long_poll import Waits


def contract_files() -> dict[str, str]:
    """Text of every file of `docs/contract/`, by name."""
    files = {schema_file(name): json_text(message_schema(name)) for name in MESSAGES}
    return {
        **files,
        "asyncapi.json": json_text(asyncapi_document()),
        "vendor-api.openapi.json": json_text(vendor_api_document()),
        "ingestion-api.openapi.json": json_text(build_ingestion_api(_unserved, senders=1).openapi()),
        "README.md": contract_page(),
    }


def vendor_api_document() -> Schema:
    """The OpenAPI document of the vendor API."""
    settings = VendorApiSettings()
    waits = Waits(most=settings.waits, stopping=lambda: False, note=lambda *_: None)
    return build_vendor_api(settings, service=_unserved, waits=waits).openapi()


def _unserved() -> Never:
    raise NotImplementedError("no call is served while the API is described")


def contract_page() -> str:
    """The contract in words, for people: `README.md`."""
    topics = DEFAULTS.topics
    headers = {
        name: message["headers"]["properties"]
        for name, message in asyncapi_document()["components"]["messages"].items()
    }
    any_type = {"ce_type": {"description": "the message's type, see below"}}
    signature = {name: headers["Label"][name] for name in (VENDOR_HEADER, SIGNATURE_HEADER)}
    rows = [
        (
            f"`{topics.predictions}`",
            "reads",
            "[Prediction](#prediction), an array of them, or an [inference response](#inference-responses)",
        ),
        (f"`{topics.label_requests}`", "writes", "[LabelRequest](#labelrequest)"),
        (f"`{topics.labels}`", "reads", "[Label](#label)"),
        (f"`{topics.dead_letters}`", "writes", "[refused messages](#dead-letters)"),
    ]
    return page_template("contract.md").format(
        channels=table(("topic (default name)", "Credence", "message"), rows),
        headers=_header_table(headers["LabelRequest"] | any_type),
        signature_headers=_header_table(signature),
        dead_letter_headers=_header_table(headers["DeadLetter"]),
        messages="\n\n".join(_message_section(name) for name in MESSAGES),
        response_types=" or ".join(f"`{name}`" for name in RESPONSE_TYPES),
        response_versions=" or ".join(RESPONSE_CLOUDEVENTS_VERSIONS),
        response=_fields_of(schema_of(InferenceResponse)),
        tensors=_tensor_table(),
        response_example=json_text(RESPONSE_EXAMPLE),
        response_rows=json_text(RESPONSE_EXAMPLE_ROWS),
        score_tolerance=f"{SCORE_TOLERANCE:g}",
        sum_tolerance=f"{PROBABILITY_SUM_TOLERANCE:g}",
    )


def _message_section(name: str) -> str:
    schema = schema_of(MESSAGES[name])
    file = schema_file(name)
    parts = [
        f"## {name}",
        schema["description"],
        f"`ce_type`: `{EVENT_TYPES[name]}`. Schema: [{file}]({file}).",
    ]
    parts.append(_fields_of(schema))
    parts += [f"```json\n{json_text(example)}```" for example in message_examples(name)]
    return "\n\n".join(parts)


def _fields_of(schema: Schema) -> str:
    parts = [_field_table(schema)]
    for part, inner in schema.get("$defs", {}).items():
        parts += [f"`{part}`: {inner['description']}", _field_table(inner)]
    return "\n\n".join(parts)


def _tensor_table() -> str:
    rules = [*TENSOR_RULES.items(), (f"{ATTRIBUTE_PREFIX}<name>", ATTRIBUTE_RULE)]
    rows = [(f"`{name}`", ", ".join(rule.datatypes), rule.shape, rule.meaning) for name, rule in rules]
    return table(("tensor", "datatype", "shape", "meaning of a row"), rows)


def _field_table(schema: Schema) -> str:
    rows = []
    for name, field in schema["properties"].items():
        default = field.get("default")
        required = "yes" if name in schema["required"] else "no" if default is None else f"no, `{default}`"
        rows.append((f"`{name}`", in_words(field), required, field["description"]))
    return table(("field", "type", "required", "meaning"), rows)


def _header_table(headers: Schema) -> str:
    rows = [
        (f"`{name}`", f"`{header['const']}`" if "const" in header else "", header["description"])
        for name, header in headers.items()
    ]
    return table(("header", "value", "meaning"), rows)
