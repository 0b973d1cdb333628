"""What a study of performance found, as tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.replay import plots
from service.replay.performance import RECALLS, PerformanceStudy, Run
from service.replay.tables import Cell, Table


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


_Columns = Mapping[str, tuple[str, float]]
"""By measure: what it is called, and the scale of its figures."""

_INTERVALS: _Columns = {
    "band_coverage": ("precision at recall", 100.0),
    "precision_coverage": ("precision", 100.0),
    "recall_coverage": ("recall", 100.0),
    "f1_coverage": ("F1", 100.0),
    "prevalence_coverage": ("prevalence", 100.0),
}
_WEIGHTS: _Columns = {
    "weight_calibrated": ("calibrated", 100.0),
    "weight_informed": ("informed", 100.0),
    "weight_mixture": ("mixture", 100.0),
    "weight_ranked": ("ranked", 100.0),
}
_MIXTURE: _Columns = {
    "separation": ("separation", 1.0),
    "misfit_p_value": ("misfit p-value", 1.0),
    "effective_draws": ("effective draws", 1.0),
    "walkers": ("by walkers, %", 100.0),
}
_TARGET: _Columns = {
    "target_promised": ("promised, %", 100.0),
    "target_met": ("met, %", 100.0),
    "target_possible": ("can be met, %", 100.0),
}


def performance_summary(name: str, found: Mapping[int, Found]) -> list[Table]:
    """Tables of one recording: a row for every class and number of labels; then for the mean of the classes.

    Args:
        name: of the recording.
        found: by the number of the class.
    """
    study = next(iter(found.values())).study
    threshold = f"Precision, recall and F1 are those at the threshold {study.threshold:g}."
    tables = [
        _areas(
            name,
            found,
            {"band_width": (f"width of {_percent(study)} band", 100.0)},
            note="Where no label is positive, labels alone count as a precision of 0 everywhere.",
        ),
        _areas(
            name,
            found,
            {"positive_label": ("runs, %", 100.0)},
            note="The same, of those runs alone in which one of the labels is positive.",
            words=" if a label is positive",
            suffix="_if_positive",
        ),
        _table(
            f"{name}, performance: share of {_percent(study)} intervals that hold the truth, %",
            found,
            _INTERVALS,
            f"First: of the band, over {len(RECALLS)} recalls. {threshold}",
        ),
        _table(f"{name}, performance: weights of the four ways to see the scores, %", found, _WEIGHTS),
        _table(
            f"{name}, performance: the mixture of two distributions",
            found,
            _MIXTURE,
            "Misfit p-value: how often scores that the mixture makes are as far off as the real ones.",
        ),
    ]
    if study.target is not None:
        wanted = (f"{key} {value:g}" for key, value in vars(study.target).items() if value is not None)
        tables.append(
            _table(
                f"{name}, performance: the threshold chosen for {', '.join(wanted)}",
                found,
                _TARGET,
                "Promised: the mean probability that the target is met. Can be met: at some threshold.",
            )
        )
    return tables


def _areas(
    name: str,
    found: Mapping[int, Found],
    others: _Columns,
    *,
    note: str,
    words: str = "",
    suffix: str = "",
) -> Table:
    """A table of areas of both methods, and their ratio; others come after these."""
    plain = _table(
        f"{name}, performance: area between estimated and true precision-recall curve{words}, x 100",
        found,
        {
            f"label_only_area{suffix}": ("labels alone", 100.0),
            f"area{suffix}": ("with all scores", 100.0),
            **others,
        },
        note,
    )
    rows = [
        (row, (alone, ours, None if not alone or ours is None else ours / alone, *more))
        for row, (alone, ours, *more) in plain.rows
    ]
    columns = (*plain.columns[:2], "ratio", *plain.columns[2:])
    return Table(plain.title, plain.corner, columns, rows, notes=plain.notes)


def _percent(study: PerformanceStudy) -> str:
    return f"{100 * study.mass:g} %"


def _table(title: str, found: Mapping[int, Found], columns: _Columns, *notes: str) -> Table:
    """A table of means over the runs, and over the classes."""
    every = list(found.values())
    study = every[0].study
    rows = [
        (f"class {number}, {labels}", _figures([each], labels, columns))
        for number, each in found.items()
        for labels in study.labels
    ]
    if len(every) > 1:
        rows += [
            (f"mean of {len(every)} classes, {labels}", _figures(every, labels, columns))
            for labels in study.labels
        ]
    return Table(
        title=title,
        corner="class, labels",
        columns=tuple(words for words, _ in columns.values()),
        rows=rows,
        notes=(*notes, f"{study.runs} runs, seed {study.seed}."),
    )


def _figures(found: Sequence[Found], labels: int, columns: _Columns) -> tuple[Cell, ...]:
    figures = (
        scale * _mean([each.mean(labels, measure) for each in found])
        for measure, (_, scale) in columns.items()
    )
    return tuple(None if np.isnan(figure) else figure for figure in figures)


def _mean(values: Sequence[float]) -> float:
    exist = [value for value in values if not np.isnan(value)]
    return float(np.mean(exist)) if exist else float("nan")


def draw_performance(name: str, found: Mapping[int, Found], directory: Path) -> None:
    """Write figures, as PNG files: errors by number of labels, and for every class the curve of a run.

    Args:
        name: of the recording.
        found: by the number of the class.
        directory: where files go.

    Raises:
        RecordingError: matplotlib is missing.
    """
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
