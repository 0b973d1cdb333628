"""Posteriors of the accuracy in every score bin of every group, updated label by label."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas
from service.statistics.beliefs import Beliefs, GrowingCurve, Outcomes, components
from service.statistics.curve_fit import CENTRE_MARGIN, CurveFit
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells


class BinBeliefs(Beliefs):
    """Of the accuracy in every score bin of every group, with parameters [R, G, B].

    They begin as alpha and beta [G, B] in every run.
    """

    def __init__(self, cells: Cells, alpha: Floats, beta: Floats, runs: int) -> None:
        self.cells = cells
        self.alpha, self.beta = np.tile(alpha, (runs, 1, 1)), np.tile(beta, (runs, 1, 1))
        self._every = np.arange(runs)
        self._distances: Floats | None = None

    def draw(self, rng: np.random.Generator) -> Floats:
        """Drawn accuracies [R, G, B]."""
        return rng.beta(self.alpha, self.beta)

    def mean(self) -> Floats:
        """Mean accuracies [R, G, B]."""
        return betas.mean(self.alpha, self.beta)

    def distances(self) -> Floats:
        """E |theta - s| [R, G, B]."""
        if self._distances is None:
            self._distances = betas.distance_moments(self.alpha, self.beta, self.cells.scores)[0]
        return self._distances

    def distance_variances(self) -> Floats:
        """Var |theta - s| [R, G, B]."""
        return betas.distance_moments(self.alpha, self.beta, self.cells.scores)[1]

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """See `Beliefs`."""
        cell = runs, groups, outcomes.bins
        self.alpha[cell] += outcomes.correct
        self.beta[cell] += 1 - outcomes.correct
        if self._distances is not None:
            scores = self.cells.scores[groups, outcomes.bins]
            self._distances[cell] = betas.distance_moments(self.alpha[cell], self.beta[cell], scores)[0]

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`; the label counts in every bin by its traffic."""
        cell, share = (self._every, groups), self.cells.shares[groups]
        mean = betas.mean(self.alpha[cell], self.beta[cell])
        self.alpha[cell] += share * mean
        self.beta[cell] += share * (1 - mean)
        self._distances = None


class FittedBins(BinBeliefs):
    """Of the accuracy in every score bin of every group, by a fit of the learned prior.

    Every cell's parameters are those of the Beta with the mean and variance of the mixture; draws are from
    the mixture itself, in which the cells of a group are dependent.
    """

    def __init__(self, fit: CurveFit) -> None:
        shape = fit.cells.scores.shape
        super().__init__(fit.cells, np.ones(shape), np.ones(shape), len(fit.weights))
        self._follow(fit)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Drawn accuracies [R, G, B]."""
        fit = self._fit
        drawn = self._every, components(fit.weights, rng)
        centres = fit.centres[drawn]
        points = rng.standard_normal(centres.shape[:2])[:, :, None]
        centres = special.expit(centres + points * fit.deviations[drawn])
        strengths = fit.strengths[drawn[1]][:, None, None]
        alpha = strengths * np.clip(centres, CENTRE_MARGIN, 1 - CENTRE_MARGIN) + self._correct
        return rng.beta(alpha, strengths + self._labels - alpha)

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """See `Beliefs`; the fit stays as it is."""
        super().observe(runs, groups, outcomes)
        cell = runs, groups, outcomes.bins
        self._labels[cell] += 1
        self._correct[cell] += outcomes.correct

    def expect(self, groups: Indices) -> None:
        """See `Beliefs`; the label counts in every bin by its traffic."""
        cell, share = (self._every, groups), self.cells.shares[groups]
        mean = betas.mean(self.alpha[cell], self.beta[cell])
        super().expect(groups)
        self._labels[cell] += share
        self._correct[cell] += share * mean

    def _follow(self, fit: CurveFit) -> None:
        """Take the posterior from a fit."""
        self._fit = fit
        self.alpha, self.beta = fit.cells_matched()
        self._labels, self._correct = fit.labels.copy(), fit.correct.copy()
        self._distances = None


class LearnedBins(FittedBins):
    """Of the accuracy in every score bin of every group, under the learned prior, refitted as labels come."""

    def __init__(self, prior: LearnedCurve, cells: Cells, runs: int) -> None:
        self._curve = GrowingCurve(prior, cells, runs)
        super().__init__(self._curve.fit)

    def refresh(self) -> None:
        """See `Beliefs`."""
        if self._curve.refit():
            self._follow(self._curve.fit)

    def observe(self, runs: Indices, groups: Indices, outcomes: Outcomes) -> None:
        """See `Beliefs`."""
        if self._curve.observe(runs, groups, outcomes):
            self._follow(self._curve.fit)
        else:
            super().observe(runs, groups, outcomes)
