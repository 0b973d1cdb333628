"""Certificates take little more labels than they must, and are seldom false under the policy that asks."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.certificates import ALPHA, FAILING, MEETING, MISSING, batched, least_labels


def test_a_certificate_takes_little_more_than_the_least_number_of_labels() -> None:
    accuracy = MEETING["all 0.93"]
    taken = batched(accuracy, runs=20, most=30_000).certified
    # The mean of 20 runs has a standard error of about 5% of the least number.
    assert taken.mean() <= 1.5 * least_labels(accuracy)


def test_few_runs_are_ever_certified_if_groups_miss_the_target() -> None:
    for accuracy in MISSING.values():
        false = np.isfinite(batched(accuracy, runs=100, most=2_000).certified)
        # A thousandth of the tests would fail at a rate of alpha.
        assert false.sum() <= stats.binom.ppf(0.999, 100, ALPHA)


def test_a_group_that_misses_the_target_is_found_before_the_others_have_their_labels() -> None:
    accuracy = FAILING["one 0.8, others 0.95"]
    missed = batched(accuracy, runs=20, most=5_000, until_missed=True).missed
    assert np.median(missed) < least_labels(np.delete(accuracy, 0)) / 2
