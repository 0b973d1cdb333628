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

from service.app.docgen.schemas import in_words, schema_of, table
from service.config.loader import ENVIRONMENT_PREFIX, PLAIN_TEXT_KEYS, RESERVED_VARIABLES, WORD_LIST_KEYS
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

KeyPath = tuple[str, ...]
Models = list[type[BaseModel]]

_SECTIONS: dict[Any, tuple[str, KeyPath]] = {
    dict: ("sections by name", ("<name>",)),
    list: ("list of sections", ("<number>",)),
}
"""Of maps and lists of sections: their type in words, and what stands in a path for an entry."""

_SOME_TASKS = "A key whose meaning begins with names of tasks is accepted with these tasks alone."

_EXAMPLE_MODELS: dict[str, Any] = {
    "animals": {
        "classes": ["cat", "dog", "car", "truck"],
        "groupings": {
            "class": {"by": "predicted_class"},
            "kind": {
                "by": "superclass",
                "superclasses": {"animal": ["cat", "dog"], "vehicle": ["car", "truck"]},
            },
            "region": {"by": "attribute", "attribute": "region"},
        },
        "assessments": {
            "accuracy-by-region": {"grouping": "region", "budget": {"labels": 500, "per_days": 30}},
            "worst-class": {
                "task": "identification",
                "grouping": "class",
                "budget": {"labels": 200},
            },
            "cats-or-dogs": {
                "task": "comparison",
                "between": ["cat", "dog"],
                "grouping": "class",
                "budget": {"labels": 100},
            },
        },
        "alerts": {"min_accuracy": 0.9, "max_ece": 0.1},
        "costs": {"mistakes": [{"true": "cat", "predicted": "dog", "cost": 10}]},
    }
}

_EXAMPLE_VENDORS: dict[str, Any] = {
    "acme": {
        "models": ["animals"],
        "token_sha256": ["7db61e6ae1a5c3bbd9e9ff4a1d6c3b1a9b0d4c51d3d4c2de9d2b5e1f1a7f0c42"],
        "label_keys": ["0000-an-example-run-credence-vendors-key-0000"],
    }
}

_FAULTY_EXAMPLE = """\
models:
  animals:
    classes: [cat, dog]
    intervall: 0.9
    assessments:
      worst: {task: identification, region: 0.1, budget: {labels: 0}}
"""
_FAULTS = [
    ("models.animals.assessments.worst.budget.labels", "Input should be greater than or equal to 1"),
    (
        "models.animals.assessments.worst.region",
        "not accepted with `task: identification`, only with comparison",
    ),
    ("models.animals.intervall", "unknown key"),
]


def configuration_page() -> str:
    """The text of `docs/configuration.md`."""
    return _PAGE.format(
        prefix=ENVIRONMENT_PREFIX,
        reserved=", ".join(f"`{name}`" for name in sorted(RESERVED_VARIABLES)),
        plain=", ".join(f"`{key}`" for key in sorted(PLAIN_TEXT_KEYS)),
        words=" and ".join(f"`{key}`" for key in sorted(WORD_LIST_KEYS)),
        example=_example(),
        faulty=_FAULTY_EXAMPLE,
        message=ConfigurationError(_FAULTS, "credence.yaml"),
        sections="\n\n".join(_sections((), [Settings])),
    )


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
        if inner := _models_in(field.annotation):
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
            text = field.description or _about(_models_in(field.annotation) or [model])
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
    settings = Settings.model_validate({"models": _EXAMPLE_MODELS, "vendors": _EXAMPLE_VENDORS})
    return yaml.dump(
        settings.model_dump(exclude_none=True), Dumper=_ExampleDumper, sort_keys=False, width=100
    )


_PAGE = """\
# Configuration

Credence reads one YAML file and the `{prefix}*` environment once, when it starts. This page is made from
the models that check them, in `service/config`.

## A complete example

Every key that has a default is shown with it; only `models` is required.

```yaml
{example}```

A *name* starts with a letter or a digit, and goes on with letters, digits, `.`, `_` and `-`.

## The environment

A variable overrides the key that its name spells after `{prefix}`, in lower case and with two underscores
between the levels: `{prefix}REDIS__URL` is `redis.url`.

- Its value is read as YAML: `[a:9092, b:9092]` is a list, `null` is none. Only {plain} are taken as they are;
  {words} are words with white space between them, such as one a line.
- With `_FILE` behind the name the value is read from that file, without white space around it:
  `{prefix}REDIS__URL_FILE=/run/secrets/redis`. This is the way for secrets; giving both is refused.
- Names are lower-cased, so a model whose name has capitals is configured in the file alone. Names of
  vendors have none: `{prefix}VENDORS__ACME__LABEL_KEYS_FILE=/run/secrets/acme` names a file with one label
  key a line.
- {reserved} belongs to the command line.
- A variable that spells no key is refused like an unknown key of the file. Kubernetes makes such variables
  beside a Service called `credence` (`{prefix}SERVICE_HOST`): set `enableServiceLinks: false` in the pod.

## Vendors

Where `vendors` are configured, every label request is one vendor's, and only labels that this vendor has
signed count. Whether they come over Kafka or the vendor API, every vendor needs a label key.

- `credence vendors token` prints a bearer token for the vendor and its SHA-256 for `token_sha256`;
  `credence vendors key` prints a label key. To change either, add the new one, have the vendor use it, take
  the old one away.
- Which vendor is asked is decided by a hash of request and attempt, in proportion to `share`. Another attempt
  may be another vendor's, or the same one's.
- A vendor that is not to be asked any more, about a model or at all, is taken out. Its labels are refused
  from then on, its corrections too; what it was asked is asked of others as soon as the deadline has passed,
  if `max_attempts` allows.
- **With the first vendors** requests that are open already were asked of nobody in particular. Each takes the
  signed label of any vendor of its model, and is that vendor's from then on; so it is with older answers and
  their corrections.
- **Without vendors again** what was asked of a vendor takes no label until it is asked anew, and what a
  vendor had answered can be corrected no more.
- A request that was issued before its vendor had a token is not in the vendor API; its next attempt is.

## When something is wrong

Credence does not start, and names every key at fault by its path. Unknown keys, keys of another task and keys
given twice are errors too, because a misspelt key would otherwise be a setting that silently does not hold.
Secrets are never shown. The file

```yaml
{faulty}```

gives

```text
{message}
```

## Reference

{sections}
"""
