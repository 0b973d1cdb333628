"""`credence replay --task ensemble`: studies that the options ask for, and what they found."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.monitoring.ensembles import ITSELF
from service.replay import plots
from service.replay.ensemble import METHODS, MIXINGS, SEPARATE, SHARED, EnsembleStudy, Run, VotedItems
from service.replay.one_class import ClassTables, Column, chosen_class, label_counts, positive_classes
from service.replay.recording import Recording, load_recording, same_items
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics.sample_sharing import MOST_MEMBERS


@dataclass(frozen=True)
class Found:
    """What was found of one class.

    Attributes:
        study: the question.
        runs: by the number of labels that each member is to have.
    """

    study: EnsembleStudy
    runs: Mapping[int, Sequence[Run]]

    def told(self, what: str, method: str, labels: int) -> Floats:
        """An attribute of what a method told in every run [R, ...]."""
        return np.array([getattr(run[method], what) for run in self.runs[labels]])

    def mean(self, method: str, labels: int) -> Floats:
        """Estimates of every member [members]."""
        return np.asarray(self.told("mean", method, labels).mean(axis=0), np.float64)

    def squares(self, method: str, labels: int) -> Floats:
        """Squared errors of every member [members]."""
        errors = self.told("mean", method, labels) - self.study.items.truth
        return np.asarray((errors**2).mean(axis=0), np.float64)

    def width(self, method: str, labels: int) -> Floats:
        """Of intervals of every member [members]."""
        widths = self.told("upper", method, labels) - self.told("lower", method, labels)
        return np.asarray(widths.mean(axis=0), np.float64)

    def coverage(self, method: str, labels: int) -> Floats:
        """How often intervals hold the truth of every member [members]."""
        # A pool of n items knows its precision in steps of 1 / n; an equal-tailed interval never holds 1.
        items = self.study.items
        truth, half_step = items.truth, 0.5 / items.called
        lower, upper = (self.told(end, method, labels) for end in ("lower", "upper"))
        held = (lower <= truth + half_step) & (truth - half_step <= upper)
        return np.asarray(held.mean(axis=0), np.float64)


def ensemble_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers
) -> list[Table]:
    """Replay the recordings of all members together, and tell what was found.

    Raises:
        RecordingError: an option or a recording cannot be used for this task.
    """
    found = []
    for study in _studies(recordings, options):
        name = f"ensemble class {study.items.positive_class}"
        runs = {labels: study.run(labels, crew, f"{name}, {labels} labels each") for labels in study.labels}
        found.append(Found(study, runs))
    if options.plots:
        draw_ensemble(found, options.plots)
    return ensemble_summary(found)


def _studies(recordings: Sequence[Recording], options: argparse.Namespace) -> list[EnsembleStudy]:
    itself = None if options.ensemble is None else load_recording(options.ensemble)
    same_items([*recordings, *([] if itself is None else [itself])])
    _told_apart(recordings)
    pools = [_voted(recordings, itself, number) for number in positive_classes(recordings[0], options)]
    if chosen_class(options, recordings[0].classes) is None:
        pools = [items for items in pools if items.called.all()] or pools
    for items in pools:
        if not items.called.all():
            # The last of them: an ensemble calls nothing positive because its members do not.
            member = items.members[int(np.flatnonzero(items.called == 0)[-1])]
            raise RecordingError(
                member,
                f"it calls no item class {items.positive_class}, so it has no precision; choose another "
                "--positive-class",
            )
    fewest = min(pools, key=lambda items: int(items.called.min()))
    most = int(fewest.called.min())
    labels = label_counts(
        options,
        most,
        fewest.members[int(fewest.called.argmin())],
        f"it calls {most} items class {fewest.positive_class}",
    )
    return [
        EnsembleStudy(items, labels, options.runs, mass=options.interval, seed=options.seed)
        for items in pools
    ]


def _told_apart(recordings: Sequence[Recording]) -> None:
    """Refuse more members than can be told apart, or two of one name."""
    if len(recordings) >= MOST_MEMBERS:
        raise RecordingError(
            "ensemble", f"there are {len(recordings)} members; judge {MOST_MEMBERS - 1} of them at the most"
        )
    names = [ITSELF, *(recording.name for recording in recordings)]
    for name in names[1:]:
        if names.count(name) > 1:
            raise RecordingError(name, "the ensemble or another member is called so too; rename the file")


def _voted(recordings: Sequence[Recording], itself: Recording | None, number: int) -> VotedItems:
    said = {recording.name: recording.predicted == number for recording in recordings}
    decision = None if itself is None else itself.predicted == number
    return VotedItems.of(number, said, recordings[0].labels == number, decision)


def cost(method: str, found: Sequence[Found], labels: int) -> float:
    """Labels that a method asks for, the mean over the classes."""
    return float(np.mean([each.told("cost", method, labels).mean() for each in found]))


def saving(method: str, found: Sequence[Found], labels: int) -> float:
    """Share of the labels of separate samples that a method saves."""
    return 1 - cost(method, found, labels) / cost(SEPARATE, found, labels)


def rmse(method: str, found: Sequence[Found], labels: int) -> float:
    """Of all members' precision, over the classes."""
    return float(np.mean([each.squares(method, labels) for each in found]) ** 0.5)


