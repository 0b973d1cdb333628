"""Posterior of the true class given the predicted one, and of the cost of mistakes.

Under the learned prior it is a tree of two levels: that the prediction is right has the posterior of
groupwise accuracy, and the true class of a wrong one is Dirichlet(N1 ((1 - e) q_k + e / (K - 1))), with q_k
the model's own probabilities of the other classes. N1 and e are the pair of highest marginal likelihood on a
grid. Under a fixed prior all classes are Dirichlet, as in Ji, Logan, Smyth, Steyvers (AAAI 2021).

Arrays of groups by classes are dense, which limits this to about a thousand classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas
from service.statistics import dirichlet
from service.statistics.balance_heuristic import sums
from service.statistics.confusion_beliefs import DOUBTS, LEAST, STRENGTHS, ConfusionBeliefs, FittedConfusion
from service.statistics.estimate import Estimate
from service.statistics.groups import GroupingBeliefs, Labels
from service.statistics.mixture import BetaMixture
from service.statistics.names import PriorName
from service.statistics.priors import FIXED_PRIORS
from service.statistics.ratios import ratio

IntervalKind = Literal["equal_tailed", "highest_density"]


@dataclass(frozen=True)
class Confusion:
    """Posterior of the true class of every group, where groups are predicted classes."""

    predicted: Indices  # class of every group [G]
    shares: Floats  # traffic share of every group [G]
    labels: Floats  # effective number of labels of every group [G]
    # Dirichlet parameters [G, K]; if `accuracy` is given, of the true class of a wrong prediction
    alpha: Floats
    accuracy: BetaMixture | None  # posterior of being right [J, G]; None where `alpha` includes it

    def mean(self) -> Floats:
        """Mean probability of every true class [G, K]; rows sum to 1."""
        mean = dirichlet.mean(self.alpha)
        if self.accuracy is not None:
            right = self.accuracy.mean()
            mean *= (1 - right)[:, None]
            mean[np.arange(len(right)), self.predicted] = right
        return mean

    def cost_beliefs(self, costs: Floats) -> CostBeliefs:
        """Posterior of the expected cost of a prediction of every group.

        `costs` are of every true class [G, K], 0 for the predicted one.
        """
        mean, variance = dirichlet.cost_moments(self.alpha, costs)
        if self.accuracy is not None:
            # A wrong prediction's cost, times being wrong: independent.
            wrong = 1 - self.accuracy.mean()
            squared = self.accuracy.variance() + wrong**2
            variance = squared * (variance + mean**2) - (wrong * mean) ** 2
            mean = wrong * mean
        least, most = costs.min(axis=1), costs.max(axis=1)
        span = np.where(most > least, most - least, 1.0)
        alpha, beta = betas.matching((mean - least) / span, np.maximum(variance, 0.0) / span**2)
        return CostBeliefs(alpha, beta, least, most)

    def dearest(self, costs: Floats) -> Floats:
        """By how much an error of the most expensive kind costs more than one of unknown kind does [G]."""
        mean, _ = dirichlet.cost_moments(self.alpha, costs)
        return np.asarray(costs.max(axis=1) - (mean if self.accuracy is not None else 0.0), np.float64)

    def most_frequent(self, count: int) -> tuple[Indices, Indices]:
        """The most frequent confusions, descending: groups and true classes [count]."""
        frequency = self.mean() * self.shares[:, None]
        frequency[np.arange(len(self.predicted)), self.predicted] = -1.0
        count = min(count, frequency.size - len(self.predicted))
        flat = np.argpartition(frequency, frequency.size - count, axis=None)[frequency.size - count :]
        flat = flat[np.argsort(-frequency.ravel()[flat], kind="stable")]
        groups, classes = np.unravel_index(flat, frequency.shape)
        return groups, classes

    def entries(self, groups: Indices, classes: Indices, *, mass: float, kind: IntervalKind) -> Estimate:
        """Probability that the true class of a group is this one, for pairs of both [n].

        Intervals are those of the Beta with the mean and variance.
        """
        alpha = self.alpha[groups, classes]
        rest = self.alpha.sum(axis=1)[groups] - alpha
        if self.accuracy is None:
            return estimate(alpha, np.maximum(rest, LEAST), mass=mass, kind=kind)
        right, spread = self.accuracy.mean()[groups], self.accuracy.variance()[groups]
        other, other_spread = betas.mean(alpha, rest), betas.variance(alpha, rest)
        mean = (1 - right) * other
        variance = (spread + (1 - right) ** 2) * (other_spread + other**2) - mean**2
        is_right = classes == self.predicted[groups]
        matched = betas.matching(np.where(is_right, right, mean), np.where(is_right, spread, variance))
        return estimate(*matched, mass=mass, kind=kind)

    def confusion_beliefs(self) -> ConfusionBeliefs:
        """The same for a task to read, as its only run; a copy."""
        if self.accuracy is None:
            return ConfusionBeliefs(self.alpha, 1)
        return FittedConfusion(self.accuracy, self.alpha, self.predicted)


@dataclass(frozen=True)
class CostBeliefs:
    """Posterior of the cost of every group [G]: a Beta between the smallest and the largest cost."""

    alpha: Floats
    beta: Floats
    least: Floats
    most: Floats

    def estimate(self, *, mass: float, kind: IntervalKind) -> Estimate:
        """Mean and interval, in the unit of the costs."""
        found = estimate(self.alpha, self.beta, mass=mass, kind=kind)
        return Estimate(*(self._cost(shares) for shares in (found.lower, found.mean, found.upper)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws of every group [size, G]."""
        return self._cost(rng.beta(self.alpha, self.beta, (size, len(self.alpha))))

    def _cost(self, shares: Floats) -> Floats:
        return self.least + shares * (self.most - self.least)


