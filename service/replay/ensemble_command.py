"""`credence replay --task ensemble`: studies that the options ask for, and what they found."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.monitoring.ensembles import ITSELF
from service.replay import plots
from service.replay.ensemble import METHODS, MIXINGS, SEPARATE, SHARED, EnsembleStudy, Run, VotedItems
from service.replay.one_class import chosen_class, class_rows, label_counts, positive_classes
from service.replay.recording import Recording, load_recording, same_items
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics.sample_sharing import MOST_MEMBERS


@dataclass(frozen=True)
class Found:
    """What was found of one class."""

    study: EnsembleStudy
    runs: Mapping[int, Sequence[Run]]  # by the number of labels that each member is to have

    def measures(self, method: str, labels: int) -> dict[str, Floats]:
        """Means over the runs: of labels asked for, and for every member [members] of what came of them."""
        runs = [run[method] for run in self.runs[labels]]
        mean, lower, upper = (
            np.array([getattr(run, name) for run in runs]) for name in ("mean", "lower", "upper")
        )
        # A pool of n items knows its precision in steps of 1 / n; an equal-tailed interval never holds 1.
        truth, half_step = self.study.items.truth, 0.5 / self.study.items.called
        every = {
            "cost": np.array([run.cost for run in runs]),
            "estimate": mean,
            "square": (mean - truth) ** 2,
            "width": upper - lower,
            "held": (lower <= truth + half_step) & (truth - half_step <= upper),
        }
        return {name: np.asarray(values.mean(axis=0), np.float64) for name, values in every.items()}


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
    _check_members(recordings)
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


def _check_members(recordings: Sequence[Recording]) -> None:
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


def ensemble_summary(found: Sequence[Found]) -> list[Table]:
    """Tables of what was found of every class."""
    study = found[0].study
    classes = class_rows(
        [(each.study.items.positive_class, each) for each in found], study.labels, "mean of all"
    )
    rows = [(f"{row}, {labels}", _figures(some, labels)) for row, some, labels in classes]
    members = [
        (labels, f"{row}, {name}", figures)
        for row, some, labels in classes
        for name, figures in zip(study.items.members, _figures_of_members(some, labels), strict=True)
    ]
    runs = f"{study.runs} runs, seed {study.seed}."
    intervals = f"{100 * study.mass:g}% intervals"

    def table(title: str, columns: Mapping[str, str], *notes: str) -> Table:
        title = f"{_title(study)}: {title}"
        return Table.of(title, "class, labels each", columns, rows, (*notes, runs))

    def of_members(what: str, columns: Mapping[str, str], labels: int, kind: str) -> Table:
        title = f"{_title(study)}: {what}, {labels} labels each, %"
        theirs = [(row, figures) for count, row, figures in members if count == labels]
        return Table.of(title, "class, member", columns, theirs, (f"Mean {kind} of {runs}",))

    tables = [
        table(
            "labels to ask for",
            {"separate": f"cost {SEPARATE}", "shared": f"cost {SHARED}", "saved, %": f"saved {SHARED}"},
            "Separate: a random sample for the ensemble and for each member, none shared.",
        ),
        table(
            f"RMSE of precision, x 100; {intervals} that hold it, %",
            {
                "separate": f"rmse {SEPARATE}",
                "shared": f"rmse {SHARED}",
                "ratio": f"ratio {SHARED}",
                "held separate": f"held {SEPARATE}",
                "held shared": f"held {SHARED}",
            },
            "Over the ensemble and all members.",
        ),
        table(
            "labels saved by mixing, where all items are known one by one, %",
            {mixing: f"saved {mixing}" for mixing in MIXINGS},
        ),
        table(
            "RMSE by mixing, over that of separate samples",
            {mixing: f"ratio {mixing}" for mixing in MIXINGS},
        ),
    ]
    means = {"true": "truth", "separate": f"estimate {SEPARATE}", "shared": f"estimate {SHARED}"}
    widths = {"separate": f"width {SEPARATE}", "shared": f"width {SHARED}"}
    for labels in study.labels:
        tables.append(of_members("precision of every member", means, labels, "estimates"))
        tables.append(of_members(f"width of {intervals}", widths, labels, "widths"))
    return tables


def _figures(found: Sequence[Found], labels: int) -> dict[str, Cell]:
    """Figures of all methods over the members and classes, by name: labels asked for, and what they reach.

    A ratio is that of an RMSE to the one of separate samples; None where these are right in all runs.
    """
    mean: dict[tuple[str, str], float] = {}
    for method, every in _measures(found, labels).items():
        for name in ("cost", "square", "held"):
            mean[name, method] = float(np.mean([measures[name] for measures in every]))
    separate_cost, separate_rmse = mean["cost", SEPARATE], mean["square", SEPARATE] ** 0.5
    figures: dict[str, Cell] = {}
    for method in METHODS:
        cost, rmse = mean["cost", method], mean["square", method] ** 0.5
        figures |= {
            f"cost {method}": cost,
            f"saved {method}": 100 * (1 - cost / separate_cost),
            f"rmse {method}": 100 * rmse,
            f"ratio {method}": rmse / separate_rmse if separate_rmse > 0 else None,
            f"held {method}": 100 * mean["held", method],
        }
    return figures


def _figures_of_members(found: Sequence[Found], labels: int) -> list[dict[str, Cell]]:
    """Of every member its true precision, estimates and widths of intervals, in per cent."""
    columns = {"truth": [each.study.items.truth for each in found]}
    for method, every in _measures(found, labels).items():
        for name in ("estimate", "width"):
            columns[f"{name} {method}"] = [measures[name] for measures in every]
    means = {name: (100 * np.mean(column, axis=0)).tolist() for name, column in columns.items()}
    return [dict(zip(means, figures, strict=True)) for figures in zip(*means.values(), strict=True)]


def _measures(found: Sequence[Found], labels: int) -> dict[str, list[dict[str, Floats]]]:
    return {method: [each.measures(method, labels) for each in found] for method in METHODS}


def _title(study: EnsembleStudy) -> str:
    members = len(study.items.members) - 1
    return f"ensemble of {members} member{'s' if members > 1 else ''}"


def draw_ensemble(found: Sequence[Found], directory: Path) -> None:
    """Write figures, as PNG files: what is saved, and how often intervals are right, by number of labels."""
    study = found[0].study
    figures = [_figures(found, labels) for labels in study.labels]
    for name, words, figure, methods, reference in (
        ("saving", "Labels saved", "saved", METHODS[1:], None),
        ("coverage", "Intervals that hold the truth", "held", METHODS, study.mass),
    ):
        drawn = plots.curves(
            np.array(study.labels, np.float64),
            {method: np.array([each[f"{figure} {method}"] for each in figures]) / 100 for method in methods},
            words,
            "%",
            reference=reference,
            title=f"{_title(study)}: {words.lower()}, by the labels of each member",
        )
        plots.save(drawn, directory / f"ensemble-{name}.png")
