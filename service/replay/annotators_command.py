"""`credence replay --task annotators`: accuracy from the answers of people who err, few of them per item."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from service.config.labels_per_item import LabelsPerItem
from service.domain.arrays import Flags, Indices, Ints
from service.domain.errors import RecordingError
from service.replay.crowd import NOBODY, Crowd
from service.replay.one_class import label_counts
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics import beta as betas
from service.statistics.annotators import sample_truth
from service.statistics.missing_answers import log_bayes_factor
from service.statistics.truth_chain import Answers

POLICY: Final = LabelsPerItem(most=3)
"""When another person is asked."""

_ATTEMPTS: Final = 2
"""After so many a request expires."""


class Missing(NamedTuple):
    """Which answers are missing: shares of the items."""

    skipped: float = 0.0  # the hardest ones, whose requests people skip
    expired: float = 0.0  # any others, whose requests expire, each after two attempts

    def notes(self) -> list[str]:
        """What the table is about."""
        if not any(self):
            return []
        skipped = f"Requests of the hardest {self.skipped:.0%} of the items are skipped"
        return [f"{skipped}, and {self.expired:.0%} expire at random."]

    def attempts(self, crowd: Crowd, chosen: Indices, rng: np.random.Generator) -> Ints:
        """The attempt at which each of some items is answered; 0 if it is skipped, 3 if it expires [n]."""
        attempts = np.ones(len(chosen), np.int64)
        if self.expired > 0:
            fails = rng.random((len(chosen), 2)) < np.sqrt(self.expired)
            attempts += fails.cumprod(axis=1).sum(axis=1)
        if self.skipped > 0:
            order = np.argsort(crowd.hardness[chosen] + 1e-6 * rng.random(len(chosen)))
            attempts[order[len(chosen) - round(self.skipped * len(chosen)) :]] = 0
        return attempts


class Study(NamedTuple):
    """What is the same in all runs."""

    mass: float  # of intervals
    seed: int
    missing: Missing


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
    allowed: (
        Interval  # if people err, and items without an answer may have any true class where it may matter
    )
    clean: Interval  # from true classes of the same items
    unanswered: float  # share of the items


class Summary(NamedTuple):
    """Of many runs: shares of the intervals that hold the truth, and mean widths."""

    answers: float  # per item
    first: float
    first_width: float
    people: float
    people_width: float
    allowed: float
    allowed_width: float
    unanswered: float
    times: float  # as wide as of true classes

    def cells(self, columns: Sequence[str]) -> tuple[float, ...]:
        """For a table with these of `COLUMNS`: shares in percent, widths in points."""
        found = (self.answers, *(100 * share for share in self[1:-1]), self.times)
        return tuple(value for name, value in zip(COLUMNS, found, strict=True) if name in columns)


_ALLOWED_WIDTH: Final = Summary._fields.index("allowed_width")
OF_MISSING: Final = (
    "if answers are missing, too, hold, %",
    "its width, points",
    "items without an answer, %",
)
COLUMNS: Final = (
    *("answers per item", "by first answers, hold, %", "their width, points"),
    *("if people err, hold, %", "width, points", *OF_MISSING, "times as wide as of true classes"),
)


def summary(found: Sequence[Intervals], truth: float) -> Summary:
    """How good the intervals of many runs are."""
    *means, clean_width = np.mean(
        [
            (
                *(each.answers, each.first.holds(truth), each.first.width),
                *(each.people.holds(truth), each.people.width),
                *(each.allowed.holds(truth), each.allowed.width, each.unanswered, each.clean.width),
            )
            for each in found
        ],
        axis=0,
    ).tolist()
    return Summary._make([*means, means[_ALLOWED_WIDTH] / clean_width])


def measured(
    crowd: Crowd, items: int, mass: float, rng: np.random.Generator, missing: Missing | None = None
) -> Intervals:
    """Intervals from answers about so many random items, of one to three people each (`POLICY`)."""
    drawn = rng.permutation(len(crowd.predicted))[:items]
    attempts = (missing or Missing()).attempts(crowd, drawn, rng)
    is_answered = (attempts >= 1) & (attempts <= _ATTEMPTS)
    chosen, clean = drawn[is_answered], _of_counts(crowd.correct[drawn], mass)
    if not chosen.size:
        anything = Interval(0.0, 1.0)
        return Intervals(0.0, anything, anything, anything, clean, 1.0)
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
    accuracy = draws.accuracy[:, 0]
    anything = attempts == 0
    if _depends_on_items(firsts, attempts[is_answered]):
        anything |= attempts > _ATTEMPTS
    allowed = accuracy
    if anything.any():
        shares = rng.beta(anything.sum() + 0.5, len(chosen) + 0.5, len(accuracy))
        # All of them are incorrect in half of the draws, and correct in the others, as in the service.
        allowed = np.concatenate([accuracy * (1 - shares), accuracy * (1 - shares) + shares])
    return Intervals(
        len(people) / len(drawn),
        _of_counts(firsts, mass),
        Interval(*np.quantile(accuracy, tails).tolist()),
        Interval(*np.quantile(allowed, tails).tolist()),
        clean,
        1 - len(chosen) / len(drawn),
    )


def _depends_on_items(agrees: Flags, attempts: Ints) -> bool:
    """Whether expired requests may have any true class: later attempts are unlike first ones.

    Without a later attempt nothing tells, and they may.
    """
    later = (attempts > 1).astype(np.float64)
    return log_bayes_factor(agrees, later, np.zeros(len(later), np.intp)) >= 0


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
    missing = Missing(options.skipped or 0.0, options.expired or 0.0)
    study = Study(options.interval, options.seed, missing)
    columns = tuple(name for name in COLUMNS if any(missing) or name not in OF_MISSING)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for items in label_counts(options, size, "--labels", f"{crowd.name} has {size} items"):
        given = [(crowd, items, study, run) for run in range(options.runs)]
        found = summary(crew.each(run_once, given, f"{items} items"), truth)
        rows.append((str(items), found.cells(columns)))
    audited = f"{POLICY.audit_share:.0%} of the others"
    notes = (
        f"The accuracy is {100 * truth:.1f}% of {size:,} items, answered by {crowd.answers.shape[1]} people.",
        f"Further people, until two agree: of items whose answer contradicts the model, and of {audited}.",
        *missing.notes(),
        f"{options.runs} runs, seed {options.seed}.",
    )
    title = f"{crowd.name}: {options.interval:.0%} intervals of the accuracy"
    return [Table(title, "items", columns, rows, notes=notes)]


def run_once(crowd: Crowd, items: int, study: Study, run: int) -> Intervals:
    """One run: a function of its arguments alone, whoever runs it."""
    return measured(crowd, items, study.mass, np.random.default_rng([study.seed, run, items]), study.missing)
