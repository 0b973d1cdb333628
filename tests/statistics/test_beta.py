"""Beta beliefs against scipy and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from service.statistics import beta

parameters = st.floats(0.05, 500)


@given(parameters, parameters)
def test_moments_are_those_of_scipy(alpha: float, other: float) -> None:
    a, b = np.array([alpha]), np.array([other])
    reference = stats.beta(alpha, other)
    assert beta.mean(a, b)[0] == pytest.approx(reference.mean(), rel=1e-9)
    assert beta.variance(a, b)[0] == pytest.approx(reference.var(), rel=1e-9)


@given(st.floats(0.5, 500), st.floats(0.5, 500), st.floats(0.5, 0.99))
def test_an_interval_leaves_equal_tails(alpha: float, other: float, mass: float) -> None:
    lower, upper = beta.interval(np.array([alpha]), np.array([other]), mass)
    tail = (1 - mass) / 2
    assert stats.beta.cdf(lower[0], alpha, other) == pytest.approx(tail, abs=1e-9)
    assert stats.beta.sf(upper[0], alpha, other) == pytest.approx(tail, abs=1e-9)


@given(st.floats(0.1, 500), st.floats(0.1, 500))
def test_matching_the_moments_of_a_beta_gives_it_back(alpha: float, other: float) -> None:
    a, b = np.array([alpha]), np.array([other])
    found = beta.matching(beta.mean(a, b), beta.variance(a, b))
    np.testing.assert_allclose([found[0][0], found[1][0]], [alpha, other], rtol=1e-6)


@pytest.mark.parametrize("score", [0.0, 0.2, 0.55, 0.95, 1.0])
@pytest.mark.parametrize(
    ("alpha", "other"), [(1.0, 1.0), (2.5, 0.7), (0.6, 9.0), (40.0, 3.0), (300.0, 200.0)]
)
def test_the_distance_from_a_score_has_the_moments_of_quadrature(
    alpha: float, other: float, score: float
) -> None:
    density = stats.beta(alpha, other).pdf

    def moment(power: int) -> float:
        parts = [(0.0, score), (score, 1.0)]
        return sum(
            integrate.quad(
                lambda t: abs(t - score) ** power * density(t), low, high, epsabs=1e-12, limit=400
            )[0]
            for low, high in parts
            if high > low
        )

    mean, variance = beta.distance_moments(np.array([alpha]), np.array([other]), np.array([score]))
    # Quadrature near an infinite density is good to about 1e-8.
    assert mean[0] == pytest.approx(moment(1), abs=3e-8)
    assert variance[0] == pytest.approx(moment(2) - moment(1) ** 2, abs=3e-8)
