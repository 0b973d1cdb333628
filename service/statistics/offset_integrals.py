"""Integrals of the learned prior's posterior over group offsets, whose tails are not normal.

Given the coefficients, groups are independent, and every offset has an integral of its own. It is computed by
a trapezoid rule in arsinh of the deviations from the mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.laplace import COEFFICIENT_DEVIATIONS, Curvature, Modes, Regressors, log_t

_NODES = np.sinh(0.7 * np.arange(-7, 8))  # deviations; 67 on either side, as t2 has mass far away


@dataclass(frozen=True)
class OffsetIntegrals:
    """The posterior of every offset alone, given the coefficients, for R runs, J grid points and G groups."""

    modes: Modes
    curvature: Curvature  # at the modes
    variances: Floats  # squared scales of the offsets' t priors [J, G or 1]
    tails: Floats  # their degrees of freedom [J, 1]
    log_integrals: Floats  # of the posterior density, relative to that at the mode, over deviations [R, J, G]
    weights: Floats  # of the nodes [nodes, R, J, G]

    @classmethod
    def of(
        cls,
        regressors: Regressors,
        modes: Modes,
        curvature: Curvature,
        *,
        information: tuple[Floats, Floats],
        variances: Floats,
        tails: Floats,
    ) -> OffsetIntegrals:
        """From the labels of every cell, and the correct ones [R, J, N], whose regressors are given."""
        worth, right = information
        eta, scales = regressors.eta(modes), np.sqrt(variances)
        deviations = 1 / np.sqrt(curvature.offsets)
        log_densities = np.empty((len(_NODES), *deviations.shape))
        for log_density, node in zip(log_densities, _NODES, strict=True):
            moved = node * deviations
            at = eta + regressors.spread(moved)
            likelihood = right * at
            # log(1 + e^eta), several times as fast as logaddexp; eta is far from where e^eta overflows.
            np.exp(at, out=at)
            at += 1
            np.log(at, out=at)
            at *= worth
            likelihood -= at
            prior = log_t(modes.offsets + moved, scales, tails)
            log_density[:] = regressors.by_group(likelihood) + prior + 0.5 * np.log1p(node**2)
        integrals = special.logsumexp(log_densities, axis=0)
        weights = np.exp(log_densities - integrals)
        return cls(modes, curvature, variances, tails, integrals - log_densities[len(_NODES) // 2], weights)

    def corrected(self) -> tuple[Modes, Curvature]:
        """The modes and the curvature, with the exact mean and variance of every offset.

        A normal tangent to the prior has half the variance of t4, or less, where labels are few, and draws a
        group that is unlike the others too close to them.
        """
        curvature = self.curvature
        shift = np.tensordot(_NODES, self.weights, 1)
        precisions = curvature.offsets / (np.tensordot(_NODES**2, self.weights, 1) - shift**2)
        # The coefficients pull at an offset as before.
        crossed = curvature.pull * precisions[..., None, :]
        exact = replace(curvature, offsets=precisions, crossed=crossed)
        offsets = self.modes.offsets + shift / np.sqrt(curvature.offsets)
        return Modes(self.modes.coefficients, offsets), exact

    def log_integral(self) -> Floats:
        """Log integral [R, J] over offsets and coefficients, relative to the density at the modes.

        Over the coefficients the integrated likelihood is taken to be normal. That of a group depends on how
        far its offset is from the curve alone, so that its first two derivatives are moments of those of the
        log prior of the offset (integration by parts).
        """
        curvature, squares, tails = self.curvature, self.tails * self.variances, self.tails
        at = self.modes.offsets + _NODES[:, None, None, None] / np.sqrt(curvature.offsets)
        pull = (tails + 1) * at / (squares + at**2)
        steepness = (tails + 1) * (squares - at**2) / (squares + at**2) ** 2
        mean = (self.weights * pull).sum(axis=0)
        information = (self.weights * (steepness - pull**2)).sum(axis=0) + mean**2
        # Of a group that is either near the curve or far from it, it is negative.
        np.maximum(information, 0.0, out=information)
        plain, scored = curvature.crossed[..., 0, :], curvature.crossed[..., 1, :]
        regressors = np.stack(
            [
                np.ones_like(plain),
                np.divide(scored, plain, out=np.zeros_like(plain), where=plain > 0),
                np.broadcast_to(curvature.regressors.context, plain.shape),
            ],
            axis=-2,
        )
        # At the modes the priors' pulls at coefficients and offsets balance the likelihood's.
        mean -= (tails + 1) * self.modes.offsets / (squares + self.modes.offsets**2)
        slope = (regressors @ mean[..., None])[..., 0]
        bend = (regressors * information[..., None, :]) @ np.swapaxes(regressors, -1, -2)
        bend += np.diag(COEFFICIENT_DEVIATIONS**-2)
        gain = (slope * np.linalg.solve(bend, slope[..., None])[..., 0]).sum(axis=-1)
        of_coefficients = 0.5 * (gain - np.linalg.slogdet(bend)[1])
        of_offsets = (self.log_integrals - 0.5 * np.log(curvature.offsets)).sum(axis=-1)
        return np.asarray(of_coefficients + of_offsets, np.float64)
