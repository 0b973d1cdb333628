"""Keys of the settings: those of every section, where a key of a name belongs, and which one was meant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from service.config.alerts import OF_ALL_GROUPS
from service.config.assessments import ASSESSMENTS, tasks_accepting
from service.config.settings import Settings

_MOST_PLACES = 2
"""A key of a name that is in more sections than these was hardly meant for any of them."""

_MOST_LISTED = 16
_ELSEWHERE = 0.8
"""Similarity of a misspelt key with one of another section; that of its own is smaller, the default's 0.6."""


def unknown_key(path: Sequence[str | int]) -> str:
    """What is wrong with an unknown key, and which one was probably meant.

    Args:
        path: of the key, with the task of an assessment after its name.
    """
    key, section = str(path[-1]), _section(path[:-1])
    match path:
        case ["models", _, "assessments", _, task, _] if task in ASSESSMENTS and tasks_accepting(key):
            return f"not accepted with `task: {task}`, only with {', '.join(tasks_accepting(key))}"
        case ["models", model, "alerts", "groupings", *_] if key in OF_ALL_GROUPS:
            return f"one for the whole model, as {OF_ALL_GROUPS[key]}; set models.{model}.alerts.{key}"
    keys = [] if section is None else list(section.model_fields)
    if close := get_close_matches(key, keys, n=1):
        return f"unknown key; did you mean `{close[0]}`?"
    if elsewhere := _PLACES.get(key, [])[: _MOST_PLACES + 1]:
        if len(elsewhere) <= _MOST_PLACES:
            return f"unknown key here; check the indentation: it belongs to {' or '.join(elsewhere)}"
    elif close := get_close_matches(key, _PLACES, n=1, cutoff=_ELSEWHERE):
        places = _PLACES[close[0]]
        if len(places) <= _MOST_PLACES:
            return f"unknown key; did you mean {' or '.join(f'`{place}.{close[0]}`' for place in places)}?"
    listed = ", ".join(keys) if len(keys) <= _MOST_LISTED else "those of docs/configuration.md"
    return f"unknown key; accepted here: {listed}"


def _section(path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model that checks the section at a path; None where there is no section."""
    here: Any = Settings
    for part in path:
        here = _inner(here, part)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _inner(annotation: Any, part: str | int) -> Any:
    """The type of an entry of a section, a mapping, a list or a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return None if field is None else field.annotation
    if part in ASSESSMENTS:
        return ASSESSMENTS[part]
    if arguments := [one for one in get_args(annotation) if one is not type(None)]:
        if get_origin(annotation) in (dict, list):
            return arguments[-1]
        return _inner(arguments[0], part)
    return None


def _sections(annotation: Any, path: tuple[str, ...]) -> Iterator[tuple[type[BaseModel], tuple[str, ...]]]:
    """All sections of a type, with their paths."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, path
        for name, field in annotation.model_fields.items():
            yield from _sections(field.annotation, (*path, name))
        return
    below = {dict: (*path, "<name>"), list: (*path, "<number>")}.get(get_origin(annotation), path)
    for argument in get_args(annotation):
        yield from _sections(argument, below)


def _places() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for section, path in _sections(Settings, ()):
        at = ".".join(path) or "the top level"
        for key in section.model_fields:
            # A section within another one that has the key replaces what that one says.
            if not any(f"{at}.".startswith(f"{place}.") for place in places[key]):
                places[key].append(at)
    return dict(places)


_PLACES = _places()
"""Paths of the sections that have a key of a name."""
