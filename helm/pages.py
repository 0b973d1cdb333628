"""The chart's generated files, as text."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from helm.schema import SET_BY_CHART, values_schema
from helm.values import ChartValues
from service import __version__
from service.app.docgen.schemas import in_words, table
from service.config.settings import Settings

CHART = Path(__file__).parent / "credence"

_WIDTH = 110
_ABOUT = Path(__file__).parent / "README.in.md"


def chart_files() -> dict[str, str]:
    """The generated files of the chart, by their path within it."""
    return {
        "Chart.yaml": _chart(),
        "values.yaml": values_file(),
        "values.schema.json": json.dumps(values_schema(), indent=2) + "\n",
        "files/defaults.yaml": _defaults(),
        "README.md": _readme(),
    }


def _chart() -> str:
    return f"""\
apiVersion: v2
name: credence
description: Watches deployed classifiers with few labels
type: application
version: {__version__}
appVersion: "{__version__}"
kubeVersion: ">=1.29.0-0"
keywords: [monitoring, classifier, calibration, active-learning, kafka, redis]
"""


def values_file() -> str:
    """`values.yaml`: every value with its default, and with its meaning above it."""
    lines = [
        "# Every value with its default, made by `python -m helm`. README.md has the same as a table.",
        *_commented(ChartValues(), ""),
    ]
    return "\n".join(lines) + "\n"


def _commented(values: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(values).model_fields.items():
        value = getattr(values, name)
        if not indent:
            yield ""
        yield from textwrap.wrap(
            _meaning(field, value), _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
        )
        if isinstance(value, BaseModel):
            yield f"{indent}{field.alias}:"
            yield from _commented(value, f"{indent}  ")
        else:
            text = yaml.safe_dump({field.alias: value}, sort_keys=False, width=_WIDTH)
            yield textwrap.indent(text, indent).rstrip("\n")


def _meaning(field: FieldInfo, value: Any) -> str:
    return field.description or " ".join((type(value).__doc__ or "").split()).rstrip(".")


def _defaults() -> str:
    """What templates need to know of the settings where `config` says nothing of it."""
    kafka = Settings.model_fields["kafka"].default
    known = {
        "kafka": {
            "topics": {"predictions": kafka.topics.predictions, "labels": kafka.topics.labels},
            **{
                key: getattr(kafka, key)
                for key in ("group_prefix", "partitions", "replication_factor", "start")
            },
        }
    }
    return "# Of service/config/settings.py; made by `python -m helm`.\n" + yaml.safe_dump(
        known, sort_keys=False
    )


def _readme() -> str:
    schema = values_schema()
    rows = list(_rows(ChartValues(), schema, ""))
    chosen = ", ".join(f"`{'.'.join(path)}`" for path in SET_BY_CHART)
    values = table(("value", "type", "default", "meaning"), rows)
    return _ABOUT.read_text(encoding="utf-8").replace("@VALUES@", values).replace("@SET@", chosen)


def _rows(values: BaseModel, schema: dict[str, Any], path: str) -> Iterator[list[str]]:
    for name, field in type(values).model_fields.items():
        value, at = getattr(values, name), f"{path}{field.alias}"
        part = schema["properties"][field.alias]
        if isinstance(value, BaseModel):
            yield [f"**`{at}`**", "", "", _meaning(field, value)]
            yield from _rows(value, part, f"{at}.")
        else:
            yield [f"`{at}`", _type(part), f"`{json.dumps(value)}`", _meaning(field, value)]


def _type(schema: dict[str, Any]) -> str:
    if schema.get("properties"):
        return "section"
    if schema.get("type") == "object" and not isinstance(schema.get("additionalProperties"), dict):
        return "sections by name" if "patternProperties" in schema else "map"
    if schema.get("type") == "array" and schema["items"].get("type") == "object":
        return "list of maps"
    return in_words(schema)
