"""Intervals of overconfident networks hold the truth from four labels on, whoever chooses the labels."""

from __future__ import annotations

import pytest

from benchmarks.networks import BUDGETS, NETWORKS, TASKS, Coverage, measured

RUNS = 60
PROMISED = 0.93
CHANCE = 2 * (0.95 * 0.05 / RUNS) ** 0.5
"""Two standard errors of a coverage with one interval a run: 5.6 points."""


@pytest.fixture(scope="module", params=TASKS)
def coverage(request: pytest.FixtureRequest) -> Coverage:
    return measured(NETWORKS["overconfident, 10 classes"].world, TASKS[request.param], RUNS)


def test_intervals_of_classes_hold_the_truth_from_the_first_labels_on(coverage: Coverage) -> None:
    assert (coverage.classes >= PROMISED).all(), dict(zip(BUDGETS, coverage.classes, strict=True))


def test_intervals_of_overall_accuracy_hold_the_truth_from_the_first_labels_on(coverage: Coverage) -> None:
    assert (coverage.overall >= PROMISED - CHANCE).all(), dict(zip(BUDGETS, coverage.overall, strict=True))


def test_overall_accuracy_is_right_while_one_class_is_far_worse_than_its_scores() -> None:
    unlike = NETWORKS["badly overconfident, 2 unlike classes"].world
    found = measured(unlike, TASKS["random"], RUNS)
    assert found.overall.mean() >= PROMISED - CHANCE / len(BUDGETS) ** 0.5
