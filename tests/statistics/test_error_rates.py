"""The rates of a class against the rest: definitions, posterior, and intervals that hold at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rate_examples import SELECTED, labelled, rate_by_hand, strata
from scipy import stats

from service.statistics.rates.measures import CRITERIA, RATES
from service.statistics.rates.posterior import draw_rates, gap, joint_intervals, joint_rate_intervals
from service.statistics.rates.strata import rates_of
from service.statistics.rates.stratum_posterior import draw_positive_shares

ITEMS = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0]])
"""Items by whether they are positive, and selected: 3 true positives, 1 missed, 2 false positives."""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("false_positive_rate", 2 / 6),
        ("false_negative_rate", 1 / 4),
        ("true_positive_rate", 3 / 4),
        ("precision", 3 / 5),
        ("selection_rate", 5 / 10),
    ],
)
def test_rates_are_those_of_the_confusion_matrix(name: str, value: float) -> None:
    rate = RATES[name]  # type: ignore[index] # a text
    assert rate_by_hand(rate, *ITEMS.T) == pytest.approx(value)


def test_equalized_odds_are_of_both_classes() -> None:
    assert CRITERIA["equalized_odds"] == ("true_positive_rate", "false_positive_rate")


@given(seed=st.integers(0, 1_000), name=st.sampled_from(list(RATES)))
def test_rates_follow_from_shares_of_strata_and_their_positive_shares(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 20, 4)
    positives = rng.integers(0, counts + 1)
    positives[:2] = np.minimum(positives[:2] + 1, counts[:2])
    strata_of = np.repeat(np.arange(4), counts)
    ranks = np.arange(len(strata_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    positive = (ranks < positives[strata_of]).astype(np.float64)
    if name == "false_positive_rate" and positive.all():
        return
    rate = RATES[name]  # type: ignore[index] # a text
    found = rates_of(rate, counts / counts.sum(), SELECTED.astype(np.intp), positives / counts)
    assert found == pytest.approx(rate_by_hand(rate, positive, SELECTED[strata_of].astype(np.float64)))


def test_a_rate_that_counts_no_item_does_not_exist() -> None:
    shares, nobody = np.array([0.5, 0.5, 0.0, 0.0]), np.zeros(4)
    assert np.isnan(rates_of(RATES["precision"], shares, SELECTED.astype(np.intp), nobody))
    assert np.isnan(rates_of(RATES["true_positive_rate"], shares, SELECTED.astype(np.intp), nobody))


def test_nothing_is_uncertain_once_all_items_have_labels() -> None:
    of = strata([[10, 20, 30, 40]], sizes=True)
    labels = labelled(of, [[10, 20, 30, 40]], [[1, 4, 15, 30]])
    drawn = draw_rates(labels, np.random.default_rng(0), draws=50)
    assert np.ptp(drawn["false_positive_rate"]) == 0
    assert drawn["false_positive_rate"][0, 0] == pytest.approx(25 / (25 + 25))
    assert drawn["true_positive_rate"][0, 0] == pytest.approx(45 / 50)


def test_the_selection_rate_needs_no_label() -> None:
    drawn = draw_rates(labelled(strata([[1, 2, 3, 4]]), [[0] * 4], [[0] * 4]), np.random.default_rng(0))
    np.testing.assert_allclose(drawn["selection_rate"], 0.7)


def test_many_labels_outweigh_scores() -> None:
    drawn = draw_positive_shares(
        np.full((1, 4), 10_000.0),
        np.array([[1_000.0, 2_000.0, 5_000.0, 9_000.0]]),
        np.array([[0.9, 0.9, 0.1, 0.1]]),
        SELECTED,
        rng=np.random.default_rng(0),
        draws=500,
    )
    # The standard error of a share of 10,000 labels is at most half a point.
    np.testing.assert_allclose(drawn.mean(axis=0)[0], [0.1, 0.2, 0.5, 0.9], atol=0.01)


def test_labels_of_one_stratum_inform_about_the_others_of_the_same_prediction() -> None:
    def mean(positives: float) -> float:
        labels, right = np.array([[0.0, 0, 50, 0]]), np.array([[0.0, 0, positives, 0]])
        scores = np.full((1, 4), 0.7)
        rng = np.random.default_rng(0)
        return float(
            draw_positive_shares(labels, right, scores, SELECTED, rng=rng, draws=4_000)[..., 3].mean()
        )

    assert mean(10) < mean(40) - 0.2


def test_joint_intervals_hold_at_once_in_the_share_of_draws() -> None:
    draws = np.random.default_rng(0).normal(size=(4_000, 20))
    lower, upper = joint_intervals(draws, 0.9)
    inside = ((lower <= draws) & (draws <= upper)).all(axis=1).mean()
    assert 0.9 <= inside < 0.92


def test_joint_intervals_of_independent_quantities_are_those_of_sidak() -> None:
    draws = np.random.default_rng(1).normal(size=(40_000, 5))
    lower, upper = joint_intervals(draws, 0.9)
    expected = stats.norm.isf((1 - 0.9 ** (1 / 5)) / 2)
    # So far out 40,000 draws give a quantile to within about 0.05.
    np.testing.assert_allclose(upper, expected, atol=0.1)
    np.testing.assert_allclose(lower, -expected, atol=0.1)


def test_one_quantity_has_an_equal_tailed_interval() -> None:
    draws = np.arange(1_000.0)[:, None]
    lower, upper = joint_intervals(draws, 0.9)
    assert (lower[0], upper[0]) == (50, 949)


def test_constant_and_missing_quantities_do_not_widen_the_others() -> None:
    draws = np.random.default_rng(2).normal(size=(1_000, 3))
    alone = joint_intervals(draws[:, :1], 0.9)
    draws[:, 1], draws[:500, 2] = 0.3, np.nan
    draws[:, 2] = np.where(np.isnan(draws[:, 2]), np.nan, 0.1)
    lower, upper = joint_intervals(draws, 0.9)
    assert (lower[0], upper[0]) == (alone[0][0], alone[1][0])
    assert (lower[1], upper[1], lower[2], upper[2]) == (0.3, 0.3, 0.1, 0.1)


def test_the_gap_of_groups_that_are_alike_has_a_lower_end_of_zero() -> None:
    draws = np.random.default_rng(3).normal(0.4, 0.05, (4_000, 6))
    difference = gap([draws], 0.95).difference
    assert difference[0] == 0
    assert difference[2] > difference[1] > 0


def test_the_gap_is_that_of_the_groups_furthest_apart() -> None:
    draws = np.random.default_rng(4).normal([0.2, 0.3, 0.6], 0.01, (4_000, 3))
    found = gap([draws], 0.95)
    assert found.difference[1] == pytest.approx(0.4, abs=0.001)
    assert found.difference[0] < 0.4 < found.difference[2]
    assert found.ratio[0] < 1 / 3 < found.ratio[2]
    assert found.pairs[0][0, 2, 0] == pytest.approx(found.difference[0])
    np.testing.assert_allclose(found.pairs[0][0], -found.pairs[1][0].T)


def test_the_gap_of_several_rates_is_the_largest_one() -> None:
    rng = np.random.default_rng(5)
    near, far = rng.normal([0.5, 0.52], 0.01, (4_000, 2)), rng.normal([0.3, 0.6], 0.01, (4_000, 2))
    both = gap([near, far], 0.95)
    assert both.difference[1] == pytest.approx(0.3, abs=0.002)
    assert both.ratio[1] == pytest.approx(0.5, abs=0.005)


def test_one_group_alone_has_no_gap() -> None:
    found = gap([np.full((10, 1), 0.5)], 0.95)
    assert (found.difference, found.ratio) == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize(("groups", "draws"), [(3, 4_000), (200, 501), (1_000, 501)])
def test_intervals_of_very_many_groups_hold_at_once_though_draws_are_few(groups: int, draws: int) -> None:
    rng, holds = np.random.default_rng(0), 0
    for _ in range(20):
        positives = rng.integers(2, 30, groups)
        drawn = rng.beta(positives, 40 - positives, (draws + 1, groups))
        lower, upper = joint_rate_intervals(drawn[1:], 0.95)
        holds += bool(((lower <= drawn[0]) & (drawn[0] <= upper)).all())
    assert holds >= 17
