"""Intervals of members that share labels hold the truth as often as they say, and estimates have no bias."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks.ensembles import Stream, majority
from benchmarks.post_stratified import post_stratified
from service.statistics.vote_patterns import allocate, member_beliefs

STREAMS = 40
RUNS = 75
KINDS = [(children, wanted) for children in (3, 5, 7) for wanted in (10, 20, 50, 100)]


class Told(NamedTuple):
    """Of every run and member of one stream [RUNS, members]."""

    held: np.ndarray
    errors: np.ndarray
    deviation: np.ndarray
    """Of the mean of a random sample of every member [members]."""


def estimated(stream: Stream, wanted: int, rng: np.random.Generator) -> Told:
    allocation = allocate(stream.patterns, wanted)
    none = np.zeros(len(stream.accuracy))
    labels = np.array([allocation.plan(none, rng) for _ in range(RUNS)])
    positive = rng.binomial(labels, stream.accuracy).astype(float)
    truth = stream.precision()
    beliefs = member_beliefs(allocation, labels.astype(float), positive, mass=0.95)
    return Told(
        held=(beliefs.lower <= truth) & (truth <= beliefs.upper),
        errors=post_stratified(allocation, labels.astype(float), positive) - truth,
        deviation=np.sqrt(truth * (1 - truth) / wanted),
    )


@cache
def of_streams(children: int, wanted: int) -> list[Told]:
    """Half of the streams are of children that err by themselves, half of children that err alike."""
    rng = np.random.default_rng(1_000 * children + wanted)
    streams = [majority(rng, children=children, alike=turn % 2 == 0) for turn in range(STREAMS)]
    return [estimated(stream, wanted, rng) for stream in streams]


@pytest.mark.parametrize(("children", "wanted"), KINDS)
def test_intervals_of_shared_labels_hold_the_truth(children: int, wanted: int) -> None:
    held = [one.held for one in of_streams(children, wanted)]
    # Members share labels, so that only runs count: one standard error is 0.4 points.
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize(("children", "wanted"), KINDS)
def test_shared_labels_give_estimates_without_bias_and_closer_than_random_ones(
    children: int, wanted: int
) -> None:
    found = of_streams(children, wanted)
    # In units of a random sample's standard deviation: members of one stream vary together, so streams count.
    squares = np.mean([(one.errors**2 / one.deviation**2).mean() for one in found])
    means = np.array([(one.errors.mean(axis=0) / one.deviation).mean() for one in found])
    of_means = np.mean([((one.errors.mean(axis=0) / one.deviation) ** 2).mean() for one in found])
    # Of the twelve kinds none is to be beyond by chance, whatever the seeds.
    assert abs(means.mean()) < 4 * (squares / RUNS / STREAMS) ** 0.5
    # Without bias the mean of so many runs has their variance divided by their number; four standard errors.
    assert of_means * RUNS / squares < 1 + 4 * (2 / STREAMS) ** 0.5
    assert squares**0.5 < 0.85