def relative_rmse(method: str, found: Sequence[Found], labels: int) -> Cell:
    """An RMSE over that of separate samples; None where these happen to be right in all runs."""
    separate = rmse(SEPARATE, found, labels)
    return rmse(method, found, labels) / separate if separate > 0 else None


def coverage(method: str, found: Sequence[Found], labels: int) -> float:
    """How often intervals hold the truth, over all members and classes."""
    return float(np.mean([each.coverage(method, labels) for each in found]))


def ensemble_summary(found: Sequence[Found]) -> list[Table]:
    """Tables of what was found of every class."""
    study = found[0].study
    made = ClassTables(
        [(each.study.items.positive_class, each) for each in found],
        study.labels,
        mean="mean of all",
        notes=(f"{study.runs} runs, seed {study.seed}.",),
    )

    def table(title: str, columns: Mapping[str, Column[Found]], *notes: str) -> Table:
        return made.table(f"{_title(study)}: {title}", "class, labels each", columns, *notes)

    return [
        table(
            "labels to ask for",
            {
                "separate": partial(cost, SEPARATE),
                "shared": partial(cost, SHARED),
                "saved, %": _percent(saving, SHARED),
            },
            "Separate: a random sample for the ensemble and for each member, none shared.",
        ),
        table(
            f"RMSE of precision, x 100; {_intervals(study)} that hold it, %",
            {
                "separate": _percent(rmse, SEPARATE),
                "shared": _percent(rmse, SHARED),
                "ratio": partial(relative_rmse, SHARED),
                "held separate": _percent(coverage, SEPARATE),
                "held shared": _percent(coverage, SHARED),
            },
            "Over the ensemble and all members.",
        ),
        table(
            "labels saved by mixing, where all items are known one by one, %",
            {mixing: _percent(saving, mixing) for mixing in MIXINGS},
        ),
        table(
            "RMSE by mixing, over that of separate samples",
            {mixing: partial(relative_rmse, mixing) for mixing in MIXINGS},
        ),
        *(each for labels in study.labels for each in _of_members(study, made, labels)),
    ]


def _percent(of: Callable[[str, Sequence[Found], int], float], method: str) -> Column[Found]:
    return lambda found, labels: 100 * of(method, found, labels)


def _of_members(study: EnsembleStudy, made: ClassTables[Found], labels: int) -> Iterator[Table]:
    """The precision of every member, where each has so many labels; then how wide intervals are."""
    told = [
        (f"{row}, {name}", _of_member(some, labels, member))
        for row, some, count in made.rows
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


def _of_member(found: Sequence[Found], labels: int, member: int) -> tuple[Cell, ...]:
    every = [
        [
            each.study.items.truth,
            *(of(method, labels) for of in (each.mean, each.width) for method in (SEPARATE, SHARED)),
        ]
        for each in found
    ]
    return tuple((100 * np.mean(every, axis=0)[:, member]).tolist())


def _title(study: EnsembleStudy) -> str:
    members = len(study.items.members) - 1
    return f"ensemble of {members} member{'s' if members > 1 else ''}"


def _intervals(study: EnsembleStudy) -> str:
    return f"{100 * study.mass:g} % intervals"


def draw_ensemble(found: Sequence[Found], directory: Path) -> None:
    """Write figures, as PNG files: what is saved, and how often intervals are right, by number of labels."""
    study = found[0].study
    for name, words, of, methods in (
        ("saving", "Labels saved", saving, METHODS[1:]),
        ("coverage", "Intervals that hold the truth", coverage, METHODS),
    ):
        figure = plots.curves(
            np.array(study.labels, np.float64),
            {method: np.array([of(method, found, count) for count in study.labels]) for method in methods},
            words,
            "%",
            reference=study.mass if of is coverage else None,
            title=f"{_title(study)}: {words.lower()}, by the labels of each member",
        )
        plots.save(figure, directory / f"ensemble-{name}.png")
