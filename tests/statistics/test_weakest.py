"""The accuracy of the weakest group, whichever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.mixture import BetaMixture
from service.statistics.weakest import probability_of_any, weakest_lower_end

COUNTS = st.integers(1, 400)
GROUPS = st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=12)
CLOSE = 1e-3


def posterior(groups: list[tuple[int, int]]) -> BetaMixture:
    """Two components: the groups' counts, and the same with three times the labels."""
    alpha, beta = np.array(groups, np.float64).T
    return BetaMixture(np.array([0.4, 0.6]), np.stack([alpha, 3 * alpha]), np.stack([beta, 3 * beta]))


@given(GROUPS)
def test_the_weakest_of_groups_may_be_weaker_than_any(groups: list[tuple[int, int]]) -> None:
    accuracy = posterior(groups)
    assert weakest_lower_end(accuracy, 0.025) <= accuracy.quantile(0.025).min() + CLOSE


@given(GROUPS)
def test_the_weakest_of_one_group_is_that_group(groups: list[tuple[int, int]]) -> None:
    accuracy = posterior(groups[:1])
    assert weakest_lower_end(accuracy, 0.05) == pytest.approx(accuracy.quantile(0.05), abs=CLOSE)


def test_groups_alike_have_the_minimum_of_independent_betas() -> None:
    alike = BetaMixture(np.ones(1), np.full((1, 30), 9.0), np.full((1, 30), 2.0))
    found = weakest_lower_end(alike, 0.025)
    assert 1 - (1 - special.betainc(9.0, 2.0, found)) ** 30 == pytest.approx(0.025, rel=0.05)


def test_the_weakest_is_the_minimum_of_joint_draws() -> None:
    accuracy = posterior([(50, 5), (20, 4), (9, 1), (180, 20), (2, 1)])
    draws = accuracy.sample(np.random.default_rng(1), 40_000).min(axis=1)
    assert weakest_lower_end(accuracy, 0.025) == pytest.approx(np.quantile(draws, 0.025), abs=0.01)


def test_the_probability_of_any_is_that_of_one_without_a_choice_and_falls_with_choices() -> None:
    probabilities = np.array([0.2, 0.99])
    bounds = [probability_of_any(probabilities, choices) for choices in (1, 2, 200)]
    assert bounds == pytest.approx([0.99, 0.98, 0.0])
