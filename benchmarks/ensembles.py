"""Ensembles of which votes and truth are known: for benchmarks, and for the tests of sample sharing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment.vote_patterns import VotePatterns

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_TRAINING_IMAGES = 300
"""So few that digits are confused often enough for members to differ."""

_BRIGHTEST = 16.0


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

    The members are a logistic regression, a naive Bayes classifier and the three nearest neighbours, trained
    on the same 300 images of scikit-learn's and voting on the 1,497 others.

    Args:
        bagged: if over 0: so many logistic regressions in their place, each of a bootstrap sample.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra, slow to import
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415 - an extra, slow to import
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - an extra, slow to import

    images, truth = load_digits(return_X_y=True)
    images = images / _BRIGHTEST
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images))
    training, rest = order[:_TRAINING_IMAGES], order[_TRAINING_IMAGES:]
    # Pixels that never vary in the training images would else decide alone.
    classifiers = [
        LogisticRegression(C=5.0, max_iter=1_000),
        GaussianNB(var_smoothing=1e-3),
        KNeighborsClassifier(3),
    ]
    samples = [training] * len(classifiers)
    if bagged:
        classifiers = [LogisticRegression(C=5.0, max_iter=1_000) for _ in range(bagged)]
        samples = [rng.choice(training, len(training)) for _ in range(bagged)]
    told = np.stack(
        [
            classifier.fit(images[sample], truth[sample]).predict(images[rest])
            for classifier, sample in zip(classifiers, samples, strict=True)
        ],
        axis=1,
    )
    ensembles = []
    for digit in range(10):
        children = told == digit
        parent = 2 * children.sum(axis=1) > children.shape[1]
        votes = np.column_stack((parent, children))
        ensembles.append(Items(votes, (truth[rest] == digit).astype(np.float64)))
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
