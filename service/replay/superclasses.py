"""Superclasses: a JSON file that says which classes belong together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from service.domain.errors import RecordingError
from service.replay.grouping import class_names_of
from service.replay.recording import Recording


def load_superclasses(
    path: Path, recording: Recording, class_names: Sequence[str] = ()
) -> dict[str, list[int]]:
    """Read a JSON object from the superclass's name to its classes, given by number or by name.

    Args:
        path: the JSON file.
        recording: whose classes they are.
        class_names: names of the classes [K]; without them, their numbers are their names too.

    Raises:
        RecordingError: the file cannot be used, or does not have every class exactly once.
    """
    found = _json_object(path)
    names = class_names_of(recording, class_names)
    numbers = {name: place for place, name in enumerate(names)}
    owner: dict[int, str] = {}
    superclasses: dict[str, list[int]] = {}
    for superclass, members in found.items():
        if not isinstance(members, list) or not members:
            raise RecordingError(path, f"superclass '{superclass}' must have a list of classes, at least one")
        superclasses[superclass] = []
        for place, member in enumerate(members):
            number = numbers.get(member) if isinstance(member, str) else member
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(names):
                raise RecordingError(
                    path,
                    f"superclass '{superclass}': item {place} (counted from 0) is no class; give its name, "
                    f"or its number from 0 to {len(names) - 1}",
                )
            if number in owner:
                raise RecordingError(
                    path,
                    f"class '{names[number]}' is twice in it, in '{owner[number]}' and '{superclass}'; "
                    "leave it in one",
                )
            owner[number] = superclass
            superclasses[superclass].append(number)
    missing = [name for place, name in enumerate(names) if place not in owner]
    if missing:
        raise RecordingError(
            path, f"{len(missing)} class(es) are in no superclass, the first is '{missing[0]}'; add them"
        )
    return superclasses


def _json_object(path: Path) -> dict[str, object]:
    if not path.is_file():
        raise RecordingError(path, "there is no such file; check the path")
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RecordingError(
            path, f"it cannot be read as JSON ({type(error).__name__}); check the file"
        ) from error
    if not isinstance(found, dict):
        raise RecordingError(path, "it must be a JSON object from superclasses to lists of classes")
    return found
