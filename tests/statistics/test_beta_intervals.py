"""Highest-density intervals of Betas, and what one more label takes of their variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from service.statistics import beta

peaked = st.floats(1.01, 5000)
masses = st.floats(0.05, 0.99)


def interval(alpha: float, other: float, mass: float) -> tuple[float, float]:
    lower, upper = beta.highest_density(np.array(alpha), np.array(other), mass)
    return float(lower), float(upper)


@given(st.floats(0.5, 5000), st.floats(0.5, 5000), masses)
def test_a_highest_density_interval_holds_its_mass(alpha: float, other: float, mass: float) -> None:
    lower, upper = interval(alpha, other, mass)
    held = stats.beta.cdf(upper, alpha, other) - stats.beta.cdf(lower, alpha, other)
    # Below a half, an end near 1 would be nearer than doubles can tell, and its mass more than that.
    assert held == pytest.approx(mass, abs=1e-8)


@given(st.floats(2, 5000), st.floats(2, 5000), masses)
def test_both_ends_of_a_peak_are_equally_dense(alpha: float, other: float, mass: float) -> None:
    lower, upper = interval(alpha, other, mass)
    first, second = (stats.beta.logpdf(end, alpha, other) for end in (lower, upper))
    assert first == pytest.approx(second, abs=1e-7)


@given(peaked, peaked, masses)
def test_no_interval_of_its_mass_is_shorter(alpha: float, other: float, mass: float) -> None:
    lower, upper = interval(alpha, other, mass)

    def width(below: float) -> float:
        return float(np.diff(stats.beta.ppf([below, below + mass], alpha, other))[0])

    shortest = optimize.minimize_scalar(width, bounds=(0, 1 - mass), method="bounded")
    assert upper - lower <= shortest.fun + 1e-9
    equal_lower, equal_upper = beta.interval(np.array(alpha), np.array(other), mass)
    assert upper - lower <= equal_upper - equal_lower + 1e-9


@given(peaked, peaked, masses)
def test_it_is_mirrored_where_the_parameters_are_swapped(alpha: float, other: float, mass: float) -> None:
    lower, upper = interval(alpha, other, mass)
    mirrored_lower, mirrored_upper = interval(other, alpha, mass)
    assert lower == pytest.approx(1 - mirrored_upper, abs=1e-9)
    assert upper == pytest.approx(1 - mirrored_lower, abs=1e-9)


@pytest.mark.parametrize(("alpha", "other"), [(1.0, 3.0), (0.5, 3.0), (0.5, 1.0), (5e-7, 2.0)])
def test_it_starts_at_zero_where_the_density_falls_throughout(alpha: float, other: float) -> None:
    lower, upper = interval(alpha, other, 0.9)
    assert lower == 0
    assert upper == pytest.approx(stats.beta.ppf(0.9, alpha, other), rel=1e-9)
    mirrored = interval(other, alpha, 0.9)
    assert mirrored == pytest.approx((1 - upper, 1), rel=1e-9)


@pytest.mark.parametrize(("alpha", "other"), [(0.5, 0.5), (0.2, 0.9), (1.0, 1.0)])
def test_it_has_equal_tails_where_there_is_no_peak(alpha: float, other: float) -> None:
    expected = beta.interval(np.array(alpha), np.array(other), 0.9)
    assert interval(alpha, other, 0.9) == pytest.approx((float(expected[0]), float(expected[1])), rel=1e-12)


def test_many_intervals_at_once_are_each_its_own() -> None:
    rng = np.random.default_rng(1)
    alpha, other = np.exp(rng.uniform(-2, 8, (2, 5, 40)))
    lower, upper = beta.highest_density(alpha, other, 0.95)
    assert lower.shape == (5, 40)
    for index in np.ndindex(5, 40):
        assert (lower[index], upper[index]) == pytest.approx(
            interval(alpha[index], other[index], 0.95), abs=1e-12
        )


@given(st.floats(1e-3, 1e4), st.floats(1e-3, 1e4), st.floats(0, 1))
def test_the_drop_is_of_the_variances_before_and_after(
    alpha: float, other: float, probability: float
) -> None:
    a, b, p = np.array([[alpha], [other], [probability]])
    after = p * beta.variance(a + 1, b) + (1 - p) * beta.variance(a, b + 1)
    expected = beta.variance(a, b) - after
    found = beta.expected_variance_drop(a, b, p)
    assert found[0] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_at_the_mean_a_label_takes_its_part_of_the_variance(alpha: float, other: float) -> None:
    a, b = np.array([alpha]), np.array([other])
    expected = beta.variance(a, b) / (a + b + 1)
    # The law of total variance.
    assert beta.expected_variance_drop(a, b, beta.mean(a, b))[0] == pytest.approx(expected[0], rel=1e-9)


def test_a_label_that_surprises_may_widen_a_belief() -> None:
    drop = beta.expected_variance_drop(np.array([20.0]), np.array([1.0]), np.array([0.0]))
    assert drop[0] < 0


def test_a_group_without_labels_promises_more_than_one_with_many() -> None:
    a, b = np.array([1.0, 101.0]), np.array([1.0, 101.0])
    drops = beta.expected_variance_drop(a, b, beta.mean(a, b))
    assert drops[0] > 100 * drops[1]


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_parameters_that_are_not_positive_are_refused(bad: float) -> None:
    good, wrong = np.array([2.0]), np.array([bad])
    with pytest.raises(ValueError, match="positive"):
        beta.highest_density(good, wrong, 0.95)
    with pytest.raises(ValueError, match="positive"):
        beta.expected_variance_drop(wrong, good, good)
