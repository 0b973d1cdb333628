"""JSON Schemas of pydantic models, and the same in words and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

Schema = dict[str, Any]


class _WithoutFieldTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from field names; they only repeat the key."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def schema_of(model: type[BaseModel]) -> Schema:
    """The JSON Schema of a pydantic model: no titles of fields, descriptions without line breaks."""
    schema: Schema = _tidied(model.model_json_schema(schema_generator=_WithoutFieldTitles))
    schema.get("$defs", {}).pop("JsonValue", None)
    if not schema.get("$defs", True):
        del schema["$defs"]
    return schema


def _tidied(node: Any) -> Any:
    if isinstance(node, list):
        return [_tidied(child) for child in node]
    if not isinstance(node, dict):
        return node
    tidied = {key: _tidied(child) for key, child in node.items()}
    # "Any JSON value" is said best by saying nothing: not every reader of schemas resolves references.
    if tidied.get("$ref") == "#/$defs/JsonValue":
        del tidied["$ref"]
    if isinstance(tidied.get("description"), str):
        tidied["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", tidied["description"])
    return tidied


def in_words(schema: Schema) -> str:
    """Type and bounds of a schema in a few words, for a table."""
    if "anyOf" in schema:
        return " or ".join(in_words(choice) for choice in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in values)
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"list{_bounds(schema)} of {in_words(schema['items'])}"
    if kind == "object":
        values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties", {})]
        return f"map of string to {in_words(values[0])}"
    noun = "name" if "pattern" in schema else _NOUNS.get(schema.get("format", ""), kind)
    return f"{noun}{_bounds(schema)}"


_NOUNS = {"date-time": "time, RFC 3339 with offset", "password": "secret"}
_BOUNDS = {
    "minItems": ">= {} entries",
    "maxItems": "<= {} entries",
    "minLength": ">= {} characters",
    "maxLength": "<= {} characters",
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
}


def _bounds(schema: Schema) -> str:
    bounds = [
        words.format(f"{schema[key]:,}" if isinstance(schema[key], int) else f"{schema[key]:g}")
        for key, words in _BOUNDS.items()
        if key in schema
    ]
    return f" ({', '.join(bounds)})" if bounds else ""


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(titles)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
