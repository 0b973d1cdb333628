"""What labels of vote patterns tell of every member."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ensembles import majority
from benchmarks.post_stratified import post_stratified
from service.statistics import beta
from service.statistics.vote_patterns import (
    Allocation,
    MemberBeliefs,
    VotePatterns,
    allocate,
    member_beliefs,
    mixed_members,
)

seeds = st.integers(0, 2**32)


def example(seed: int, wanted: int = 40) -> tuple[Allocation, np.ndarray, np.ndarray]:
    """A majority vote of three, its labels and their outcomes."""
    rng = np.random.default_rng(seed)
    stream = majority(rng, children=3, alike=True)
    allocation = allocate(stream.patterns, wanted)
    labels = allocation.plan(np.zeros(len(stream.accuracy)), rng)
    return allocation, labels.astype(float), rng.binomial(labels, stream.accuracy).astype(float)


def believed(allocation: Allocation, labels: np.ndarray, positive: np.ndarray) -> MemberBeliefs:
    return member_beliefs(allocation, labels, positive, mass=0.95)


def test_an_estimate_weights_patterns_by_their_traffic_not_by_their_labels() -> None:
    patterns = VotePatterns(np.array([0b01, 0b11]), np.array([1.0, 3.0]), 2)
    estimate = post_stratified(allocate(patterns, 40), np.array([100.0, 30.0]), np.array([50.0, 30.0]))
    np.testing.assert_allclose(estimate, [0.25 * 0.5 + 0.75 * 1.0, 1.0])


def test_a_single_pattern_is_estimated_as_a_beta_with_jeffreys_prior() -> None:
    allocation = allocate(VotePatterns(np.array([1]), np.array([7.0]), 1), 20)
    estimated = believed(allocation, np.array([20.0]), np.array([18.0]))
    lower, upper = beta.interval(np.array([18.5]), np.array([2.5]), 0.95)
    np.testing.assert_allclose(
        [estimated.mean, estimated.lower, estimated.upper], [[18.5 / 21], lower, upper], rtol=1e-9
    )
    np.testing.assert_allclose(estimated.labels, [20.0], rtol=1e-9)


@given(seeds)
def test_without_labels_every_member_is_estimated_as_the_prior_says(seed: int) -> None:
    allocation, labels, _ = example(seed)
    estimated = believed(allocation, 0 * labels, 0 * labels)
    lower, upper = beta.interval(np.array([0.5]), np.array([0.5]), 0.95)
    np.testing.assert_allclose(estimated.mean, 0.5, rtol=1e-9)
    np.testing.assert_allclose(estimated.lower, lower[0], rtol=1e-6)
    np.testing.assert_allclose(estimated.upper, upper[0], rtol=1e-6)
    np.testing.assert_allclose(estimated.labels, 0.0, atol=1e-9)
    assert np.isnan(post_stratified(allocation, 0 * labels, 0 * labels)).all()


@given(seeds)
def test_an_interval_is_within_0_and_1_around_its_mean(seed: int) -> None:
    estimated = believed(*example(seed))
    assert (estimated.lower >= 0).all()
    assert (estimated.lower < estimated.mean).all()
    assert (estimated.mean < estimated.upper).all()
    assert (estimated.upper <= 1).all()


@given(seeds)
def test_what_is_not_positive_mirrors_what_is(seed: int) -> None:
    allocation, labels, positive = example(seed)
    there = believed(allocation, labels, positive)
    mirrored = believed(allocation, labels, labels - positive)
    np.testing.assert_allclose(mirrored.mean, 1 - there.mean, rtol=1e-9)
    np.testing.assert_allclose(mirrored.lower, 1 - there.upper, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        post_stratified(allocation, labels, labels - positive),
        1 - post_stratified(allocation, labels, positive),
        atol=1e-12,
    )


@given(seeds)
def test_more_labels_that_say_the_same_make_an_interval_narrower(seed: int) -> None:
    allocation, labels, positive = example(seed)
    less, more = (believed(allocation, times * labels, times * positive) for times in (1, 4))
    assert (more.upper - more.lower < less.upper - less.lower).all()


@given(seeds)
def test_many_runs_at_once_are_estimated_as_each_by_itself(seed: int) -> None:
    allocation, labels, positive = example(seed)
    both = believed(allocation, np.stack((labels, 3 * labels)), np.stack((positive, 3 * positive)))
    alone = believed(allocation, labels, positive)
    np.testing.assert_allclose(both.mean[0], alone.mean, rtol=1e-12)
    np.testing.assert_allclose(both.upper[0], alone.upper, rtol=1e-9)


def test_a_member_that_calls_nothing_positive_keeps_its_prior_and_has_no_estimate() -> None:
    allocation = allocate(VotePatterns(np.array([0b10]), np.array([1.0]), 2), 10)
    labels = np.array([10.0])
    estimated = believed(allocation, labels, labels)
    assert estimated.mean[0] == 0.5
    assert estimated.mean[1] > 0.9
    estimate = post_stratified(allocation, labels, labels)
    assert np.isnan(estimate[0])
    assert estimate[1] == 1.0


def test_patterns_that_differ_in_precision_make_labels_worth_more() -> None:
    # Right where all agree, wrong where one is alone: within patterns there is nothing left to chance.
    patterns = VotePatterns(np.array([0b11, 0b10]), np.array([1.0, 1.0]), 2)
    allocation = allocate(patterns, 40)
    labels = allocation.plan(np.zeros(2), np.random.default_rng(0)).astype(float)
    estimated = believed(allocation, labels, labels * [1, 0])
    assert estimated.mean[1] == pytest.approx(0.5, abs=0.01)
    assert estimated.labels[1] > 5 * 40


def test_thin_patterns_do_not_bias_estimates() -> None:
    # Five children and twenty labels: most patterns need less than a label each.
    rng = np.random.default_rng(4)
    stream = majority(rng, children=5, alike=True)
    allocation = allocate(stream.patterns, 20)
    assert np.count_nonzero(allocation.needed < 1) > 15
    none = np.zeros(len(stream.accuracy))
    labels = np.array([allocation.plan(none, rng) for _ in range(4_000)])
    positive = rng.binomial(labels, stream.accuracy)
    found = post_stratified(allocation, labels.astype(float), positive.astype(float)) - stream.precision()
    beyond = np.abs(found.mean(axis=0)) / (found.std(axis=0) / len(found) ** 0.5)
    # Three standard errors; the seed is fixed.
    assert beyond.max() < 3


def test_equal_imputations_are_as_one() -> None:
    allocation, labels, positive = example(3)
    one = believed(allocation, labels, positive)
    mixed = mixed_members(believed(allocation, np.stack([labels] * 3), np.stack([positive] * 3)), mass=0.95)
    for name, values in vars(mixed).items():
        # Quantiles of mixtures are exact to a millionth of probability.
        np.testing.assert_allclose(values, getattr(one, name), rtol=1e-4, err_msg=name)


def test_a_mixture_of_two_extremes_covers_both_and_is_worth_fewer_labels() -> None:
    allocation, labels, _ = example(3)
    both = believed(allocation, np.stack([labels] * 2), np.stack([0.2 * labels, 0.9 * labels]))
    mixed = mixed_members(both, mass=0.95)
    assert (mixed.lower < both.mean.min(axis=0)).all()
    assert (mixed.upper > both.mean.max(axis=0)).all()
    assert (mixed.labels < both.labels.min(axis=0)).all()
