"""Accuracy of items without a self-selected label, from those of them that were requested."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.absent_answers import Strata, draw_accuracies, draw_shares, stratified
from service.statistics.absent_chains import CHAINS, AnsweredItems

REGIONS = 5


def items(
    correct: list[float],
    incorrect: list[float],
    unclear: float = 0.0,
    *,
    absent: float = 1.0,
    right: float = 0.0,
) -> AnsweredItems:
    """Requested items of some regions, all with the same score."""
    count = len(correct)
    ones = np.ones(count)
    return AnsweredItems(
        0 * ones,
        np.arange(count)[None],
        np.ones(1, np.bool_),
        absent * ones,
        right * ones,
        np.array(correct, np.float64),
        np.array(incorrect, np.float64),
        unclear * ones,
    )


def regional(answered: AnsweredItems, regions: int = REGIONS) -> np.ndarray:
    return draw_accuracies(answered).accuracies(np.zeros(regions), np.arange(regions)[None])


def test_without_a_request_an_accuracy_may_be_anything() -> None:
    drawn = draw_accuracies(items([], [])).accuracies(np.zeros(1), np.zeros((1, 1), np.intp))[:, 0]
    assert np.quantile(drawn, 0.025) < 0.02
    assert np.quantile(drawn, 0.975) > 0.98
    assert np.median(drawn) == pytest.approx(0.5, abs=0.1)


def test_with_many_requests_each_level_has_its_own_rate() -> None:
    rates = np.array([0.5, 0.9, 0.9, 0.9, 0.95])
    drawn = regional(items((4_000 * rates).tolist(), (4_000 * (1 - rates)).tolist()))
    assert drawn.mean(axis=0) == pytest.approx(rates, abs=0.005)
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(rates * (1 - rates) / 4_000), rel=0.3)


def test_a_level_without_requests_is_less_certain_than_the_others() -> None:
    drawn = regional(items([27, 25, 26, 28], [3, 5, 4, 2]))
    spread = drawn.std(axis=0)
    assert spread[4] > 1.5 * spread[:4].max()


def test_unclear_items_are_correct_in_every_other_draw() -> None:
    drawn = draw_accuracies(items([500.0], [0.0], 500.0)).accuracies(np.zeros(1), np.zeros((1, 1), np.intp))
    odd = np.arange(len(drawn)) % 2 == 1
    assert drawn[~odd].mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[odd].mean() > 0.98


@pytest.mark.parametrize(("absent", "accuracy"), [(0.5, 0.6), (0.2, 0.8), (0.9, 0.3)])
def test_of_items_whose_label_may_not_be_known_the_rest_is_subtracted(absent: float, accuracy: float) -> None:
    right = 0.9 * (1 - absent)
    rate, count = right + absent * accuracy, 20_000.0
    answered = items([count * rate], [count * (1 - rate)], absent=absent, right=right)
    drawn = draw_accuracies(answered).accuracies(np.zeros(1), np.zeros((1, 1), np.intp))[:, 0]
    error = np.sqrt(rate * (1 - rate) / count) / absent
    assert drawn.mean() == pytest.approx(accuracy, abs=3 * error)
    assert drawn.std() == pytest.approx(error, rel=0.3)


def test_intervals_of_levels_hold() -> None:
    rng, held = np.random.default_rng(2), list[np.ndarray]()
    for _ in range(40):
        truth = special.expit(rng.normal(0.8, 1.0) + rng.normal(0, 0.8, REGIONS))
        correct = rng.binomial(30, truth)
        lower, upper = np.quantile(
            regional(items(correct.tolist(), (30 - correct).tolist())), (0.025, 0.975), axis=0
        )
        held.append((lower <= truth) & (truth <= upper))
    # Two standard errors of 200 intervals are 3 points.
    assert np.mean(held) >= 0.95 - 0.03


def test_a_few_draws_stand_for_all() -> None:
    drawn = np.random.default_rng(0).beta(8, 2, (1_000, 3))
    weights = np.array([0.5, 0.3, 0.2])
    few = stratified(drawn, weights, 20)
    for stratum in range(3):
        assert few[:, stratum].mean() == pytest.approx(drawn[:, stratum].mean(), abs=0.005)
        assert few[:, stratum].std() == pytest.approx(drawn[:, stratum].std(), rel=0.1)
    assert stats.kstest(few @ weights, drawn @ weights).pvalue > 0.5


def test_shares_are_drawn_for_every_chain() -> None:
    strata = Strata(np.zeros(2), np.arange(2)[None], np.ones(1, np.bool_))
    drawn = draw_shares(strata, np.array([900.0, 100.0]), np.array([100.0, 900.0]), 1)
    assert drawn.shape == (CHAINS, 2)
    assert drawn.mean(axis=0) == pytest.approx([0.9, 0.1], abs=0.02)


def test_the_same_items_say_the_same() -> None:
    first, again = (draw_accuracies(items([10.0], [5.0])) for _ in range(2))
    np.testing.assert_array_equal(first.intercept, again.intercept)
