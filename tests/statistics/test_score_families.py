"""Families of score distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from service.statistics.binary.score_families import (
    OF_PROBABILITIES,
    Beta,
    Family,
    Gamma,
    LogitNormal,
    Normal,
    TruncatedNormal,
)

POSITIONS = np.linspace(0.01, 0.99, 25)
EACH = pytest.mark.parametrize("family", OF_PROBABILITIES, ids=lambda family: family.name)


def below(family: Family, *parameters: float) -> np.ndarray:
    return family.below(np.array([parameters]), POSITIONS)[0]


def test_each_is_what_scipy_says() -> None:
    m, s = 0.3, 0.2
    assert below(Normal(), m, np.log(s)) == pytest.approx(stats.norm.cdf(POSITIONS, m, s))
    cut = stats.truncnorm.cdf(POSITIONS, -m / s, (1 - m) / s, m, s)
    assert below(TruncatedNormal(), m, np.log(s)) == pytest.approx(cut)
    ratio = 0.7
    assert below(Gamma(), np.log(m), np.log(ratio)) == pytest.approx(
        stats.gamma.cdf(POSITIONS, ratio**-2, scale=m * ratio**2)
    )
    strength = 3.0
    assert below(Beta(), special.logit(m), -0.5 * np.log(strength)) == pytest.approx(
        stats.beta.cdf(POSITIONS, m * strength, (1 - m) * strength)
    )
    assert below(LogitNormal(), -1.0, np.log(1.5)) == pytest.approx(
        stats.norm.cdf(special.logit(POSITIONS), -1.0, 1.5)
    )


@EACH
def test_the_prior_is_a_density(family: Family) -> None:
    # Wider than the bounds, which cut off next to nothing.
    first = np.linspace(family.lowest[0] - 3, family.highest[0] + 3, 1_500)
    second = np.linspace(-12.0, 4.0, 1_200)
    grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(family.log_prior(grid)).reshape(len(first), len(second))
    total = integrate.trapezoid(integrate.trapezoid(density, second, axis=1), first)
    assert total == pytest.approx(1, abs=0.01)


@EACH
@pytest.mark.parametrize(("mean", "deviation"), [(0.1, 0.05), (0.5, 0.1), (0.9, 0.05)])
def test_parameters_that_match_have_about_the_moments(family: Family, mean: float, deviation: float) -> None:
    strength = mean * (1 - mean) / deviation**2 - 1
    positions = np.linspace(0.0005, 0.9995, 1_000)
    shares = stats.beta.pdf(positions, mean * strength, (1 - mean) * strength)
    parameters = family.matching(positions, shares)
    edges = np.linspace(0, 1, 2_001)[1:-1]
    mass = np.diff(family.below(parameters[None], edges)[0], prepend=0.0, append=1.0)
    middles = np.linspace(0, 1, 2_001)[:-1] + 0.000_25
    assert mass @ middles == pytest.approx(mean, abs=0.01)


@EACH
def test_extreme_parameters_stay_within_a_probability(family: Family) -> None:
    corners = np.array(
        [[a, b] for a in (family.lowest[0], family.highest[0]) for b in family.lowest + family.highest]
    )
    corners = corners[(corners[:, 1] >= family.lowest[1]) & (corners[:, 1] <= family.highest[1])]
    positions = np.array([1e-12, 1e-6, 0.5, 1 - 1e-6])
    found = family.below(corners, positions)
    assert np.all((found >= 0) & (found <= 1))
    assert np.all(np.diff(found, axis=1) >= -1e-12)
