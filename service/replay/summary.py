"""What a study found, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

import numpy as np

from service.config.assessments import QUALITIES
from service.domain.arrays import Floats
from service.replay.engine import Method
from service.replay.measures import IDENTIFIED, Result
from service.replay.study import Study
from service.replay.tables import Cell, Table

Results = Mapping[Method, Result]

_ESTIMATES = {
    "rmse": ("RMSE x 100", 100.0, True),
    "relative_rmse": ("RMSE, relative to that of scores alone", 1.0, True),
    "ece_error_percent": ("error of the ECE, % of it", 1.0, True),
    "coverage": ("share of intervals that hold the truth, %", 100.0, False),
    "overall_coverage": ("the same for the accuracy over all traffic, %", 100.0, False),
}
"""Titles of what estimation measures, scale of the figures, and whether less is better."""


def summary(study: Study, results: Results) -> list[Table]:
    """Tables of one study, methods side by side."""
    if study.task == "identification":
        return [identification(study, results)]
    if study.task == "comparison":
        return [comparison(study, results)]
    measured = next(iter(results.values())).per_run
    tables = [estimation(study, results, name) for name in _ESTIMATES if name in measured]
    if "overall_error" in measured:
        errors = {
            method: 100 * np.sqrt((result.per_run["overall_error"] ** 2).mean(axis=0))
            for method, result in results.items()
        }
        tables.append(_by_labels(study, "RMSE x 100 of the accuracy over all traffic", errors, best=True))
    return tables


def estimation(study: Study, results: Results, name: str) -> Table:
    """Means over the runs, by number of labels."""
    title, scale, best = _ESTIMATES[name]
    means = {method: scale * result.per_run[name].mean(axis=0) for method, result in results.items()}
    return _by_labels(study, title, means, best=best)


def _by_labels(study: Study, title: str, figures: Mapping[Method, Floats], *, best: bool) -> Table:
    columns = tuple(str(used) for used in study.at)
    return Table(
        title=f"{question(study)}: {title}",
        corner="method \\ labels",
        columns=columns,
        rows=[
            (str(method), tuple(None if isnan(value) else value for value in values.tolist()))
            for method, values in figures.items()
        ],
        marked=frozenset(columns if best else ()),
        notes=(f"{study.runs} runs, seed {study.seed}.",),
    )


def identification(study: Study, results: Results) -> Table:
    """Labels until the groups are found, and as % of the pool."""
    size = study.pool.recording.size
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    unidentified = []
    for method, result in results.items():
        curve, stays = crossing(result), result.per_run["stays"]
        every, never = float(stays.mean()), int((stays > study.budget).sum())
        of_pool = None if curve is None else 100 * curve / size
        rows.append((str(method), (curve, of_pool, every, 100 * every / size)))
        if never:
            unidentified.append(
                f"{method}: {never} of {study.runs} runs are not identified with all labels; they count as "
                f"{study.budget + 1}."
            )
    columns = ("labels, mean curve", "% of pool", "labels, every run", "% of pool, every run")
    return Table(
        title=f"{question(study)}: labels until the mean reciprocal rank is above {IDENTIFIED}",
        corner="method",
        columns=columns,
        rows=rows,
        marked=frozenset(columns),
        notes=(
            "First: when the curve averaged over the runs is above for good. Then: when every single run is,",
            f"averaged over the runs. {study.runs} runs, seed {study.seed}.",
            *unidentified,
        ),
    )


def crossing(result: Result) -> float | None:
    """Labels from which on the averaged mean reciprocal rank is above the bar; None if it never is.

    Before any label the informed prior may happen to name the right group, and lose it again.
    """
    mean = result.totals["reciprocal_rank"] / result.totals["runs"]
    below = np.flatnonzero(mean <= IDENTIFIED)
    first = int(below[-1]) + 1 if below.size else 0
    return float(first) if first < len(mean) else None


def comparison(study: Study, results: Results) -> Table:
    """Labels until comparisons are settled."""
    columns = ("labels, first settled", "labels, settled for good", "never settled, %")
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for method, result in results.items():
        first, stays, never = (float(result.per_run[kind].mean()) for kind in ("first", "stays", "never"))
        rows.append((str(method), (first, stays, 100 * never)))
    return Table(
        title=f"{question(study)}: labels until the verdict on two groups is that of the whole pool",
        corner="method",
        columns=columns,
        rows=rows,
        marked=frozenset(columns[:2]),
        notes=(
            "All pairs in turn; one that is never settled counts with all its labels.",
            f"{study.runs} runs, seed {study.seed}.",
        ),
    )


def question(study: Study) -> str:
    """What is asked of whom, as a title."""
    name = study.pool.recording.name
    if study.task == "identification":
        return f"{name}, {QUALITIES[study.metric, study.extreme]} top {study.top_m}"
    return f"{name}, {study.task} of {study.metric.replace('_', ' ')}"
