"""What the tasks share that hold one class against all others: which classes, how many labels, and rows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from service.domain.errors import RecordingError
from service.replay.options import LABELS
from service.replay.recording import Recording

TWO_CLASSES = 2
SECOND = 1

Found = TypeVar("Found")
"""What was found of one class."""


def chosen_class(options: argparse.Namespace, classes: int) -> int | None:
    """Number of the class to take for positive, of so many; None for all, one after the other."""
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


def label_counts(options: argparse.Namespace, most: int, name: str, reason: str) -> tuple[int, ...]:
    """How many labels to ask for, ascending: the given numbers, or those defaults that can be had.

    Raises:
        RecordingError: more than `most` are given; it names what has no more, and the reason.
    """
    if options.labels is None:
        return tuple(count for count in LABELS[options.task] if count <= most) or (most,)
    labels: tuple[int, ...] = options.labels
    if labels[-1] > most:
        raise RecordingError(name, f"{reason}, the most labels are {labels[-1]}; lower --labels")
    return labels


def class_rows(
    found: Sequence[tuple[int, Found]], labels: Sequence[int], mean: str
) -> list[tuple[str, list[Found], int]]:
    """Names of rows, the classes of each, and the number of labels.

    There is one for every class and number of labels; then, of several classes, those of their mean.
    """
    rows = [(f"class {number}", [each], count) for number, each in found for count in labels]
    if len(found) > 1:
        rows += [(mean, [each for _, each in found], count) for count in labels]
    return rows
