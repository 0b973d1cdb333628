"""The mixture of posteriors, one for each imputation."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.mixed_beliefs import mixed_beliefs

GROUPS, BINS = 3, 2
CELLS = np.arange(GROUPS * BINS)


def beliefs(correct: list[float]) -> GroupingBeliefs:
    """Of three groups, the last one without labels; the first two have four labels each."""
    weights = np.ones(len(CELLS))
    ones = np.ones(len(correct))
    return assess_grouping(
        cell_groups=CELLS // BINS,
        cell_bins=CELLS % BINS,
        group_count=GROUPS,
        bin_count=BINS,
        traffic=CellTraffic(weights, 0.8 * weights),
        labels=Labels(np.repeat([0, 1, 2, 3], 2), np.array(correct), ones, ones, -ones.astype(np.intp)),
        prior="learned",
    )


ALL_CORRECT, SOME_CORRECT = beliefs([1.0] * 8), beliefs([1.0] * 5 + [0.0] * 3)


def test_means_and_tails_are_those_of_the_parts_on_average() -> None:
    mixed = mixed_beliefs([ALL_CORRECT, SOME_CORRECT])
    for name in ("accuracy", "overall", "bins"):
        found, parts = getattr(mixed, name), [getattr(one, name) for one in (ALL_CORRECT, SOME_CORRECT)]
        assert found.weights.sum() == pytest.approx(1)
        for of in (lambda one: one.mean(), lambda one: one.probability_below(0.7)):
            np.testing.assert_allclose(of(found), np.mean([of(part) for part in parts], axis=0), err_msg=name)


def test_a_mixture_of_alike_posteriors_is_the_same_posterior() -> None:
    mixed = mixed_beliefs([SOME_CORRECT] * 3)
    np.testing.assert_allclose(mixed.accuracy.interval(0.95), SOME_CORRECT.accuracy.interval(0.95), atol=1e-5)
    np.testing.assert_allclose(mixed.ece.interval(0.95), SOME_CORRECT.ece.interval(0.95), atol=1e-5)
    np.testing.assert_array_equal(mixed.labels_correct, SOME_CORRECT.labels_correct)


def test_a_group_may_be_perfect_only_if_it_has_no_error_in_any_imputation() -> None:
    mixed = mixed_beliefs([ALL_CORRECT] * 9 + [SOME_CORRECT])
    assert mixed.labels_correct.tolist() == [4, 3, 0]
    assert mixed.labels_counted.tolist() == [4, 4, 0]
    upper = mixed.accuracy_interval(0.95)[1]
    assert upper[0] == 1.0
    assert upper[1] < 1.0
