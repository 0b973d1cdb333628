"""However often one looks, however many groups there are, whoever chooses labels: false alarms are few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from benchmarks.alarms import (
    ALPHA,
    DROPS,
    LONGEST,
    OTHER_DROPS,
    THRESHOLD,
    Rates,
    alarms_by_counts,
    ever_alarmed,
    evident,
    false_discoveries,
    labels_until_alarm,
    least_labels,
    suspected,
)
from service.statistics.e_processes import confidence_sequence, log_e_declined, log_e_miscalibrated, log_gains

GROUPS = 1_000

CRIES_WOLF = 5 * ALPHA
"""What the evidence is for: the rule by posteriors alarms falsely at least so often."""


def outcomes(groups: int, labels: int, *, every: int) -> tuple[np.ndarray, np.ndarray]:
    """Correct and wrong labels of groups at the threshold, at so many looks."""
    correct = (np.random.default_rng(0).random((groups, labels)) < THRESHOLD).cumsum(axis=1)
    looks = slice(every - 1, None, every)
    return correct[:, looks], (np.arange(1, labels + 1) - correct)[:, looks]


def test_few_healthy_groups_ever_alarm_though_one_looks_after_every_label() -> None:
    rates = ever_alarmed(THRESHOLD, GROUPS, np.random.default_rng(0))
    assert rates.by_evidence <= ALPHA
    assert rates.by_posterior > CRIES_WOLF


def test_few_bounds_ever_lose_the_truth() -> None:
    lower, upper = confidence_sequence(*outcomes(300, 1_000, every=10), 1 - ALPHA)
    assert ((lower > THRESHOLD) | (upper < THRESHOLD)).any(axis=1).mean() <= ALPHA


@pytest.mark.parametrize("labels", [20, 500])
def test_few_groups_ever_seem_to_have_declined_from_a_reference_that_labels_tell(labels: int) -> None:
    reference = np.random.default_rng(1).binomial(labels, THRESHOLD, (400, 1))
    evidence = log_e_declined(*outcomes(400, 1_000, every=20), reference, labels - reference)
    assert (evidence >= -np.log(ALPHA)).any(axis=1).mean() <= ALPHA


def test_few_discoveries_are_false_though_labels_are_asked_by_what_is_believed() -> None:
    found = [false_discoveries(np.random.default_rng(seed)) for seed in range(15)]
    rates = Rates(*np.mean(found, axis=0))
    assert rates.by_evidence <= ALPHA
    assert rates.by_posterior > CRIES_WOLF


@pytest.mark.parametrize("drop", DROPS)
def test_a_drop_is_found_with_few_more_labels_than_the_least(drop: float) -> None:
    found = labels_until_alarm(evident, THRESHOLD - drop)
    assert found <= 1.3 * least_labels(THRESHOLD - drop, ALPHA)


@pytest.mark.parametrize("threshold", [0.6, 0.8])
@pytest.mark.parametrize("drop", OTHER_DROPS)
def test_so_it_is_at_other_thresholds(drop: float, threshold: float) -> None:
    found = labels_until_alarm(evident, threshold - drop, threshold)
    assert found <= 1.32 * least_labels(threshold - drop, ALPHA, threshold)


@pytest.mark.parametrize("drop", [0.07, 0.2])
def test_labels_until_an_alarm_are_those_of_simulated_groups(drop: float) -> None:
    wrong = (np.random.default_rng(3).random((2_000, LONGEST)) >= THRESHOLD - drop).cumsum(axis=1)
    for rule in (evident, suspected):
        alarms = alarms_by_counts(rule, THRESHOLD)
        reached = np.minimum(wrong, alarms.shape[1] - 1)
        first = alarms[np.arange(1, LONGEST + 1), reached].argmax(axis=1) + 1
        assert abs(first.mean() - labels_until_alarm(rule, THRESHOLD - drop)) < 4 * stats.sem(first)


def test_a_decline_from_a_known_reference_is_found() -> None:
    # Ten thousand labels of the reference: nearly known.
    correct = (np.random.default_rng(4).random((100, 600)) < THRESHOLD - 0.1).cumsum(axis=1)
    wrong = np.arange(1, 601) - correct
    evidence = log_e_declined(correct, wrong, np.array(9_200), np.array(800)) >= -np.log(ALPHA)
    assert evidence.any(axis=1).all()
    assert np.mean(evidence.argmax(axis=1)) < 2.5 * least_labels(THRESHOLD - 0.1, ALPHA)


def test_few_groups_whose_scores_are_right_ever_seem_miscalibrated() -> None:
    rng = np.random.default_rng(5)
    groups, labels = 400, 400
    scores = special.expit(rng.normal(2, 1, (labels, groups)))
    correct = rng.random((labels, groups)) < scores
    every, alarmed = 5, np.zeros(groups, np.bool_)
    which = np.tile(np.arange(groups), (every, 1)).ravel()
    gains = 0.0
    for begin in range(0, labels, every):
        new = slice(begin, begin + every)
        gains = gains + log_gains(scores[new].ravel(), correct[new].ravel(), which, groups)
        alarmed |= log_e_miscalibrated(gains) >= -np.log(ALPHA)
    assert alarmed.mean() <= ALPHA