def assess_confusion(
    beliefs: GroupingBeliefs,
    *,
    cell_groups: Indices,
    labels: Labels,
    predicted: Indices,
    probability_sums: Sequence[Floats | None],
    class_count: int,
    prior: PriorName,
) -> Confusion:
    """Posterior of the true class of every group, from all labels of the model.

    `beliefs` is of the accuracy of the same groups, `cell_groups` the group of every cell [cells],
    `predicted` the class of every group [G]. The model's probabilities are summed over each group's traffic;
    None if it gave none.
    """
    counts = _effective(beliefs.labels, cell_groups[labels.cells], labels, class_count)
    shape, every = counts.shape, np.arange(len(predicted))
    probabilities = np.full(shape, 1 / class_count)
    for g, total in enumerate(probability_sums):
        if total is not None and total.sum() > 0:
            probabilities[g] = total / total.sum()
        else:
            probabilities[g] = (1 - beliefs.scores[g]) / (class_count - 1)
            probabilities[g, predicted[g]] = beliefs.scores[g]
    if prior != "learned":
        alpha = FIXED_PRIORS[prior].dirichlet(probabilities) + counts
        return Confusion(predicted, beliefs.shares, beliefs.labels, np.maximum(alpha, LEAST), None)
    probabilities[every, predicted] = 0.0
    rest = probabilities.sum(axis=1, keepdims=True)
    others = ratio(probabilities, rest, 1 / (class_count - 1))
    counts[every, predicted] = 0.0
    strength, doubt = _likeliest(others, counts)
    others *= (1 - doubt) * strength
    others += doubt * strength / (class_count - 1)
    others[every, predicted] = 0.0
    others += counts
    np.maximum(others, LEAST, out=others)
    return Confusion(predicted, beliefs.shares, beliefs.labels, others, beliefs.accuracy)


def estimate(alpha: Floats, beta: Floats, *, mass: float, kind: IntervalKind) -> Estimate:
    """Mean and interval of Betas."""
    ends = betas.interval if kind == "equal_tailed" else betas.highest_density
    lower, upper = ends(alpha, beta, mass)
    return Estimate(lower, betas.mean(alpha, beta), upper)


def _effective(sizes: Floats, groups: Indices, labels: Labels, class_count: int) -> Floats:
    """Effective labels of every true class [G, K]: a group's effective labels, divided by weight."""
    has_class = labels.true_classes >= 0
    worth = (labels.weights * labels.freshness)[has_class]
    slots = groups[has_class] * class_count + labels.true_classes[has_class]
    fine = sums(slots, worth, len(sizes) * class_count)
    counts: Floats = fine.reshape(len(sizes), class_count)
    counts *= ratio(sizes, counts.sum(axis=1), 0.0)[:, None]
    return counts


def _likeliest(others: Floats, counts: Floats) -> tuple[float, float]:
    """N1 and e of the highest marginal likelihood, by the true classes of wrong predictions."""
    rows, columns = np.nonzero(counts)
    found, centre, sizes = counts[rows, columns], others[rows, columns], counts.sum(axis=1)
    gammaln = special.gammaln

    def likelihood(strength: float, doubt: float) -> float:
        alpha = strength * ((1 - doubt) * centre + doubt / (counts.shape[1] - 1))
        classes = (gammaln(alpha + found) - gammaln(alpha)).sum()
        return float(classes - (gammaln(strength + sizes) - gammaln(strength)).sum())

    grid = [(strength, doubt) for strength in STRENGTHS for doubt in DOUBTS]
    return max(grid, key=lambda pair: likelihood(*pair))
