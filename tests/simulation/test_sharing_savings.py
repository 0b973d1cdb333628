"""Sharing samples saves labels: by how much members overlap, and for real classifiers."""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.ensembles import Items, digits, mean_outcomes, overlapping
from benchmarks.post_stratified import post_stratified
from benchmarks.sharing import WANTED, counted_saving, share_items
from service.statistics.sample_sharing import Mixing, plan_sharing
from service.statistics.vote_patterns import VotePatterns, allocate, member_beliefs

MIXINGS: tuple[Mixing, ...] = ("reshuffle", "resample", "patterns")
OVERLAPS = tuple(step / 10 for step in range(11))
RUNS = 60


def saving(items: Items, mixing: Mixing) -> float:
    """Of so many plans, the mean in %."""
    return share_items(items, mixing, RUNS)[0]


@functools.cache
def real() -> list[Items]:
    """One digit against the others, as a logistic regression, naive Bayes and the nearest neighbours vote."""
    return digits()


@pytest.mark.parametrize("mixing", MIXINGS)
def test_over_all_overlaps_a_third_is_saved_and_more_of_it_where_there_is_more(mixing: Mixing) -> None:
    saved = [saving(overlapping(overlap), mixing) for overlap in OVERLAPS]
    assert np.mean(saved) >= 33
    # A step of the overlap is worth four standard errors of these means at least.
    assert all(later > earlier for earlier, later in pairwise(saved))


def test_by_counts_of_patterns_a_third_is_saved_too() -> None:
    saved = [counted_saving(overlapping(overlap)) for overlap in OVERLAPS]
    assert np.mean(saved) >= 33
    assert all(later > earlier for earlier, later in pairwise(saved))


@pytest.mark.parametrize("mixing", MIXINGS)
def test_a_real_majority_vote_saves_over_three_fifths_of_its_labels(mixing: Mixing) -> None:
    assert np.mean([saving(items, mixing) for items in real()]) >= 60


def test_a_real_majority_vote_known_by_counts_saves_over_three_fifths_too() -> None:
    assert np.mean([counted_saving(items) for items in real()]) >= 60


@pytest.mark.parametrize("mixing", MIXINGS)
def test_the_precisions_of_real_classifiers_are_found(mixing: Mixing) -> None:
    for items in real():
        plans = [
            plan_sharing(items.votes, WANTED, np.random.default_rng(run), mixing=mixing)
            for run in range(RUNS)
        ]
        found = np.array([mean_outcomes(plan, items.positive) for plan in plans])
        # Four standard errors of the mean over the runs; resampled means vary up to half as much again.
        allowed = 4 * 1.5 * np.sqrt(items.random_sampling(WANTED) / RUNS)
        assert (np.abs(found.mean(axis=0) - items.precision()) <= allowed + 1e-12).all()


def test_the_precisions_of_real_classifiers_are_believed_from_counts_of_patterns() -> None:
    rng = np.random.default_rng(0)
    held = []
    for items in real():
        patterns = VotePatterns.of_items(items.votes)
        allocation = allocate(patterns, WANTED)
        masks = items.votes @ (1 << np.arange(items.votes.shape[1]))
        accuracy = np.array([items.positive[masks == mask].mean() for mask in patterns.masks])
        labels = np.array([allocation.plan(np.zeros(len(accuracy)), rng) for _ in range(RUNS)])
        positive = rng.binomial(labels, accuracy).astype(float)
        truth = items.precision()
        estimated = member_beliefs(allocation, labels.astype(float), positive, mass=0.95)
        # So many positives know their precision in steps: held is any value within half a step of it.
        half = 0.5 / items.votes.sum(axis=0)
        held.append((estimated.lower <= truth + half) & (truth - half <= estimated.upper))
        off = post_stratified(allocation, labels.astype(float), positive).mean(axis=0) - truth
        # Four standard errors, as a random sample of an endless stream has them.
        assert (np.abs(off) <= 4 * np.sqrt(truth * (1 - truth) / WANTED / RUNS) + 1e-12).all()
    assert np.mean(held) >= 0.93
