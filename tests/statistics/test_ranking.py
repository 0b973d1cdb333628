"""Ranks from draws, against counting by hand and quadrature by scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from service.statistics import ranking

DRAWS = np.array([[0.1, 0.5, 0.3], [0.2, 0.1, 0.9], [0.4, 0.6, 0.5], [0.0, 0.7, 0.8]])


def rank_probabilities(ranks: np.ndarray) -> np.ndarray:
    """Share of the draws in which a group has a rank [..., groups, ranks]."""
    return (ranks[..., None] == np.arange(ranks.shape[-1])).mean(axis=0)


def test_ranks_are_counted_from_the_lowest() -> None:
    found = rank_probabilities(ranking.ranks(DRAWS))
    np.testing.assert_array_equal(found, [[0.75, 0.25, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]])


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_every_group_has_one_rank_and_every_rank_one_group(seed: int, groups: int) -> None:
    found = rank_probabilities(ranking.ranks(np.random.default_rng(seed).random((50, 2, groups))))
    assert found.shape == (2, groups, groups)
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=-2), 1, rtol=1e-12)


def test_runs_are_independent() -> None:
    draws = np.random.default_rng(1).random((200, 3, 2, 5))
    ranks = ranking.ranks(draws)
    probabilities, extremes = rank_probabilities(ranks), ranking.extreme_probabilities(ranks, 2)
    for index in np.ndindex(3, 2):
        one = ranking.ranks(draws[(slice(None), *index)])
        np.testing.assert_array_equal(probabilities[index], rank_probabilities(one))
        np.testing.assert_array_equal(extremes[index], ranking.extreme_probabilities(one, 2))


@pytest.mark.parametrize("groups", [1, 256, 257, 70_000])
def test_ranks_of_any_number_of_groups_are_reported(groups: int) -> None:
    draws = np.random.default_rng(groups).permutation(groups).astype(float)[None]
    np.testing.assert_array_equal(ranking.ranks(draws), draws)


def test_the_mean_rank_is_that_of_the_rank_probabilities() -> None:
    draws = np.random.default_rng(2).beta([8, 4, 3, 9], [2, 3, 3, 1], (5_000, 4))
    ranks = ranking.ranks(draws)
    means, lower, upper = ranking.mean_rank(ranks, 0.9)
    probabilities, places = rank_probabilities(ranks), np.arange(4)
    np.testing.assert_allclose(means, probabilities @ places, rtol=1e-12)
    held = np.where((places >= lower[:, None]) & (places <= upper[:, None]), probabilities, 0).sum(axis=-1)
    assert (held >= 0.9).all()


def test_the_interval_of_a_rank_is_of_ranks() -> None:
    _, lower, upper = ranking.mean_rank(ranking.ranks(DRAWS), 0.5)
    assert lower.tolist() == [0, 0, 1]
    assert upper.tolist() == [0, 2, 2]


def test_draws_that_are_alike_come_in_the_order_of_the_groups() -> None:
    np.testing.assert_array_equal(rank_probabilities(ranking.ranks(np.zeros((3, 4)))), np.eye(4))


@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_extremes_are_those_of_the_first_or_last_ranks(seed: int, top_m: int, lowest: bool) -> None:
    draws = np.random.default_rng(seed).random((40, 2, 5))
    found = ranking.extreme_probabilities(ranking.ranks(draws if lowest else -draws), top_m)
    ranks = rank_probabilities(ranking.ranks(draws))
    expected = ranks[..., :top_m] if lowest else ranks[..., max(0, 5 - top_m) :]
    np.testing.assert_allclose(found, expected.sum(axis=-1), rtol=1e-12)
    assert found.sum(axis=-1) == pytest.approx([min(top_m, 5)] * 2)


def test_none_are_not_extreme() -> None:
    with pytest.raises(ValueError, match="none"):
        ranking.extreme_probabilities(ranking.ranks(DRAWS), 0)


def reference_lowest(alpha: np.ndarray, beta: np.ndarray, group: int) -> float:
    others = [g for g in range(len(alpha)) if g != group]

    def survive(p: float) -> float:
        x = stats.beta.ppf(p, alpha[group], beta[group])
        return float(np.prod([stats.beta.sf(x, alpha[g], beta[g]) for g in others]))

    ends = np.concatenate([[0], np.geomspace(1e-8, 0.5, 12), 1 - np.geomspace(0.4, 1e-8, 12), [1]])
    return sum(
        integrate.quad(survive, low, high, epsabs=1e-13, epsrel=1e-11, limit=200, full_output=1)[0]
        for low, high in itertools.pairwise(ends)
    )


def test_draws_agree_with_quadrature() -> None:
    alpha, beta = np.array([8.0, 4.0, 30.0, 2.0]), np.array([2.0, 3.0, 12.0, 1.0])
    draws = np.random.default_rng(7).beta(alpha, beta, (40_000, 4))
    exact = [reference_lowest(alpha, beta, group) for group in range(4)]
    # Four standard errors of 40,000 draws.
    np.testing.assert_allclose(
        ranking.extreme_probabilities(ranking.ranks(draws), 1), exact, atol=4 * 0.5 / 40_000**0.5
    )
