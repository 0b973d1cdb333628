"""Answers of several people about the items of a classifier, as they are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Floats, Ints
from service.domain.errors import RecordingError
from service.replay.archives import read_arrays

NOBODY = -1
"""Stands for an answer that nobody gave."""


@dataclass(frozen=True)
class Crowd:
    """What several people answered about the items of a classifier; classes are numbers from 0."""

    name: str
    predicted: Ints  # [N]
    answers: Ints  # of every person, `NOBODY` where there is none [N, people]
    truth: Ints  # [N]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return 1 + int(max(self.predicted.max(), self.answers.max(), self.truth.max()))

    @property
    def hardness(self) -> Floats:
        """Share of the answers about every item that are wrong [N]."""
        given = self.answers != NOBODY
        wrong = given & (self.answers != self.truth[:, None])
        return np.asarray(wrong.sum(axis=1) / given.sum(axis=1), np.float64)

    @property
    def correct(self) -> Flags:
        """Whether predictions are the truth [N]."""
        correct: Flags = self.predicted == self.truth
        return correct


def load_crowd(path: Path) -> Crowd:
    """Read the arrays `predicted` [N] and `answers` [N, people], and `labels` [N] if there are any.

    Without labels, the truth is what most people answered, and items on which no class has the most answers
    are left out.

    Raises:
        RecordingError: the file cannot be used.
    """
    try:
        arrays = read_arrays(path, needed=("predicted", "answers"), wished=("labels",))
    except OSError as error:
        raise RecordingError(path, f"it cannot be read ({error.strerror}); check the path") from error
    predicted, answers = (_numbers(path, name, arrays[name]) for name in ("predicted", "answers"))
    rows = len(predicted) if predicted.ndim == 1 else 0
    if answers.ndim != 2 or len(answers) != rows or not answers.size:  # noqa: PLR2004 - [N, people]
        raise RecordingError(
            path,
            f"predicted must be [N], and answers [N, people]; they have the shapes {list(predicted.shape)} "
            f"and {list(answers.shape)}",
        )
    labels = _numbers(path, "labels", arrays["labels"]) if "labels" in arrays else _majority(answers)
    if labels.shape != (rows,):
        raise RecordingError(path, f"labels must be [{rows}], as predicted; they are {list(labels.shape)}")
    if predicted.min() < 0 or answers.min() < NOBODY:
        raise RecordingError(path, "a class is below 0; number them from 0, with -1 for a missing answer")
    used = np.flatnonzero((labels >= 0) & (answers >= 0).any(axis=1))
    if not used.size:
        raise RecordingError(path, "no item has both a true class and an answer; record some")
    return Crowd(path.stem, predicted[used], answers[used], labels[used])


def _numbers(path: Path, name: str, values: npt.NDArray[Any]) -> Ints:
    if not np.issubdtype(values.dtype, np.integer):
        raise RecordingError(
            path, f"{name} must be whole numbers, not {values.dtype}; save classes as numbers"
        )
    return values.astype(np.int64)


def _majority(answers: Ints) -> Ints:
    """The class that most people answered [N]; `NOBODY` where no class has the most."""
    votes = np.stack([(answers == each).sum(axis=1) for each in range(int(answers.max()) + 1)], axis=1)
    ranked = np.sort(votes, axis=1)
    second = ranked[:, -2] if votes.shape[1] > 1 else np.zeros(len(votes), np.int64)
    return np.where(ranked[:, -1] > second, votes.argmax(axis=1), NOBODY)
