"""One random order of all items serves an ensemble and its members, and none of them is the worse for it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ensembles import mean_outcomes
from service.statistics.sample_sharing import (
    MOST_MEMBERS,
    Mixing,
    SharingPlan,
    _from_both,
    pattern_masks,
    plan_sharing,
)

MIXINGS: tuple[Mixing, ...] = ("reshuffle", "resample", "patterns")
"""A law holds on a busy machine too."""

mixings = st.sampled_from(MIXINGS)
seeds = st.integers(0, 2**32)
sizes = st.integers(1, 40)


def some_votes(seed: int) -> np.ndarray:
    """A few dozen items; members may be equal, empty, nested or disjoint."""
    rng = np.random.default_rng(seed)
    count, members = rng.integers(0, 60), rng.integers(1, 6)
    votes = rng.random((count, members)) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], members)
    if members > 2 and rng.random() < 0.5:
        votes[:, 2] = votes[:, rng.integers(0, 2)] & (rng.random(count) < rng.choice([0.5, 1.0]))
    return votes


def plan(votes: np.ndarray, n: int, mixing: Mixing, seed: int = 0) -> SharingPlan:
    return plan_sharing(votes, n, np.random.default_rng(seed), mixing=mixing)


def used_by_any(found: SharingPlan) -> np.ndarray:
    return np.unique(np.concatenate(found.items))


def columns(*sets: range, of: int) -> np.ndarray:
    votes = np.zeros((of, len(sets)), np.bool_)
    for member, called in enumerate(sets):
        votes[list(called), member] = True
    return votes


@pytest.mark.parametrize("mixing", ["reshuffle", "patterns"])
def test_ten_of_forty_samples_that_are_shared_leave_thirty_to_annotate(mixing: Mixing) -> None:
    # Three children and their parent, ten samples each; the first child agrees with the parent throughout.
    votes = columns(range(50), range(50), range(50, 100), range(100, 150), of=150)
    found = plan(votes, 10, mixing)
    assert found.cost == 30


@given(seeds, sizes, mixings)
def test_every_member_has_as_many_items_as_are_wanted_all_of_them_its_positives(
    seed: int, n: int, mixing: Mixing
) -> None:
    votes = some_votes(seed)
    found = plan(votes, n, mixing, seed)
    for member, items in enumerate(found.items):
        assert len(items) == min(n, votes[:, member].sum())
        assert votes[items, member].all()
        if mixing != "resample":
            assert len(np.unique(items)) == len(items)


@given(seeds, sizes, mixings)
def test_what_is_used_is_labelled_once_and_nothing_else_is(seed: int, n: int, mixing: Mixing) -> None:
    found = plan(some_votes(seed), n, mixing, seed)
    np.testing.assert_array_equal(found.to_label, used_by_any(found))


@given(seeds, sizes, mixings)
def test_sharing_never_costs_more_than_separate_samples(seed: int, n: int, mixing: Mixing) -> None:
    votes = some_votes(seed)
    assert plan(votes, n, mixing, seed).cost <= np.minimum(votes.sum(axis=0), n).sum()


@given(seeds, sizes, mixings)
def test_the_same_seed_gives_the_same_plan(seed: int, n: int, mixing: Mixing) -> None:
    votes = some_votes(seed)
    once, again = plan(votes, n, mixing, seed), plan(votes, n, mixing, seed)
    for one, other in zip(once.items, again.items, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(once.to_label, again.to_label)


@given(seeds, sizes, mixings)
def test_the_order_of_the_children_does_not_change_the_parents_sample(
    seed: int, n: int, mixing: Mixing
) -> None:
    votes = some_votes(seed)
    children = 1 + np.random.default_rng(seed).permutation(votes.shape[1] - 1)
    turned = plan(votes[:, [0, *children]], n, mixing, seed)
    np.testing.assert_array_equal(turned.items[0], plan(votes, n, mixing, seed).items[0])


@given(seeds, sizes, mixings)
def test_a_child_equal_to_the_parent_costs_nothing(seed: int, n: int, mixing: Mixing) -> None:
    votes = some_votes(seed)
    found = plan(votes[:, [0, 0]], n, mixing, seed)
    assert found.cost == min(n, votes[:, 0].sum())


@given(seeds, sizes, mixings)
def test_two_equal_children_cost_as_much_as_one(seed: int, n: int, mixing: Mixing) -> None:
    votes = some_votes(seed)
    first, last = votes[:, 0], votes[:, -1]
    one = plan(np.column_stack((first, last)), n, mixing, seed)
    two = plan(np.column_stack((first, last, last)), n, mixing, seed)
    assert two.cost == one.cost


@pytest.mark.parametrize("mixing", ["reshuffle", "patterns"])
def test_disjoint_children_cost_what_they_cost_alone(mixing: Mixing) -> None:
    found = plan(columns(range(30), range(30, 60), range(60, 90), of=90), 20, mixing)
    assert found.cost == 60


@pytest.mark.parametrize("mixing", MIXINGS)
def test_of_a_child_with_few_positives_all_are_used(mixing: Mixing) -> None:
    found = plan(columns(range(100), range(95, 105), of=120), 20, mixing)
    assert sorted(found.items[1]) == list(range(95, 105))


@pytest.mark.parametrize("mixing", MIXINGS)
def test_a_parent_that_calls_nothing_positive_leaves_its_children_their_samples(mixing: Mixing) -> None:
    found = plan(columns(range(0), range(50), range(50, 100), of=100), 10, mixing)
    assert [len(items) for items in found.items] == [0, 10, 10]
    assert np.isnan(mean_outcomes(found, np.ones(100))[0])


@pytest.mark.parametrize("mixing", MIXINGS)
def test_where_nothing_is_called_positive_nothing_is_labelled(mixing: Mixing) -> None:
    found = plan(np.zeros((20, 4), np.bool_), 5, mixing)
    assert found.cost == 0


@pytest.mark.parametrize("mixing", ["reshuffle", "patterns"])
def test_a_child_within_the_parent_takes_from_the_parents_sample_first(mixing: Mixing) -> None:
    found = plan(columns(range(100), range(60), of=100), 20, mixing)
    parents = set(found.items[0].tolist())
    child = set(found.items[1].tolist())
    assert child & parents == {item for item in parents if item < 60}


@pytest.mark.parametrize("mixing", ["reshuffle", "patterns"])
def test_a_child_around_the_parent_leaves_some_of_the_parents_sample_out(mixing: Mixing) -> None:
    # All 20 of the parent's sample are the child's too; in proportion, of 20 only 5 would be.
    found = plan(columns(range(100), range(400), of=400), 20, mixing)
    assert np.count_nonzero(found.items[1] < 100) == 5
    assert found.cost == 20 + 15


@given(seeds, sizes)
def test_by_patterns_no_more_is_labelled_than_the_smallest_member_of_each_needs(seed: int, n: int) -> None:
    votes = some_votes(seed)
    positives = votes.sum(axis=0)
    rates = np.where(votes, np.minimum(n / np.maximum(positives, 1), 1.0), 0.0)
    fewest = rates.max(axis=1, initial=0.0).sum()
    found = plan(votes, n, "patterns", seed)
    # Every pattern's count is rounded.
    assert found.cost <= fewest + len(np.unique(pattern_masks(votes)))


@pytest.mark.parametrize(
    ("shared", "both", "alone", "n"), [(1, 2, 3, 4), (3, 7, 5, 10), (0, 4, 6, 5), (4, 4, 6, 5), (2, 3, 4, 6)]
)
def test_whatever_the_parents_sample_shares_both_parts_get_their_shares(
    shared: int, both: int, alone: int, n: int
) -> None:
    rng = np.random.default_rng(0)
    drawn = [_from_both(shared, both, alone, n, rng) for _ in range(40_000)]
    # Four standard errors. Were S- rounded up by its fraction, the first case would be off by seven.
    allowed = max(4 * np.std(drawn) / len(drawn) ** 0.5, 1e-12)
    assert np.mean(drawn) == pytest.approx(n * both / (both + alone), abs=allowed)


def test_the_first_items_of_a_sample_are_no_different_from_the_last() -> None:
    votes = columns(range(40), range(20, 60), of=60)
    first = [int(plan(votes, 10, "reshuffle", seed).items[1][0] < 40) for seed in range(4_000)]
    # Half of the child's positives are the parent's; four standard errors.
    assert np.mean(first) == pytest.approx(0.5, abs=4 * 0.5 / 4_000**0.5)


def test_estimates_are_the_means_of_outcomes_over_the_items() -> None:
    found = plan(columns(range(10), range(5, 15), of=20), 20, "reshuffle")
    outcomes = np.arange(20.0)
    np.testing.assert_allclose(mean_outcomes(found, outcomes), [outcomes[:10].mean(), outcomes[5:15].mean()])


def test_an_ensemble_may_have_as_many_members_as_a_mask_has_bits() -> None:
    votes = np.eye(MOST_MEMBERS, dtype=np.bool_)
    masks = pattern_masks(votes)
    assert all(later == 2 * earlier for earlier, later in pairwise(masks.tolist()))
    assert plan(votes, 3, "patterns").cost == MOST_MEMBERS
