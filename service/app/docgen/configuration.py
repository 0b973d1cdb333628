"""The page `docs/configuration.md`, made from the settings models.

Types, bounds, defaults and meanings are read from the models, so the page cannot say
anything but what is checked when Credence starts.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service.app.docgen.generated_files import page_template
from service.app.docgen.schemas import in_words, schema_of, table
from service.config.document import parse_document
from service.config.loader import (
    ENVIRONMENT_PREFIX,
    PLAIN_TEXT_KEYS,
    RESERVED_VARIABLES,
    WORD_LIST_KEYS,
    settings_of,
)
from service.config.mapping import MappedField
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

KeyPath = tuple[str, ...]
Models = list[type[BaseModel]]

_SECTIONS: dict[Any, tuple[str, KeyPath]] = {
    dict: ("sections by name", ("<name>",)),
    list: ("list of sections", ("<number>",)),
}
"""Of maps and lists of sections: their type in words, and what stands in a path for an entry."""

_MAPPED_FIELD = "kafka.mapping.model"
"""Where the keys of a mapped field are described, once for all of them."""

_SOME_TASKS = "A key whose meaning starts with names of tasks is accepted only with these tasks."

_FAULTY_EXAMPLE = """\
models:
  animals:
    classes: [cat, dog]
    intervall: 0.9
    assessments:
      worst: {task: identification, region: 0.1, budget: {labels: 0}}
"""


def configuration_page() -> str:
    """The text of `docs/configuration.md`."""
    return page_template("configuration.md").format(
        prefix=ENVIRONMENT_PREFIX,
        reserved=", ".join(f"`{name}`" for name in sorted(RESERVED_VARIABLES)),
        plain=", ".join(f"`{key}`" for key in sorted(PLAIN_TEXT_KEYS)),
        words=" and ".join(f"`{key}`" for key in sorted(WORD_LIST_KEYS)),
        example=_example(),
        faulty=_FAULTY_EXAMPLE,
        message=_message(_FAULTY_EXAMPLE),
        sections="\n\n".join(_sections((), [Settings])),
    )


def _message(text: str) -> str:
    """What is said of a file that is not valid."""
    name = "credence.yaml"
    try:
        settings_of(parse_document(text, name), name, {})
    except ConfigurationError as error:
        return str(error)
    raise AssertionError("the faulty example is valid")


def _sections(path: KeyPath, models: Models) -> Iterator[str]:
    """The section of a key that one of these models checks, and those of the keys in it."""
    fields: dict[str, FieldInfo] = {}
    for model in models:
        fields |= {name: field for name, field in model.model_fields.items() if name not in fields}
    rows = [
        [f"`{'.'.join((*path, name))}`", _type(name, models), _default(field), _meaning(name, models)]
        for name, field in fields.items()
    ]
    heading = f"`{'.'.join(path)}`" if path else "Top level"
    yield f"### {heading}\n\n{_about(models)}\n\n{table(('key', 'type', 'default', 'meaning'), rows)}"
    for name, field in fields.items():
        inner = _models_in(field.annotation)
        if inner and (inner != [MappedField] or ".".join((*path, name)) == _MAPPED_FIELD):
            _, entry = _container(field.annotation)
            yield from _sections((*path, name, *entry), inner)


def _models_in(annotation: Any) -> Models:
    """The models that a type is made of: several where each is of another task."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _about(models: Models) -> str:
    common = next(base for base in models[0].__mro__ if all(issubclass(model, base) for model in models))
    text = inspect.cleandoc(common.__doc__ or "")
    return text if len(models) == 1 else f"{text} {_SOME_TASKS}"


def _type(name: str, models: Models) -> str:
    having = [model for model in models if name in model.model_fields]
    annotation = having[0].model_fields[name].annotation
    if not _models_in(annotation):
        return ", ".join(dict.fromkeys(in_words(schema_of(model)["properties"][name]) for model in having))
    if _models_in(annotation) == [MappedField]:
        by_name = ", by name" if get_origin(annotation) is dict else ""
        return f"path, or section as `{_MAPPED_FIELD}`{by_name}"
    return _container(annotation)[0]


def _container(annotation: Any) -> tuple[str, KeyPath]:
    return _SECTIONS.get(get_origin(annotation), ("section", ()))


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


def _meaning(name: str, models: Models) -> str:
    """What a key means; with the tasks that accept it, if it is not the same with all of them."""
    having: dict[str, Models] = {}
    for model in models:
        if field := model.model_fields.get(name):
            text = " ".join((field.description or _about(_models_in(field.annotation) or [model])).split())
            having.setdefault(text, []).append(model)
    if list(having.values()) == [models]:
        return text
    tasks = {text: [each.model_fields["task"].default for each in those] for text, those in having.items()}
    return "; ".join(f"with {', '.join(those)}: {text.rstrip('.')}" for text, those in tasks.items())


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
