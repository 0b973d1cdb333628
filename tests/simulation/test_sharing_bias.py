"""Members that share samples are estimated without bias, and as closely as from samples of their own."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks.ensembles import Items, mean_outcomes, overlapping
from service.statistics.sample_sharing import Mixing, SharingPlan, plan_sharing

MIXINGS: tuple[Mixing, ...] = ("reshuffle", "resample", "patterns")
RUNS = 2_000
WANTED = 50


def plan(votes: np.ndarray, n: int, mixing: Mixing, seed: int) -> SharingPlan:
    return plan_sharing(votes, n, np.random.default_rng(seed), mixing=mixing)


def chance(runs: int) -> float:
    """Four standard errors of how often an item is used, about half the time; a fifth more with repeats."""
    return 4 * 1.2 * 0.5 / runs**0.5


def columns(*sets: list[int]) -> np.ndarray:
    votes = np.zeros((1 + max(map(max, sets)), len(sets)), np.bool_)
    for member, called in enumerate(sets):
        votes[called, member] = True
    return votes


def errors(items: Items, mixing: Mixing) -> np.ndarray:
    """Of every run and member [RUNS, 1 + M]."""
    estimates = [
        mean_outcomes(plan(items.votes, WANTED, mixing, seed), items.positive) for seed in range(RUNS)
    ]
    return np.array(estimates) - items.precision()


@cache
def errors_at(overlap: float, mixing: Mixing) -> np.ndarray:
    """Of members that overlap so far; bias and closeness are those of the same runs."""
    return errors(overlapping(overlap), mixing)


@pytest.mark.parametrize("mixing", MIXINGS)
def test_every_positive_of_a_member_is_as_likely_used_as_any_other(mixing: Mixing) -> None:
    # Small enough for rounding to matter: the first child shares 7 of its 12 items with the parent.
    votes = columns([*range(9)], [*range(2, 14)], [*range(6), *range(11, 16)])
    runs, n = 8_000, 5
    uses = np.zeros((3, 16))
    for seed in range(runs):
        for member, items in enumerate(plan(votes, n, mixing, seed).items):
            np.add.at(uses[member], items, 1)
    expected = np.where(votes, n / votes.sum(axis=0), 0.0).T
    np.testing.assert_allclose(uses / runs, expected, atol=chance(runs))


@pytest.mark.parametrize("overlap", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("mixing", MIXINGS)
def test_estimates_have_no_bias(mixing: Mixing, overlap: float) -> None:
    found = errors_at(overlap, mixing)
    beyond = np.abs(found.mean(axis=0)) / (found.std(axis=0) / RUNS**0.5)
    # Of 400 choices of seeds one would have one of the 36 figures beyond, by chance.
    assert beyond.max() < 4


@pytest.mark.parametrize("overlap", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("mixing", ["reshuffle", "patterns"])
def test_children_are_estimated_as_closely_as_by_random_sampling(mixing: Mixing, overlap: float) -> None:
    items = overlapping(overlap)
    squared = (errors_at(overlap, mixing)[:, 1:] ** 2).mean()
    assert (squared / items.random_sampling(WANTED)[1:].mean()) ** 0.5 <= 1.02


def test_reshuffling_is_as_close_as_random_sampling_where_patterns_tell_nothing() -> None:
    # Worst for strata: parent and children are as often right everywhere, so that only chance is left.
    items = overlapping(0.5)
    even = Items(items.votes, (np.arange(len(items.votes)) % 4 > 0).astype(float))
    squared = (errors(even, "reshuffle")[:, 1:] ** 2).mean()
    # Three standard errors of an RMSE of so many runs, of children that vary together, are 5%.
    assert (squared / even.random_sampling(WANTED)[1:].mean()) ** 0.5 == pytest.approx(1.0, abs=0.05)


def test_resampling_labels_less_and_errs_more() -> None:
    items = overlapping(0.5)
    ratio = (
        (errors_at(0.5, "resample")[:, 1:] ** 2).mean() / items.random_sampling(WANTED)[1:].mean()
    ) ** 0.5
    # Drawn again with replacement, the variance of a mean doubles: at most by 1.42 without strata, less the
    # part of it that strata save, more by what the population is finite.
    assert 1.2 < ratio < 1.55
    costs = {mixing: plan(items.votes, WANTED, mixing, 0).cost for mixing in MIXINGS}
    assert costs["resample"] < 0.9 * costs["reshuffle"]
