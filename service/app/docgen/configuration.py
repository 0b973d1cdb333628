"""The page `docs/configuration.md`, made from the settings models.

Types, bounds, defaults and meanings are read from the models, so the page cannot say
anything but what is checked when Credence starts.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service.app.docgen.generated_files import page_template
from service.app.docgen.schemas import Schema, in_words, schema_of, table
from service.config.loader import ENVIRONMENT_PREFIX, PLAIN_TEXT_KEYS, RESERVED_VARIABLES, WORD_LIST_KEYS
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

KeyPath = tuple[str, ...]

_KEYS: dict[Any, KeyPath] = {dict: ("<name>",), list: ("<number>",)}
"""What stands in a path for the entries of maps and lists."""


class _Nested(NamedTuple):
    """A model inside another one.

    Attributes:
        model: the inner model.
        keys: what stands in a path between the field and the inner model's own fields.
    """

    model: type[BaseModel]
    keys: KeyPath


_FAULTY_EXAMPLE = """\
models:
  animals:
    classes: [cat, dog]
    intervall: 0.9
    assessments:
      worst: {task: identification, budget: {labels: 0}}
"""
_FAULTS = [
    ("models.animals.assessments.worst.budget.labels", "Input should be greater than or equal to 1"),
    ("models.animals.intervall", "unknown key"),
]


def configuration_page() -> str:
    """The text of `docs/configuration.md`."""
    return page_template("configuration.md").format(
        prefix=ENVIRONMENT_PREFIX,
        reserved=", ".join(f"`{name}`" for name in sorted(RESERVED_VARIABLES)),
        plain=", ".join(f"`{key}`" for key in sorted(PLAIN_TEXT_KEYS)),
        words=" and ".join(f"`{key}`" for key in sorted(WORD_LIST_KEYS)),
        example=_example(),
        faulty=_FAULTY_EXAMPLE,
        message=ConfigurationError(_FAULTS, "credence.yaml"),
        sections="\n\n".join(_section(path, model) for path, model in _sections((), Settings)),
    )


def _sections(path: KeyPath, model: type[BaseModel]) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
    yield path, model
    for name, field in model.model_fields.items():
        if nested := _nested(field):
            yield from _sections((*path, name, *nested.keys), nested.model)


def _nested(field: FieldInfo) -> _Nested | None:
    keys = _KEYS.get(get_origin(field.annotation), ())
    for candidate in (field.annotation, *get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return _Nested(candidate, keys)
    return None


def _section(path: KeyPath, model: type[BaseModel]) -> str:
    schemas = schema_of(model)["properties"]
    rows = [
        [f"`{'.'.join((*path, name))}`", _type(field, schemas[name]), _default(field), _meaning(field)]
        for name, field in model.model_fields.items()
    ]
    heading = f"`{'.'.join(path)}`" if path else "Top level"
    return f"### {heading}\n\n{_about(model)}\n\n{table(('key', 'type', 'default', 'meaning'), rows)}"


def _about(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "")


def _type(field: FieldInfo, schema: Schema) -> str:
    nested = _nested(field)
    if nested is None:
        return in_words(schema)
    if get_origin(field.annotation) is list:
        return "list of sections"
    return "sections by name" if nested.keys else "section"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return ""
    if value is None:
        return "none"
    if isinstance(value, SecretStr):  # a default stands in the source, so it is no secret
        value = value.get_secret_value()
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _meaning(field: FieldInfo) -> str:
    nested = _nested(field)
    return field.description or (_about(nested.model) if nested else "")


class _ExampleDumper(yaml.SafeDumper):
    """Writes mappings over several lines, lists on one, and secrets as they are."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_ExampleDumper.add_representer(
    list, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
)
_ExampleDumper.add_representer(
    SecretStr, lambda dumper, value: dumper.represent_str(value.get_secret_value())
)


def _example() -> str:
    settings = Settings.model_validate(yaml.safe_load(page_template("example.yaml")))
    return yaml.dump(
        settings.model_dump(exclude_none=True), Dumper=_ExampleDumper, sort_keys=False, width=100
    )
