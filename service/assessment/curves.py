"""The learned prior: labels tell how far the scores are off, and how much groups and bins differ.

Groups share one calibration curve, differ from it a little, and cells (score bins of a group) scatter around
their group's curve:

    eta_gb = c + a + b (logit s_gb - c) + k (logit s_g - d) + u_g,
    theta_gb ~ Beta(N0 m_gb, N0 (1 - m_gb)),  m_gb = expit(eta_gb),

with s_gb the mean score of a cell, s_g that of its group, c the logit of the mean score of all traffic, and d
the mean of logit s_g. Offset a, slope b, context k and group offsets u_g ~ t4(0, sigma) are integrated out by
Laplace's approximation, spread sigma and strength N0 on a grid by their marginal likelihood: an integrated
nested Laplace approximation (Rue, Martino, Chopin, JRSS B 2009). The tails of t let one group be unlike the
others, as when one camera breaks. Given eta, cells are conjugate, so labels always overrule the curve.

Every function works on any number of independent runs at once: the first axis [R].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]

_SCORE_MARGIN = 1e-4
"""Scores are kept this far from 0 and 1, where their logits would not exist."""

_CENTRE_MARGIN = 1e-7
"""Centres m are kept this far from 0 and 1, where Beta(N0 m, N0 (1 - m)) would not exist."""

_LONGEST_STEP = 2.0
"""Newton steps are cut so that eta of no cell moves farther: from far away a full one would overshoot."""

_CLOSE_ENOUGH = 0.01
"""Steps shorter than this, in logits, end the search; posterior deviations are ten times as wide."""

_OFFSET_TAIL = 3.0
"""Degrees of freedom of the offset's prior: models are mostly nearly calibrated, and now and then far off."""

_GROUP_TAIL = 4.0
"""Degrees of freedom of the group offsets' prior."""

_POINTS, _POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_POINT_WEIGHTS = _POINT_WEIGHTS / _POINT_WEIGHTS.sum()
"""Points that stand for a normal distribution, in standard deviations, and their weights."""


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
    """Where the posterior of one grid point is highest: coefficients [R, J, 3] and group offsets [R, J, G]."""

    coefficients: Floats
    offsets: Floats


