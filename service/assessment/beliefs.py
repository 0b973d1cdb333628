"""Beliefs that grow label by label, about all groups of any number of independent runs at once.

The service holds one run, an offline replay thousands. Tasks read beliefs; policies never look inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment import dirichlet
from service.assessment.curves import LearnedCurve
from service.assessment.laplace import Cells
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_REFIT_GROWTH = 1.25
"""The learned prior is fitted anew whenever there are so many times more labels; until then, what it says of
a group is updated as a Beta is."""


_CONFUSION_STRENGTHS = (0.5, 2.0, 8.0, 32.0, 128.0)
"""Grid of N1: in how many wrong predictions the model's own probabilities are worth."""

_CONFUSION_DOUBTS = (0.02, 0.1, 0.3, 0.7)
"""Grid of e: the part of the wrong predictions that may fall on any class."""


class Outcomes(NamedTuple):
    """What labels said, one label for each of some runs [n]."""

    correct: Floats
    """1.0 where the predicted class is the true one, else 0.0."""
    bins: Indices
    """Score bin of the prediction."""
    classes: Indices
    """True class."""


class Beliefs(Protocol):
    """What every kind of beliefs can do."""

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs, every run at most once.

        Args:
            runs: which runs [n].
            groups: group of the label [n].
            outcomes: what the labels said.
        """

    def expect(self, groups: Indices) -> None:
        """Count a label of a group as having said what is expected, in every run [R]."""

    def refresh(self) -> None:
        """Make the beliefs as good as the labels allow, before they are looked at closely."""


class AccuracyBeliefs:
    """About the accuracy of every group.

    Args:
        mixture: weights [R, J], alpha and beta [R, J, G]; owned, and updated in place.
    """

    def __init__(self, mixture: BetaMixture) -> None:
        self.mixture = mixture
        self._every = np.arange(len(mixture.weights))

    @classmethod
    def fixed(cls, alpha: Floats, beta: Floats, runs: int) -> Self:
        """Under a fixed prior: parameters [G], the same in every run."""
        shape = (runs, 1, len(alpha))
        return cls(
            BetaMixture(
                np.ones((runs, 1)), np.broadcast_to(alpha, shape).copy(), np.broadcast_to(beta, shape).copy()
            )
        )

    def refresh(self) -> None:
        """Make the beliefs as good as the labels allow, before they are looked at closely."""

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Parameters alpha and beta of every group [R, G] under hyperparameters drawn by their weights."""
        weights, alpha, beta = self.mixture.weights, self.mixture.alpha, self.mixture.beta
        if weights.shape[1] == 1:
            return alpha[:, 0], beta[:, 0]
        drawn = components(weights, rng)
        return alpha[self._every, drawn], beta[self._every, drawn]

    def matched(self) -> tuple[Floats, Floats]:
        """Parameters [R, G] of the Betas with the mean and variance of the mixture."""
        if self.mixture.weights.shape[1] == 1:
            return self.mixture.alpha[:, 0], self.mixture.beta[:, 0]
        return betas.matching(self.mixture.mean(), self.mixture.variance())

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        weights, alpha, beta = self.mixture.weights, self.mixture.alpha, self.mixture.beta
        correct = outcomes.correct[:, None]
        if weights.shape[1] > 1:
            mean = betas.mean(alpha[runs, :, groups], beta[runs, :, groups])
            updated = weights[runs] * np.where(correct > 0, mean, 1 - mean)
            weights[runs] = updated / updated.sum(axis=1, keepdims=True)
        alpha[runs, :, groups] += correct
        beta[runs, :, groups] += 1 - correct

    def expect(self, groups: Indices) -> None:
        """Count a label of a group as having said what is expected."""
        alpha, beta = self.mixture.alpha, self.mixture.beta
        mean = betas.mean(alpha[self._every, :, groups], beta[self._every, :, groups])
        alpha[self._every, :, groups] += mean
        beta[self._every, :, groups] += 1 - mean


class LearnedAccuracy(AccuracyBeliefs):
    """About the accuracy of every group, under the learned prior.

    Args:
        prior: the learned prior.
        cells: what traffic tells.
        runs: how many runs R.
    """

    def __init__(self, prior: LearnedCurve, cells: Cells, runs: int) -> None:
        self._curve = GrowingCurve(prior, cells, runs)
        super().__init__(self._curve.fit.groups())

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        if self._curve.observe(runs, groups, outcomes):
            self.mixture = self._curve.fit.groups()
        else:
            super().observe(runs, groups, outcomes)

    def refresh(self) -> None:
        """Fit the curve to all labels that have come."""
        if self._curve.refit():
            self.mixture = self._curve.fit.groups()

    def overall(self) -> BetaMixture:
        """Beliefs about the accuracy over all traffic [R, J, 1]."""
        self.refresh()
        return self._curve.fit.overall()


