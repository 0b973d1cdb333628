"""Every vote pattern gets the labels that members need to know themselves as well as from random samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ensembles import majority, overlapping
from service.statistics.sample_sharing import MOST_MEMBERS, plan_sharing
from service.statistics.vote_patterns import Allocation, VotePatterns, allocate

"""A law holds on a busy machine too."""

seeds = st.integers(0, 2**32)
counts = st.integers(1, 200)


def some_patterns(seed: int) -> VotePatterns:
    """Some of all patterns of up to five members, with uneven traffic; a few without any."""
    rng = np.random.default_rng(seed)
    members = int(rng.integers(1, 6))
    masks = rng.permutation(2**members)[: rng.integers(1, 2**members + 1)].astype(np.int64)
    traffic = rng.exponential(size=len(masks)) ** 3 * (rng.random(len(masks)) < 0.9)
    return VotePatterns(masks, traffic, members)


def nothing_of(patterns: VotePatterns) -> np.ndarray:
    return np.zeros(len(patterns.masks))


def planned(allocation: Allocation, seed: int = 0, labelled: np.ndarray | None = None) -> np.ndarray:
    there = nothing_of(allocation.patterns) if labelled is None else labelled
    return allocation.plan(there, np.random.default_rng(seed)).more


def test_patterns_of_items_are_counted() -> None:
    votes = np.array([[1, 1], [1, 1], [0, 1], [0, 0]], np.bool_)
    patterns = VotePatterns.of_items(votes)
    assert dict(zip(patterns.masks.tolist(), patterns.traffic.tolist(), strict=True)) == {
        0b11: 2,
        0b10: 1,
        0: 1,
    }
    np.testing.assert_array_equal(patterns.sizes(), votes.sum(axis=0))


def test_a_member_and_a_smaller_one_need_what_the_smaller_one_leaves() -> None:
    # The parent calls 80 positive and the child 100, of which 60 are the same.
    patterns = VotePatterns(np.array([0b01, 0b11, 0b10]), np.array([20.0, 60.0, 40.0]), 2)
    needed = allocate(patterns, 40).needed
    np.testing.assert_allclose(needed, [40 * 20 / 80, 40 * 60 / 80, 40 * 40 / 100])


@given(seeds, counts)
def test_every_member_gets_as_much_of_every_pattern_as_a_random_sample_would_have(seed: int, n: int) -> None:
    allocation = allocate(some_patterns(seed), n)
    assert (allocation.needed >= n * allocation.patterns.within() * (1 - 1e-12)).all()


@given(seeds, counts)
def test_of_every_pattern_some_member_needs_all_that_it_gets(seed: int, n: int) -> None:
    allocation = allocate(some_patterns(seed), n)
    np.testing.assert_allclose(allocation.needed, n * allocation.patterns.within().max(axis=0), rtol=1e-12)


@given(seeds, st.integers(1, 50))
def test_no_member_is_estimated_worse_than_by_random_labels_whatever_is_true(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    patterns = some_patterns(seed)
    within = patterns.within()
    # So many are wanted that every pattern is a stratum of its own.
    n += int(np.ceil(1 / within[within > 0].min(initial=1.0)))
    labels = planned(allocate(patterns, n))
    accuracy = rng.choice([0.0, 0.5, 1.0, rng.random()], len(labels))
    inside = np.divide(accuracy * (1 - accuracy), labels, out=nothing_of(patterns), where=labels > 0)
    precision = within @ accuracy
    assert (within**2 @ inside <= precision * (1 - precision) / n + 1e-12).all()


@given(seeds, counts)
def test_sharing_never_takes_more_labels_than_sampling_apart(seed: int, n: int) -> None:
    allocation = allocate(some_patterns(seed), n)
    plan = allocation.plan(nothing_of(allocation.patterns), np.random.default_rng(seed))
    # What is needed is rounded up in every stratum.
    assert plan.cost <= min(plan.separate, np.ceil(allocation.needed.sum())) + allocation.count


@given(seeds, counts)
def test_nothing_more_is_asked_once_the_plan_is_carried_out(seed: int, n: int) -> None:
    allocation = allocate(some_patterns(seed), n)
    there = planned(allocation, seed).astype(float)
    assert planned(allocation, seed + 1, there).sum() == 0


@given(seeds, counts, st.integers(0, 2**32))
def test_labels_that_are_there_are_not_asked_for_again(seed: int, n: int, other: int) -> None:
    allocation = allocate(some_patterns(seed), n)
    there = np.random.default_rng(other).integers(0, 30, len(allocation.needed)).astype(float)
    more = planned(allocation, seed, there)
    for stratum in range(allocation.count):
        of = allocation.strata == stratum
        lacking = max(np.ceil(allocation.needed[of].sum() - 1e-6) - there[of].sum(), 0)
        assert more[of].sum() == pytest.approx(lacking, abs=1)
        assert more[of].sum() >= lacking


@given(seeds, counts)
def test_a_pattern_that_nobody_calls_positive_or_that_has_no_traffic_gets_no_labels(
    seed: int, n: int
) -> None:
    allocation = allocate(some_patterns(seed), n)
    idle = (allocation.patterns.masks == 0) | (allocation.patterns.traffic == 0)
    assert (planned(allocation)[idle] == 0).all()


@given(seeds, counts, st.floats(1e-6, 1e6))
def test_only_the_proportions_of_traffic_matter(seed: int, n: int, scale: float) -> None:
    patterns = some_patterns(seed)
    scaled = VotePatterns(patterns.masks, patterns.traffic * scale, patterns.members)
    np.testing.assert_allclose(allocate(scaled, n).needed, allocate(patterns, n).needed, rtol=1e-9)


def test_equal_members_cost_as_much_as_one() -> None:
    patterns = VotePatterns(np.array([0b000, 0b111]), np.array([9.0, 1.0]), 3)
    plan = allocate(patterns, 50).plan(np.zeros(2), np.random.default_rng(0))
    assert (plan.cost, plan.separate) == (50, 150)
    assert plan.saving == pytest.approx(2 / 3)


def test_disjoint_members_cost_what_they_cost_alone() -> None:
    patterns = VotePatterns(np.array([0b001, 0b010, 0b100]), np.array([5.0, 1.0, 0.1]), 3)
    plan = allocate(patterns, 50).plan(np.zeros(3), np.random.default_rng(0))
    assert plan.cost == plan.separate == 150
    assert plan.saving == 0.0


def test_a_plan_that_costs_more_than_separate_samples_says_so() -> None:
    # Of ten and of eleven positives four are the same; for two labels each 1.2, 0.8 and 1.27 are needed.
    patterns = VotePatterns(np.array([0b01, 0b11, 0b10]), np.array([6.0, 4.0, 7.0]), 2)
    plan = allocate(patterns, 2).plan(np.zeros(3), np.random.default_rng(0))
    assert (plan.more.tolist(), plan.cost, plan.separate) == ([2, 1, 2], 5, 4)
    assert plan.saving == -0.25


def test_where_nothing_is_called_positive_nothing_is_planned() -> None:
    allocation = allocate(VotePatterns(np.array([0]), np.array([1.0]), 3), 50)
    plan = allocation.plan(np.zeros(1), np.random.default_rng(0))
    assert (plan.cost, plan.separate, plan.saving) == (0, 0, 0.0)


def test_hundreds_of_thin_patterns_do_not_take_a_label_each() -> None:
    allocation = allocate(majority(np.random.default_rng(3), children=9, alike=True).patterns, 30)
    assert len(allocation.needed) == 511
    assert planned(allocation).sum() <= allocation.needed.sum() + allocation.count
    assert allocation.count < 40


def test_thin_patterns_get_labels_in_proportion_to_their_traffic() -> None:
    # All are thin: of 40 patterns of one member none needs a label of its own.
    traffic = np.random.default_rng(0).uniform(0.5, 1.5, 40)
    patterns = VotePatterns(np.arange(40) << 1 | 1, traffic, 7)
    allocation = allocate(patterns, 20)
    own = allocation.strata == allocation.strata[0]
    drawn = np.mean([planned(allocation, seed) for seed in range(1_500)], axis=0)
    expected = drawn[own].sum() * traffic[own] / traffic[own].sum()
    # Four standard errors of counts that are about Poisson.
    np.testing.assert_allclose(drawn[own], expected, atol=4 * (expected.max() / 1_500) ** 0.5)


def test_counts_and_items_agree_on_what_sharing_costs() -> None:
    votes = overlapping(0.6).votes
    by_items = plan_sharing(votes, 80, np.random.default_rng(0), mixing="patterns")
    allocation = allocate(VotePatterns.of_items(votes), 80)
    by_counts = allocation.plan(nothing_of(allocation.patterns), np.random.default_rng(0))
    assert by_counts.separate == by_items.separate
    # Both round every pattern.
    assert by_counts.cost == pytest.approx(by_items.cost, abs=len(allocation.needed))


@pytest.mark.parametrize(
    ("masks", "traffic", "members"),
    [
        ([1, 2], [1.0], 2),
        ([1, 1], [1.0, 1.0], 2),
        ([4], [1.0], 2),
        ([-1], [1.0], 2),
        ([1], [-1.0], 2),
        ([1], [np.nan], 2),
        ([1], [1.0], 0),
        ([1], [1.0], MOST_MEMBERS + 1),
    ],
)
def test_impossible_patterns_are_refused(masks: list[int], traffic: list[float], members: int) -> None:
    with pytest.raises(ValueError, match=r"must|has|names"):
        VotePatterns(np.array(masks), np.array(traffic), members)


def test_no_labels_at_all_are_not_wanted() -> None:
    with pytest.raises(ValueError, match="one label"):
        allocate(some_patterns(0), 0)


@pytest.mark.parametrize("labelled", [[1.0], [-1.0, 0.0], [np.nan, 0.0]])
def test_impossible_counts_are_refused(labelled: list[float]) -> None:
    allocation = allocate(VotePatterns(np.array([1, 3]), np.ones(2), 2), 10)
    with pytest.raises(ValueError, match="must be"):
        allocation.plan(np.array(labelled), np.random.default_rng(0))
