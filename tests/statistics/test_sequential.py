"""E-processes: evidence that may be looked at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from service.statistics.e_processes import (
    confidence_sequence,
    discoveries,
    log_e_below,
    log_e_is_not,
)

COUNTS = st.integers(0, 400)
ACCURACIES = st.floats(0.05, 0.99)


def one(evidence: np.ndarray) -> float:
    return float(evidence)


@pytest.mark.parametrize(
    ("correct", "wrong", "accuracy"), [(0, 0, 0.9), (3, 2, 0.8), (40, 12, 0.92), (90, 3, 0.5)]
)
def test_evidence_for_less_is_the_mean_likelihood_ratio_of_all_lower_accuracies(
    correct: int, wrong: int, accuracy: float
) -> None:
    # Expected, as surely as by 36 labels: odds of an error 2.8 times as high, or a fall by 12 points.
    centre = max(special.expit(special.logit(accuracy) - math.log(2.8)), accuracy - 0.12)
    prior = stats.beta(36 * centre, 36 * (1 - centre))

    def ratio(lower: float) -> float:
        likelihood = (lower / accuracy) ** correct * ((1 - lower) / (1 - accuracy)) ** wrong
        return float(prior.pdf(lower) / prior.cdf(accuracy) * likelihood)

    wanted = integrate.quad(ratio, 0, accuracy, epsabs=1e-12)[0]
    found = one(log_e_below(np.array(correct), np.array(wrong), np.array(accuracy)))
    assert found == pytest.approx(math.log(wanted), abs=1e-6)


@given(correct=COUNTS, wrong=COUNTS, accuracy=ACCURACIES)
def test_one_more_label_leaves_evidence_the_same_on_average_where_it_speaks_against_the_truth(
    correct: int, wrong: int, accuracy: float
) -> None:
    counts = np.array([correct, correct + 1, correct]), np.array([wrong, wrong, wrong + 1])
    for evidence in (log_e_below, log_e_is_not):
        now, if_correct, if_wrong = evidence(*counts, np.array(accuracy))
        after = accuracy * np.exp(if_correct - now) + (1 - accuracy) * np.exp(if_wrong - now)
        assert after == pytest.approx(1, abs=1e-6)


@given(correct=COUNTS, wrong=COUNTS, accuracy=ACCURACIES, more=st.floats(0, 1))
def test_evidence_for_less_falls_on_average_where_a_group_is_better(
    correct: int, wrong: int, accuracy: float, more: float
) -> None:
    truth = accuracy + more * (1 - accuracy)
    counts = np.array([correct, correct + 1, correct]), np.array([wrong, wrong, wrong + 1])
    now, if_correct, if_wrong = log_e_below(*counts, np.array(accuracy))
    after = truth * np.exp(if_correct - now) + (1 - truth) * np.exp(if_wrong - now)
    assert after <= 1 + 1e-6


def test_without_a_label_there_is_no_evidence() -> None:
    nothing = np.zeros(3)
    assert log_e_below(nothing, nothing, np.array([0.1, 0.5, 0.9])) == pytest.approx(0)
    assert log_e_is_not(nothing, nothing, np.array([0.1, 0.5, 0.9])) == pytest.approx(0)


def test_evidence_of_very_many_labels_is_as_exact() -> None:
    """Where the mass below the accuracy is less than any number that a computer knows."""
    near, far = (np.array([9_250.0, 9_251.0]) * scale for scale in (1, 100))
    for correct in (near, far):
        wrong = np.array([correct[0] / 9.25 * 0.75, correct[1] / 9.25 * 0.75])
        found = log_e_below(correct, wrong, np.array(0.6))
        # Close to the accuracy the ratio falls off at this rate, so what is left is density over rate.
        rate = correct / 0.6 - wrong / 0.4
        centre = 0.6 - 0.12
        prior = stats.beta(36 * centre, 36 * (1 - centre))
        wanted = prior.logpdf(0.6) - prior.logcdf(0.6) - np.log(rate)
        assert found == pytest.approx(wanted, abs=0.01)


@given(correct=COUNTS, wrong=COUNTS, mass=st.floats(0.5, 0.999))
def test_bounds_are_where_evidence_reaches_its_limit(correct: int, wrong: int, mass: float) -> None:
    counts = np.array(correct), np.array(wrong)
    lower, upper = (one(end) for end in confidence_sequence(*counts, mass))
    limit = -math.log1p(-mass)
    for end, least in ((lower, 1e-9), (upper, 1 - 1e-9)):
        if min(least, 1 - least) < end < max(least, 1 - least):
            assert one(log_e_is_not(*counts, np.array(end))) == pytest.approx(limit, abs=1e-4)


def test_bounds_for_all_times_are_wider_than_an_interval_for_one() -> None:
    correct, wrong = np.array([9.0, 90.0, 900.0]), np.array([1.0, 10.0, 100.0])
    lower, upper = confidence_sequence(correct, wrong, 0.95)
    belief = stats.beta(correct + 0.5, wrong + 0.5)
    assert np.all(lower < belief.ppf(0.025))
    assert np.all(upper > belief.ppf(0.975))


def test_without_a_label_the_bounds_say_nothing() -> None:
    lower, upper = confidence_sequence(np.zeros(2), np.zeros(2), 0.95)
    assert lower == pytest.approx(0)
    assert upper == pytest.approx(1)


def test_discoveries_are_those_of_the_definition() -> None:
    # Five e-values at alpha = 0.1: the k-th largest must reach 50 / k.
    found = discoveries(np.log([60.0, 26.0, 16.0, 3.0, 1.0]), 0.1)
    assert found.tolist() == [True, True, False, False, False]
    found = discoveries(np.log([60.0, 26.0, 17.0, 3.0, 1.0]), 0.1)
    assert found.tolist() == [True, True, True, False, False]


def test_what_has_no_evidence_is_not_taken() -> None:
    assert discoveries(np.array([np.nan, 10.0]), 0.05).tolist() == [False, True]
    assert discoveries(np.array([np.nan, np.nan]), 0.05).tolist() == [False, False]
    assert discoveries(np.zeros(0), 0.05).tolist() == []


@given(evidence=st.lists(st.floats(-5, 20), min_size=1, max_size=30), more=st.floats(0, 10))
def test_more_evidence_for_one_never_loses_another(evidence: list[float], more: float) -> None:
    before = np.array(evidence)
    after = before.copy()
    after[0] += more
    assert np.all(discoveries(after, 0.05) >= discoveries(before, 0.05))


@pytest.mark.parametrize("accuracy", [0.0, 1.0, math.nan])
def test_an_accuracy_that_no_label_can_refute_is_refused(accuracy: float) -> None:
    with pytest.raises(ValueError, match="strictly within 0 and 1"):
        log_e_below(np.array(1), np.array(1), np.array(accuracy))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="counted from 0 on"):
        log_e_is_not(np.array(-1), np.array(1), np.array(0.5))


def test_a_share_or_mass_of_all_or_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="false share of 1"):
        discoveries(np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="mass of 0"):
        confidence_sequence(np.zeros(1), np.zeros(1), 0.0)
