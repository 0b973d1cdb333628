"""Files about the classes of a recording: which belong together, and what mistakes cost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.replay.recording import Recording


def load_superclasses(path: Path, recording: Recording) -> dict[str, list[int]]:
    """Classes by the name of their superclass, from a JSON object of lists.

    Lists name classes by their numbers, as numbers or as text.

    Raises:
        RecordingError: the file cannot be used, or does not have every class exactly once.
    """
    numbers = {str(place): place for place in range(recording.classes)}
    owner: dict[int, str] = {}
    superclasses: dict[str, list[int]] = {}
    for superclass, members in _json_object(path).items():
        if not isinstance(members, list) or not members:
            raise RecordingError(path, f"superclass '{superclass}' must have a list of classes, at least one")
        superclasses[superclass] = []
        for place, member in enumerate(members):
            number = numbers.get(member) if isinstance(member, str) else member
            if not isinstance(number, int) or isinstance(number, bool) or number not in numbers.values():
                raise RecordingError(
                    path,
                    f"superclass '{superclass}': item {place} (counted from 0) is no class; give its name, "
                    f"or its number from 0 to {len(numbers) - 1}",
                )
            if number in owner:
                raise RecordingError(
                    path,
                    f"class '{number}' is twice in it, in '{owner[number]}' and '{superclass}'; "
                    "leave it in one",
                )
            owner[number] = superclass
            superclasses[superclass].append(number)
    missing = [name for name, number in numbers.items() if number not in owner]
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


def load_costs(path: Path, classes: int) -> Floats:
    """Costs [K, K] by true class, in rows, and predicted class, in columns, of any unit.

    The file is text: K lines of K numbers, separated by commas or blanks.

    Raises:
        RecordingError: the file cannot be used.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
        matrix = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    except OSError as error:
        raise RecordingError(str(path), f"it cannot be read ({error.strerror}); name another file") from error
    except ValueError as error:
        raise RecordingError(
            str(path), "it is not a square of numbers; write a line of costs for every true class"
        ) from error
    if matrix.shape != (classes, classes):
        raise RecordingError(
            str(path), f"it has the shape {matrix.shape}; {classes} classes need {classes} by {classes} costs"
        )
    if not np.isfinite(matrix).all():
        raise RecordingError(str(path), "a cost is not a finite number; correct it")
    return matrix
