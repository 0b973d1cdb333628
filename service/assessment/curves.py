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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.laplace import COEFFICIENT_MEANS, Cells, Curvature, Modes, Regressors
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]

CENTRE_MARGIN = 1e-7
"""Centres m are kept this far from 0 and 1, where Beta(N0 m, N0 (1 - m)) would not exist."""

_LONGEST_STEP = 2.0
"""Newton steps are cut so that eta of no cell moves farther: from far away a full one would overshoot."""

_CLOSE_ENOUGH = 0.01
"""Steps shorter than this, in logits, end the search; posterior deviations are ten times as wide."""

_OFFSET_TAIL = 3.0
"""Degrees of freedom of the offset's prior: models are mostly nearly calibrated, and now and then far off."""

_GROUP_TAIL = 4.0
"""Degrees of freedom of the group offsets' prior."""


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
POINTS = tuple(zip(_NODES.tolist(), (_WEIGHTS / _WEIGHTS.sum()).tolist(), strict=True))
"""Points that stand for a normal distribution, in standard deviations, with their weights."""


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
        return _Search(self, cells, labels, correct).fit(start)


class _Search:
    """The search for the posterior of one set of labels, for all runs and grid points at once.

    Within, cells are [R, J, G, B].
    """

    def __init__(self, prior: LearnedCurve, cells: Cells, labels: Floats, correct: Floats) -> None:
        self._prior, self._cells, self._labels, self._correct = prior, cells, labels, correct
        grid = np.meshgrid(prior.spreads, prior.strengths, indexing="ij")
        self._spreads, self._strengths = (values.ravel() for values in grid)
        self._sizes = self._strengths[:, None, None]
        self._regressors = Regressors.of(cells)
        # A beta-binomial count says as much about its centre as so many independent labels.
        worth = (self._sizes + 1) / (self._sizes + labels[:, None])
        self._worth, self._right = worth * labels[:, None], worth * correct[:, None]

    def fit(self, start: Modes | None) -> CurveFit:
        runs, points, groups = len(self._labels), len(self._spreads), len(self._cells.group_shares)
        if start is None:
            start = Modes(np.tile(COEFFICIENT_MEANS, (runs, points, 1)), np.zeros((runs, points, groups)))
        modes, curvature = self._mode(start)
        weights = self._weights(modes, curvature)
        means = modes
        for _ in range(self._prior.refinements):
            means, curvature = self._refined(means, curvature)
        return CurveFit(
            cells=self._cells,
            weights=weights,
            strengths=self._strengths,
            centres=self._regressors.eta(means),
            deviations=np.sqrt(curvature.eta_variances()),
            labels=self._labels,
            correct=self._correct,
            modes=modes,
            curvature=curvature,
        )

    def _mode(self, modes: Modes) -> tuple[Modes, Curvature]:
        """Where the posterior is highest, by Newton's method."""
        for _ in range(self._prior.steps):
            centres = special.expit(self._regressors.eta(modes))
            precisions = self._precisions(modes.coefficients[..., 0] ** 2, modes.offsets**2)
            curvature = Curvature.at(self._regressors, self._worth * centres * (1 - centres), precisions)
            modes, step = self._step(modes, curvature, self._right - self._worth * centres, precisions)
            if step < _CLOSE_ENOUGH:
                break
        return modes, curvature

    def _refined(self, means: Modes, curvature: Curvature) -> tuple[Modes, Curvature]:
        """A step towards the normal distribution nearest to the posterior (Opper, Archambeau 2009).

        Where most labels are correct the posterior leans towards 1, and the normal distribution around its
        mode would say too little of every accuracy.
        """
        eta, deviations = self._regressors.eta(means), np.sqrt(curvature.eta_variances())
        centres, spread = np.zeros_like(eta), np.zeros_like(eta)
        for point, weight in POINTS:
            at = special.expit(eta + point * deviations)
            centres += weight * at
            spread += weight * at * (1 - at)
        precisions = self._precisions(
            means.coefficients[..., 0] ** 2 + curvature.covariance[..., 0, 0],
            means.offsets**2 + curvature.offset_variances(),
        )
        refined = Curvature.at(self._regressors, self._worth * spread, precisions)
        return self._step(means, refined, self._right - self._worth * centres, precisions)[0], refined

    def _precisions(self, offset_squares: Floats, group_squares: Floats) -> tuple[Floats, Floats]:
        """Of the normal distributions that touch the priors there: of the coefficients, of group offsets."""
        prior = self._prior
        of_coefficients = np.empty((*offset_squares.shape, 3))
        of_coefficients[..., 0] = (_OFFSET_TAIL + 1) / (_OFFSET_TAIL * prior.offset_scale**2 + offset_squares)
        of_coefficients[..., 1] = prior.slope_deviation**-2
        of_coefficients[..., 2] = prior.context_deviation**-2
        scales = _GROUP_TAIL * self._spreads[:, None] ** 2
        return of_coefficients, (_GROUP_TAIL + 1) / (scales + group_squares)

    def _step(
        self, modes: Modes, curvature: Curvature, surplus: Floats, precisions: tuple[Floats, Floats]
    ) -> tuple[Modes, float]:
        """One Newton step, and how far it moves eta of any cell before it is cut."""
        of_coefficients, of_offsets = precisions
        by_group = surplus.sum(axis=-1)
        by_offset = by_group - of_offsets * modes.offsets
        scored = (surplus * self._regressors.scores).sum(axis=-1)
        slope = self._regressors.by_coefficient(by_group, scored).sum(axis=-2)
        slope -= of_coefficients * (modes.coefficients - COEFFICIENT_MEANS)
        slope -= np.einsum("rjgp,rjg->rjp", curvature.crossed, by_offset / curvature.offsets)
        change = np.linalg.solve(curvature.coefficients, slope[..., None])[..., 0]
        moved = (by_offset - np.einsum("rjgp,rjp->rjg", curvature.crossed, change)) / curvature.offsets
        moves = np.abs(self._regressors.eta(Modes(change, moved)) - self._regressors.pivot)
        farthest = moves.max(axis=(-1, -2))
        cut = (_LONGEST_STEP / np.maximum(farthest, _LONGEST_STEP))[..., None]
        return Modes(modes.coefficients + cut * change, modes.offsets + cut * moved), float(farthest.max())

    def _weights(self, modes: Modes, curvature: Curvature) -> Floats:
        """Posterior weight of every grid point [R, J]: its marginal likelihood."""
        centres = special.expit(self._regressors.eta(modes))
        np.clip(centres, CENTRE_MARGIN, 1 - CENTRE_MARGIN, out=centres)
        wrong = np.maximum(self._labels - self._correct, 0.0)[:, None]
        log_weights = log_likelihood(
            self._sizes * centres, self._sizes * (1 - centres), self._correct[:, None], wrong
        ).sum(axis=(-1, -2))
        offset, slope, context = np.moveaxis(modes.coefficients, -1, 0)
        log_weights += _log_t(offset, self._prior.offset_scale, _OFFSET_TAIL)
        log_weights -= 0.5 * ((slope - 1) / self._prior.slope_deviation) ** 2
        log_weights -= 0.5 * (context / self._prior.context_deviation) ** 2
        log_weights += _log_t(modes.offsets, self._spreads[:, None], _GROUP_TAIL).sum(axis=-1)
        log_weights -= 0.5 * curvature.log_determinant()
        return np.asarray(special.softmax(log_weights, axis=1), np.float64)


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
    curvature: Curvature

    def groups(self) -> BetaMixture:
        """Beliefs about the accuracy of every group, sum_b p_gb theta_gb [R, J, G]: Betas of its moments.

        Within a group, eta of all cells is taken to go up and down together.
        """
        first, second, within = (np.zeros(self.modes.offsets.shape) for _ in range(3))
        shares, squares = self.cells.shares, self.cells.shares**2
        for point, weight in POINTS:
            theta = self._cell_means(point)
            accuracy = np.einsum("rjgb,gb->rjg", theta, shares)
            first += weight * accuracy
            second += weight * accuracy**2
            theta *= 1 - theta
            theta /= self._sizes + 1
            within += weight * np.einsum("rjgb,gb->rjg", theta, squares)
        return BetaMixture(self.weights, *betas.matching(first, np.maximum(second - first**2, 0.0) + within))

    def overall(self) -> BetaMixture:
        """Beliefs about the accuracy over all traffic [R, J, 1]: Betas of its moments.

        Groups go up and down together with the coefficients, but not wholly: their covariance is that of the
        delta method, stretched by as much as the delta method misses of cells that all move together.
        """
        shares = self.cells.group_shares[:, None] * self.cells.shares
        first, second, within = (np.zeros(self.weights.shape) for _ in range(3))
        for point, weight in POINTS:
            theta = self._cell_means(point)
            accuracy = np.einsum("rjgb,gb->rj", theta, shares)
            first += weight * accuracy
            second += weight * accuracy**2
            within += weight * np.einsum("rjgb,gb->rj", theta * (1 - theta) / (self._sizes + 1), shares**2)
        centre = special.expit(self.centres)
        slopes = shares * self._strengths / self._sizes * centre * (1 - centre)
        together = np.maximum(second - first**2, 0.0)
        by_delta = np.einsum("rjgb,rjgb->rj", slopes, self.deviations) ** 2
        stretch = np.maximum(together / np.maximum(by_delta, np.finfo(float).tiny), 1.0)
        alpha, beta = betas.matching(first, stretch * self.curvature.variance_of(slopes) + within)
        return BetaMixture(self.weights, alpha[:, :, None], beta[:, :, None])

    def bins(self) -> BetaMixture:
        """Beliefs about every cell [R, J * Q, G * B]: for every grid point, Q points of eta.

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

    @property
    def _strengths(self) -> Floats:
        return self.strengths[:, None, None]

    @property
    def _sizes(self) -> Floats:
        """Alpha + beta of every cell."""
        return self._strengths + self.labels[:, None]

    def _prior_means(self, point: float) -> Floats:
        """M of every cell, with eta so many deviations from its mean."""
        means = special.expit(self.centres + point * self.deviations)
        return np.clip(means, CENTRE_MARGIN, 1 - CENTRE_MARGIN, out=means)

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


def _log_t(values: Floats, scale: Floats | float, freedom: float) -> Floats:
    """Log density of a t distribution, but for a constant."""
    scaled = values / scale
    density: Floats = -(freedom + 1) / 2 * np.log1p(scaled**2 / freedom) - np.log(scale)
    return density