class BinBeliefs:
    """About the accuracy in every score bin of every group.

    Args:
        cells: what traffic tells.
        alpha: parameters [G, B], the same in every run.
        beta: [G, B].
        runs: how many runs R.

    Attributes:
        cells: what traffic tells.
        alpha: [R, G, B].
        beta: [R, G, B].
    """

    def __init__(self, cells: Cells, alpha: Floats, beta: Floats, runs: int) -> None:
        self.cells = cells
        self.alpha, self.beta = np.tile(alpha, (runs, 1, 1)), np.tile(beta, (runs, 1, 1))
        self._every = np.arange(runs)
        self._distances: Floats | None = None

    def refresh(self) -> None:
        """Make the beliefs as good as the labels allow, before they are looked at closely."""

    def draw(self, rng: np.random.Generator) -> Floats:
        """Accuracy of every cell [R, G, B]."""
        return rng.beta(self.alpha, self.beta)

    def mean(self) -> Floats:
        """Mean accuracy of every cell [R, G, B]."""
        return betas.mean(self.alpha, self.beta)

    def distances(self) -> Floats:
        """E |theta - s| of every cell [R, G, B]."""
        if self._distances is None:
            self._distances = betas.distance_moments(self.alpha, self.beta, self.cells.scores)[0]
        return self._distances

    def distance_variances(self) -> Floats:
        """Var |theta - s| of every cell [R, G, B]."""
        return betas.distance_moments(self.alpha, self.beta, self.cells.scores)[1]

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        cell = runs, groups, outcomes.bins
        self.alpha[cell] += outcomes.correct
        self.beta[cell] += 1 - outcomes.correct
        if self._distances is not None:
            scores = self.cells.scores[groups, outcomes.bins]
            self._distances[cell] = betas.distance_moments(self.alpha[cell], self.beta[cell], scores)[0]

    def expect(self, groups: Indices) -> None:
        """Count a label of a group as having said what is expected, in every bin by its traffic."""
        cell, share = (self._every, groups), self.cells.shares[groups]
        mean = betas.mean(self.alpha[cell], self.beta[cell])
        self.alpha[cell] += share * mean
        self.beta[cell] += share * (1 - mean)
        self._distances = None


class LearnedBins(BinBeliefs):
    """About the accuracy in every score bin of every group, under the learned prior.

    Every cell's parameters are those of the Beta with the mean and variance of the mixture; draws are from
    the mixture itself, in which a group's cells hang together.

    Args:
        prior: the learned prior.
        cells: what traffic tells.
        runs: how many runs R.
    """

    def __init__(self, prior: LearnedCurve, cells: Cells, runs: int) -> None:
        super().__init__(cells, np.ones(cells.scores.shape), np.ones(cells.scores.shape), runs)
        self._curve = GrowingCurve(prior, cells, runs)
        self._summarise()

    def refresh(self) -> None:
        """Fit the curve to all labels that have come."""
        if self._curve.refit():
            self._summarise()

    def draw(self, rng: np.random.Generator) -> Floats:
        """Accuracy of every cell [R, G, B]."""
        fit = self._curve.fit
        drawn = self._every, components(fit.weights, rng)
        centres = fit.centres[drawn]
        points = rng.standard_normal(centres.shape[:2])[:, :, None]
        centres = special.expit(centres + points * fit.deviations[drawn])
        strengths = fit.strengths[drawn[1]][:, None, None]
        alpha = strengths * np.clip(centres, 1e-7, 1 - 1e-7) + self._curve.correct
        return rng.beta(alpha, strengths + self._curve.labels - alpha)

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        if self._curve.observe(runs, groups, outcomes):
            self._summarise()
        else:
            super().observe(runs, groups, outcomes)

    def _summarise(self) -> None:
        self.alpha, self.beta = self._curve.fit.cells_matched()
        self._distances = None


