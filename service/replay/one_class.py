"""Which class the tasks that hold one class against all others take for positive."""

from __future__ import annotations

import argparse

import numpy as np

from service.domain.errors import RecordingError
from service.replay.recording import Recording

TWO_CLASSES = 2
SECOND = 1


def chosen_class(options: argparse.Namespace, classes: int) -> int | None:
    """Number of the class to take for positive; None for all, one after the other.

    Args:
        options: that were given.
        classes: how many the recording has.
    """
    number: int | str | None = options.positive_class
    if isinstance(number, int):
        return number
    return SECOND if number is None and classes == TWO_CLASSES else None


def positive_classes(recording: Recording, options: argparse.Namespace) -> list[int]:
    """Classes to take for positive, one after the other.

    Raises:
        RecordingError: there is none, or the chosen one cannot be held against others.
    """
    chosen = chosen_class(options, recording.classes)
    counted = np.bincount(recording.labels, minlength=recording.classes)
    some = (counted > 0) & (counted < recording.size)
    if chosen is None:
        if not some.any():
            raise RecordingError(recording.name, "all items are of one class; record others too")
        return np.flatnonzero(some).tolist()
    if chosen >= recording.classes:
        raise RecordingError(
            "--positive-class",
            f"{recording.name} has classes 0 to {recording.classes - 1}, not {chosen}; choose one of them",
        )
    if not some[chosen]:
        share = "all items are" if counted[chosen] else "no item is"
        raise RecordingError(recording.name, f"{share} of class {chosen}; choose another --positive-class")
    return [chosen]
