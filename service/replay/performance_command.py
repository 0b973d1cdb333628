"""`credence replay --task performance`: studies that the options ask for, and what they found."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.domain.errors import RecordingError
from service.replay import plots
from service.replay.items_to_label import ADAPTIVE, RANDOM
from service.replay.one_class import SECOND, TWO_CLASSES, class_rows, label_counts, positive_classes
from service.replay.performance import RECALLS, SQUARED_ERROR, BinaryScores, PerformanceStudy, Run
from service.replay.recording import Recording
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics.binary.semi_supervised import WAYS

_PLAIN = ("separation", "misfit_p_value", "effective_draws")
"""Measures that are no shares."""

_WORDS = {"precision": "precision", "recall": "recall", "f1": "F1", "false_positive_rate": "FPR"}
"""Columns of the measures at the threshold."""


@dataclass(frozen=True)
class Found:
    """What was found of one class."""

    study: PerformanceStudy
    runs: Mapping[int, Sequence[Run]]  # by number of labels

    def mean(self, labels: int, measure: str) -> float:
        """Of a measure over the runs in which it exists; NaN if it exists in none."""
        return _mean([run.measures[measure] for run in self.runs[labels]])


def performance_tables(recording: Recording, options: argparse.Namespace, crew: Workers) -> list[Table]:
    """Replay a recording, and tell what was found.

    Raises:
        RecordingError: an option or the recording cannot be used for this task.
    """
    tables = []
    for policy in dict.fromkeys(options.policy or [RANDOM]):
        found = {}
        name = recording.name if policy == RANDOM else f"{recording.name}, {policy}"
        for study in list(_studies(recording, options, policy)):
            of_class = f"{name} class {study.scores.positive_class}"
            runs = {count: study.run(count, crew, f"{of_class}, {count} labels") for count in study.labels}
            found[study.scores.positive_class] = Found(study, runs)
        if options.plots:
            draw_performance(name.replace(", ", "-"), found, options.plots)
        tables += performance_summary(name, found)
    return tables


def _studies(recording: Recording, options: argparse.Namespace, policy: str) -> Iterator[PerformanceStudy]:
    labels = label_counts(options, recording.size, recording.name, f"it has {recording.size} items")
    threshold = options.threshold
    if threshold is None:
        threshold = 0.0 if options.decision_values else 0.5
    if not options.decision_values and not 0 <= threshold <= 1:
        raise RecordingError("--threshold", f"{threshold:g} is no probability; give one within 0 and 1")
    if policy not in {RANDOM, ADAPTIVE}:
        raise RecordingError("--policy", f"performance is learned by {RANDOM} or {ADAPTIVE}, not {policy}")
    for number in positive_classes(recording, options):
        yield PerformanceStudy(
            scores=_scores(recording, number, options),
            labels=labels,
            runs=options.runs,
            threshold=threshold,
            policy=policy,
            aim=options.aim,
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
    percent = f"{100 * study.mass:g}%"
    rows = [
        (f"{row}, {labels}", _figures(some, labels))
        for row, some, labels in class_rows(
            list(found.items()), study.labels, f"mean of {len(found)} classes"
        )
    ]

    def table(title: str, columns: Mapping[str, str], *notes: str) -> Table:
        notes = (*notes, f"{study.runs} runs, seed {study.seed}.")
        return Table.of(f"{name}, performance: {title}", "class, labels", columns, rows, notes)

    area = "area between estimated and true precision-recall curve"
    tables = [
        table(
            f"{area}, x 100",
            {
                "labels alone": "label_only_area",
                "with all scores": "area",
                "ratio": "ratio",
                f"width of {percent} band": "band_width",
            },
            "Where no label is positive, labels alone count as a precision of 0 everywhere.",
        ),
        table(
            f"{area} if a label is positive, x 100",
            {
                "labels alone": "label_only_area_if_positive",
                "with all scores": "area_if_positive",
                "ratio": "ratio_if_positive",
                "runs, %": "positive_label",
            },
            "The same, of those runs alone in which one of the labels is positive.",
        ),
        table(
            f"share of {percent} intervals that hold the truth, %",
            {
                "precision at recall": "band_coverage",
                **{words: f"{name}_coverage" for name, words in _WORDS.items()},
                "prevalence": "prevalence_coverage",
            },
            f"First: of the band, over {len(RECALLS)} recalls. The next four are those at the threshold "
            f"{study.threshold:g}. A miss by less than a thousandth of the truth does not count.",
        ),
        table(
            f"root mean squared error at the threshold {study.threshold:g}, x 100",
            {words: f"{name}{SQUARED_ERROR}" for name, words in _WORDS.items()}
            | {"F1, means": f"f1_of_means{SQUARED_ERROR}", "F1, best design": "best_f1_error"},
            "Of posterior medians, and of means of F1. Best design: the standard error of labels alone, if "
            "they are spread over strata whose positive shares are known (Neyman).",
        ),
        table(
            f"mean width of {percent} intervals at the threshold {study.threshold:g}, x 100",
            {words: f"{name}_width" for name, words in _WORDS.items()}
            | {"curve": "band_width", "curve, best design": "best_band_width"},
            "Best design: of labels alone, if they are spread over strata whose positive shares are known.",
        ),
        table(
            f"share of design-based {percent} intervals that hold the truth, %",
            {
                **{words: f"{name}_design_coverage" for name, words in _WORDS.items()},
                "labels contradict": "design_disagrees",
            },
            "From labels and their inclusion probabilities alone. Labels contradict the score model from a "
            "Bayes factor of 10 on.",
        ),
        table(
            f"mean width of design-based {percent} intervals, x 100",
            {words: f"{name}_design_width" for name, words in _WORDS.items()},
        ),
        table(
            f"share of the shown {percent} intervals that hold the truth, %",
            {words: f"{name}_shown_coverage" for name, words in _WORDS.items()},
            "Design-based ones if labels contradict the score model, and else model-based ones.",
        ),
        table(
            "weights of the four ways to see the scores, %",
            {each: f"weight_{each}" for each in WAYS},
        ),
        table(
            "the mixture of two distributions",
            {
                "separation": "separation",
                "misfit p-value": "misfit_p_value",
                "effective draws": "effective_draws",
                "by walkers, %": "walkers",
            },
            "Misfit p-value: how often scores that the mixture makes are as far off as the real ones.",
        ),
    ]
    if study.target is not None:
        wanted = (f"{key} {value:g}" for key, value in vars(study.target).items() if value is not None)
        columns = {
            "promised, %": "target_promised",
            "met, %": "target_met",
            "can be met, %": "target_possible",
        }
        note = "Promised: the mean probability that the target is met. Can be met: at some threshold."
        tables.append(table(f"the threshold chosen for {', '.join(wanted)}", columns, note))
    return tables


def _figures(found: Sequence[Found], labels: int) -> dict[str, Cell]:
    """Mean of every measure over the runs and then over the classes, in per cent; None if it never exists."""
    figures: dict[str, Cell] = {}
    for name in found[0].runs[labels][0].measures:
        mean = _mean([each.mean(labels, name) for each in found])
        if name.endswith(SQUARED_ERROR):
            mean = float(np.sqrt(mean))
        figures[name] = None if np.isnan(mean) else mean if name in _PLAIN else 100 * mean
    for suffix in ("", "_if_positive"):
        alone, ours = figures[f"label_only_area{suffix}"], figures[f"area{suffix}"]
        figures[f"ratio{suffix}"] = None if not alone or ours is None else ours / alone
    return figures


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
