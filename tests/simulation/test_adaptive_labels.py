"""Adaptive labels narrow F1 of a rare class, and its intervals still hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from service.replay.items_to_label import ADAPTIVE, RANDOM
from service.replay.performance import BinaryScores, PerformanceStudy, Run, run_once

ITEMS, POOLS, RUNS, LABELS = 8_000, 10, 3, 100
COVERED = 0.88
"""Three intervals of each of ten pools: nominal minus two standard errors, if pools were independent."""


def pool(number: int) -> BinaryScores:
    """One item in 200 is positive; scores are too high or too low, too steep or too flat."""
    rng = np.random.default_rng([11, number])
    positive = np.arange(ITEMS) < ITEMS // 200
    where = rng.normal(0, 1, ITEMS) + rng.uniform(2.5, 4.5) * positive
    slope, offset = np.exp(rng.normal(0, 0.4)), rng.normal(0, 0.7)
    return BinaryScores(1, special.expit(slope * (3.0 * where - 9.0) + offset), positive)


@pytest.fixture(scope="module")
def studies() -> list[PerformanceStudy]:
    """One of every pool; what its scores tell is learned once, whoever chooses labels."""
    return [PerformanceStudy(pool(each), (LABELS,), RUNS, 0.5) for each in range(POOLS)]


def found(studies: list[PerformanceStudy], policy: str) -> list[Run]:
    return [
        run_once(replace(study, policy=policy), study.mixture, LABELS, number)
        for study in studies
        for number in range(RUNS)
    ]


@pytest.fixture(scope="module")
def adaptive(studies: list[PerformanceStudy]) -> list[Run]:
    return found(studies, ADAPTIVE)


def mean(runs: list[Run], measure: str) -> float:
    return float(np.nanmean([run.measures[measure] for run in runs]))


def test_the_interval_of_f1_is_at_most_half_as_wide_as_with_random_labels(
    studies: list[PerformanceStudy], adaptive: list[Run]
) -> None:
    assert mean(adaptive, "f1_width") <= 0.5 * mean(found(studies, RANDOM), "f1_width")


@pytest.mark.parametrize("measure", ["precision", "recall", "f1", "false_positive_rate"])
def test_intervals_hold_the_truth(adaptive: list[Run], measure: str) -> None:
    assert mean(adaptive, f"{measure}_coverage") >= COVERED
