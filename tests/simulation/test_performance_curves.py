"""Twenty labels and all scores tell a precision-recall curve far better than twenty labels alone."""

from __future__ import annotations

import numpy as np
import pytest

from service.replay.digits import digits_recordings
from service.replay.performance import (
    RECALLS,
    BinaryScores,
    PerformanceStudy,
    Run,
    area,
    label_only_precision,
)
from service.replay.workers import Workers

LABELS = 20

RUNS = 2
"""Of each of the ten classes: an estimate takes a second, and their areas differ little (0.04 on average,
with a standard deviation of 0.03, so the mean of twenty is within 0.014)."""

LABEL_ONLY_DRAWS = 400
"""Of each class: areas of labels alone are near 0, or near 1 where no label is positive, and cost nothing."""

COVERED = 0.93
"""Nominal minus two points; thirty runs of each class cover 0.9996, as bands of few labels are wide."""


def pools() -> list[BinaryScores]:
    made = digits_recordings()[0]
    assert made.name == "digits_logistic"
    return [
        BinaryScores(number, made.probabilities[:, number], made.labels == number)
        for number in range(made.classes)
    ]


@pytest.fixture(scope="module")
def found() -> list[Run]:
    studies = [PerformanceStudy(pool, (LABELS,), RUNS, 0.5) for pool in pools()]
    return [run for study in studies for run in study.run(LABELS, Workers())]


def label_only_area() -> float:
    rng = np.random.default_rng(0)
    areas = []
    for pool in pools():
        for _ in range(LABEL_ONLY_DRAWS):
            drawn = rng.choice(pool.size, LABELS, replace=False)
            alone = label_only_precision(pool.scores[drawn], pool.positive[drawn], RECALLS)
            areas.append(area(alone, pool.true_precision))
    return float(np.mean(areas))


def test_the_error_is_at_most_half_of_that_of_labels_alone(found: list[Run]) -> None:
    assert np.mean([run.measures["area"] for run in found]) <= 0.5 * label_only_area()


def test_bands_hold_the_true_curve(found: list[Run]) -> None:
    assert np.mean([run.measures["band_coverage"] for run in found]) >= COVERED
