"""Intervals at the ends of the scale: a group without an error may be perfect, and its interval says so."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.names import PriorName

MASS = 0.95
SCORE = 0.95


def assessed(outcomes: list[tuple[int, int]], prior: PriorName = "learned") -> GroupingBeliefs:
    """Groups of one score bin, with so many labels of each, and correct ones."""
    groups = len(outcomes)
    correct = [[1.0] * right + [0.0] * (labels - right) for labels, right in outcomes]
    size = sum(labels for labels, _ in outcomes)
    return assess_grouping(
        cell_groups=np.arange(groups),
        cell_bins=np.zeros(groups, np.intp),
        group_count=groups,
        bin_count=1,
        traffic=CellTraffic(np.ones(groups), np.full(groups, SCORE)),
        labels=Labels(
            cells=np.repeat(np.arange(groups), [labels for labels, _ in outcomes]),
            correct=np.concatenate(correct),
            weights=np.ones(size),
            freshness=np.ones(size),
            true_classes=np.full(size, -1),
        ),
        prior=prior,
    )


@pytest.mark.parametrize("prior", ["learned", "informed", "uniform"])
@pytest.mark.parametrize("labels", [1, 20, 500])
def test_the_interval_of_a_group_without_errors_ends_at_one(prior: PriorName, labels: int) -> None:
    beliefs = assessed([(labels, labels), (30, 25)], prior)
    lower, upper = beliefs.accuracy_interval(MASS)
    assert upper[0] == 1
    assert beliefs.accuracy.probability_below(lower)[0] == pytest.approx((1 - MASS) / 2, abs=1e-5)


def test_the_interval_of_a_group_without_correct_labels_begins_at_zero() -> None:
    beliefs = assessed([(12, 0), (30, 25)])
    lower, upper = beliefs.accuracy_interval(MASS)
    assert lower[0] == 0
    assert beliefs.accuracy.probability_below(upper)[0] == pytest.approx((1 + MASS) / 2, abs=1e-5)


def test_one_error_makes_the_interval_two_sided() -> None:
    beliefs = assessed([(40, 39), (40, 1)])
    two_sided = beliefs.accuracy.interval(MASS)
    np.testing.assert_array_equal(beliefs.accuracy_interval(MASS), two_sided)
    assert two_sided[1].max() < 1


def test_a_group_without_labels_has_a_two_sided_interval() -> None:
    beliefs = assessed([(0, 0), (30, 25)])
    np.testing.assert_array_equal(beliefs.accuracy_interval(MASS), beliefs.accuracy.interval(MASS))


@pytest.mark.parametrize("accuracy", [0.97, 0.99, 0.999, 1.0])
def test_intervals_of_nearly_perfect_groups_hold_the_truth(accuracy: float) -> None:
    rng = np.random.default_rng(3)
    runs, groups, labels = 40, 10, 60
    held = 0
    for _ in range(runs):
        lower, upper = assessed(
            [(labels, int(right)) for right in rng.binomial(labels, accuracy, groups)]
        ).accuracy_interval(MASS)
        held += int(np.count_nonzero((lower <= accuracy) & (accuracy <= upper)))
    # Groups of a run share a curve, so that runs are what is independent.
    assert held / (runs * groups) >= 0.93 - 2 * (0.95 * 0.05 / runs) ** 0.5
