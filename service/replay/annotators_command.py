"""`credence replay --task annotators`: accuracy from the answers of people who err, few of them per item."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from service.config.labels_per_item import LabelsPerItem
from service.domain.arrays import Flags, Indices, Ints
from service.domain.errors import RecordingError
from service.replay.archives import read_arrays
from service.replay.one_class import label_counts
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics import beta as betas
from service.statistics.annotators import sample_truth
from service.statistics.truth_chain import Answers

POLICY: Final = LabelsPerItem(most=3)
"""When another person is asked."""

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


class Interval(NamedTuple):
    """Of the accuracy."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Its width."""
        return self.upper - self.lower

    def holds(self, truth: float) -> bool:
        """Whether the truth is inside."""
        return self.lower <= truth <= self.upper


class Intervals(NamedTuple):
    """What answers about so many items tell of the accuracy."""

    answers: float  # per item
    first: Interval  # if the first answer about an item is its true class
    people: Interval  # if people err
    clean: Interval  # from true classes of the same items


class Summary(NamedTuple):
    """Of many runs: shares of the intervals that hold the truth, and mean widths."""

    answers: float  # per item
    first: float
    first_width: float
    people: float
    people_width: float
    times: float  # as wide as of true classes

    def cells(self) -> tuple[float, ...]:
        """For a table with `COLUMNS`: shares in percent, widths in points."""
        return (self.answers, *(100 * share for share in self[1:-1]), self.times)


COLUMNS: Final = (
    *("answers per item", "by first answers, hold, %", "their width, points"),
    *("if people err, hold, %", "width, points", "times as wide as of true classes"),
)


def summary(found: Sequence[Intervals], truth: float) -> Summary:
    """How good the intervals of many runs are."""
    answers, first, first_width, people, people_width, clean_width = np.mean(
        [
            (
                *(each.answers, each.first.holds(truth), each.first.width),
                *(each.people.holds(truth), each.people.width, each.clean.width),
            )
            for each in found
        ],
        axis=0,
    ).tolist()
    return Summary(answers, first, first_width, people, people_width, people_width / clean_width)


def measured(crowd: Crowd, items: int, mass: float, rng: np.random.Generator) -> Intervals:
    """Intervals from answers about so many random items, of one to three people each (`POLICY`)."""
    chosen = rng.permutation(len(crowd.predicted))[:items]
    asked = [_asked(crowd, int(item), rng) for item in chosen]
    counts = [len(each) for each in asked]
    people = np.concatenate(asked)
    about = np.repeat(np.arange(len(chosen)), counts)
    agrees = crowd.answers[chosen[about], people] == crowd.predicted[chosen[about]]
    draws = sample_truth(
        Answers(about, people, agrees, np.zeros(len(chosen), np.intp), crowd.answers.shape[1], crowd.classes),
        rng,
    )
    tails = (1 - mass) / 2, (1 + mass) / 2
    firsts = agrees[np.cumsum([0, *counts[:-1]])]
    return Intervals(
        len(people) / len(chosen),
        _of_counts(firsts, mass),
        Interval(*np.quantile(draws.accuracy[:, 0], tails).tolist()),
        _of_counts(crowd.correct[chosen], mass),
    )


def _asked(crowd: Crowd, item: int, rng: np.random.Generator) -> Indices:
    """People who answer about an item, one after the other."""
    people = rng.permutation(np.flatnonzero(crowd.answers[item] != NOBODY))
    is_audited, count = rng.random() < POLICY.audit_share, 1
    while count < len(people) and POLICY.wants_another(
        crowd.answers[item, people[:count]].tolist(), int(crowd.predicted[item]), is_audited=is_audited
    ):
        count += 1
    return people[:count]


def _of_counts(correct: Flags, mass: float) -> Interval:
    right = np.array([float(correct.sum())])
    lower, upper = betas.interval(1 + right, 1 + len(correct) - right, mass)
    return Interval(float(lower[0]), float(upper[0]))


def annotator_tables(crowd: Crowd, options: argparse.Namespace, crew: Workers) -> list[Table]:
    """Replay a file of answers, and tell how often intervals contain the accuracy over all its items.

    Raises:
        RecordingError: an option cannot be used for this task.
    """
    if options.plots:
        raise RecordingError("--plots", "the task annotators draws nothing; leave it out")
    size, truth = len(crowd.predicted), float(crowd.correct.mean())
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for items in label_counts(options, size, "--labels", f"{crowd.name} has {size} items"):
        given = [(crowd, items, options.interval, options.seed, run) for run in range(options.runs)]
        rows.append((str(items), summary(crew.each(run_once, given, f"{items} items"), truth).cells()))
    audited = f"{POLICY.audit_share:.0%} of the others"
    notes = (
        f"The accuracy is {100 * truth:.1f}% of {size:,} items, answered by {crowd.answers.shape[1]} people.",
        f"Further people, until two agree: of items whose answer contradicts the model, and of {audited}.",
        f"{options.runs} runs, seed {options.seed}.",
    )
    title = f"{crowd.name}: {options.interval:.0%} intervals of the accuracy"
    return [Table(title, "items", COLUMNS, rows, notes=notes)]


def run_once(crowd: Crowd, items: int, mass: float, seed: int, run: int) -> Intervals:
    """One run: a function of its arguments alone, whoever runs it."""
    return measured(crowd, items, mass, np.random.default_rng([seed, run, items]))
