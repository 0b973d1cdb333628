"""`credence replay --task performance`: studies that the options ask for, and what they found."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.domain.errors import RecordingError
from service.replay import plots
from service.replay.one_class import SECOND, TWO_CLASSES, ClassTables, Column, label_counts, positive_classes
from service.replay.performance import RECALLS, BinaryScores, PerformanceStudy, Run
from service.replay.recording import Recording
from service.replay.tables import Cell, Table
from service.replay.workers import Workers


@dataclass(frozen=True)
class Found:
    """What was found of one class.

    Attributes:
        study: the question.
        runs: by number of labels.
    """

    study: PerformanceStudy
    runs: Mapping[int, Sequence[Run]]

    def mean(self, labels: int, measure: str) -> float:
        """Of a measure over the runs in which it exists; NaN if it exists in none."""
        return _mean([run.measures[measure] for run in self.runs[labels]])


def performance_tables(recording: Recording, options: argparse.Namespace, crew: Workers) -> list[Table]:
    """Replay a recording, and tell what was found.

    Raises:
        RecordingError: an option or the recording cannot be used for this task.
    """
    found = {}
    for study in list(_studies(recording, options)):
        name = f"{recording.name} class {study.scores.positive_class}"
        runs = {labels: study.run(labels, crew, f"{name}, {labels} labels") for labels in study.labels}
        found[study.scores.positive_class] = Found(study, runs)
    if options.plots:
        draw_performance(recording.name, found, options.plots)
    return performance_summary(recording.name, found)


def _studies(recording: Recording, options: argparse.Namespace) -> Iterator[PerformanceStudy]:
    labels = label_counts(options, recording.size, recording.name, f"it has {recording.size} items")
    threshold = options.threshold
    if threshold is None:
        threshold = 0.0 if options.decision_values else 0.5
    if not options.decision_values and not 0 <= threshold <= 1:
        raise RecordingError("--threshold", f"{threshold:g} is no probability; give one within 0 and 1")
    for number in positive_classes(recording, options):
        yield PerformanceStudy(
            scores=_scores(recording, number, options),
            labels=labels,
            runs=options.runs,
            threshold=threshold,
            target=options.target,
            mass=options.interval,
            seed=options.seed,
        )


def _scores(recording: Recording, number: int, options: argparse.Namespace) -> BinaryScores:
    positive = recording.labels == number
    if not options.decision_values:
        return BinaryScores(number, recording.probabilities[:, number], positive)
    values = recording.decision_values
    if values is None:
        raise RecordingError(
            recording.name,
            "it has no decision values; save them as the array 'decision_values' of an .npz, or leave "
            "--decision-values out",
        )
    if recording.classes != TWO_CLASSES:
        raise RecordingError(
            recording.name,
            f"it has {recording.classes} classes, decision values are of two; leave --decision-values out",
        )
    return BinaryScores(number, values if number == SECOND else -values, positive, unit=False)


def performance_summary(name: str, found: Mapping[int, Found]) -> list[Table]:
    """Tables of one recording, of what was found by the number of the class."""
    study = next(iter(found.values())).study
    percent = f"{100 * study.mass:g} %"
    made = ClassTables(
        list(found.items()),
        study.labels,
        mean=f"mean of {len(found)} classes",
        notes=(f"{study.runs} runs, seed {study.seed}.",),
    )

    def table(title: str, columns: Mapping[str, Column[Found]], *notes: str) -> Table:
        return made.table(f"{name}, performance: {title}", "class, labels", columns, *notes)

    def areas(words: str, suffix: str, others: Mapping[str, Column[Found]], note: str) -> Table:
        alone, ours = _figure(f"label_only_area{suffix}"), _figure(f"area{suffix}")
        columns = {"labels alone": alone, "with all scores": ours, "ratio": _ratio(ours, alone), **others}
        return table(f"area between estimated and true precision-recall curve{words}, x 100", columns, note)

    tables = [
        areas(
            "",
            "",
            {f"width of {percent} band": _figure("band_width")},
            "Where no label is positive, labels alone count as a precision of 0 everywhere.",
        ),
        areas(
            " if a label is positive",
            "_if_positive",
            {"runs, %": _figure("positive_label")},
            "The same, of those runs alone in which one of the labels is positive.",
        ),
        table(
            f"share of {percent} intervals that hold the truth, %",
            {
                "precision at recall": _figure("band_coverage"),
                "precision": _figure("precision_coverage"),
                "recall": _figure("recall_coverage"),
                "F1": _figure("f1_coverage"),
                "prevalence": _figure("prevalence_coverage"),
            },
            f"First: of the band, over {len(RECALLS)} recalls. "
            f"Precision, recall and F1 are those at the threshold {study.threshold:g}.",
        ),
        table(
            "weights of the four ways to see the scores, %",
            {each: _figure(f"weight_{each}") for each in ("calibrated", "informed", "mixture", "ranked")},
        ),
        table(
            "the mixture of two distributions",
            {
                "separation": _figure("separation", 1.0),
                "misfit p-value": _figure("misfit_p_value", 1.0),
                "effective draws": _figure("effective_draws", 1.0),
                "by walkers, %": _figure("walkers"),
            },
            "Misfit p-value: how often scores that the mixture makes are as far off as the real ones.",
        ),
    ]
    if study.target is not None:
        wanted = (f"{key} {value:g}" for key, value in vars(study.target).items() if value is not None)
        columns = {
            "promised, %": _figure("target_promised"),
            "met, %": _figure("target_met"),
            "can be met, %": _figure("target_possible"),
        }
        note = "Promised: the mean probability that the target is met. Can be met: at some threshold."
        tables.append(table(f"the threshold chosen for {', '.join(wanted)}", columns, note))
    return tables


def _figure(measure: str, scale: float = 100.0) -> Column[Found]:
    """Mean of a measure over the runs and then over the classes, scaled; None where it exists in none."""

    def figure(found: Sequence[Found], labels: int) -> Cell:
        mean = scale * _mean([each.mean(labels, measure) for each in found])
        return None if np.isnan(mean) else mean

    return figure


def _ratio(above: Column[Found], below: Column[Found]) -> Column[Found]:
    def figure(found: Sequence[Found], labels: int) -> Cell:
        one, other = above(found, labels), below(found, labels)
        return None if not other or one is None else one / other

    return figure


def _mean(values: Sequence[float]) -> float:
    exist = [value for value in values if not np.isnan(value)]
    return float(np.mean(exist)) if exist else float("nan")


def draw_performance(name: str, found: Mapping[int, Found], directory: Path) -> None:
    """Write figures, as PNG files: errors by number of labels, and for every class the curve of a run."""
    every = list(found.values())
    labels = every[0].study.labels
    series = {
        words: np.array([_mean([each.mean(count, measure) for each in every]) for count in labels])
        for measure, words in (("label_only_area", "labels alone"), ("area", "with all scores"))
    }
    title = f"{name}: area between estimated and true precision-recall curve"
    figure = plots.curves(np.array(labels, np.float64), series, "Area", "%", title=title)
    plots.save(figure, directory / f"{name}-performance-area.png")
    for number, each in found.items():
        study, band = each.study, each.runs[labels[0]][0].band
        figure = plots.precision_recall(
            RECALLS,
            (band.lower, band.median, band.upper),
            study.scores.true_precision,
            title=f"{name}, class {number}: precision and recall, one run with {labels[0]} labels",
            mass=study.mass,
        )
        plots.save(figure, directory / f"{name}-performance-class-{number}.png")
