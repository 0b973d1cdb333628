"""Reads deploy/compose.yaml as Compose does, as far as the tests need it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "deploy/compose.yaml"

_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+):-(?P<default>[^}]*)\})")


def compose_file(environment: Mapping[str, str] | None = None, path: Path = COMPOSE_FILE) -> dict[str, Any]:
    """The document, its variables replaced.

    Args:
        environment: of who runs Compose.
        path: of the file.
    """
    document: dict[str, Any] = _interpolated(yaml.safe_load(path.read_text()), environment or {})
    return document


def _interpolated(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _interpolated(each, environment) for key, each in value.items()}
    if isinstance(value, list):
        return [_interpolated(each, environment) for each in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(
        lambda found: "$" if found["escaped"] else environment.get(found["name"]) or found["default"], value
    )


def mounts(service: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """What is mounted into a service: source, target, and whether it may be written."""
    found = []
    for volume in service.get("volumes", []):
        if isinstance(volume, dict):
            found.append((volume["source"], volume["target"], not volume.get("read_only", False)))
        else:
            source, target, *mode = volume.split(":")
            found.append((source, target, mode != ["ro"]))
    return found
