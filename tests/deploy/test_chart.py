"""What the chart is made from: schemas, links, versions. What Helm makes of it is tested in tests/chart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic import BaseModel, SecretStr

from helm.pages import CHART, chart_files, values_file
from helm.schema import SET_BY_CHART, config_schema, values_schema
from helm.values import ChartValues
from service import __version__
from service.app.docgen.configuration import configuration_page
from service.config.settings import Settings

ROOT = CHART.parents[1]


@cache
def validator() -> Draft7Validator:
    return Draft7Validator(config_schema())


def _least(**changes: Any) -> dict[str, Any]:
    return {
        "kafka": {"bootstrap_servers": ["kafka:9092"]},
        "models": {"sorter": {"classes": ["cat", "dog"]}},
    } | changes


def _model(**changes: Any) -> dict[str, Any]:
    return _least(models={"sorter": {"classes": ["cat", "dog"]} | changes})


def test_generated_files_are_current() -> None:
    generated = chart_files()
    assert {name: (CHART / name).read_text() for name in generated} == generated


def test_the_schemas_are_schemas() -> None:
    Draft7Validator.check_schema(values_schema())


def test_the_values_that_are_written_are_the_defaults_of_the_models() -> None:
    assert yaml.safe_load(values_file()) == ChartValues().model_dump(by_alias=True)


def _undescribed(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        if not part.get("description"):
            yield f"{path}{name}"
        yield from _undescribed(part, f"{path}{name}.")


def test_every_value_is_described() -> None:
    schema = values_schema()
    del schema["properties"]["config"]
    assert list(_undescribed(schema)) == []


def test_the_complete_example_of_the_docs_is_accepted_but_for_what_the_chart_sets() -> None:
    example = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", configuration_page(), re.DOTALL)[0])
    for *parents, key in SET_BY_CHART:
        part = example
        for parent in parents:
            part = part[parent]
        part.pop(key, None)
    example.pop("monitoring")
    for vendor in example["vendors"].values():
        del vendor["label_keys"]
    assert [error.message for error in validator().iter_errors(example)] == []


@pytest.mark.parametrize(
    "config",
    [
        _least(kafak={}),
        _least(models={}),
        _least(models={"-sorter": {"classes": ["cat", "dog"]}}),
        _least(kafka={}),
        _least(schedule={"tick_seconds": 0}),
        _model(classes=["cat"]),
        _model(interval=1.5),
        _model(assessments={"every": {"budget": {"labels": 0}}}),
        _model(groupings={"region": {"by": "colour"}}),
    ],
)
def test_what_the_settings_refuse_the_schema_refuses(config: dict[str, Any]) -> None:
    assert validator().is_valid(_least())
    assert not validator().is_valid(config)


def test_classes_may_be_numbers_as_in_a_file() -> None:
    assert validator().is_valid(_model(classes=[0, 1, 2]))
    assert not validator().is_valid(_model(classes=[0.5, 1.5]))


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("redis://redis:6379/0", True),
        ("rediss://redis:6379", True),
        ("redis://:hidden@redis:6379/0", False),
        ("redis://user:hidden@redis", False),
    ],
)
def test_the_address_of_redis_holds_no_login(url: str, fine: bool) -> None:
    assert validator().is_valid(_least(redis={"url": url})) is fine


def _secret_paths(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the settings hold secrets, found by their types and not by what their schema says."""
    for name, field in model.model_fields.items():
        kinds = _kinds(field.annotation)
        if SecretStr in kinds:
            yield *path, name
        for kind in kinds:
            if issubclass(kind, BaseModel):
                yield from _secret_paths(kind, (*path, name))


def _kinds(annotation: Any) -> list[type]:
    inner = [kind for part in getattr(annotation, "__args__", ()) for kind in _kinds(part)]
    return [annotation] if isinstance(annotation, type) and not inner else inner


def test_no_secret_has_a_key_in_the_values() -> None:
    paths = set(_secret_paths(Settings))
    assert {("redis", "url"), ("hash_key",), ("kafka", "security", "password")} <= paths
    for *parents, last in paths - {("redis", "url")}:
        at = config_schema()
        for key in parents:
            at = at["properties"][key]
            # A section that may be absent.
            at = next((part for part in at.get("anyOf", ()) if "properties" in part), at)
            # The entries of a section by name.
            at = next(iter(at.get("patternProperties", {"": at.get("additionalProperties") or at}).values()))
        assert last not in at["properties"], (*parents, last)


def test_no_file_of_the_chart_is_a_link_of_which_helm_would_print_a_line() -> None:
    assert not [path for path in CHART.rglob("*") if path.is_symlink()]


def test_commands_of_the_readme_name_the_namespace() -> None:
    text = (CHART / "README.md").read_text()
    commands = re.findall(r"^\$ (?:kubectl|helm) .*|`(?:kubectl|helm) [^`\n]* --[^`\n]*`", text, re.MULTILINE)
    assert len(commands) >= 6
    assert [command for command in commands if "--namespace" not in command] == []


def test_the_chart_is_of_the_version_of_the_code() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
