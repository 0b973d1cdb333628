"""Validation across keys, even while single keys are invalid: all problems are reported at once.

Invalid keys are removed from the document, and the rest is validated. Problems that a removed key may cause
are not reported.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from pydantic import ValidationError

from service.config.deployment_validation import deployment_problems
from service.config.model_validation import model_problems, unknown_grouping
from service.config.settings import Settings
from service.config.types import Problems
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES
from service.domain.groupings import ALL

_MOST_ATTEMPTS = 5
"""Attempts to remove invalid keys: without a required key, its section becomes invalid too."""

_OF_TASKS = (POSITIVE_SCORE, VOTES, CHALLENGE)
"""Groupings that a model has if it has an assessment of their task."""

_ALONE = {("kafka",), ("redis",)}
"""Paths of sections whose keys depend on no other section."""

_OF_MODELS = ("kafka.mapping.", "kafka.label_mapping.")
"""Beginnings of paths in such sections that depend on models all the same."""


def all_problems(settings: Settings) -> Problems:
    """Conflicts between keys, by path."""
    models = (model_problems(settings, name) for name in settings.models)
    return [*chain.from_iterable(models), *deployment_problems(settings)]


def problems_beside(document: dict[str, Any], errors: Iterable[Any]) -> Problems:
    """Conflicts between keys of a document, besides these validation errors."""
    left, removed = copy.deepcopy(document), set[tuple[Any, ...]]()
    problems = dict(_unknown_groupings(document))
    for _ in range(_MOST_ATTEMPTS):
        paths = {_keys_of(left, error): error["type"] == "extra_forbidden" for error in errors}
        for path, is_unknown in paths.items():
            _remove(left, path)
            if not is_unknown:
                removed.add(path)
        try:
            settings = Settings.model_validate(left)
        except ValidationError as error:
            errors = error.errors()
        else:
            further = chain(_model_problems(settings, removed), _deployment_problems(settings, removed))
            return list((dict(further) | problems).items())
    return list(problems.items())


def _keys_of(document: dict[str, Any], error: Any) -> tuple[Any, ...]:
    """Keys on the path of an error, down to the innermost mapping; of an absent key, those of its section."""
    here: Any = document
    keys: list[Any] = []
    for part in error["loc"][:-1] if error["type"] == "missing" else error["loc"]:
        if not isinstance(here, dict):
            break
        for key in here:
            # A path has names of types besides, and 1 for true.
            if part in (key, str(key)):
                here = here[key]
                keys.append(key)
                break
    return tuple(keys)


def _remove(document: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Remove the entry at a path, unless it is removed already; everything at the empty path."""
    here = document
    for key in path[:-1]:
        here = here.get(key, {})
    if path:
        here.pop(path[-1], None)
    else:
        document.clear()


def _model_problems(settings: Settings, removed: set[tuple[Any, ...]]) -> Iterator[tuple[str, str]]:
    """Conflicts between keys of models that do not depend on removed keys."""
    of_models = [each[1:] for each in removed if each[:1] == ("models",)]
    # An invalid assessment does not matter to the others, nor to the rest of its model.
    parts = [each[:3] if each[1:2] == ("assessments",) else each[:1] for each in of_models]
    invalid = tuple(f"{'.'.join(map(str, ('models', *part)))}." for part in parts)
    for name in settings.models:
        bounded = all(each[:1] != ("bounds",) for each in removed) and all(p[:1] != (name,) for p in parts)
        for path, problem in model_problems(settings, name):
            if (
                bounded
                if path.startswith("bounds.") or path.endswith(".wait_days")
                else not f"{path}.".startswith(invalid)
            ):
                yield path, problem


def _deployment_problems(settings: Settings, removed: set[tuple[Any, ...]]) -> Iterator[tuple[str, str]]:
    """Conflicts between other keys that do not depend on removed keys."""
    sections = {each[:1] for each in removed}
    for path, problem in deployment_problems(settings):
        section = (path.partition(".")[0],)
        needed = {section, ("models",)} if path.startswith(_OF_MODELS) else {section}
        if not needed & sections if section in _ALONE else not sections - _ALONE:
            yield path, problem


def _unknown_groupings(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Assessments that name a grouping that their model does not have."""
    for name, model in _sections(document, "models"):
        groupings = [ALL, SCORE_BIN, *(each for each, _ in _sections(model, "groupings"))]
        for assessment, asked in _sections(model, "assessments"):
            grouping = asked.get("grouping", ALL)
            if isinstance(grouping, str) and grouping not in (*groupings, *_OF_TASKS):
                yield unknown_grouping(f"models.{name}.assessments.{assessment}", grouping, groupings)


def _sections(section: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections of a mapping of names, of those that are mappings themselves."""
    within = section.get(key)
    for name, each in within.items() if isinstance(within, dict) else ():
        if isinstance(each, dict):
            yield str(name), each
