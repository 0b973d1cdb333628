"""Items whose class has nothing to do with their score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.binary.lapses import LAPSES, LOG_PRIOR, with_lapses

SHARES = st.floats(0, 1)


def test_the_prior_is_a_probability() -> None:
    assert np.exp(LOG_PRIOR).sum() == pytest.approx(1)
    assert LAPSES.shape == (len(LOG_PRIOR), 2)


def test_each_share_has_values_of_its_own_evenly_spread() -> None:
    for shares in LAPSES[1:].T:
        steps = np.diff(np.log(np.sort(shares)))
        assert steps == pytest.approx(steps[0])
        assert steps[0] > 0


@given(probability=SHARES, prevalence=SHARES, which=st.integers(0, len(LAPSES) - 1))
def test_lapses_leave_probabilities_possible(probability: float, prevalence: float, which: int) -> None:
    found = with_lapses(np.array([probability]), LAPSES[which], np.array(prevalence))
    assert 0 < found[0] < 1


@given(one=SHARES, other=SHARES, prevalence=SHARES, which=st.integers(0, len(LAPSES) - 1))
def test_lapses_keep_the_order(one: float, other: float, prevalence: float, which: int) -> None:
    lower, higher = with_lapses(np.sort([one, other]), LAPSES[which], np.array(prevalence))
    assert lower <= higher


def test_of_rare_positives_as_many_are_missed_as_lapse() -> None:
    missed, prevalence = 0.2, 0.01
    # A score that tells the classes apart, but for lapses.
    found = with_lapses(np.array([0.0, 1.0]), np.array([missed, 0.0]), np.array(prevalence))
    below = (1 - prevalence) * found[0]
    assert below / prevalence == pytest.approx(missed)


def test_of_what_scores_like_a_positive_as_many_are_negative_as_lapse() -> None:
    found = with_lapses(np.array([1.0]), np.array([0.2, 0.03]), np.array(0.01))
    assert 1 - found[0] == pytest.approx(0.03)


def test_of_common_positives_few_score_like_negatives() -> None:
    found = with_lapses(np.array([0.0]), np.array([0.5, 0.0]), np.array(0.5))
    assert found[0] == pytest.approx(0.05)


def test_prevalences_of_many_draws_are_taken_each_for_itself() -> None:
    probabilities = np.random.default_rng(0).random((3, 4))
    prevalences = np.array([0.01, 0.05, 0.5])
    together = with_lapses(probabilities, LAPSES[:3], prevalences)
    alone = [with_lapses(probabilities[i], LAPSES[i], prevalences[i]) for i in range(3)]
    assert together == pytest.approx(np.stack(alone))
