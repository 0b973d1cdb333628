"""Posteriors that are updated label by label, of all groups of any number of independent runs at once.

The service has one run, an offline replay thousands. Tasks read posteriors; policies never look inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells
from service.statistics.mixture import BetaMixture

_REFIT_GROWTH = 1.25  # growth of labels that refits the learned prior; until then groups are Betas


class Outcomes(NamedTuple):
    """Labels, at most one for each run [n]."""

    correct: Floats  # 1.0 where the predicted class is the true one, else 0.0
    bins: Indices  # score bin of the prediction
    classes: Indices  # true class


class Beliefs:
    """What every kind of posterior can do."""

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """Update by one label, of this group, in each of some runs [n]; no run comes twice."""
        raise NotImplementedError

    def expect(self, groups: Indices) -> None:
        """Count a label of a group in every run [R] as if it had its expected outcome."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Refit to all labels so far, before the posterior is read closely; conjugate ones need not."""


class AccuracyBeliefs(Beliefs):
    """Of the accuracy of every group, by a mixture [R, J, G] that is updated in place."""

    def __init__(self, mixture: BetaMixture) -> None:
        self.mixture = mixture
        runs, _, groups = mixture.alpha.shape
        self._every = np.arange(runs)
        # Labels that `observe` was given, and correct ones [R, G].
        self.observed, self.observed_correct = np.zeros((runs, groups)), np.zeros((runs, groups))

    @classmethod
    def fixed(cls, alpha: Floats, beta: Floats, runs: int) -> Self:
        """Under a fixed prior with parameters [G], the same in every run."""
        shape = (runs, 1, 1)
        return cls(BetaMixture(np.ones((runs, 1)), np.tile(alpha, shape), np.tile(beta, shape)))

    @classmethod
    def of_one(cls, mixture: BetaMixture) -> Self:
        """Of one run: weights [J], alpha and beta [J, G]; copied."""
        return cls(
            BetaMixture(mixture.weights[None].copy(), mixture.alpha[None].copy(), mixture.beta[None].copy())
        )

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
        """See `Beliefs`."""
        self.observed[runs, groups] += 1
        self.observed_correct[runs, groups] += outcomes.correct
        self._update(runs, groups, outcomes)

    def _update(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        weights, alpha, beta = self.mixture.weights, self.mixture.alpha, self.mixture.beta
        correct = outcomes.correct[:, None]
        if weights.shape[1] > 1:
            mean = betas.mean(alpha[runs, :, groups], beta[runs, :, groups])
            updated = weights[runs] * np.where(correct > 0, mean, 1 - mean)
            weights[runs] = updated / updated.sum(axis=1, keepdims=True)
        alpha[runs, :, groups] += correct
        beta[runs, :, groups] += 1 - correct

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`."""
        alpha, beta = self.mixture.alpha, self.mixture.beta
        mean = betas.mean(alpha[self._every, :, groups], beta[self._every, :, groups])
        alpha[self._every, :, groups] += mean
        beta[self._every, :, groups] += 1 - mean


class LearnedAccuracy(AccuracyBeliefs):
    """Of the accuracy of every group, under the learned prior, in `runs` runs."""

    def __init__(self, prior: LearnedCurve, cells: Cells, runs: int) -> None:
        self._curve = GrowingCurve(prior, cells, runs)
        super().__init__(self._curve.fit.groups())

    def _update(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        if self._curve.observe(runs, groups, outcomes):
            self.mixture = self._curve.fit.groups()
        else:
            super()._update(runs, groups, outcomes)

    def refresh(self) -> None:
        """See `Beliefs`."""
        if self._curve.refit():
            self.mixture = self._curve.fit.groups()

    def overall(self) -> BetaMixture:
        """Posterior of the accuracy over all traffic [R, J, 1]."""
        self.refresh()
        return self._curve.fit.overall()


@dataclass
class GrowingCurve:
    """The learned prior's fit, and the labels that arrived since."""

    prior: LearnedCurve
    cells: Cells
    runs: int

    def __post_init__(self) -> None:
        shape = (self.runs, *self.cells.scores.shape)
        self.labels, self.correct = np.zeros(shape), np.zeros(shape)
        self._seen, self._fitted, self._next = 0, 0, 1
        self.fit = self.prior.fit(self.cells, self.labels.copy(), self.correct.copy())

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> bool:
        """Count one label of each of some runs; True if that led to a refit."""
        self.labels[runs, groups, outcomes.bins] += 1
        self.correct[runs, groups, outcomes.bins] += outcomes.correct
        self._seen += 1
        if self._seen < self._next:
            return False
        return self.refit()

    def refit(self) -> bool:
        """Refit to all labels so far; False if there were no new ones."""
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
