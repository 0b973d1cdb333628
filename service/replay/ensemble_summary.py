"""What a study of an ensemble found, as tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.replay import plots
from service.replay.ensemble import METHODS, MIXINGS, SEPARATE, SHARED, EnsembleStudy, Run
from service.replay.tables import Cell, Table


@dataclass(frozen=True)
class Found:
    """What was found of one class.

    Attributes:
        study: the question.
        runs: by the number of labels that each member is to have.
    """

    study: EnsembleStudy
    runs: Mapping[int, Sequence[Run]]

    def cost(self, method: str, labels: int) -> float:
        """Labels that a method asks for, in all."""
        return float(np.mean([run[method].cost for run in self.runs[labels]]))

    def mean(self, method: str, labels: int) -> Floats:
        """Estimates of every member [members]."""
        return np.asarray(np.mean([run[method].mean for run in self.runs[labels]], axis=0), np.float64)

    def squares(self, method: str, labels: int) -> Floats:
        """Squared errors of every member [members]."""
        errors = np.array([run[method].mean for run in self.runs[labels]]) - self.study.items.truth
        return np.asarray((errors**2).mean(axis=0), np.float64)

    def width(self, method: str, labels: int) -> Floats:
        """Of intervals of every member [members]."""
        each = [run[method].upper - run[method].lower for run in self.runs[labels]]
        return np.asarray(np.mean(each, axis=0), np.float64)

    def coverage(self, method: str, labels: int) -> Floats:
        """How often intervals hold the truth of every member [members]."""
        # A pool of n items knows its precision in steps of 1 / n; an equal-tailed interval never holds 1.
        items = self.study.items
        truth, half_step = items.truth, 0.5 / items.called
        told = [run[method] for run in self.runs[labels]]
        held = [(one.lower <= truth + half_step) & (truth - half_step <= one.upper) for one in told]
        return np.asarray(np.mean(held, axis=0), np.float64)


_Row = tuple[str, Sequence[Found], int]
"""What it is called, of which classes it is, and the number of labels."""


def cost(found: Sequence[Found], method: str, labels: int) -> float:
    """Labels that a method asks for, the mean over the classes."""
    return float(np.mean([each.cost(method, labels) for each in found]))


def saving(found: Sequence[Found], method: str, labels: int) -> float:
    """Share of the labels of separate samples that a method saves."""
    return 1 - cost(found, method, labels) / cost(found, SEPARATE, labels)


def rmse(found: Sequence[Found], method: str, labels: int) -> float:
    """Of all members' precision, over the classes."""
    return float(np.mean([each.squares(method, labels) for each in found]) ** 0.5)


def coverage(found: Sequence[Found], method: str, labels: int) -> float:
    """How often intervals hold the truth, over all members and classes."""
    return float(np.mean([each.coverage(method, labels) for each in found]))


def ensemble_summary(found: Sequence[Found]) -> list[Table]:
    """Tables: a row for every class and number of labels; then for the mean of the classes.

    Args:
        found: of every class.
    """
    study = found[0].study
    runs = f"{study.runs} runs, seed {study.seed}."
    rows = _rows(found)
    tables = [
        Table(
            title=f"{_title(study)}: labels to ask for",
            corner="class, labels each",
            columns=("separate", "shared", "saved, %"),
            rows=[(row, _costs(some, labels)) for row, some, labels in rows],
            notes=("Separate: a random sample for the ensemble and for each member, none shared.", runs),
        ),
        Table(
            title=f"{_title(study)}: RMSE of precision, x 100; {_intervals(study)} that hold it, %",
            corner="class, labels each",
            columns=("separate", "shared", "ratio", "held separate", "held shared"),
            rows=[(row, _closeness(some, labels)) for row, some, labels in rows],
            notes=("Over the ensemble and all members.", runs),
        ),
        Table(
            title=f"{_title(study)}: labels saved by mixing, where all items are known one by one, %",
            corner="class, labels each",
            columns=MIXINGS,
            rows=[(row, _saved(some, labels)) for row, some, labels in rows],
            notes=(runs,),
        ),
        Table(
            title=f"{_title(study)}: RMSE by mixing, over that of separate samples",
            corner="class, labels each",
            columns=MIXINGS,
            rows=[(row, _errors(some, labels)) for row, some, labels in rows],
            notes=(runs,),
        ),
    ]
    return tables + [table for count in study.labels for table in _of_members(study, rows, count)]


