"""When a number of wrong labels first reaches a boundary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.statistics.first_passage import first_passage


def test_a_boundary_of_one_is_reached_by_the_first_wrong_label() -> None:
    looks = np.ones(20)
    found = first_passage(looks, 0.3 * looks, looks, looks)
    np.testing.assert_allclose(found, 1 - 0.7 ** np.arange(1, 21), rtol=1e-9)


def test_with_one_look_it_is_a_binomial_tail() -> None:
    found = first_passage(np.array([20.0]), np.array([0.3]), np.ones(1), np.array([9.0]))
    assert found[0] == pytest.approx(stats.binom.sf(8, 20, 0.3))


def test_a_boundary_that_is_nowhere_is_never_reached() -> None:
    looks = np.ones(30)
    found = first_passage(10 * looks, 0.5 * looks, looks, np.full(30, np.inf))
    assert found[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kept", [1.0, 0.9])
def test_simulated_paths_agree(kept: float) -> None:
    looks, size = 40, 5
    limit = 3 + 0.3 * np.arange(looks) if kept == 1 else np.full(looks, 9.0)
    rng = np.random.default_rng(0)
    number, reached = np.zeros(20_000), np.zeros(20_000, np.bool_)
    shares = []
    for look in range(looks):
        steps = rng.random((20_000, size)) < 0.15
        each = kept ** (1 - (np.arange(size) + 0.5) / size)
        number = kept * number + steps @ each
        reached |= number >= limit[look]
        shares.append(reached.mean())
    every = np.ones(looks)
    found = first_passage(size * every, 0.15 * every, kept * every, limit)
    # Two thirds of a point of chance in 20,000 paths; numbers that fade are on a grid.
    np.testing.assert_allclose(found, shares, atol=0.01 if kept == 1 else 0.05)