@dataclass(frozen=True)
class LearnedCurve:
    """The learned prior.

    Attributes:
        offset_scale: a ~ t3(0, offset_scale).
        slope_deviation: b ~ Normal(1, slope_deviation).
        context_deviation: k ~ Normal(0, context_deviation).
        spreads: grid of sigma, each as likely.
        strengths: grid of N0, each as likely.
        steps: Newton steps at most.
    """

    offset_scale: float = 1.0
    slope_deviation: float = 0.5
    context_deviation: float = 0.5
    spreads: tuple[float, ...] = (0.05, 0.15, 0.4, 1.0)
    strengths: tuple[float, ...] = (3.0, 12.0, 50.0, 200.0, 1000.0)
    steps: int = 15

    def fit(self, cells: Cells, labels: Floats, correct: Floats, start: Modes | None = None) -> CurveFit:
        """Beliefs about all cells, given what labels say.

        Args:
            cells: what traffic says.
            labels: effective numbers of labels [R, G, B].
            correct: effective numbers of correct ones [R, G, B].
            start: modes of an earlier fit to similar labels; saves most of the work.
        """
        spreads, strengths = (
            grid.ravel() for grid in np.meshgrid(self.spreads, self.strengths, indexing="ij")
        )
        runs, points, groups = len(labels), len(spreads), len(cells.group_shares)
        if start is None:
            start = Modes(np.tile([0.0, 1.0, 0.0], (runs, points, 1)), np.zeros((runs, points, groups)))
        regressors = _Regressors.of(cells)
        size = strengths[:, None, None]
        counted = labels[:, None]
        # A beta-binomial count says as much about its centre as so many independent labels.
        worth = (size + 1) / (size + counted)
        modes, curvature = start, None
        for _ in range(self.steps):
            centres = special.expit(regressors.eta(modes))
            surplus = worth * (correct[:, None] - counted * centres)
            centres *= 1 - centres
            centres *= worth
            centres *= counted
            precisions = self._precisions(modes, spreads)
            curvature = _Curvature.at(regressors, centres, precisions)
            modes, step = self._step(modes, curvature, surplus, precisions)
            if step < _CLOSE_ENOUGH:
                break
        return CurveFit(
            cells=cells,
            weights=self._weights(modes, curvature, spreads, size, counted, correct[:, None]),
            strengths=strengths,
            centres=regressors.eta(modes),
            deviations=np.sqrt(curvature.eta_variances()),
            labels=labels,
            correct=correct,
            modes=modes,
            curvature=curvature,
        )

    def _precisions(self, modes: Modes, spreads: Floats) -> tuple[Floats, Floats]:
        """Of the normal distributions that touch the priors at the modes: coefficients, group offsets."""
        of_coefficients = np.empty_like(modes.coefficients)
        squares = modes.coefficients[..., 0] ** 2
        of_coefficients[..., 0] = (_OFFSET_TAIL + 1) / (_OFFSET_TAIL * self.offset_scale**2 + squares)
        of_coefficients[..., 1] = self.slope_deviation**-2
        of_coefficients[..., 2] = self.context_deviation**-2
        scales = _GROUP_TAIL * spreads[:, None] ** 2
        return of_coefficients, (_GROUP_TAIL + 1) / (scales + modes.offsets**2)

    @staticmethod
    def _step(
        modes: Modes, curvature: _Curvature, surplus: Floats, precisions: tuple[Floats, Floats]
    ) -> tuple[Modes, float]:
        """One Newton step, and the length of its longest part."""
        of_coefficients, of_offsets = precisions
        regressors = curvature.regressors
        by_group = surplus.sum(axis=-1)
        by_offset = by_group - of_offsets * modes.offsets
        direct = regressors.by_coefficient(by_group, (surplus * regressors.scores).sum(axis=-1)).sum(axis=-2)
        direct -= of_coefficients * (modes.coefficients - [0.0, 1.0, 0.0])
        direct -= np.einsum("rjgp,rjg->rjp", curvature.crossed, by_offset / curvature.offsets)
        change = np.linalg.solve(curvature.coefficients, direct[..., None])[..., 0]
        moved = (by_offset - np.einsum("rjgp,rjp->rjg", curvature.crossed, change)) / curvature.offsets
        farthest = np.abs(regressors.eta(Modes(change, moved)) - regressors.pivot).max(axis=(-1, -2))
        cut = np.minimum(1.0, _LONGEST_STEP / np.maximum(farthest, _LONGEST_STEP))[..., None]
        return Modes(modes.coefficients + cut * change, modes.offsets + cut * moved), float(farthest.max())

    def _weights(
        self,
        modes: Modes,
        curvature: _Curvature,
        spreads: Floats,
        size: Floats,
        labels: Floats,
        correct: Floats,
    ) -> Floats:
        """Posterior weight of every grid point [R, J]: its marginal likelihood, by Laplace's approximation."""
        centres = special.expit(curvature.regressors.eta(modes))
        np.clip(centres, _CENTRE_MARGIN, 1 - _CENTRE_MARGIN, out=centres)
        log_weights = log_likelihood(
            size * centres, size * (1 - centres), correct, np.maximum(labels - correct, 0.0)
        ).sum(axis=(-1, -2))
        offset, slope, context = np.moveaxis(modes.coefficients, -1, 0)
        log_weights += _log_t(offset, self.offset_scale, _OFFSET_TAIL)
        log_weights -= 0.5 * ((slope - 1) / self.slope_deviation) ** 2
        log_weights -= 0.5 * (context / self.context_deviation) ** 2
        log_weights += _log_t(modes.offsets, spreads[:, None], _GROUP_TAIL).sum(axis=-1)
        log_weights -= 0.5 * curvature.log_determinant()
        return special.softmax(log_weights, axis=1)