def _of_members(study: EnsembleStudy, rows: Sequence[_Row], labels: int) -> Iterator[Table]:
    """The precision of every member, where each has so many labels; then how wide intervals are."""
    told = [
        (f"{row.rpartition(', ')[0]}, {name}", _of_member(some, labels, member))
        for row, some, count in rows
        if count == labels
        for member, name in enumerate(study.items.members)
    ]
    for what, columns, part, note in (
        ("precision of every member", ("true", "separate", "shared"), slice(3), "estimates"),
        (f"width of {_intervals(study)}", ("separate", "shared"), slice(3, 5), "widths"),
    ):
        yield Table(
            title=f"{_title(study)}: {what}, {labels} labels each, %",
            corner="class, member",
            columns=columns,
            rows=[(row, figures[part]) for row, figures in told],
            notes=(f"Mean {note} of {study.runs} runs, seed {study.seed}.",),
        )


def _title(study: EnsembleStudy) -> str:
    members = len(study.items.members) - 1
    return f"ensemble of {members} member{'s' if members > 1 else ''}"


def _intervals(study: EnsembleStudy) -> str:
    return f"{100 * study.mass:g} % intervals"


def _rows(found: Sequence[Found]) -> list[_Row]:
    labels = found[0].study.labels
    rows: list[_Row] = [
        (f"class {each.study.items.positive_class}, {count}", [each], count)
        for each in found
        for count in labels
    ]
    if len(found) > 1:
        rows += [(f"mean of all, {count}", found, count) for count in labels]
    return rows


def _costs(found: Sequence[Found], labels: int) -> tuple[Cell, ...]:
    separate, shared = (cost(found, method, labels) for method in (SEPARATE, SHARED))
    return separate, shared, 100 * saving(found, SHARED, labels)


def _closeness(found: Sequence[Found], labels: int) -> tuple[Cell, ...]:
    separate, shared = (rmse(found, method, labels) for method in (SEPARATE, SHARED))
    held = (100 * coverage(found, method, labels) for method in (SEPARATE, SHARED))
    return 100 * separate, 100 * shared, _relative(shared, separate), *held


def _saved(found: Sequence[Found], labels: int) -> tuple[Cell, ...]:
    return tuple(100 * saving(found, mixing, labels) for mixing in MIXINGS)


def _errors(found: Sequence[Found], labels: int) -> tuple[Cell, ...]:
    separate = rmse(found, SEPARATE, labels)
    return tuple(_relative(rmse(found, mixing, labels), separate) for mixing in MIXINGS)


def _relative(error: float, separate: float) -> Cell:
    """An error over that of separate samples; None where these happen to be right in all runs."""
    return error / separate if separate > 0 else None


def _of_member(found: Sequence[Found], labels: int, member: int) -> tuple[Cell, ...]:
    every = [
        [
            each.study.items.truth,
            *(of(method, labels) for of in (each.mean, each.width) for method in (SEPARATE, SHARED)),
        ]
        for each in found
    ]
    return tuple((100 * np.mean(every, axis=0)[:, member]).tolist())


def draw_ensemble(found: Sequence[Found], directory: Path) -> None:
    """Write figures, as PNG files: what is saved, and how often intervals are right, by number of labels.

    Args:
        found: of every class.
        directory: where files go.

    Raises:
        RecordingError: matplotlib is missing.
    """
    study = found[0].study
    for name, words, of, methods in (
        ("saving", "Labels saved", saving, METHODS[1:]),
        ("coverage", "Intervals that hold the truth", coverage, METHODS),
    ):
        series = {
            method: np.array([of(found, method, count) for count in study.labels]) for method in methods
        }
        figure = plots.curves(
            np.array(study.labels, np.float64),
            series,
            words,
            "%",
            reference=study.mass if of is coverage else None,
            title=f"{_title(study)}: {words.lower()}, by the labels of each member",
        )
        plots.save(figure, directory / f"ensemble-{name}.png")