class ConfusionBeliefs:
    """About the true class, given the predicted one.

    Args:
        alpha: Dirichlet parameters of every predicted class [G, K], the same in every run.
        runs: how many runs R.
    """

    def __init__(self, alpha: Floats, runs: int) -> None:
        self._alpha = np.tile(alpha, (runs, 1, 1))
        self._every = np.arange(runs)

    def refresh(self) -> None:
        """Make the beliefs as good as the labels allow, before they are looked at closely."""

    def parameters(self) -> Floats:
        """Dirichlet parameters [R, G, K]."""
        return self._alpha

    def mean(self) -> Floats:
        """Mean probability of every true class [R, G, K]."""
        return dirichlet.mean(self._alpha)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Probability of every true class [R, G, K]."""
        return dirichlet.sample(self._alpha, rng)

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        self._alpha[runs, groups, outcomes.classes] += 1

    def expect(self, groups: Indices) -> None:
        """Count a label of a group as having said what is expected."""
        self._alpha[self._every, groups] += dirichlet.mean(self._alpha[self._every, groups])


class LearnedConfusion(ConfusionBeliefs):
    """About the true class, given the predicted one, under the learned prior.

    A tree of two levels: whether the prediction is right is believed as groupwise accuracy is, and, if it is
    wrong, the true class is Dirichlet(N1 ((1 - e) q_k + e / (K - 1))), with q_k what the model's own
    probabilities say of the other classes. How far they can be trusted, N1 and e, is the pair of the highest
    marginal likelihood on a grid.

    Args:
        prior: the learned prior.
        cells: what traffic tells.
        others: the model's mean probability of every class but the predicted one [G, K], 0 at that one;
            rows sum to 1.
        predicted: class of every group [G].
        runs: how many runs R.
    """

    def __init__(
        self, prior: LearnedCurve, cells: Cells, others: Floats, predicted: Indices, runs: int
    ) -> None:
        self.accuracy = LearnedAccuracy(prior, cells, runs)
        self._predicted = predicted
        even = np.where(np.arange(others.shape[1]) == predicted[:, None], 0.0, 1 / (others.shape[1] - 1))
        self._priors = np.stack(
            [
                strength * ((1 - doubt) * others + doubt * even)
                for strength in _CONFUSION_STRENGTHS
                for doubt in _CONFUSION_DOUBTS
            ]
        )
        self._log_weights = np.zeros((runs, len(self._priors)))
        self._counts = np.zeros((runs, *others.shape))
        self._every = np.arange(runs)

    def refresh(self) -> None:
        """Fit the accuracy's curve to all labels that have come."""
        self.accuracy.refresh()

    def parameters(self) -> Floats:
        """Parameters [R, G, K] of Dirichlets with the same means, as sure as of the accuracy."""
        alpha, beta = self.accuracy.matched()
        return (
            np.maximum(self._joined(betas.mean(alpha, beta), self._others()), 1e-9)
            * (alpha + beta)[..., None]
        )

    def mean(self) -> Floats:
        """Mean probability of every true class [R, G, K]."""
        return self._joined(self.accuracy.mixture.mean(), self._others())

    def draw(self, rng: np.random.Generator) -> Floats:
        """Probability of every true class [R, G, K]."""
        accuracy = rng.beta(*self.accuracy.draw(rng))
        parameters = np.maximum(self._priors[self._log_weights.argmax(axis=1)] + self._counts, 1e-9)
        return self._joined(accuracy, dirichlet.sample(parameters, rng))

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Take in one label of each of some runs."""
        self.accuracy.observe(runs, groups, outcomes)
        wrong = outcomes.classes != self._predicted[groups]
        runs, groups, classes = runs[wrong], groups[wrong], outcomes.classes[wrong]
        before = self._counts[runs, groups]
        prior = self._priors[:, groups]
        found = prior[:, np.arange(len(runs)), classes] + before[np.arange(len(runs)), classes]
        self._log_weights[runs] += np.log(found / (prior.sum(axis=2) + before.sum(axis=1))).T
        self._counts[runs, groups, classes] += 1

    def expect(self, groups: Indices) -> None:
        """Count a label of a group as having said what is expected."""
        self.accuracy.expect(groups)

    def _others(self) -> Floats:
        """Mean probability of every true class given that the prediction is wrong [R, G, K]."""
        alpha = self._priors[self._log_weights.argmax(axis=1)] + self._counts
        return np.asarray(alpha / alpha.sum(axis=2, keepdims=True), np.float64)

    def _joined(self, accuracy: Floats, others: Floats) -> Floats:
        joined = others * (1 - accuracy)[:, :, None]
        joined[:, np.arange(len(self._predicted)), self._predicted] = accuracy
        return joined


@dataclass
class GrowingCurve:
    """The learned prior's fit, and the labels that came since."""

    prior: LearnedCurve
    cells: Cells
    runs: int

    def __post_init__(self) -> None:
        shape = (self.runs, *self.cells.scores.shape)
        self.labels, self.correct = np.zeros(shape), np.zeros(shape)
        self._seen, self._fitted, self._next = 0, 0, 1
        self.fit = self.prior.fit(self.cells, self.labels.copy(), self.correct.copy())

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> bool:
        """Count one label of each of some runs; whether the curve was fitted anew."""
        self.labels[runs, groups, outcomes.bins] += 1
        self.correct[runs, groups, outcomes.bins] += outcomes.correct
        self._seen += 1
        if self._seen < self._next:
            return False
        return self.refit()

    def refit(self) -> bool:
        """Fit to all labels that have come; whether there were new ones."""
        if self._fitted == self._seen:
            return False
        self.fit = self.prior.fit(self.cells, self.labels.copy(), self.correct.copy(), self.fit.modes)
        self._fitted = self._seen
        self._next = max(self._seen + 1, int(self._seen * _REFIT_GROWTH))
        return True


def components(weights: Floats, rng: np.random.Generator) -> Indices:
    """A component of every run [R], drawn by its weight [R, J]."""
    cumulative = np.cumsum(weights, axis=1)
    below = cumulative < rng.random((len(weights), 1)) * cumulative[:, -1:]
    return np.asarray(below.sum(axis=1), np.intp)
