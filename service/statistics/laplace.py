"""The learned prior's regression on the logit scale, and the curvature of its log posterior.

All groups share the coefficients, and each has an offset of its own, so the Hessian is an arrow matrix:
offsets are eliminated one by one, and three by three remain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices

_SCORE_MARGIN = 1e-4  # scores are clipped to be this far from 0 and 1, where logits are infinite
COEFFICIENT_MEANS = np.array([-0.5, 1.0, 0.0])
COEFFICIENT_DEVIATIONS = np.array([1.75, 0.5, 0.5])
"""Of the normal priors of offset, slope and context.

They reach where overconfident networks are. Over nine recorded classifiers (docs/coverage.md) the logit of
accuracy minus that of the mean score is -0.7 on average, with a standard deviation of 1.5; slopes are 1.0 on
average, with a standard deviation of 0.6. Without any one of them the mean offset is at most 0.3 away.
"""


@dataclass(frozen=True)
class Cells:
    """Scores and traffic of the cells of one grouping; arrays are [G, B]."""

    shares: Floats  # traffic of every cell within its group; rows sum to 1, or to 0 without traffic
    scores: Floats  # mean score
    group_shares: Floats  # traffic of every group [G], summing to 1 (or 0: no traffic at all)
    # probability that a group's accuracy has changed, and is unlike the others [G]; None if not estimated
    changed: Floats | None = None

    @property
    def group_scores(self) -> Floats:
        """Mean score of every group [G]; 1/2 without traffic."""
        mean: Floats = (self.shares * self.scores).sum(axis=1)
        return np.where(self.shares.any(axis=1), mean, 0.5)


@dataclass(frozen=True)
class Modes:
    """Posterior modes."""

    coefficients: Floats  # offset, slope and context [R, J, 3]
    offsets: Floats  # of the groups [R, J, G]

    def part(self, points: Indices) -> Self:
        """Of some of the grid points."""
        return type(self)(self.coefficients[:, points], self.offsets[:, points])


@dataclass(frozen=True)
class Regressors:
    """The regressors of eta = pivot + a + b x + k z + u, for all cells or some [N], ordered by group."""

    pivot: float
    scores: Floats  # x [N]
    context: Floats  # z [G]
    groups: Indices  # group of every cell, ascending [N]

    @classmethod
    def of(cls, cells: Cells) -> Self:
        """Of all cells."""
        group_scores = cells.group_scores
        pivot = float(special.logit(_inside(np.asarray(cells.group_shares @ group_scores or 0.5))))
        context = special.logit(_inside(group_scores))
        groups, bins = cells.scores.shape
        return cls(
            pivot=pivot,
            scores=(special.logit(_inside(cells.scores)) - pivot).ravel(),
            context=context - float(cells.group_shares @ context),
            groups=np.repeat(np.arange(groups), bins),
        )

    def part(self, which: Indices) -> Self:
        """Of some of the cells, in their order."""
        return replace(self, scores=self.scores[which], groups=self.groups[which])

    def eta(self, modes: Modes) -> Floats:
        """Eta of every cell [R, J, N]."""
        eta: Floats = self.spread(self.pivot + self._of_groups(modes))
        eta += modes.coefficients[..., 1, None] * self.scores
        return eta

    def farthest(self, change: Modes) -> Floats:
        """Largest change of eta of any cell [R, J], which is at a group's lowest or highest score."""
        of_groups, slope = self._of_groups(change), change.coefficients[..., 1, None]
        ends = (np.abs(of_groups + slope * end).max(axis=-1) for end in self._extremes)
        return np.asarray(np.maximum(*ends), np.float64)

    def _of_groups(self, modes: Modes) -> Floats:
        """The part of eta that a group's cells share [R, J, G], without the pivot."""
        common: Floats = modes.coefficients[..., 2, None] * self.context
        common += modes.coefficients[..., 0, None] + modes.offsets
        return common

    def spread(self, values: Floats) -> Floats:
        """Values of groups [..., G], repeated for their cells [..., N]."""
        return np.take(values, self.groups, axis=-1)

    def by_group(self, values: Floats) -> Floats:
        """Values of cells [..., N], summed by group [..., G]."""
        first, present = self._first
        sums = np.add.reduceat(values, first, axis=-1) if first.size else values
        if first.size == self.context.size:
            return sums
        every = np.zeros((*values.shape[:-1], self.context.size))
        every[..., present] = sums
        return every

    @cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """The lowest and the highest x of every group [G]."""
        first = self._first[0]
        return np.minimum.reduceat(self.scores, first), np.maximum.reduceat(self.scores, first)

    @cached_property
    def _first(self) -> tuple[Indices, Indices]:
        """First cells of the groups that have any, and these groups."""
        first = np.flatnonzero(np.diff(self.groups, prepend=-1))
        return first, self.groups[first]

    def by_coefficient(self, plain: Floats, scored: Floats) -> Floats:
        """Sums over a group's cells of f times the regressors [..., 3, G], from sums of f and of f x."""
        return np.stack([plain, scored, plain * self.context], axis=-2)