@dataclass(frozen=True)
class _Regressors:
    """What eta is made of, but for the coefficients: eta = pivot + a + b x + k z + u."""

    pivot: float
    scores: Floats
    """x [G, B]"""
    context: Floats
    """z [G]"""

    @classmethod
    def of(cls, cells: Cells) -> _Regressors:
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
        """Derivatives by the coefficients [..., G, 3], from sums over a group's cells of f and of f x [..., G]."""
        return np.stack([plain, scored, plain * self.context], axis=-1)


@dataclass(frozen=True)
class _Curvature:
    """Minus the second derivatives of the log posterior, group offsets eliminated.

    Attributes:
        regressors: what eta is made of.
        offsets: by a group's offset [R, J, G].
        crossed: by a group's offset and the coefficients [R, J, G, 3].
        coefficients: by the coefficients, group offsets maximised out [R, J, 3, 3].
    """

    regressors: _Regressors
    offsets: Floats
    crossed: Floats
    coefficients: Floats

    @classmethod
    def at(cls, regressors: _Regressors, information: Floats, precisions: tuple[Floats, Floats]) -> _Curvature:
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

    def log_determinant(self) -> Floats:
        """Of the whole matrix [R, J]."""
        of_coefficients = np.linalg.slogdet(self.coefficients)[1]
        return np.asarray(of_coefficients + np.log(self.offsets).sum(axis=-1), np.float64)

    def eta_variances(self) -> Floats:
        """Of eta of every cell [R, J, G, B]."""
        pull = self.crossed / self.offsets[..., None]
        covariance = np.linalg.inv(self.coefficients)
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
        pull = self.crossed / self.offsets[..., None]
        by_coefficient = (direct - of_group[..., None] * pull).sum(axis=-2)
        solved = np.linalg.solve(self.coefficients, by_coefficient[..., None])[..., 0]
        own = (of_group**2 / self.offsets).sum(axis=-1)
        return np.asarray((by_coefficient * solved).sum(axis=-1) + own, np.float64)


