"""What a study concludes, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from service.config.assessments import QUALITIES
from service.replay.engine import Method
from service.replay.measures import Result
from service.replay.study import Study
from service.replay.summary import crossing

_POINTS: Final = 100


def conclusions(study: Study, results: Mapping[Method, Result]) -> list[str]:
    """Sentences about the best method, and what the others need."""
    name = study.pool.recording.name
    if study.task == "identification":
        return _identification(name, study, results)
    if study.task == "comparison":
        return _comparison(name, results)
    return _estimation(name, study, results)


def _identification(name: str, study: Study, results: Mapping[Method, Result]) -> list[str]:
    quality = QUALITIES[study.metric, study.extreme]
    groups = f"the {quality} group" if study.top_m == 1 else f"the {study.top_m} {quality} groups"
    labels = {method: crossing(result) for method, result in results.items()}
    found = {method: number for method, number in labels.items() if number is not None}
    if not found:
        return [f"{name}: no method finds {groups} with {study.budget} labels."]
    best = min(found, key=lambda method: found[method])
    sentence = f"{name}: {best} finds {groups} of {len(study.pool.names)} with {found[best]:.0f} labels."
    return [sentence, *(_other(method, labels[method]) for method in labels if method != best)]


def _other(method: Method, labels: float | None) -> str:
    return f"{method} does not find it." if labels is None else f"{method} needs {labels:.0f} labels."


def _comparison(name: str, results: Mapping[Method, Result]) -> list[str]:
    labels = {method: float(result.per_run["stays"].mean()) for method, result in results.items()}
    best = min(labels, key=lambda method: labels[method])
    return [
        f"{name}: {best} needs {labels[best]:.0f} labels to compare two groups, on average.",
        *(f"{method} needs {labels[method]:.0f}." for method in labels if method != best),
    ]


def _estimation(name: str, study: Study, results: Mapping[Method, Result]) -> list[str]:
    figure, unit, scale = next(
        each
        for each in (
            ("rmse", "points", _POINTS),
            ("relative_rmse", "of that of scores alone", 1),
            ("ece_error_percent", "% of the calibration error", 1),
        )
        if each[0] in next(iter(results.values())).per_run
    )
    last = {m: scale * float(np.nanmean(r.per_run[figure], axis=0)[-1]) for m, r in results.items()}
    best = min(last, key=lambda method: last[method])
    what = study.metric.replace("_", " ")
    of = f"{what} of {len(study.pool.names)} groups"
    sentences = [
        f"{name}: with {study.at[-1]} labels {best} estimates {of} with an error of {last[best]:.3g} {unit}.",
        *(f"With {method} the error is {last[method]:.3g}." for method in last if method != best),
    ]
    if "coverage" in results[best].per_run:
        held = 100 * float(np.nanmean(results[best].per_run["coverage"], axis=0)[-1])
        sentences.append(f"{100 * study.mass:g}% intervals contain the accuracy in {held:.0f}% of cases.")
    return sentences
