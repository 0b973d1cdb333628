"""P(positive | score) as a logistic curve, learned from labels alone and applied to all scores.

P(y = 1 | s) = expit(a + b g(s)), with lapses (`service/statistics/binary/lapses.py`) and weak priors of a and
log b, on a grid: with so few parameters the grid also gives the evidence of the labels. Student's t priors
with three degrees of freedom let labels override them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.binary.lapses import LAPSES, LOG_PRIOR, with_lapses
from service.statistics.binary.score_bins import ScoreBins

Transform = Callable[[ScoreBins], Floats]
"""g: from the scores of bins to the regressor of the slope [B]."""

_FREEDOM = 3.0
_REACH = 12.0  # the grid extends this many prior scales to either side of the centre
_OFFSETS, _SLOPES = 97, 65
_BINS = 72  # with more the grid would take too long
_STEEPNESS_POWER = 3  # grid points are denser near the centre: mostly this power of evenly spaced ones
_NEWTON_STEPS = 100
_LONGEST_STEP = 2.0
_CONVERGED = 1e-9
_RIDGE = 1e-6


@dataclass(frozen=True)
class LogisticPrior:
    """Student's t with three degrees of freedom: centres and scales of offset a and log slope log b."""

    offset: float
    offset_scale: float
    log_slope: float
    log_slope_scale: float


@dataclass(frozen=True)
class LogisticFit:
    """Posterior of a logistic curve."""

    offset: Floats  # draws of a [S]
    slope: Floats  # draws of b [S], positive
    lapses: Floats  # draws of the lapse shares [S, 2]
    prevalence: Floats  # of the positive class, by draw [S]
    log_label_evidence: float  # log prior probability of the labels

    def probabilities(self, values: Floats) -> Floats:
        """P(positive) of an item of a bin [S, B], from g of every bin's score [B]."""
        curves = special.expit(self.offset[:, None] + self.slope[:, None] * values)
        return with_lapses(curves, self.lapses, self.prevalence)


def fit_logistic(
    bins: ScoreBins, transform: Transform, prior: LogisticPrior, rng: np.random.Generator, *, draws: int
) -> LogisticFit:
    """Posterior of a logistic curve of g, given the labels."""
    offsets, offset_widths = _grid(prior.offset, prior.offset_scale, _OFFSETS)
    log_slopes, slope_widths = _grid(prior.log_slope, prior.log_slope_scale, _SLOPES)
    log_prior = _log_t(offsets, prior.offset, prior.offset_scale)[:, None] + np.log(offset_widths)[:, None]
    log_prior = log_prior + _log_t(log_slopes, prior.log_slope, prior.log_slope_scale) + np.log(slope_widths)
    log_posterior = log_prior - special.logsumexp(log_prior)
    used = bins.merged(_BINS)
    curves = special.expit(offsets[:, None, None] + np.exp(log_slopes)[:, None] * transform(used))
    prevalence = curves @ (used.counts / used.total)
    at = np.flatnonzero(used.positives + used.negatives)
    log_posterior = np.stack(
        [
            log_posterior
            + log_share
            + used.log_likelihood(with_lapses(curves[..., at], lapses, prevalence), at)
            for lapses, log_share in zip(LAPSES, LOG_PRIOR, strict=True)
        ],
        axis=-1,
    )
    evidence = float(special.logsumexp(log_posterior))
    chosen = rng.choice(log_posterior.size, draws, p=np.exp(log_posterior - evidence).ravel())
    row, column, lapsing = np.unravel_index(chosen, log_posterior.shape)
    # Anywhere within the grid's cell, so that draws are not all on its lines.
    offset = offsets[row] + offset_widths[row] * (rng.random(draws) - 0.5)
    slope = np.exp(log_slopes[column] + slope_widths[column] * (rng.random(draws) - 0.5))
    return LogisticFit(offset, slope, LAPSES[lapsing], prevalence[row, column], evidence)


def _grid(centre: float, scale: float, count: int) -> tuple[Floats, Floats]:
    """Points, and the width of each one's cell."""
    even = np.linspace(-1, 1, count)
    stretched = 0.25 * even + 0.75 * even**_STEEPNESS_POWER
    points = centre + _REACH * scale * stretched
    return points, np.gradient(points)


def _log_t(points: Floats, centre: float, scale: float) -> Floats:
    """Log density of Student's t, up to a constant."""
    return -(_FREEDOM + 1) / 2 * np.log1p(((points - centre) / scale) ** 2 / _FREEDOM)


def project_logistic(design: Floats, probabilities: Floats, shares: Floats, *, towards: Floats) -> Floats:
    """Coefficients [D] of the logistic curve of a design [B, D] that is nearest to given probabilities [B].

    It maximises the expected likelihood of labels drawn from the probabilities, with shares of items that sum
    to 1 [B], by Newton's method. A small ridge towards given coefficients [D] keeps them finite where the
    classes are separable.
    """
    at = towards
    for _ in range(_NEWTON_STEPS):
        fitted = special.expit(design @ at)
        gradient = design.T @ (shares * (probabilities - fitted)) - _RIDGE * (at - towards)
        curvature = design.T @ (design * (shares * fitted * (1 - fitted))[:, None]) + _RIDGE * np.eye(len(at))
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        at = at + step * min(1.0, _LONGEST_STEP / max(largest, _CONVERGED))
        if largest < _CONVERGED:
            break
    return at