@dataclass(frozen=True)
class CurveFit:
    """Beliefs about the cells of one grouping, for R runs and J grid points.

    Attributes:
        cells: what traffic says.
        weights: of the grid points [R, J].
        strengths: N0 of the grid points [J].
        centres: posterior mean of eta [R, J, G, B].
        deviations: its standard deviation [R, J, G, B].
        labels: effective numbers of labels [R, G, B].
        correct: effective numbers of correct ones [R, G, B].
        modes: for a warm start of the next fit.
        curvature: of the posterior at the modes.
    """

    cells: Cells
    weights: Floats
    strengths: Floats
    centres: Floats
    deviations: Floats
    labels: Floats
    correct: Floats
    modes: Modes
    curvature: _Curvature

    def groups(self) -> BetaMixture:
        """Beliefs about the accuracy of every group, sum_b p_gb theta_gb [R, J, G]: Betas of its moments.

        Within a group, eta of all cells is taken to go up and down together.
        """
        first, second, within = (np.zeros(self.modes.offsets.shape) for _ in range(3))
        shares, squares = self.cells.shares, self.cells.shares**2
        for point, weight in zip(_POINTS, _POINT_WEIGHTS, strict=True):
            theta = self._cell_means(point)
            accuracy = np.einsum("rjgb,gb->rjg", theta, shares)
            first += weight * accuracy
            second += weight * accuracy**2
            theta *= 1 - theta
            theta /= (self._sizes + 1)
            within += weight * np.einsum("rjgb,gb->rjg", theta, squares)
        return BetaMixture(
            self.weights, *betas.matching(first, np.maximum(second - first**2, 0.0) + within)
        )

    def overall(self) -> BetaMixture:
        """Beliefs about the accuracy over all traffic [R, J, 1]: Betas of its moments.

        Its variance by the delta method, because groups go up and down together with the coefficients.
        """
        shares = self.cells.group_shares[:, None] * self.cells.shares
        mean, within = (np.zeros(self.weights.shape) for _ in range(2))
        for point, weight in zip(_POINTS, _POINT_WEIGHTS, strict=True):
            theta = self._cell_means(point)
            mean += weight * np.einsum("rjgb,gb->rj", theta, shares)
            within += weight * np.einsum("rjgb,gb->rj", theta * (1 - theta) / (self._sizes + 1), shares**2)
        centre = special.expit(self.centres)
        slope = shares * self._strengths / self._sizes * centre * (1 - centre)
        alpha, beta = betas.matching(mean, within + self.curvature.variance_of(slope))
        return BetaMixture(self.weights, alpha[:, :, None], beta[:, :, None])

    def bins(self) -> BetaMixture:
        """Beliefs about every cell [R, J * Q, G * B]: for every grid point, Q points of eta.

        Given the component, cells are independent Betas.
        """
        runs, points = self.weights.shape
        shape = (runs, points * len(_POINTS), self.labels[0].size)
        alphas, totals = [], []
        for point in _POINTS:
            centres = self._strengths * self._prior_means(point)
            alphas.append(centres + self.correct[:, None])
            totals.append(np.broadcast_to(self._sizes, centres.shape))
        alpha = np.stack(alphas, axis=2).reshape(shape)
        weights = self.weights[:, :, None] * _POINT_WEIGHTS
        return BetaMixture(
            weights.reshape(runs, -1), alpha, np.stack(totals, axis=2).reshape(shape) - alpha
        )

    def cells_matched(self) -> tuple[Floats, Floats]:
        """Parameters [R, G, B] of the Betas with the mean and variance of every cell."""
        first, second, within = (np.zeros(self.labels.shape) for _ in range(3))
        for point, weight in zip(_POINTS, _POINT_WEIGHTS, strict=True):
            theta = self._cell_means(point)
            mixed = weight * self.weights
            first += np.einsum("rj,rjgb->rgb", mixed, theta)
            second += np.einsum("rj,rjgb->rgb", mixed, theta**2)
            within += np.einsum("rj,rjgb->rgb", mixed, theta * (1 - theta) / (self._sizes + 1))
        return betas.matching(first, np.maximum(second - first**2, 0.0) + within)

    @property
    def _strengths(self) -> Floats:
        return self.strengths[:, None, None]

    @property
    def _sizes(self) -> Floats:
        """alpha + beta of every cell."""
        return self._strengths + self.labels[:, None]

    def _prior_means(self, point: float) -> Floats:
        """m of every cell, with eta so many deviations from its mean."""
        means = special.expit(self.centres + point * self.deviations)
        return np.clip(means, _CENTRE_MARGIN, 1 - _CENTRE_MARGIN, out=means)

    def _cell_means(self, point: float) -> Floats:
        """E theta of every cell, given eta."""
        means = self._prior_means(point)
        means *= self._strengths
        means += self.correct[:, None]
        means /= self._sizes
        return means


def log_likelihood(alpha: Floats, beta: Floats, correct: Floats, wrong: Floats) -> Floats:
    """Log marginal likelihood of effective counts under Beta(alpha, beta), without the binomial coefficient.

    The same as betaln(alpha + correct, beta + wrong) - betaln(alpha, beta), and seven times faster.
    """
    gammaln = special.gammaln
    likelihood: Floats = gammaln(alpha + correct) - gammaln(alpha)
    likelihood += gammaln(beta + wrong) - gammaln(beta)
    likelihood -= gammaln(alpha + beta + correct + wrong) - gammaln(alpha + beta)
    return likelihood


def _inside(scores: Floats) -> Floats:
    return np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)


def _log_t(values: Floats, scale: Floats | float, freedom: float) -> Floats:
    """Log density of a t distribution, but for a constant."""
    scaled = values / scale
    density: Floats = -(freedom + 1) / 2 * np.log1p(scaled**2 / freedom) - np.log(scale)
    return density
