"""A fit of the learned prior: its posterior of groups, of all traffic and of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.laplace import Cells, Curvature, Modes, expit
from service.statistics.mixture import BetaMixture

CENTRE_MARGIN = 1e-7  # centres m are clipped to be this far from 0 and 1, where Beta is improper
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
POINTS = tuple(zip(_NODES.tolist(), (_WEIGHTS / _WEIGHTS.sum()).tolist(), strict=True))
"""Gauss-Hermite points of a standard normal, with their weights."""


@dataclass(frozen=True)
class CurveFit:
    """Posterior of the cells of one grouping, for R runs and J grid points."""

    cells: Cells  # scores and traffic
    weights: Floats  # of the grid points [R, J]
    strengths: Floats  # N0 of the grid points [J]
    centres: Floats  # posterior mean of eta [R, J, G, B]
    deviations: Floats  # its standard deviation [R, J, G, B]
    labels: Floats  # effective numbers of labels [R, G, B]
    correct: Floats  # effective numbers of correct ones [R, G, B]
    modes: Modes  # where the next fit may start
    curvature: Curvature  # of the log posterior at the modes

    def groups(self) -> BetaMixture:
        """Posterior of the accuracy of every group, sum_b p_gb theta_gb [R, J, G], as Betas of its moments.

        Within a group, eta of all cells is taken to be perfectly correlated.
        """
        mean, together, within = self._moments("rjgb,gb->rjg", self.cells.shares)
        return BetaMixture(self.weights, *betas.matching(mean, together + within))

    def overall(self) -> BetaMixture:
        """Posterior of the accuracy over all traffic [R, J, 1], as Betas of its moments.

        Groups are correlated through the coefficients, but not perfectly: their covariance is that of the
        delta method, scaled by as much as the delta method underestimates that of perfectly correlated cells.
        """
        shares = self.cells.group_shares[:, None] * self.cells.shares
        mean, together, within = self._moments("rjgb,gb->rj", shares)
        centre = expit(self.centres)
        slopes = shares * self._strengths / self._sizes * centre * (1 - centre)
        by_delta = np.einsum("rjgb,rjgb->rj", slopes, self.deviations) ** 2
        stretch = np.maximum(together / np.maximum(by_delta, np.finfo(float).tiny), 1.0)
        of_curve = self.curvature.variance_of(slopes.reshape(*slopes.shape[:2], -1))
        alpha, beta = betas.matching(mean, stretch * of_curve + within)
        return BetaMixture(self.weights, alpha[:, :, None], beta[:, :, None])

    def bins(self) -> BetaMixture:
        """Posterior of every cell [R, J * Q, G * B]: for every grid point, Q points of eta.

        Given the component, cells are independent Betas.
        """
        runs, points = self.weights.shape
        shape = (runs, points * len(POINTS), self.labels[0].size)
        alphas, totals = [], []
        for point, _ in POINTS:
            centres = self._strengths * self._prior_means(point)
            alphas.append(centres + self.correct[:, None])
            totals.append(np.broadcast_to(self._sizes, centres.shape))
        alpha = np.stack(alphas, axis=2).reshape(shape)
        weights = self.weights[:, :, None] * [weight for _, weight in POINTS]
        return BetaMixture(weights.reshape(runs, -1), alpha, np.stack(totals, axis=2).reshape(shape) - alpha)

    def cells_matched(self) -> tuple[Floats, Floats]:
        """Parameters [R, G, B] of the Betas with the mean and variance of every cell."""
        first, second, within = (np.zeros(self.labels.shape) for _ in range(3))
        for point, weight in POINTS:
            theta = self._cell_means(point)
            mixed = weight * self.weights
            first += np.einsum("rj,rjgb->rgb", mixed, theta)
            second += np.einsum("rj,rjgb->rgb", mixed, theta**2)
            within += np.einsum("rj,rjgb->rgb", mixed, theta * (1 - theta) / (self._sizes + 1))
        return betas.matching(first, np.maximum(second - first**2, 0.0) + within)

    def _moments(self, sums: str, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean of sums of cells by shares, variance by eta, and variance given eta; `sums` is of einsum."""
        first = second = within = np.zeros(1)
        for point, weight in POINTS:
            theta = self._cell_means(point)
            accuracy = np.einsum(sums, theta, shares)
            first = first + weight * accuracy
            second = second + weight * accuracy**2
            theta *= 1 - theta
            theta /= self._sizes + 1
            within = within + weight * np.einsum(sums, theta, shares**2)
        return first, np.maximum(second - first**2, 0.0), within

    @property
    def _strengths(self) -> Floats:
        return self.strengths[:, None, None]

    @property
    def _sizes(self) -> Floats:
        """Alpha + beta of every cell."""
        return self._strengths + self.labels[:, None]

    def _prior_means(self, point: float) -> Floats:
        """The centre m of every cell, with eta this many deviations from its mean."""
        means = expit(self.centres + point * self.deviations)
        return np.clip(means, CENTRE_MARGIN, 1 - CENTRE_MARGIN, out=means)

    def _cell_means(self, point: float) -> Floats:
        """E theta of every cell, given eta."""
        means = self._prior_means(point)
        means *= self._strengths
        means += self.correct[:, None]
        means /= self._sizes
        return means
