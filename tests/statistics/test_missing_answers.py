"""Bayes factors of whether what is missing depends on what is seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.missing_answers import log_bayes_factor, ranks

FLOATS = st.floats(-3, 3)
ROWS = st.lists(st.tuples(st.booleans(), FLOATS, st.integers(0, 3)), min_size=1, max_size=40)


def columns(rows: list[tuple[bool, float, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    outcome, covariate, strata = zip(*rows, strict=True)
    return np.array(outcome), np.array(covariate), np.array(strata)


def test_one_stratum_has_the_published_approximation() -> None:
    # Wakefield (2009), eq. 2: sqrt(V / (V + W)) exp(z^2 / 2 W / (V + W)) in favour of dependence, with W = 1.
    outcome = np.array([True, True, False, False, False, False])
    covariate = np.array([2.0, 1.0, 1.0, 0.0, 0.0, -1.0])
    centred = covariate - covariate.mean()
    score = centred[:2].sum()
    information = 2 * 4 / (6 * 5) * (centred**2).sum()
    variance, z = 1 / information, score / np.sqrt(information)
    expected = 0.5 * np.log(variance / (variance + 1)) + 0.5 * z**2 / (variance + 1)
    assert log_bayes_factor(outcome, covariate, np.zeros(6, np.intp)) == pytest.approx(expected)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_observations_does_not_matter(
    rows: list[tuple[bool, float, int]], random: object
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    first, second = log_bayes_factor(*columns(rows)), log_bayes_factor(*columns(shuffled))
    assert first == pytest.approx(second, abs=1e-8)


@given(ROWS)
def test_what_is_missing_and_what_is_not_are_alike(rows: list[tuple[bool, float, int]]) -> None:
    outcome, covariate, strata = columns(rows)
    found = log_bayes_factor(outcome, covariate, strata)
    assert log_bayes_factor(~outcome, covariate, strata) == pytest.approx(found, abs=1e-8)


@given(ROWS, st.lists(FLOATS, min_size=4, max_size=4))
def test_differences_between_strata_say_nothing(
    rows: list[tuple[bool, float, int]], shifts: list[float]
) -> None:
    outcome, covariate, strata = columns(rows)
    found = log_bayes_factor(outcome, covariate, strata)
    shifted = covariate + np.array(shifts)[strata]
    assert log_bayes_factor(outcome, shifted, strata) == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize(
    "rows", [[], [(True, 1.0, 0)], [(True, 1.0, 0), (True, 2.0, 0)], [(True, 1.0, 0), (False, 1.0, 0)]]
)
def test_nothing_is_learned_where_nothing_varies(rows: list[tuple[bool, float, int]]) -> None:
    outcome, covariate, strata = (
        np.array([row[place] for row in rows], kind)
        for place, kind in ((0, np.bool_), (1, np.float64), (2, np.intp))
    )
    assert log_bayes_factor(outcome, covariate, strata) == 0.0


def test_independence_and_dependence_are_told_apart_with_enough_observations() -> None:
    rng = np.random.default_rng(0)
    count, groups = 2_000, rng.integers(0, 5, 2_000)
    covariate = rng.normal(size=count) + groups
    independent = rng.random(count) < 0.1 + 0.1 * groups  # depends on the group alone
    dependent = rng.random(count) < special.expit(-1.5 + 0.5 * (covariate - groups))
    assert log_bayes_factor(independent, covariate, groups) < 0
    assert log_bayes_factor(dependent, covariate, groups) > np.log(100)


def test_ranks_have_mean_0_and_standard_deviation_1() -> None:
    found = ranks(np.random.default_rng(0).normal(size=1_000))
    assert (found.mean(), found.std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1, abs=1e-3))


def test_equal_values_have_equal_ranks() -> None:
    first, second, third, fourth = ranks(np.array([0.5, 0.9, 0.5, 0.1]))
    assert first == third
    assert fourth < first < second
