"""Strata of scores: fine near the threshold and at both ends."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.binary.score_bins import bin_scores
from service.statistics.binary.strata import stratify

SCORES = np.random.default_rng(0).beta(0.2, 4, 20_000)


@given(
    scores=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    threshold=st.floats(0, 1),
)
def test_every_bin_is_in_one_stratum_and_no_stratum_is_on_both_sides_of_the_threshold(
    scores: list[float], threshold: float
) -> None:
    bins = bin_scores(np.array(scores), thresholds=(threshold,))
    strata = stratify(bins, threshold)
    assert strata.sums(bins.counts).sum() == pytest.approx(len(scores))
    assert np.all(np.diff(strata.of_bins) >= 0)
    lowest = np.append(min(scores), bins.edges)
    assert np.array_equal(strata.called[strata.of_bins], lowest >= threshold)
    assert np.all(np.diff(strata.ranks) > 0)


def test_strata_are_few_and_smallest_at_the_threshold_and_the_top() -> None:
    bins = bin_scores(SCORES, thresholds=(0.5,))
    strata = stratify(bins, 0.5)
    sizes = strata.sums(bins.counts)
    first = int(np.flatnonzero(strata.called)[0])
    assert len(sizes) < 50
    assert sizes[first] < 20
    assert sizes[-1] < 20
    assert sizes.max() > 1_000


def test_a_score_of_many_items_is_a_stratum_of_its_own() -> None:
    scores = np.repeat([0.02, 0.2, 0.3, 0.45, 0.9], [9_000, 1_500, 1_500, 3_000, 600])
    bins = bin_scores(scores, thresholds=(0.5,))
    assert stratify(bins, 0.5).of_bins.tolist() == [0, 1, 2, 3, 4]


def test_strata_that_are_nearly_forgotten_have_ranks() -> None:
    scores = np.append(SCORES[SCORES < 0.5], [0.7, 0.8, 0.9])
    weights = np.where(scores < 0.5, 1.0, 1e-20)
    strata = stratify(bin_scores(scores, weights=weights, thresholds=(0.5,)), 0.5)
    assert np.isfinite(strata.ranks).all()
    found = strata.of_all_bins(np.zeros((1, len(strata.starts))), np.ones(len(strata.of_bins)))
    np.testing.assert_allclose(found, 0.5)


@pytest.mark.parametrize("threshold", [-1e12, -1e3, 0.0, 1e12])
def test_margins_are_at_most_a_thousand_deviations_from_the_threshold(threshold: float) -> None:
    margins = np.random.default_rng(0).normal(size=300)
    strata = stratify(bin_scores(margins, thresholds=(threshold,), unit=False), threshold)
    assert np.abs(strata.deviations).max() <= 1e3


def test_ranks_are_0_at_the_threshold() -> None:
    strata = stratify(bin_scores(SCORES, thresholds=(0.5,)), 0.5)
    first = int(np.flatnonzero(strata.called)[0])
    assert strata.ranks[first - 1] < 0 < strata.ranks[first]


def test_bins_of_a_stratum_have_its_probability_on_average() -> None:
    bins = bin_scores(SCORES, thresholds=(0.5,))
    strata = stratify(bins, 0.5)
    # Bent at the threshold, so that interpolation alone would be too high below it and too low above it.
    curve = 3 * np.tanh(2 * strata.ranks) + np.array([[-1.0], [0.0], [1.0]])
    found = strata.of_all_bins(curve, bins.counts)
    means = strata.sums(bins.counts * found) / strata.sums(bins.counts)
    np.testing.assert_allclose(means, special.expit(curve), atol=1e-4)


@given(st.lists(st.floats(-40, 40), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_bins_have_probabilities_whatever_those_of_strata_are(
    log_odds: list[float], rng: random.Random
) -> None:
    bins = bin_scores(np.array([rng.random() for _ in range(100)]), thresholds=(0.5,))
    strata = stratify(bins, 0.5)
    of_strata = np.resize(log_odds, (1, len(strata.starts)))
    found = strata.of_all_bins(of_strata, bins.counts)
    assert np.all((found >= 0) & (found <= 1))


def test_a_single_stratum_holds_everywhere() -> None:
    bins = bin_scores(np.full(3, 0.7), thresholds=(0.5,))
    found = stratify(bins, 0.5).of_all_bins(np.array([[1.0], [2.0]]), bins.counts)
    np.testing.assert_allclose(found, special.expit([[1.0], [2.0]]))
