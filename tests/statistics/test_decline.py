"""Evidence of a decline from a reference that labels tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.e_processes import log_e_below, log_e_declined, log_e_is_not

COUNTS = st.integers(0, 300)


def log_e_value(correct: int, wrong: int, reference_correct: int, reference_wrong: int) -> float:
    counts = (np.array(each) for each in (correct, wrong, reference_correct, reference_wrong))
    return float(log_e_declined(*counts))


@given(correct=COUNTS, wrong=COUNTS, reference_correct=COUNTS, reference_wrong=COUNTS)
def test_it_is_no_more_than_the_weighted_mean_of_both_at_any_reference(
    correct: int, wrong: int, reference_correct: int, reference_wrong: int
) -> None:
    # The true reference is one of them, and at that the mean is an e-process.
    references = np.linspace(0.02, 0.98, 49)
    against = log_e_is_not(np.array(reference_correct), np.array(reference_wrong), references)
    decline = log_e_below(np.array(correct), np.array(wrong), references)
    mean = np.logaddexp(np.log(0.2) + against, np.log(0.8) + decline)
    assert log_e_value(correct, wrong, reference_correct, reference_wrong) <= mean.min() + 1e-6


def test_without_a_reference_there_is_no_evidence() -> None:
    assert log_e_value(0, 50, 0, 0) <= 0


def test_without_labels_there_is_no_evidence() -> None:
    assert log_e_value(0, 0, 90, 10) <= 0


def test_the_same_accuracy_is_no_decline() -> None:
    assert log_e_value(900, 100, 900, 100) <= 0


def test_a_longer_reference_makes_a_decline_surer() -> None:
    evidence = [log_e_value(80, 40, 9 * labels, labels) for labels in (5, 20, 100, 1_000)]
    assert evidence == sorted(evidence)


def test_of_a_long_reference_it_is_nearly_that_of_a_known_accuracy() -> None:
    known = float(log_e_below(np.array(60), np.array(40), np.array(0.9)))
    assert log_e_value(60, 40, 9_000_000, 1_000_000) == pytest.approx(known, abs=0.5)


def test_many_groups_are_reported_at_once() -> None:
    correct, wrong = np.array([80.0, 95.0]), np.array([40.0, 5.0])
    together = log_e_declined(correct, wrong, np.array(900.0), np.array(100.0))
    alone = [log_e_value(80, 40, 900, 100), log_e_value(95, 5, 900, 100)]
    assert together == pytest.approx(alone)
