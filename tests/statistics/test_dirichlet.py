"""Dirichlet beliefs: moments, what a label tells, draws of tiny parameters and costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.statistics import beta, dirichlet

ALPHA = np.random.default_rng(5).uniform(0.05, 30, (4, 3, 6))
PROBABILITIES = np.random.default_rng(6).dirichlet(np.ones(6), (4, 3))


def vectors(low: float = 0.01, high: float = 1e4) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.floats(low, high), min_size=2, max_size=8).map(np.array)


def variance_sum(alpha: np.ndarray) -> np.ndarray:
    """Sum of the variances of the classes, from their definition."""
    total = alpha.sum(axis=-1)
    return (alpha * (total[..., None] - alpha)).sum(axis=-1) / (total**2 * (total + 1))


@given(vectors())
def test_the_variances_of_the_tests_are_those_of_scipy(alpha: np.ndarray) -> None:
    assert variance_sum(alpha) == pytest.approx(stats.dirichlet(alpha).var().sum(), rel=1e-9)


@given(vectors())
def test_the_mean_is_that_of_scipy(alpha: np.ndarray) -> None:
    np.testing.assert_allclose(dirichlet.mean(alpha), stats.dirichlet(alpha).mean(), rtol=1e-12)


def test_leading_axes_are_independent() -> None:
    assert dirichlet.expected_variance_drop(ALPHA, PROBABILITIES)[2, 1] == pytest.approx(
        dirichlet.expected_variance_drop(ALPHA[2, 1], PROBABILITIES[2, 1]), rel=1e-14
    )


def test_the_drop_is_the_sum_over_all_labels_that_may_come() -> None:
    expected = variance_sum(ALPHA)
    for j, unit in enumerate(np.eye(6)):
        expected -= PROBABILITIES[..., j] * variance_sum(ALPHA + unit)
    np.testing.assert_allclose(dirichlet.expected_variance_drop(ALPHA, PROBABILITIES), expected, rtol=1e-9)


@given(vectors())
def test_at_the_mean_a_label_takes_its_part_of_the_variance(alpha: np.ndarray) -> None:
    found = dirichlet.expected_variance_drop(alpha, dirichlet.mean(alpha))
    # The law of total variance.
    assert found == pytest.approx(variance_sum(alpha) / (alpha.sum() + 1), rel=1e-9)


@given(st.floats(1e-3, 1e4), st.floats(1e-3, 1e4), st.floats(0, 1))
def test_two_classes_are_a_beta(first: float, second: float, probability: float) -> None:
    alpha, a, b = np.array([first, second]), np.array(first), np.array(second)
    assert dirichlet.mean(alpha)[0] == pytest.approx(beta.mean(a, b), rel=1e-12)
    # Both classes vary alike.
    assert variance_sum(alpha) == pytest.approx(2 * beta.variance(a, b), rel=1e-9)
    found = dirichlet.expected_variance_drop(alpha, np.array([probability, 1 - probability]))
    expected = 2 * beta.expected_variance_drop(a, b, np.array(probability))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_draws_have_the_moments_of_the_belief() -> None:
    alpha = np.array([0.3, 2.0, 7.0])
    drawn = dirichlet.sample(np.broadcast_to(alpha, (200_000, 3)), np.random.default_rng(1))
    # Four standard errors of 200,000 draws, of a standard deviation below a half.
    np.testing.assert_allclose(drawn.mean(axis=0), dirichlet.mean(alpha), atol=4 * 0.5 / 200_000**0.5)
    assert drawn.var(axis=0).sum() == pytest.approx(variance_sum(alpha), rel=0.02)


@pytest.mark.parametrize("size", [1e-12, 5e-7, 1e-3])
def test_draws_of_tiny_parameters_are_one_class_each_by_their_shares(size: float) -> None:
    alpha = size * np.array([1.0, 2.0, 5.0])
    drawn = dirichlet.sample(np.broadcast_to(alpha, (40_000, 3)), np.random.default_rng(2))
    assert np.isfinite(drawn).all()
    np.testing.assert_allclose(drawn.sum(axis=-1), 1, rtol=1e-12)
    # Four standard errors of 40,000 draws.
    np.testing.assert_allclose(drawn.mean(axis=0), [1 / 8, 2 / 8, 5 / 8], atol=4 * 0.5 / 40_000**0.5)
    # Of the largest size, logarithms of gammas spread over a thousand, and few are within 7 of one another.
    assert (drawn.max(axis=-1) > 0.999).mean() > 0.95


def test_the_same_generator_gives_the_same_draws() -> None:
    first, second = (dirichlet.sample(ALPHA, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_moments_of_a_cost_are_those_of_its_covariances() -> None:
    costs = np.random.default_rng(7).uniform(0, 10, (3, 6))
    means, variances = dirichlet.cost_moments(ALPHA, costs)
    for index in np.ndindex(4, 3):
        reference = stats.dirichlet(ALPHA[index])
        weights = costs[index[1]]
        assert means[index] == pytest.approx(weights @ reference.mean(), rel=1e-12)
        assert variances[index] == pytest.approx(weights @ reference.cov() @ weights, rel=1e-9)


@given(vectors(), st.floats(0, 100))
def test_a_cost_that_all_classes_share_is_certain(alpha: np.ndarray, cost: float) -> None:
    expected, spread = dirichlet.cost_moments(alpha, np.full(alpha.shape, cost))
    assert expected == pytest.approx(cost, rel=1e-12)
    assert spread == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_parameters_that_are_not_positive_are_refused(bad: float) -> None:
    alpha = np.array([2.0, bad])
    for refuse in (
        lambda: dirichlet.mean(alpha),
        lambda: dirichlet.expected_variance_drop(alpha, np.array([0.5, 0.5])),
        lambda: dirichlet.sample(alpha, np.random.default_rng(0)),
        lambda: dirichlet.cost_moments(alpha, np.ones(2)),
    ):
        with pytest.raises(ValueError, match="positive"):
            refuse()
