"""Draws of a posterior that is known up to a factor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.importance import Mode, draw, find_modes, laplace_evidence

WIDE = {"lowest": np.full(2, -100.0), "highest": np.full(2, 100.0)}
COVARIANCE = np.array([[2.0, 0.9], [0.9, 0.5]])


def normal(parameters: np.ndarray) -> np.ndarray:
    """Twenty times a normal density."""
    return np.atleast_1d(stats.multivariate_normal([1.0, -2.0], COVARIANCE).logpdf(parameters)) + np.log(20)


def banana(parameters: np.ndarray) -> np.ndarray:
    """Standard normal in x, and in y - x^2, but narrower."""
    x, y = parameters[:, 0], parameters[:, 1]
    return stats.norm.logpdf(x) + stats.norm.logpdf(y, x**2, 0.15)


def test_of_a_normal_density_the_evidence_is_its_factor() -> None:
    mode = Mode(np.array([1.0, -2.0]), float(normal(np.array([[1.0, -2.0]]))[0]))
    assert laplace_evidence(normal, mode) == pytest.approx(np.log(20), abs=1e-4)
    drawn = draw(normal, [mode], 4_000, np.random.default_rng(0), **WIDE)
    assert drawn.log_evidence == pytest.approx(np.log(20), abs=0.05)
    assert drawn.method == "importance sampling"
    assert drawn.effective > 2_000


def test_of_a_normal_density_the_draws_have_its_moments() -> None:
    mode = Mode(np.array([1.0, -2.0]), float(normal(np.array([[1.0, -2.0]]))[0]))
    drawn = draw(normal, [mode], 20_000, np.random.default_rng(0), **WIDE).parameters
    assert drawn.mean(axis=0) == pytest.approx([1.0, -2.0], abs=0.05)
    assert np.cov(drawn.T) == pytest.approx(COVARIANCE, abs=0.1)


def test_both_modes_have_their_share() -> None:
    def two(parameters: np.ndarray) -> np.ndarray:
        parts = [
            np.log(share) + stats.multivariate_normal(at, np.eye(2) * 0.1).logpdf(parameters)
            for share, at in ((0.3, [-3, 0]), (0.7, [3, 0]))
        ]
        return np.asarray(special.logsumexp(parts, axis=0))

    def objective(at: np.ndarray) -> tuple[float, np.ndarray]:
        steps = np.vstack((at, at + 1e-6 * np.eye(2)))
        values = two(steps)
        return -float(values[0]), -(values[1:] - values[0]) / 1e-6

    starts = [np.array([-2.5, 0.3]), np.array([2.0, -0.5]), np.array([2.5, 0.1])]
    modes = find_modes(objective, starts, **WIDE)
    assert len(modes) == 2
    drawn = draw(two, modes, 4_000, np.random.default_rng(0), **WIDE)
    assert (drawn.parameters[:, 0] > 0).mean() == pytest.approx(0.7, abs=0.03)
    assert drawn.log_evidence == pytest.approx(0, abs=0.05)


def test_where_weighted_draws_are_worth_too_few_walkers_go() -> None:
    mode = Mode(np.zeros(2), float(banana(np.zeros((1, 2)))[0]))
    drawn = draw(banana, [mode], 600, np.random.default_rng(0), **WIDE)
    assert drawn.method == "walkers"
    x, y = drawn.parameters.T
    assert x.std() == pytest.approx(1, abs=0.3)
    assert (y - x**2).std() == pytest.approx(0.15, abs=0.02)


def test_no_draw_is_out_of_bounds() -> None:
    mode = Mode(np.array([1.0, -2.0]), float(normal(np.array([[1.0, -2.0]]))[0]))
    lowest, highest = np.array([0.5, -3.0]), np.array([2.0, 0.0])
    drawn = draw(normal, [mode], 2_000, np.random.default_rng(0), lowest=lowest, highest=highest)
    assert np.all((drawn.parameters >= lowest) & (drawn.parameters <= highest))


def test_the_same_seed_makes_the_same_draws() -> None:
    mode = Mode(np.array([1.0, -2.0]), float(normal(np.array([[1.0, -2.0]]))[0]))
    one, other = (draw(normal, [mode], 50, np.random.default_rng(4), **WIDE) for _ in range(2))
    assert np.array_equal(one.parameters, other.parameters)
