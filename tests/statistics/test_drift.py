"""Distances of traffic from a reference, against scipy's, and against noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.spatial.distance import jensenshannon

from service.domain.arrays import Floats, Ints
from service.statistics.drift import (
    FALSE_SHARE,
    MixDrift,
    drift_scores,
    expected_accuracy,
    kolmogorov_smirnov,
    mix_counts,
    mix_drift,
    volume_ratio,
)

COUNTS = arrays(np.int64, (2, 5), elements=st.integers(0, 10_000))


@given(COUNTS)
def test_the_distance_of_two_mixes_is_that_of_scipy(both: Ints) -> None:
    drift = mix_drift(both[:1], both[1:], comparisons=1)
    if both.sum(axis=1).min() == 0:
        assert np.isnan(drift.distance[0])
    else:
        assert drift.distance[0] == pytest.approx(np.nan_to_num(jensenshannon(*both, base=2)), abs=1e-7)


@given(COUNTS)
def test_what_is_sure_is_never_more_than_what_is_observed(both: Ints) -> None:
    drift = mix_drift(both[:1], both[1:], comparisons=1)
    assert 0 <= drift.excess[0] <= np.nan_to_num(drift.distance[0])


def test_mixes_that_have_no_kind_in_common_are_one_apart() -> None:
    drift = mix_drift(np.array([[5, 0]]), np.array([[0, 7]]), comparisons=1)
    assert drift.distance[0] == pytest.approx(1.0)


def test_the_difference_of_cumulative_shares_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(10, size=400), rng.binomial(9, 0.6, size=300)
    binned = [np.bincount(sample, minlength=10)[None] for sample in (first, second)]
    assert kolmogorov_smirnov(*binned)[0] == pytest.approx(stats.ks_2samp(first, second).statistic)


def test_binned_scores_differ_by_no_more_than_the_scores_themselves() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.beta(8, 2, size=400), rng.beta(6, 2, size=300)
    binned = [np.histogram(sample, bins=10, range=(0, 1))[0][None] for sample in (first, second)]
    assert kolmogorov_smirnov(*binned)[0] <= stats.ks_2samp(first, second).statistic


def mixes_that_stay(rng: np.random.Generator, groups: int, kinds: int) -> Floats:
    """Of every group a mix, some with kinds that hardly ever come."""
    return rng.dirichlet(np.geomspace(3, 0.05, kinds), size=groups)


@pytest.mark.parametrize("size", [30, 300, 3_000])
@pytest.mark.parametrize("kinds", [2, 10, 50])
def test_samples_of_one_mix_are_apart_by_no_more_than_noise(size: int, kinds: int) -> None:
    rng = np.random.default_rng((size, kinds))
    groups, looks = 1_000, 40
    shares = mixes_that_stay(rng, groups, kinds)
    found = 0
    for _ in range(looks):
        reference, recent = rng.multinomial(10 * size, shares), rng.multinomial(size, shares)
        # As if each comparison were the only one: so many are wrong by chance that they can be counted.
        found += int((mix_drift(reference, recent, comparisons=1).excess > 0).sum())
    # The quantile is exceeded as often as was asked for, or less; four standard errors above.
    expected = FALSE_SHARE * groups * looks
    assert found <= expected + 4 * np.sqrt(expected)


def test_among_a_thousand_groups_that_stay_as_they_were_none_is_suspected_day_after_day() -> None:
    rng = np.random.default_rng(2)
    groups, days = 1_000, 100
    shares = mixes_that_stay(rng, groups, 10)
    reference = rng.multinomial(1_000, shares)
    looks_with_any = sum(
        bool((mix_drift(reference, rng.multinomial(200, shares), comparisons=groups).excess > 0).any())
        for _ in range(days)
    )
    # FALSE_SHARE is of looks, so of a hundred one may have any with a probability of a tenth; two, of 1/200.
    assert looks_with_any <= 1


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
def test_what_is_sure_is_no_more_than_the_distance_of_the_mixes_themselves(shift: float) -> None:
    rng = np.random.default_rng(3)
    before = np.diff(stats.norm.cdf(np.linspace(-3, 3, 11)))
    after = np.diff(stats.norm.cdf(np.linspace(-3, 3, 11), shift))
    before, after = before / before.sum(), after / after.sum()
    groups = 2_000
    reference = rng.multinomial(500, np.tile(before, (groups, 1)))
    recent = rng.multinomial(250, np.tile(after, (groups, 1)))
    drift = mix_drift(reference, recent, comparisons=1)
    assert np.mean(drift.excess > jensenshannon(before, after, base=2)) <= FALSE_SHARE
    assert np.all(drift.excess > 0) or shift < 1


def test_more_comparisons_leave_less_that_is_sure() -> None:
    reference, recent = np.array([[500, 500]]), np.array([[90, 10]])
    one, many = (mix_drift(reference, recent, comparisons=n).excess[0] for n in (1, 10_000))
    assert 0 < many < one


def test_a_group_without_recent_traffic_is_not_suspected() -> None:
    drift = mix_drift(np.array([[5, 5]]), np.array([[0, 0]]), comparisons=1)
    assert np.isnan(drift.distance[0])
    assert drift.excess[0] == 0


def test_the_drift_score_is_the_largest_excess_over_all_mixes() -> None:
    mixes = [MixDrift(np.ones(2), np.array(surely)) for surely in ([0.1, 0.3], [0.2, 0.0])]
    assert drift_scores(mixes).tolist() == [0.2, 0.3]


def test_cells_are_summed_by_group_and_kind() -> None:
    groups, kinds = np.array([0, 0, 1, 1, 1]), np.array([0, 2, 1, 1, 2])
    counted = mix_counts(groups, kinds, np.array([1, 2, 4, 8, 16]), (2, 3))
    assert counted.tolist() == [[1, 0, 2], [0, 12, 16]]


def test_the_volume_is_compared_by_rate() -> None:
    ratio = volume_ratio(np.array([100, 0]), np.array([50, 3]), reference_seconds=10, recent_seconds=10)
    assert ratio[0] == 0.5
    assert np.isnan(ratio[1])


def test_without_a_length_of_the_reference_no_volume_is_known() -> None:
    ratio = volume_ratio(np.array([100]), np.array([50]), reference_seconds=0, recent_seconds=10)
    assert np.isnan(ratio[0])


def test_recent_scores_promise_the_accuracy_of_their_bins() -> None:
    promised = expected_accuracy(np.array([[30, 10], [0, 0], [4, 0]]), np.array([0.5, 0.9]))
    assert promised[0] == pytest.approx((30 * 0.5 + 10 * 0.9) / 40)
    assert np.isnan(promised[1])
    assert promised[2] == 0.5


def test_a_bin_that_never_had_traffic_promises_nothing_of_others() -> None:
    assert expected_accuracy(np.array([[0, 10]]), np.array([np.nan, 0.9]))[0] == pytest.approx(0.9)
