"""Beliefs about the accuracy in every score bin of every group, that grow label by label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.beliefs import GrowingCurve, Outcomes, components
from service.assessment.curves import CENTRE_MARGIN, LearnedCurve
from service.assessment.laplace import Cells

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


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
        alpha = strengths * np.clip(centres, CENTRE_MARGIN, 1 - CENTRE_MARGIN) + self._curve.correct
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
