"""Posteriors of the true class given the predicted one, updated label by label."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas
from service.statistics import dirichlet
from service.statistics.beliefs import AccuracyBeliefs, Beliefs, LearnedAccuracy, Outcomes
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells
from service.statistics.mixture import BetaMixture

STRENGTHS = (0.5, 2.0, 8.0, 32.0, 128.0)
"""Grid of N1: how many wrong predictions the model's own probabilities are worth."""

DOUBTS = (0.02, 0.1, 0.3, 0.7)
"""Grid of e: the part of the wrong predictions that may be of any class."""

LEAST = 1e-9  # smallest parameter of a Dirichlet, that of an impossible class


class ConfusionBeliefs(Beliefs):
    """Of the true class given the predicted one, with Dirichlet parameters [G, K], the same in all R runs."""

    def __init__(self, alpha: Floats, runs: int) -> None:
        self._alpha = np.tile(alpha, (runs, 1, 1))
        self._every = np.arange(runs)

    def parameters(self) -> Floats:
        """Dirichlet parameters [R, G, K]."""
        return self._alpha

    def mean(self) -> Floats:
        """Mean probability of every true class [R, G, K]."""
        return dirichlet.mean(self._alpha)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Drawn probabilities of every true class [R, G, K]."""
        return dirichlet.sample(self._alpha, rng)

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """See `Beliefs`."""
        self._alpha[runs, groups, outcomes.classes] += 1

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`."""
        self._alpha[self._every, groups] += dirichlet.mean(self._alpha[self._every, groups])


class TwoLevelConfusion(ConfusionBeliefs):
    """Of the true class given the predicted one, as a tree of two levels: as in `confusion`.

    `accuracy` is of being right, `predicted` the class of every group [G].
    """

    def __init__(self, accuracy: AccuracyBeliefs, predicted: Indices) -> None:
        self.accuracy = accuracy
        self._predicted = predicted

    def refresh(self) -> None:
        """See `Beliefs`."""
        self.accuracy.refresh()

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """See `Beliefs`."""
        self.accuracy.observe(runs, groups, outcomes)
        wrong = outcomes.classes != self._predicted[groups]
        self._observe_wrong(runs[wrong], groups[wrong], outcomes.classes[wrong])

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`."""
        self.accuracy.expect(groups)

    def parameters(self) -> Floats:
        """Parameters [R, G, K] of Dirichlets with the same means, as certain as the accuracy."""
        alpha, beta = self.accuracy.matched()
        means = class_probabilities(betas.mean(alpha, beta), self._others(), self._predicted)
        return np.maximum(means, LEAST) * (alpha + beta)[..., None]

    def mean(self) -> Floats:
        """Mean probability of every true class [R, G, K]."""
        return class_probabilities(self.accuracy.mixture.mean(), self._others(), self._predicted)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Drawn probabilities of every true class [R, G, K]."""
        accuracy = rng.beta(*self.accuracy.draw(rng))
        return class_probabilities(
            accuracy, dirichlet.sample(np.maximum(self._wrong(), LEAST), rng), self._predicted
        )

    def _wrong(self) -> Floats:
        """Dirichlet parameters of the true class of a wrong prediction [R, G, K], 0 for impossible ones."""
        raise NotImplementedError

    def _observe_wrong(self, runs: Indices, groups: Indices, classes: Indices) -> None:
        """Update by the true classes of wrong predictions [n]."""
        raise NotImplementedError

    def _others(self) -> Floats:
        """Mean probability of every true class given that the prediction is wrong [R, G, K]."""
        alpha = self._wrong()
        return np.asarray(alpha / alpha.sum(axis=2, keepdims=True), np.float64)


class FittedConfusion(TwoLevelConfusion):
    """Of the true class given the predicted one, of one run under the learned prior.

    `accuracy` is of being right [J, G], `alpha` of the true class of a wrong prediction [G, K].
    """

    def __init__(self, accuracy: BetaMixture, alpha: Floats, predicted: Indices) -> None:
        super().__init__(AccuracyBeliefs.of_one(accuracy), predicted)
        self._alpha = alpha[None].copy()

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`."""
        right = self.accuracy.mixture.mean()[0, groups]
        expected = self._alpha[0, groups] * ((1 - right) / self._alpha[0, groups].sum(axis=1))[:, None]
        super().expect(groups)
        self._alpha[0, groups] += expected

    def _wrong(self) -> Floats:
        return self._alpha

    def _observe_wrong(self, runs: Indices, groups: Indices, classes: Indices) -> None:
        self._alpha[runs, groups, classes] += 1


class LearnedConfusion(TwoLevelConfusion):
    """Of the true class given the predicted one, under the learned prior.

    `others` is the model's mean probability of every class but the predicted one [G, K], 0 for that one; rows
    sum to 1. `predicted` is the class of every group [G].
    """

    def __init__(
        self, prior: LearnedCurve, cells: Cells, others: Floats, predicted: Indices, runs: int
    ) -> None:
        super().__init__(LearnedAccuracy(prior, cells, runs), predicted)
        even = np.where(np.arange(others.shape[1]) == predicted[:, None], 0.0, 1 / (others.shape[1] - 1))
        self._priors = np.stack(
            [strength * ((1 - doubt) * others + doubt * even) for strength in STRENGTHS for doubt in DOUBTS]
        )
        self._log_weights = np.zeros((runs, len(self._priors)))
        self._counts = np.zeros((runs, *others.shape))

    def _observe_wrong(self, runs: Indices, groups: Indices, classes: Indices) -> None:
        before = self._counts[runs, groups]
        prior = self._priors[:, groups]
        found = prior[:, np.arange(len(runs)), classes] + before[np.arange(len(runs)), classes]
        self._log_weights[runs] += np.log(found / (prior.sum(axis=2) + before.sum(axis=1))).T
        self._counts[runs, groups, classes] += 1

    def _wrong(self) -> Floats:
        likeliest: Floats = self._priors[self._log_weights.argmax(axis=1)]
        return likeliest + self._counts


def class_probabilities(accuracy: Floats, others: Floats, predicted: Indices) -> Floats:
    """Probability of every true class [R, G, K], from the accuracy and the distribution of wrong classes."""
    probabilities: Floats = others * (1 - accuracy)[:, :, None]
    probabilities[:, np.arange(len(predicted)), predicted] = accuracy
    return probabilities
