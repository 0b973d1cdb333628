"""Ensembles of which votes and truth are known: for benchmarks, and for the tests of sample sharing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats
from service.replay.digits import VOTERS_TRAINING_IMAGES, digits_voters, logistic_regression, split_digits
from service.replay.ensemble import VotedItems
from service.statistics.sample_sharing import SharingPlan
from service.statistics.vote_patterns import VotePatterns


@dataclass(frozen=True)
class Items:
    """Single items.

    Attributes:
        votes: whether a member calls an item positive [N, 1 + M], the parent first.
        positive: 1.0 where it truly is, else 0.0 [N].
    """

    votes: Flags
    positive: Floats

    def precision(self) -> Floats:
        """Of every member [1 + M]."""
        return np.asarray(self.positive @ self.votes / self.votes.sum(axis=0), np.float64)

    def random_sampling(self, wanted: int) -> Floats:
        """Variance of the mean of a random sample of a member's positives, without replacement [1 + M]."""
        truth, size = self.precision(), self.votes.sum(axis=0)
        return np.asarray(truth * (1 - truth) / wanted * (size - wanted) / (size - 1), np.float64)


def mean_outcomes(plan: SharingPlan, outcomes: Floats) -> Floats:
    """Mean outcome [N] over the items of every member [1 + M]; NaN for one that calls nothing positive.

    With the outcome 1 where an item is truly positive this is precision.
    """
    return np.array([outcomes[used].mean() if used.size else np.nan for used in plan.items])


def overlapping(overlap: float, *, positives: int = 400, children: int = 3, seed: int = 0) -> Items:
    """Children with as many positives as the parent, partly the same; the others are nobody else's.

    What the parent calls positive is so nine times of ten, what it does not four times.

    Args:
        overlap: the part of a child's positives that are the parent's, in [0, 1].
        positives: of every member.
        children: how many.
        seed: which of the parent's positives are theirs, and which items are truly positive.
    """
    rng = np.random.default_rng(seed)
    shared = round(overlap * positives)
    votes = np.zeros(((1 + children) * positives, 1 + children), np.bool_)
    votes[:positives, 0] = True
    for child in range(1, 1 + children):
        votes[rng.permutation(positives)[:shared], child] = True
        votes[child * positives : (child + 1) * positives - shared, child] = True
    right = np.where(votes[:, 0], 0.9, 0.4)
    return Items(votes, (rng.random(len(votes)) < right).astype(np.float64))


def digits(bagged: int = 0) -> list[Items]:
    """A majority vote on handwritten digits, one digit against the others: ten ensembles.

    The members are those of `credence replay digits --task ensemble`.

    Args:
        bagged: if over 0: so many logistic regressions in their place, each of a bootstrap sample.
    """
    if bagged:
        rng = np.random.default_rng(0)
        images, labels, training, rest = split_digits(VOTERS_TRAINING_IMAGES, rng)
        samples = [rng.choice(training, len(training)) for _ in range(bagged)]
        fitted = [logistic_regression().fit(images[sample], labels[sample]) for sample in samples]
        predictions, truth = [each.predict(images[rest]) for each in fitted], labels[rest]
    else:
        voters = digits_voters()
        predictions, truth = [voter.predicted for voter in voters], voters[0].labels
    ensembles = []
    for digit in range(10):
        items = VotedItems.of(
            digit, {str(m): said == digit for m, said in enumerate(predictions)}, truth == digit
        )
        ensembles.append(Items(items.votes, items.positive.astype(np.float64)))
    return ensembles


@dataclass(frozen=True)
class Stream:
    """Traffic of vote patterns.

    Attributes:
        patterns: what traffic tells.
        accuracy: how often an item of a pattern is truly positive [P].
    """

    patterns: VotePatterns
    accuracy: Floats

    def precision(self) -> Floats:
        """Of every member [members]."""
        return self.patterns.within() @ self.accuracy


def majority(rng: np.random.Generator, *, children: int, alike: bool) -> Stream:
    """A majority vote of children that differ in skill.

    Args:
        rng: draws how often they miss and alarm.
        children: how many, an odd number.
        alike: whether all err more often on the same, hard items; else each errs by itself.
    """
    masks = np.arange(1, 2**children, dtype=np.int64)
    votes = (masks[:, None] >> np.arange(children) & 1).astype(np.bool_)
    misses, alarms = rng.uniform(0.02, 0.4, children), rng.uniform(0.005, 0.15, children)
    prevalence = rng.uniform(0.1, 0.5)
    positive, negative = np.zeros(len(masks)), np.zeros(len(masks))
    for share, harder in ((0.6, 0.4), (0.4, 2.0)) if alike else ((1.0, 1.0),):
        missed, alarmed = misses * harder, alarms * harder
        positive += share * prevalence * np.where(votes, 1 - missed, missed).prod(axis=1)
        negative += share * (1 - prevalence) * np.where(votes, alarmed, 1 - alarmed).prod(axis=1)
    traffic = positive + negative
    parent = (2 * votes.sum(axis=1) > children).astype(np.int64)
    return Stream(VotePatterns(masks << 1 | parent, traffic, children + 1), positive / traffic)
