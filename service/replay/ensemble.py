"""What it costs to know the precision of an ensemble and its members, and how close it comes: many runs.

In every run each member is judged anew in each of these ways, always by as many labels:

- by a random sample of its own, one by one;
- by the labels that the service would ask for (`service/statistics/vote_patterns.py`);
- by the mixings of `service/statistics/sample_sharing.py`, which know all items one by one.

The truth is the precision that all labels of the pool tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.ensembles import ITSELF
from service.replay.workers import Workers
from service.statistics import beta as betas
from service.statistics.sample_sharing import Mixing, pattern_masks, plan_sharing
from service.statistics.vote_patterns import Allocation, VotePatterns, allocate, member_beliefs

SEPARATE = "separate"
"""A random sample of every member's own."""

SHARED = "shared"
"""What the service asks for."""

MIXINGS: tuple[Mixing, ...] = get_args(Mixing)

METHODS = (SEPARATE, SHARED, *MIXINGS)

_JEFFREYS = 0.5


@dataclass(frozen=True)
class VotedItems:
    """A pool of items, on which an ensemble and its members have voted."""

    positive_class: int
    members: tuple[str, ...]  # names, the ensemble itself first
    votes: Flags  # whether a member calls an item positive [N, members]; each does so of some
    positive: Flags  # whether items truly are [N]

    @classmethod
    def of(
        cls, positive_class: int, said: Mapping[str, Flags], positive: Flags, itself: Flags | None = None
    ) -> VotedItems:
        """Items that members, by name, and the ensemble itself call positive or not [N] each.

        Unless its own decision is given, it does where more than half of its members do, and not at a tie.
        """
        votes = np.column_stack(list(said.values()))
        if itself is None:
            itself = 2 * votes.sum(axis=1) > votes.shape[1]
        return cls(positive_class, (ITSELF, *said), np.column_stack((itself, votes)), positive)

    @property
    def called(self) -> Indices:
        """Items that each member calls positive [members]."""
        return np.asarray(self.votes.sum(axis=0), np.intp)

    @property
    def right(self) -> Indices:
        """Those of them that truly are [members]."""
        return np.asarray(self.votes[self.positive].sum(axis=0), np.intp)

    @property
    def truth(self) -> Floats:
        """Precision of each member [members]."""
        return self.right / self.called

    @cached_property
    def patterns(self) -> VotePatterns:
        """The vote patterns, and how many items have each."""
        return VotePatterns.of_items(self.votes)

    @cached_property
    def pattern(self) -> Indices:
        """Position of every item's pattern among these [N]."""
        return np.searchsorted(self.patterns.masks, pattern_masks(self.votes)).astype(np.intp)


@dataclass(frozen=True)
class Estimates:
    """Of one method in one run: labels asked for in all, and every member's precision [members]."""

    cost: int
    mean: Floats
    lower: Floats
    upper: Floats


Run = Mapping[str, Estimates]
"""By method."""


@dataclass(frozen=True)
class EnsembleStudy:
    """The question, asked of one pool.

    Each member is to have so many `labels`; each number has `runs` independent runs. Intervals hold `mass`.

    Raises:
        ValueError: some member calls fewer items positive than it is to have labels.
    """

    items: VotedItems
    labels: tuple[int, ...]
    runs: int
    mass: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if max(self.labels) > self.items.called.min():
            raise ValueError("no member can have more labels than items that it calls positive")

    def run(self, labels: int, workers: Workers, name: str = "") -> list[Run]:
        """All runs with so many labels for each member."""
        return workers.each(run_once, [(self, labels, number) for number in range(self.runs)], name)


def run_once(study: EnsembleStudy, labels: int, number: int) -> Run:
    """One run: a function of its arguments alone, whoever runs it."""
    items = study.items
    seed = np.random.SeedSequence(study.seed, spawn_key=(items.positive_class, labels, number))
    apart, together, *mixing = (np.random.default_rng(child) for child in seed.spawn(len(METHODS)))
    return {
        SEPARATE: _separate(study, labels, apart),
        SHARED: _shared(study, labels, together),
        **{name: _mixed(study, labels, name, rng) for name, rng in zip(MIXINGS, mixing, strict=True)},
    }


def _separate(study: EnsembleStudy, labels: int, rng: np.random.Generator) -> Estimates:
    """Every member by a random sample of its own: all labels are paid for, whatever others know."""
    right, called = study.items.right, study.items.called
    positive = rng.hypergeometric(right, called - right, labels).astype(np.float64)
    counts = np.full(len(called), float(labels))
    return _by_samples(labels * len(called), counts, positive, study.mass)


def _shared(study: EnsembleStudy, labels: int, rng: np.random.Generator) -> Estimates:
    """Every member by labels that are planned by vote pattern."""
    allocation = allocate(study.items.patterns, labels)
    known, positive = label_as_planned(study.items, allocation, rng)
    beliefs = member_beliefs(allocation, known, positive, mass=study.mass)
    return Estimates(int(known.sum()), beliefs.mean, beliefs.lower, beliefs.upper)


def label_as_planned(
    items: VotedItems, allocation: Allocation, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Labels of every vote pattern, and how many of them say positive [P].

    A thin pattern may be planned more labels than it has items. What then lacks is planned anew, as in the
    next round of the service. No member is to have more labels than items that it calls positive.
    """
    order = rng.permutation(len(items.pattern))
    order = order[np.argsort(items.pattern[order], kind="stable")]
    sizes = items.patterns.traffic.astype(np.intp)
    first = np.cumsum(sizes) - sizes
    known = np.zeros(len(sizes), np.intp)
    while (more := allocation.plan(known.astype(np.float64), rng)).any():
        known = np.minimum(known + more, sizes)
    right = np.concatenate(([0], np.cumsum(items.positive[order])))
    return known.astype(np.float64), (right[first + known] - right[first]).astype(np.float64)


def _mixed(study: EnsembleStudy, labels: int, mixing: Mixing, rng: np.random.Generator) -> Estimates:
    """Every member by a sample that is shared item by item, taken for a random one of its own."""
    plan = plan_sharing(study.items.votes, labels, rng, mixing=mixing)
    counts = np.array([len(used) for used in plan.items], np.float64)
    positive = np.array([study.items.positive[used].sum() for used in plan.items], np.float64)
    return _by_samples(plan.cost, counts, positive, study.mass)


def _by_samples(cost: int, counts: Floats, positive: Floats, mass: float) -> Estimates:
    """What samples tell under Jeffreys' prior, as strong a one as that of shared labels."""
    alpha, beta = positive + _JEFFREYS, counts - positive + _JEFFREYS
    return Estimates(cost, betas.mean(alpha, beta), *betas.interval(alpha, beta, mass))
