"""The JSON Schema of the chart's values, which includes that of the configuration.

`helm template` refuses what `service.config.settings` refuses, with the path of the key. Two kinds of keys
are excluded: secrets, which belong in a Secret, and keys that the chart sets.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from helm.values import ChartValues
from service.config.assessments import AssessmentSettings
from service.config.settings import Settings

Schema = dict[str, Any]

SET_BY_CHART = (
    ("http", "host"),
    ("http", "port"),
    ("monitoring", "host"),
    ("monitoring", "port"),
    ("vendor_api", "host"),
    ("vendor_api", "port"),
    ("kafka", "instance_id"),
)
"""Keys of the configuration that the chart sets from other values."""

ROLES = ("predictions", "labels", "scheduler", "web")

URL_WITHOUT_LOGIN = "^[^@]*$"
"""Pattern of `redis.url`: a URL with a login would be a secret."""


class _ChartSchema(GenerateJsonSchema):
    """Leaves out titles, which repeat keys, and takes numbers where the settings read them as text."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def function_before_schema(self, schema: Any) -> Schema:
        inner: Schema = super().function_before_schema(schema)
        # Classes may be called 0, 1, 2, which YAML reads as numbers.
        return inner | {"type": ["string", "integer"]} if inner.get("type") == "string" else inner


def values_schema() -> Schema:
    """The schema of `values.yaml`, in the draft that all versions of Helm 3 and 4 read."""
    schema = _schema_of(ChartValues)
    schema["properties"]["config"] = config_schema()
    schema["properties"]["pod"] |= {"required": []}
    for role in ROLES:
        schema["properties"][role]["properties"]["pod"] |= {
            key: schema["properties"]["pod"][key] for key in ("properties", "additionalProperties")
        }
    _refuse_configuration(schema)
    # Helm gives this key to every chart that another one depends on.
    schema["properties"]["global"] = {"type": "object", "description": "global values of a parent chart"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


def config_schema() -> Schema:
    """The schema of `config`: the settings, without secrets and without what the chart sets."""
    schema = _schema_of(Settings)
    for *parents, key in SET_BY_CHART:
        _at(schema, parents)["properties"].pop(key)
    url = _at(schema, ("redis", "url"))
    url.clear()
    url |= {
        "type": "string",
        "pattern": URL_WITHOUT_LOGIN,
        "description": "URL without a login; set the password with CREDENCE_REDIS__PASSWORD_FILE",
    }
    _without_secrets(schema)
    schema["properties"] = {name: part for name, part in schema["properties"].items() if _has_keys(part)}
    servers = _at(schema, ("kafka", "bootstrap_servers"))
    # Its default is the loopback address, where no pod has a broker.
    servers.pop("default")
    schema["properties"]["kafka"]["required"] = ["bootstrap_servers"]
    schema["required"] = [*schema["required"], "kafka"]
    return schema


def _schema_of(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(schema_generator=_ChartSchema)
    definitions = schema.pop("$defs", {})
    tidied: Schema = _tidied(schema, definitions)
    return tidied


def _tidied(node: Any, definitions: Schema) -> Any:
    """The node with its references resolved, descriptions on one line, and maps that take no other names."""
    if isinstance(node, list):
        return [_tidied(child, definitions) for child in node]
    if not isinstance(node, dict):
        return node
    if "discriminator" in node:
        return _any_task([_tidied(choice, definitions) for choice in node["oneOf"]])
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]] | {k: v for k, v in node.items() if k != "$ref"}
    # A field may be called like a key of the schema itself, so names of properties are passed over.
    tidied: Schema = {
        key: {name: _tidied(part, definitions) for name, part in child.items()}
        if key in ("properties", "patternProperties")
        else _tidied(child, definitions)
        for key, child in node.items()
        if key != "title"
    }
    if "patternProperties" in tidied:
        tidied["additionalProperties"] = False
    if "description" in tidied:
        tidied["description"] = " ".join(tidied["description"].split())
    # Defaults of sections repeat those of their keys.
    if isinstance(tidied.get("default"), dict) and "properties" in tidied:
        del tidied["default"]
    return tidied


def _any_task(choices: list[Schema]) -> Schema:
    """What assessments take, whatever their task. Helm's messages about a choice of schemas name no key."""
    meanings = {choice["properties"]["task"]["const"]: choice["description"] for choice in choices}
    tasks: dict[str, list[str]] = {}
    properties: Schema = {}
    for task, choice in zip(meanings, choices, strict=True):
        for key, part in choice["properties"].items():
            tasks.setdefault(key, []).append(task)
            properties.setdefault(key, part)
    for key, part in properties.items():
        if len(tasks[key]) < len(choices):
            part["description"] = f"with {', '.join(tasks[key])}: {part['description']}"
    properties["task"] = {
        "default": next(iter(meanings)),
        "description": " ".join(meanings.values()),
        "enum": list(meanings),
        "type": "string",
    }
    return choices[0] | {"description": AssessmentSettings.__doc__, "properties": properties}


def _at(schema: Schema, path: Any) -> Schema:
    for key in path:
        schema = schema["properties"][key]
    return schema


def _without_secrets(node: Any) -> None:
    if isinstance(node, list):
        for child in node:
            _without_secrets(child)
    elif isinstance(node, dict):
        if isinstance(properties := node.get("properties"), dict):
            for name in [name for name, part in properties.items() if _is_secret(part)]:
                del properties[name]
                node["required"] = [key for key in node.get("required", []) if key != name]
        for child in node.values():
            _without_secrets(child)


def _is_secret(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    inner = [*schema.get("anyOf", []), schema.get("items"), schema.get("additionalProperties")]
    return bool(schema.get("writeOnly")) or any(_is_secret(part) for part in inner)


def _has_keys(schema: Schema) -> bool:
    return schema.get("properties") != {}


def _refuse_configuration(schema: Schema) -> None:
    """Refuse variables of Credence in `extraEnv`: `config` and `secrets` validate them."""
    variable = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "not": {"pattern": "^CREDENCE_"}}},
    }
    roles = [schema["properties"][role]["properties"] for role in ROLES]
    for properties in [schema["properties"], *roles]:
        properties["pod"]["properties"]["extraEnv"]["items"] = variable
