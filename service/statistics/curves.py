"""The learned prior: labels tell how far the scores are off, and how much groups and bins differ.

Groups share one calibration curve, differ from it a little, and cells (score bins of a group) scatter around
their group's curve:

    eta_gb = c + a + b (logit s_gb - c) + k (logit s_g - d) + u_g,
    theta_gb ~ Beta(N0 m_gb, N0 (1 - m_gb)),  m_gb = expit(eta_gb),

with s_gb the mean score of a cell, s_g that of its group, c the logit of the mean score of all traffic, and d
the mean of logit s_g. Given the spread sigma of the group offsets u_g ~ t4(0, sigma) and the strength N0, the
posterior of offset a, slope b, context k and all u_g is taken as normal; sigma and N0 are integrated out on a
grid by their marginal likelihood (an integrated nested Laplace approximation: Rue, Martino, Chopin, JRSS B
2009). The tails of t let one group be unlike the others, as when one camera breaks. Given eta, cells are
conjugate, so labels always overrule the curve.

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
from service.statistics.laplace import COEFFICIENT_MEANS, Cells, Curvature, Modes, Regressors, expit

_LONGEST_STEP = 2.0
"""Newton steps are cut so that eta of no cell moves farther: from far away a full one would overshoot."""

_CLOSE_ENOUGH = 0.01
"""Steps shorter than this, in logits, end the search; posterior deviations are ten times as wide."""

_OFFSET_TAIL = 3.0
"""Degrees of freedom of the offset's prior: models are mostly nearly calibrated, and now and then far off."""

_CHANGED_SPREAD = 1.0
"""Scale that a change adds to a group's offset, in logits: others tell little of one that has changed."""

_GROUP_TAIL = 4.0
"""Degrees of freedom of the group offsets' prior."""


@dataclass(frozen=True)
class LearnedCurve:
    """The learned prior.

    Attributes:
        offset_scale: a ~ t3(0, offset_scale).
        slope_deviation: b ~ Normal(1, slope_deviation).
        context_deviation: k ~ Normal(0, context_deviation).
        spreads: grid of sigma, each as likely.
        strengths: grid of N0, each as likely.
        steps: Newton steps to the mode, at most.
        refinements: steps from the mode to the mean.
    """

    offset_scale: float = 1.0
    slope_deviation: float = 0.5
    context_deviation: float = 0.5
    spreads: tuple[float, ...] = (0.2, 0.45, 1.0)
    strengths: tuple[float, ...] = (3.0, 12.0, 50.0, 200.0, 1000.0)
    steps: int = 15
    refinements: int = 3

    def fit(self, cells: Cells, labels: Floats, correct: Floats, start: Modes | None = None) -> CurveFit:
        """Beliefs about all cells, given what labels say.

        Args:
            cells: what traffic says.
            labels: effective numbers of labels [R, G, B].
            correct: effective numbers of correct ones [R, G, B].
            start: modes of an earlier fit to similar labels; saves most of the work.
        """
        search = Search.of(self, cells, labels, correct)
        return search.fit(search.found(start))


class Found(NamedTuple):
    """The modes that a search has found.

    Attributes:
        modes: where the posterior is highest.
        curvature: of the posterior there, which knows labelled cells alone.
        weights: of the grid points [R, J], by their marginal likelihood.
    """

    modes: Modes
    curvature: Curvature
    weights: Floats

    def part(self, points: Indices) -> Self:
        """Of some of the grid points."""
        weights = self.weights[:, points]
        return type(self)(
            self.modes.part(points), self.curvature.part(points), weights / weights.sum(axis=1, keepdims=True)
        )


