"""Under the learned prior: its regression on the logit scale, and the curvature of its posterior.

Coefficients are shared by all groups, offsets belong to one group each, so the matrix of second derivatives
is an arrow: offsets are eliminated one by one, and what is left is three by three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

_SCORE_MARGIN = 1e-4
"""Scores are kept this far from 0 and 1, where their logits would not exist."""

COEFFICIENT_MEANS = np.array([0.0, 1.0, 0.0])
"""Prior means of offset, slope and context: the scores are right."""


@dataclass(frozen=True)
class Cells:
    """What unlabelled traffic tells about the cells of one grouping; arrays are [G, B].

    Attributes:
        shares: traffic of every cell within its group; rows sum to 1, or to 0 without traffic.
        scores: mean score.
        group_shares: traffic of every group [G], summing to 1 (or 0: no traffic at all).
    """

    shares: Floats
    scores: Floats
    group_shares: Floats

    @property
    def group_scores(self) -> Floats:
        """Mean score of every group [G]; 1/2 without traffic."""
        mean: Floats = (self.shares * self.scores).sum(axis=1)
        return np.where(self.shares.any(axis=1), mean, 0.5)


@dataclass(frozen=True)
class Modes:
    """Where a posterior is highest.

    Attributes:
        coefficients: offset, slope and context [R, J, 3].
        offsets: of the groups [R, J, G].
    """

    coefficients: Floats
    offsets: Floats


@dataclass(frozen=True)
class Regressors:
    """What eta is made of, but for the coefficients: eta = pivot + a + b x + k z + u."""

    pivot: float
    scores: Floats
    """x [G, B]"""
    context: Floats
    """z [G]"""

    @classmethod
    def of(cls, cells: Cells) -> Self:
        """From what traffic says."""
        group_scores = cells.group_scores
        pivot = float(special.logit(_inside(np.asarray(cells.group_shares @ group_scores or 0.5))))
        context = special.logit(_inside(group_scores))
        return cls(
            pivot=pivot,
            scores=special.logit(_inside(cells.scores)) - pivot,
            context=context - float(cells.group_shares @ context),
        )

    def eta(self, modes: Modes) -> Floats:
        """Of every cell [R, J, G, B]."""
        offset, slope, context = (modes.coefficients[:, :, i, None] for i in range(3))
        of_group = self.pivot + offset + context * self.context + modes.offsets
        eta: Floats = slope[..., None] * self.scores
        eta += of_group[..., None]
        return eta

    def by_coefficient(self, plain: Floats, scored: Floats) -> Floats:
        """Sums over a group's cells of f times the regressors [..., G, 3], from sums of f and of f x."""
        return np.stack([plain, scored, plain * self.context], axis=-1)


@dataclass(frozen=True)
class Curvature:
    """Minus the second derivatives of the log posterior, group offsets eliminated.

    Attributes:
        regressors: what eta is made of.
        offsets: by a group's offset [R, J, G].
        crossed: by a group's offset and the coefficients [R, J, G, 3].
        coefficients: by the coefficients, group offsets maximised out [R, J, 3, 3].
    """

    regressors: Regressors
    offsets: Floats
    crossed: Floats
    coefficients: Floats

    @classmethod
    def at(cls, regressors: Regressors, information: Floats, precisions: tuple[Floats, Floats]) -> Self:
        """From the labels' information about eta of every cell, and the priors' precisions."""
        of_coefficients, of_offsets = precisions
        scored = information * regressors.scores
        crossed = regressors.by_coefficient(information.sum(axis=-1), scored.sum(axis=-1))
        twice = (scored * regressors.scores).sum(axis=-1)
        offsets = crossed[..., 0] + of_offsets
        coefficients = -np.einsum("rjgp,rjgq->rjpq", crossed / offsets[..., None], crossed)
        plain, score, context = np.moveaxis(crossed, -1, 0)
        z = regressors.context
        for (i, j), entries in {
            (0, 0): plain,
            (0, 1): score,
            (0, 2): context,
            (1, 1): twice,
            (1, 2): score * z,
            (2, 2): context * z,
        }.items():
            total = entries.sum(axis=-1)
            coefficients[..., i, j] += total
            if i != j:
                coefficients[..., j, i] += total
            else:
                coefficients[..., i, i] += of_coefficients[..., i]
        return cls(regressors, offsets, crossed, coefficients)

    @cached_property
    def covariance(self) -> Floats:
        """Of the coefficients [R, J, 3, 3]."""
        return np.asarray(np.linalg.inv(self.coefficients), np.float64)

    @cached_property
    def pull(self) -> Floats:
        """How far a group's offset moves back as the coefficients move [R, J, G, 3]."""
        return np.asarray(self.crossed / self.offsets[..., None], np.float64)

    def offset_variances(self) -> Floats:
        """Of the offset of every group [R, J, G]."""
        pull = self.pull
        return np.asarray(
            1 / self.offsets + np.einsum("rjgp,rjpq,rjgq->rjg", pull, self.covariance, pull), np.float64
        )

    def log_determinant(self) -> Floats:
        """Of the whole matrix [R, J]."""
        of_coefficients = np.linalg.slogdet(self.coefficients)[1]
        return np.asarray(of_coefficients + np.log(self.offsets).sum(axis=-1), np.float64)

    def eta_variances(self) -> Floats:
        """Of eta of every cell [R, J, G, B]."""
        pull, covariance = self.pull, self.covariance
        # eta_gb = (1, x, z) . coefficients + offset, and the offset moves by -pull . coefficients
        base = self.regressors.by_coefficient(np.ones_like(self.offsets), np.zeros_like(self.offsets)) - pull
        scored = np.einsum("rjgp,rjp->rjg", base, covariance[..., 1])
        flat = np.einsum("rjgp,rjpq,rjgq->rjg", base, covariance, base) + 1 / self.offsets
        x = self.regressors.scores
        variances: Floats = covariance[..., 1, 1][..., None, None] * x**2
        variances += 2 * scored[..., None] * x
        variances += flat[..., None]
        return variances

    def variance_of(self, slopes: Floats) -> Floats:
        """Variance of sum_gb slopes_gb eta_gb [R, J]."""
        of_group = slopes.sum(axis=-1)
        direct = self.regressors.by_coefficient(of_group, (slopes * self.regressors.scores).sum(axis=-1))
        by_coefficient = (direct - of_group[..., None] * self.pull).sum(axis=-2)
        solved = np.linalg.solve(self.coefficients, by_coefficient[..., None])[..., 0]
        own = (of_group**2 / self.offsets).sum(axis=-1)
        return np.asarray((by_coefficient * solved).sum(axis=-1) + own, np.float64)


def _inside(scores: Floats) -> Floats:
    return np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)