@dataclass(frozen=True)
class Curvature:
    """The negative Hessian of the log posterior, with group offsets eliminated."""

    regressors: Regressors
    offsets: Floats  # by a group's offset [R, J, G]
    crossed: Floats  # by a group's offset and the coefficients [R, J, 3, G]
    coefficients: Floats  # by the coefficients, group offsets maximised out [R, J, 3, 3]

    @classmethod
    def at(cls, regressors: Regressors, information: Floats, precisions: tuple[Floats, Floats]) -> Self:
        """From the labels' information about eta of every cell [R, J, N], and the priors' precisions."""
        of_coefficients, of_offsets = precisions
        scored = information * regressors.scores
        crossed = regressors.by_coefficient(regressors.by_group(information), regressors.by_group(scored))
        offsets = crossed[..., 0, :] + of_offsets
        # matmul is several times as fast as einsum.
        coefficients = -(crossed / offsets[..., None, :]) @ np.swapaxes(crossed, -1, -2)
        plain, score, context = np.moveaxis(crossed, -2, 0)
        z = regressors.context
        for (i, j), total in {
            (0, 0): plain.sum(axis=-1),
            (0, 1): score.sum(axis=-1),
            (0, 2): context.sum(axis=-1),
            (1, 1): scored @ regressors.scores,
            (1, 2): score @ z,
            (2, 2): context @ z,
        }.items():
            coefficients[..., i, j] += total
            if i != j:
                coefficients[..., j, i] += total
            else:
                coefficients[..., i, i] += of_coefficients[..., i]
        return cls(regressors, offsets, crossed, coefficients)

    def part(self, points: Indices) -> Self:
        """Of some of the grid points."""
        return type(self)(
            self.regressors, self.offsets[:, points], self.crossed[:, points], self.coefficients[:, points]
        )

    @cached_property
    def covariance(self) -> Floats:
        """Of the coefficients [R, J, 3, 3]."""
        return np.asarray(np.linalg.inv(self.coefficients), np.float64)

    @cached_property
    def pull(self) -> Floats:
        """How far a group's offset moves back as the coefficients move [R, J, 3, G]."""
        return np.asarray(self.crossed / self.offsets[..., None, :], np.float64)

    def offset_variances(self) -> Floats:
        """Of the offset of every group [R, J, G]."""
        return np.asarray(1 / self.offsets + _squared(self.pull, self.covariance), np.float64)

    def eta_variances(self) -> Floats:
        """Of eta of every cell [R, J, N]."""
        pull, covariance = self.pull, self.covariance
        # eta_gb = (1, x, z) . coefficients + offset, and the offset moves by -pull . coefficients
        base = self.regressors.by_coefficient(np.ones_like(self.offsets), np.zeros_like(self.offsets)) - pull
        scored = (covariance[..., 1, None, :] @ base)[..., 0, :]
        flat = _squared(base, covariance) + 1 / self.offsets
        x = self.regressors.scores
        variances: Floats = self.regressors.spread(2 * scored)
        variances += covariance[..., 1, 1, None] * x
        variances *= x
        variances += self.regressors.spread(flat)
        return variances

    def variance_of(self, slopes: Floats) -> Floats:
        """Variance of the sum over cells of slopes [R, J, N] times eta [R, J]."""
        of_group = self.regressors.by_group(slopes)
        scored = self.regressors.by_group(slopes * self.regressors.scores)
        direct = self.regressors.by_coefficient(of_group, scored)
        by_coefficient = (direct - of_group[..., None, :] * self.pull).sum(axis=-1)
        solved = np.linalg.solve(self.coefficients, by_coefficient[..., None])[..., 0]
        own = (of_group**2 / self.offsets).sum(axis=-1)
        return np.asarray((by_coefficient * solved).sum(axis=-1) + own, np.float64)


def expit(values: Floats) -> Floats:
    """The logistic function: scipy's, several times as fast for large arrays."""
    found = np.negative(values)
    # 1 / infinity is as near to 0 as can be.
    with np.errstate(over="ignore"):
        np.exp(found, out=found)
    found += 1
    return np.reciprocal(found, out=found)


def log_t(values: Floats, scale: Floats, freedom: Floats) -> Floats:
    """Log density of Student's t, up to a constant."""
    norm = special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2) - 0.5 * np.log(freedom)
    tail = (freedom + 1) / 2 * np.log1p((values / scale) ** 2 / freedom)
    return np.asarray(norm - tail - np.log(scale), np.float64)


def _squared(vectors: Floats, matrix: Floats) -> Floats:
    """The quadratic form of every vector [..., 3, G] under a symmetric matrix [..., 3, 3]."""
    return np.asarray((matrix @ vectors * vectors).sum(axis=-2), np.float64)


def _inside(scores: Floats) -> Floats:
    return np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)
