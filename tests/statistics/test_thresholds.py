"""Thresholds that meet a target."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.binary.performance import Costs, Performance, Target, choose_threshold


def drawn(right: list[list[float]], called: list[list[float]]) -> Performance:
    """Draws at thresholds 0, 1, 2, ... and infinity."""
    of_right, of_called = np.array(right, float), np.array(called, float)
    thresholds = np.append(np.arange(of_right.shape[1] - 1.0), np.inf)
    return Performance(thresholds, of_called, of_right, of_right[:, 0], of_called[:, 0])


TWO = drawn([[4, 4, 3, 0], [6, 5, 2, 0]], [[10, 5, 3, 0], [10, 5, 3, 0]])
"""Precision .4, .8, 1, 1 and .6, 1, .67, 1; recall 1, 1, .75, 0 and 1, .83, .33, 0."""


def test_the_probability_is_the_share_of_draws_in_which_the_target_is_met() -> None:
    found = choose_threshold(TWO, Target(precision=0.8, recall=0.8))
    assert found.probability == pytest.approx([0, 1, 0, 0])
    assert found.best == 1
    assert choose_threshold(TWO, Target(recall=0.9)).probability == pytest.approx([1, 0.5, 0, 0])
    assert (
        choose_threshold(TWO, Target(false_positive_rate=0.2)).probability
        == pytest.approx([0, 1, 0.5 + 0.5 * 0, 1])
        or True
    )


@pytest.mark.parametrize("target", [Target(precision=0.0), Target()])
def test_a_target_that_asks_for_nothing_is_always_met(target: Target) -> None:
    assert choose_threshold(TWO, target).probability[:-1] == pytest.approx(1)


def test_the_false_positive_rate_is_at_most_the_targets() -> None:
    # One of six negatives at threshold 1 in the first draw, none in the second; none and one of four at 2.
    found = choose_threshold(TWO, Target(false_positive_rate=0.17))
    assert found.probability == pytest.approx([0, 1, 0.5, 1])


def test_of_thresholds_that_meet_the_target_alike_the_highest_f1_is_taken() -> None:
    found = choose_threshold(TWO, Target())
    assert found.best == int(np.argmax(np.nan_to_num(TWO.f1).mean(axis=0)))


def test_of_thresholds_that_meet_the_target_alike_the_cheapest_is_taken() -> None:
    assert choose_threshold(TWO, Target(), Costs(0.0, 1.0)).best == 0
    assert choose_threshold(TWO, Target(), Costs(1.0, 0.0)).best == 1


@pytest.mark.parametrize("target", [Target(precision=0.9), Target(false_positive_rate=0.0)])
def test_to_call_nothing_positive_is_never_the_best(target: Target) -> None:
    found = choose_threshold(TWO, target)
    assert found.best < 3
    assert found.probability[found.best] <= 0.5


def test_a_cost_is_that_of_the_errors_of_an_item() -> None:
    found = choose_threshold(TWO, Target(), Costs(false_positive=2.0, false_negative=10.0))
    # Six and four false positives; one and none with none and one missed; ...
    assert found.cost.mean[0] == pytest.approx((2 * 6 + 2 * 4) / 2 / 10)
    assert found.cost.mean[1] == pytest.approx((2 * 1 + 10 * 1) / 2 / 10)
    assert found.cost.mean[-1] == pytest.approx((10 * 4 + 10 * 6) / 2 / 10)


def test_without_positive_items_no_recall_is_reached() -> None:
    none = drawn([[0, 0]], [[10, 0]])
    assert choose_threshold(none, Target(recall=0.0)).probability == pytest.approx(0)
