"""The learned prior: a calibration curve with random effects of groups, fitted to the labels.

Groups share one calibration curve, each deviates from it a little, and cells (score bins of a group) scatter
around their group's curve:

    eta_gb = c + a + b (logit s_gb - c) + k (logit s_g - d) + u_g,
    theta_gb ~ Beta(N0 m_gb, N0 (1 - m_gb)),  m_gb = expit(eta_gb),

with s_gb the mean score of a cell, s_g that of its group, c the logit of the mean score of all traffic, and d
the mean of logit s_g. Given the spread sigma and the tail nu of the group offsets u_g ~ t_nu(0, sigma), and
the strength N0, the posterior of offset a, slope b, context k and all u_g is approximated as normal, with the
exact mean and variance of every u_g given the coefficients; sigma with nu, and N0, are integrated out on a
grid by their marginal likelihood (an integrated nested Laplace approximation: Rue, Martino, Chopin, JRSS B
2009). The tails of t let one group differ from the others, as when one camera breaks. Given eta, cells are
conjugate, so labels always override the curve.

Everything works on any number of independent runs at once, on the first axis [R].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics.curve_fit import CENTRE_MARGIN, POINTS, CurveFit
from service.statistics.laplace import (
    COEFFICIENT_DEVIATIONS,
    COEFFICIENT_MEANS,
    Cells,
    Curvature,
    Modes,
    Regressors,
    expit,
    log_t,
)
from service.statistics.offset_integrals import OffsetIntegrals

_LONGEST_STEP = 2.0  # Newton steps move eta of no cell farther: from far away a full step would overshoot
_CLOSE_ENOUGH = 0.01  # logits of a step that ends the search; posterior deviations are ten times as wide
_CHANGED_SPREAD = 1.0  # logits added to the scale of a changed group's offset: others tell little of it


@dataclass(frozen=True)
class LearnedCurve:
    """The hyperparameters of the learned prior."""

    # grid of sigma and nu, equally probable: groups are alike but for a few, alike, unlike, or very unlike
    spreads: tuple[tuple[float, float], ...] = ((0.2, 2.0), (0.25, 4.0), (0.7, 4.0), (1.5, 8.0))
    strengths: tuple[float, ...] = (3.0, 16.0, 90.0, 600.0)  # grid of N0, equally probable
    steps: int = 15  # Newton steps to the mode, at most
    refinements: int = 3  # steps from the mode to the mean

    @property
    def grid(self) -> tuple[Floats, Floats, Floats]:
        """Sigma, nu and N0 of the grid points [J]."""
        spreads, tails = np.repeat(self.spreads, len(self.strengths), axis=0).T
        return spreads, tails, np.tile(self.strengths, len(self.spreads))

    def fit(self, cells: Cells, labels: Floats, correct: Floats, start: Modes | None = None) -> CurveFit:
        """Posterior of all cells, given effective numbers of labels, and of correct ones [R, G, B].

        With `start`, the modes of a fit to similar labels, most of the work is saved.
        """
        search = Search.of(self, cells, labels, correct)
        return search.fit(search.find_modes(start))


class SearchResult(NamedTuple):
    """The modes that a search has found."""

    modes: Modes  # posterior modes
    curvature: Curvature  # of the log posterior there, of labelled cells alone
    weights: Floats  # of the grid points [R, J], by their marginal likelihood

    def part(self, points: Indices) -> Self:
        """Of some of the grid points."""
        weights = self.weights[:, points]
        return type(self)(
            self.modes.part(points), self.curvature.part(points), weights / weights.sum(axis=1, keepdims=True)
        )


@dataclass(frozen=True)
class Search:
    """The search for the posterior given one set of labels, for all runs and some grid points at once.

    Only cells with labels in some run matter to the mode: internally, these form the last axis [R, J, N].
    """

    prior: LearnedCurve  # the hyperparameters
    spreads: Floats  # sigma of the grid points [J]
    tails: Floats  # nu of the grid points [J]
    strengths: Floats  # N0 of the grid points [J]
    cells: Cells  # scores and traffic
    labels: Floats  # effective numbers of labels [R, G, B]
    correct: Floats  # effective numbers of correct ones [R, G, B]
    regressors: Regressors  # of all cells

    @classmethod
    def of(cls, prior: LearnedCurve, cells: Cells, labels: Floats, correct: Floats) -> Self:
        """Over the whole grid, given effective numbers of labels, and of correct ones [R, G, B]."""
        return cls(prior, *prior.grid, cells, labels, correct, Regressors.of(cells))

    def part(self, points: Indices) -> Self:
        """Over some of the grid points."""
        spreads, tails, strengths = (grid[points] for grid in (self.spreads, self.tails, self.strengths))
        return replace(self, spreads=spreads, tails=tails, strengths=strengths)

    def find_modes(self, start: Modes | None = None) -> SearchResult:
        """The modes by Newton's method, starting from given ones, or from a calibrated curve."""
        if start is None:
            runs, points, groups = len(self.labels), len(self.spreads), len(self.cells.group_shares)
            start = Modes(np.tile(COEFFICIENT_MEANS, (runs, points, 1)), np.zeros((runs, points, groups)))
        modes, curvature = self._mode(start)
        return SearchResult(modes, curvature, self._weights(modes, curvature))

    def fit(self, result: SearchResult) -> CurveFit:
        """Posterior of all cells, given the modes."""
        means, curvature = result.modes, result.curvature
        for _ in range(self.prior.refinements):
            means, curvature = self._refine(means, curvature)
        means, curvature = self._integrals(means, replace(curvature, regressors=self.regressors)).corrected()
        shape = (*result.weights.shape, *self.cells.scores.shape)
        return CurveFit(
            cells=self.cells,
            weights=result.weights,
            strengths=self.strengths,
            centres=self.regressors.eta(means).reshape(shape),
            deviations=np.sqrt(curvature.eta_variances()).reshape(shape),
            labels=self.labels,
            correct=self.correct,
            modes=result.modes,
            curvature=curvature,
        )

    @cached_property
    def _labelled_cells(self) -> Indices:
        """Cells that have labels [N]."""
        return np.flatnonzero(self.labels.any(axis=0))

    @cached_property
    def _regressors(self) -> Regressors:
        return self.regressors.part(self._labelled_cells)

    def _counts(self, counts: Floats) -> Floats:
        """Labels [R, G, B] of the cells that have some [R, 1, N]."""
        return counts.reshape(len(counts), 1, -1)[..., self._labelled_cells]

    @cached_property
    def _information(self) -> tuple[Floats, Floats]:
        """Numbers of independent labels as informative as beta-binomial counts; of them, the correct ones."""
        sizes, labels = self.strengths[:, None], self._counts(self.labels)
        each = (sizes + 1) / (sizes + labels)
        return each * labels, each * self._counts(self.correct)

    def _mode(self, modes: Modes) -> tuple[Modes, Curvature]:
        """Posterior mode by Newton's method."""
        worth, right = self._information
        for _ in range(self.prior.steps):
            centres = expit(self._regressors.eta(modes))
            expected = worth * centres
            surplus = right - expected
            precisions = self._precisions(modes.offsets**2)
            np.subtract(1, centres, out=centres)
            expected *= centres
            curvature = Curvature.at(self._regressors, expected, precisions)
            modes, step = self._step(modes, curvature, surplus, precisions)
            if step < _CLOSE_ENOUGH:
                break
        return modes, curvature

    def _refine(self, means: Modes, curvature: Curvature) -> tuple[Modes, Curvature]:
        """A step towards the normal distribution nearest to the posterior (Opper, Archambeau 2009).

        Where most labels are correct the posterior leans towards 1, and the normal distribution around its
        mode would underestimate every accuracy.
        """
        worth, right = self._information
        eta, deviations = self._regressors.eta(means), np.sqrt(curvature.eta_variances())
        centres, spread = np.zeros_like(eta), np.zeros_like(eta)
        for point, weight in POINTS:
            at = expit(eta + point * deviations)
            centres += weight * at
            at -= at**2
            at *= weight
            spread += at
        precisions = self._precisions(means.offsets**2 + curvature.offset_variances())
        refined = Curvature.at(self._regressors, worth * spread, precisions)
        return self._step(means, refined, right - worth * centres, precisions)[0], refined

    def _integrals(self, modes: Modes, curvature: Curvature) -> OffsetIntegrals:
        return OffsetIntegrals.of(
            self._regressors,
            modes,
            curvature,
            information=self._information,
            variances=self._group_variances,
            tails=self.tails[:, None],
        )

    def _precisions(self, group_squares: Floats) -> tuple[Floats, Floats]:
        """Precisions of the priors of coefficients, and of the normals tangent to those of group offsets."""
        tails = self.tails[:, None]
        of_groups = (tails + 1) / (tails * self._group_variances + group_squares)
        return COEFFICIENT_DEVIATIONS**-2, of_groups

    @cached_property
    def _group_variances(self) -> Floats:
        """Squared scales of the group offsets' prior [J, G or 1], larger where a group has changed."""
        variances: Floats = self.spreads[:, None] ** 2
        if self.cells.changed is not None:
            # The variance of a mixture: of groups that have changed, and of those that have not.
            variances = variances + self.cells.changed * _CHANGED_SPREAD**2
        return variances

    def _step(
        self, modes: Modes, curvature: Curvature, surplus: Floats, precisions: tuple[Floats, Floats]
    ) -> tuple[Modes, float]:
        """One Newton step, and how far it moves eta of any cell before it is cut."""
        of_coefficients, of_offsets = precisions
        regressors = self._regressors
        by_group = regressors.by_group(surplus)
        by_offset = by_group - of_offsets * modes.offsets
        scored = regressors.by_group(surplus * regressors.scores)
        slope = regressors.by_coefficient(by_group, scored).sum(axis=-1)
        slope -= of_coefficients * (modes.coefficients - COEFFICIENT_MEANS)
        slope -= (curvature.crossed @ (by_offset / curvature.offsets)[..., None])[..., 0]
        change = np.linalg.solve(curvature.coefficients, slope[..., None])[..., 0]
        moved = (by_offset - (change[..., None, :] @ curvature.crossed)[..., 0, :]) / curvature.offsets
        # Of all cells, whether or not they have labels.
        farthest = self.regressors.farthest(Modes(change, moved))
        cut = (_LONGEST_STEP / np.maximum(farthest, _LONGEST_STEP))[..., None]
        return Modes(modes.coefficients + cut * change, modes.offsets + cut * moved), float(farthest.max())

    def _weights(self, modes: Modes, curvature: Curvature) -> Floats:
        """Posterior weight of every grid point [R, J]: its marginal likelihood."""
        centres = expit(self._regressors.eta(modes))
        np.clip(centres, CENTRE_MARGIN, 1 - CENTRE_MARGIN, out=centres)
        sizes = self.strengths[:, None]
        correct, labels = self._counts(self.correct), self._counts(self.labels)
        log_weights = -log_rising(sizes, labels).sum(axis=-1)
        for counts, means in ((correct, centres), (np.maximum(labels - correct, 0.0), 1 - centres)):
            some = np.flatnonzero(counts.any(axis=(0, 1)))
            log_weights += log_rising(sizes * means[..., some], counts[..., some]).sum(axis=-1)
        standard = (modes.coefficients - COEFFICIENT_MEANS) / COEFFICIENT_DEVIATIONS
        log_weights -= 0.5 * (standard**2).sum(axis=-1)
        scales, tails = np.sqrt(self._group_variances), self.tails[:, None]
        log_weights += log_t(modes.offsets, scales, tails).sum(axis=-1)
        log_weights += self._integrals(modes, curvature).log_integral()
        return np.asarray(special.softmax(log_weights, axis=1), np.float64)


def log_rising(start: Floats, count: Floats) -> Floats:
    """Logarithm of start (start + 1) ... (start + count - 1), for real counts: of a ratio of gammas.

    The log marginal likelihood of effective counts under Beta(alpha, beta), without the binomial coefficient,
    is that of the correct ones from alpha and of the wrong ones from beta, minus that of all from alpha +
    beta: seven times faster than with beta functions, and 0 without labels.
    """
    return special.gammaln(start + count) - special.gammaln(start)
