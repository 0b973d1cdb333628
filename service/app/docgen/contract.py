"""The contract as files: JSON Schemas, the AsyncAPI document, and a page for people.

All of them are made from the models in `service.domain.messages`, so that they cannot say
anything but what is checked. `docs/contract/` is the output of `contract_files`.
"""

from __future__ import annotations

import time

from service.app.docgen.asyncapi import asyncapi_document
from service.app.docgen.messages import (
    DEAD_LETTER_HEADERS,
    DEFAULTS,
    EVENT_TYPES,
    SIGNATURE_HEADERS,
    header_schema,
    json_text,
    message_examples,
    message_schema,
    schema_file,
)
from service.app.docgen.schemas import Schema, in_words, schema_of, table
from service.config.vendors import VendorApiSettings
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
from service.serving.vendor_api.app import build_vendor_api
from service.serving.vendor_api.long_poll import Waits


def contract_files() -> dict[str, str]:
    """Text of every file of `docs/contract/`, by name."""
    files = {schema_file(name): json_text(message_schema(name)) for name in MESSAGES}
    return {
        **files,
        "asyncapi.json": json_text(asyncapi_document()),
        "vendor-api.openapi.json": json_text(vendor_api_document()),
        "README.md": contract_page(),
    }


def vendor_api_document() -> Schema:
    """The OpenAPI document of the vendor API."""
    settings = VendorApiSettings()
    waits = Waits(most=settings.waits, stopping=lambda: False, note=lambda *_: None)
    return build_vendor_api(settings, service=lambda: None, waits=waits, clock=time.time).openapi()


def contract_page() -> str:
    """The contract in words, for people: `README.md`."""
    topics = DEFAULTS.topics
    headers = header_schema("LabelRequest")
    headers["properties"]["ce_type"] = {"description": "the message's type, see below"}
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
    return _PAGE.format(
        channels=table(("topic (default name)", "Credence", "message"), rows),
        headers=_header_table(headers),
        signature_headers=_header_table({"properties": SIGNATURE_HEADERS}),
        dead_letter_headers=_header_table(DEAD_LETTER_HEADERS),
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


def _header_table(schema: Schema) -> str:
    rows = [
        (f"`{name}`", f"`{header['const']}`" if "const" in header else "", header["description"])
        for name, header in schema["properties"].items()
    ]
    return table(("header", "value", "meaning"), rows)


_PAGE = """\
# The wire contract

Credence talks over Kafka topics to the models that it watches and to the people who label. This page and
the files beside it are made from `service/domain/messages.py` and `service/domain/open_inference.py` by
`credence contract`; change them there.
[asyncapi.json](asyncapi.json) says the same for machines; [vendor-api.openapi.json](vendor-api.openapi.json)
describes the HTTP API for vendors without Kafka ([vendor-api.md](../vendor-api.md)).

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
- A message that cannot be used goes to the dead-letter topic and stops nothing. If too many are
  bad, the consumer pauses.

For those who read label requests with kafka-python 3.0: a consumer whose first poll comes before it knows
the topic may be given nothing, for ever and without an error. `service/kafka/membership.py` tells why, and
has what mends it.

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

## Labels of vendors

Where `vendors` are configured, a request goes to one of them, which its `vendor` names, and only a label that
this vendor has signed counts: its answer, and its corrections and retractions ever after. Such a label has
two more headers:

{signature_headers}

The value is signed as it is sent, byte for byte, and must have a `time` of its own: by it a label that is
sent again is recognised. In Python:

```python
signature = "v1=" + hmac.digest(label_key, vendor.encode() + b"\\n" + value, "sha256").hex()
```

Another attempt of a request may be another vendor's. From then on the first one's label is refused.
Who uses the vendor API signs nothing: Credence does.

## Inference responses

What a model server answers by the Open Inference Protocol (version 2; KServe, Triton, MLServer, Seldon) can
be read as it is logged. A record is taken for a response

- when its `ce_type` is {response_types}; its `ce_specversion` may be {response_versions};
- or, without a `ce_type`, when it is an object with `model_name` and `outputs`, and without the `model` of a
  native message.

Send responses alone, as with `mode: response` of KServe's logger: the event of a request is refused.

{response}

Tensors become fields of predictions by their names; N is the number of rows, the same in all that are used:

{tensors}

- Other names are told per model: `models.<name>.tensors: {{probabilities: predict_proba}}`. Tensors that are
  no field are ignored.
- A response must have `predicted_class` and `score`, or `probabilities`; and `item_id`, or an id of its own.
- **A class is told by its name.** A model that answers positions must have the classes `0`, `1`, `2`, …;
  positions of other names are refused as `unknown_class`. Read `probabilities` alone instead.
- Where a name is wanted, an integer is its digits. Nothing else is converted: what is accepted is what would
  be accepted of the same row as a native message.
- Each row is accepted or refused by itself. The dead letter of a row is this row as a native message, which
  can be mended and sent by itself; that of a response which cannot be read is the whole response.
- Binary tensor data and base64 are refused. NaN is no JSON, and spoils the whole record.

The two rows of

```json
{response_example}```

are

```json
{response_rows}```

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

The value is the refused message, byte for byte (of an array, the element alone; of a response, the row as a
native message), under its record's key.
Every reason, and what to do about it, is in [dead-letters.md](../dead-letters.md).

{dead_letter_headers}
"""