@dataclass(frozen=True)
class Search:
    """The search for the posterior of one set of labels, for all runs and some grid points at once.

    Only cells that have labels in some run say where it is: within, these stand in a row, and arrays are
    [R, J, N].

    Attributes:
        prior: the learned prior.
        spreads: sigma of the grid points [J].
        strengths: N0 of the grid points [J].
        cells: what traffic says.
        labels: effective numbers of labels [R, G, B].
        correct: effective numbers of correct ones [R, G, B].
        regressors: of all cells.
    """

    prior: LearnedCurve
    spreads: Floats
    strengths: Floats
    cells: Cells
    labels: Floats
    correct: Floats
    regressors: Regressors

    @classmethod
    def of(cls, prior: LearnedCurve, cells: Cells, labels: Floats, correct: Floats) -> Self:
        """Over the whole grid.

        Args:
            prior: the learned prior.
            cells: what traffic says.
            labels: effective numbers of labels [R, G, B].
            correct: effective numbers of correct ones [R, G, B].
        """
        spreads, strengths = np.meshgrid(prior.spreads, prior.strengths, indexing="ij")
        return cls(prior, spreads.ravel(), strengths.ravel(), cells, labels, correct, Regressors.of(cells))

    def part(self, points: Indices) -> Self:
        """Over some of the grid points."""
        return replace(self, spreads=self.spreads[points], strengths=self.strengths[points])

    def found(self, start: Modes | None = None) -> Found:
        """The modes, by Newton's method.

        Args:
            start: from where.
        """
        if start is None:
            runs, points, groups = len(self.labels), len(self.spreads), len(self.cells.group_shares)
            start = Modes(np.tile(COEFFICIENT_MEANS, (runs, points, 1)), np.zeros((runs, points, groups)))
        modes, curvature = self._mode(start)
        return Found(modes, curvature, self._weights(modes, curvature))

    def fit(self, found: Found) -> CurveFit:
        """Beliefs about all cells.

        Args:
            found: the modes.
        """
        means, curvature = found.modes, found.curvature
        for _ in range(self.prior.refinements):
            means, curvature = self._refined(means, curvature)
        curvature = replace(curvature, regressors=self.regressors)
        shape = (*found.weights.shape, *self.cells.scores.shape)
        return CurveFit(
            cells=self.cells,
            weights=found.weights,
            strengths=self.strengths,
            centres=self.regressors.eta(means).reshape(shape),
            deviations=np.sqrt(curvature.eta_variances()).reshape(shape),
            labels=self.labels,
            correct=self.correct,
            modes=found.modes,
            curvature=curvature,
        )

    @cached_property
    def _where(self) -> Indices:
        """Which cells have labels [N]."""
        return np.flatnonzero(self.labels.any(axis=0))

    @cached_property
    def _regressors(self) -> Regressors:
        return self.regressors.part(self._where)

    def _counts(self, counts: Floats) -> Floats:
        """Of labels [R, G, B], those of cells that have some [R, 1, N]."""
        return counts.reshape(len(counts), 1, -1)[..., self._where]

    @cached_property
    def _informing(self) -> tuple[Floats, Floats]:
        """Independent labels that tell as much as a beta-binomial count does; the correct ones of them."""
        sizes, labels = self.strengths[:, None], self._counts(self.labels)
        each = (sizes + 1) / (sizes + labels)
        return each * labels, each * self._counts(self.correct)

    def _mode(self, modes: Modes) -> tuple[Modes, Curvature]:
        """Where the posterior is highest, by Newton's method."""
        worth, right = self._informing
        for _ in range(self.prior.steps):
            centres = expit(self._regressors.eta(modes))
            expected = worth * centres
            surplus = right - expected
            precisions = self._precisions(modes.coefficients[..., 0] ** 2, modes.offsets**2)
            np.subtract(1, centres, out=centres)
            expected *= centres
            curvature = Curvature.at(self._regressors, expected, precisions)
            modes, step = self._step(modes, curvature, surplus, precisions)
            if step < _CLOSE_ENOUGH:
                break
        return modes, curvature

    def _refined(self, means: Modes, curvature: Curvature) -> tuple[Modes, Curvature]:
        """A step towards the normal distribution nearest to the posterior (Opper, Archambeau 2009).

        Where most labels are correct the posterior leans towards 1, and the normal distribution around its
        mode would say too little of every accuracy.
        """
        worth, right = self._informing
        eta, deviations = self._regressors.eta(means), np.sqrt(curvature.eta_variances())
        centres, spread = np.zeros_like(eta), np.zeros_like(eta)
        for point, weight in POINTS:
            at = expit(eta + point * deviations)
            centres += weight * at
            at -= at**2
            at *= weight
            spread += at
        precisions = self._precisions(
            means.coefficients[..., 0] ** 2 + curvature.covariance[..., 0, 0],
            means.offsets**2 + curvature.offset_variances(),
        )
        refined = Curvature.at(self._regressors, worth * spread, precisions)
        return self._step(means, refined, right - worth * centres, precisions)[0], refined

    def _precisions(self, offset_squares: Floats, group_squares: Floats) -> tuple[Floats, Floats]:
        """Of the normal distributions that touch the priors there: of the coefficients, of group offsets."""
        prior = self.prior
        of_coefficients = np.empty((*offset_squares.shape, 3))
        of_coefficients[..., 0] = (_OFFSET_TAIL + 1) / (_OFFSET_TAIL * prior.offset_scale**2 + offset_squares)
        of_coefficients[..., 1] = prior.slope_deviation**-2
        of_coefficients[..., 2] = prior.context_deviation**-2
        return of_coefficients, (_GROUP_TAIL + 1) / (_GROUP_TAIL * self._group_variances + group_squares)

    @cached_property
    def _group_variances(self) -> Floats:
        """Squared scales of the group offsets' prior [J, G or 1]: more where a group has changed."""
        variances: Floats = self.spreads[:, None] ** 2
        if self.cells.changed is not None:
            # Of a change that is less probable than not, other groups still tell.
            surely = np.maximum(2 * self.cells.changed - 1, 0.0)
            variances = variances + surely * _CHANGED_SPREAD**2
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
        offset, slope, context = np.moveaxis(modes.coefficients, -1, 0)
        log_weights += _log_t(offset, self.prior.offset_scale, _OFFSET_TAIL)
        log_weights -= 0.5 * ((slope - 1) / self.prior.slope_deviation) ** 2
        log_weights -= 0.5 * (context / self.prior.context_deviation) ** 2
        log_weights += _log_t(modes.offsets, np.sqrt(self._group_variances), _GROUP_TAIL).sum(axis=-1)
        log_weights -= 0.5 * curvature.log_determinant()
        return np.asarray(special.softmax(log_weights, axis=1), np.float64)


def log_rising(start: Floats, count: Floats) -> Floats:
    """Logarithm of start (start + 1) ... (start + count - 1), of any count: that of a ratio of gammas.

    The log marginal likelihood of effective counts under Beta(alpha, beta), without the binomial coefficient,
    is that of the correct ones from alpha on and of the wrong ones from beta on, less that of all from
    alpha + beta on: seven times faster than by beta functions, and nothing where there are no labels.
    """
    return special.gammaln(start + count) - special.gammaln(start)


def _log_t(values: Floats, scale: Floats | float, freedom: float) -> Floats:
    """Log density of a t distribution, but for a constant."""
    scaled = values / scale
    return -(freedom + 1) / 2 * np.log1p(scaled**2 / freedom) - np.log(scale)
