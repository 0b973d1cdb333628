"""P(positive | score) as a logistic curve, learned from labels alone and applied to all scores.

P(y = 1 | s) = expit(a + b g(s)) but for lapses (`service/statistics/binary/lapses.py`), with weak priors of
a and log b, on a grid: so few parameters need no importance sampling, and the evidence of the labels comes
with it. Student's t priors with three degrees of freedom let labels overrule them.
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
"""g: from the scores of bins to what the slope multiplies [B]."""

_FREEDOM = 3.0
_REACH = 12.0
"""The grid spans so many of a prior's scales to either side of its centre."""

_OFFSETS, _SLOPES = 97, 65
_BINS = 72
"""Of more the grid would take too long."""

_STEEPNESS_POWER = 3
"""Grid points are denser near the centre: for the most part they are this power of evenly spaced ones."""

_NEWTON_STEPS = 100
_LONGEST_STEP = 2.0
_CONVERGED = 1e-9
_RIDGE = 1e-6


@dataclass(frozen=True)
class LogisticPrior:
    """Prior of a logistic curve: Student's t, with three degrees of freedom, of offset and log slope.

    Attributes:
        offset: centre of a.
        offset_scale: of a.
        log_slope: centre of log b.
        log_slope_scale: of log b.
    """

    offset: float
    offset_scale: float
    log_slope: float
    log_slope_scale: float


@dataclass(frozen=True)
class LogisticFit:
    """What a logistic curve tells.

    Attributes:
        offset: draws of a [S].
        slope: draws of b [S], positive.
        lapses: draws of the shares that lapse [S, 2].
        prevalence: of the positive class, by each draw [S].
        log_label_evidence: logarithm of the probability that the prior gave to the labels.
    """

    offset: Floats
    slope: Floats
    lapses: Floats
    prevalence: Floats
    log_label_evidence: float

    def probabilities(self, values: Floats) -> Floats:
        """P(positive) of an item of a bin [S, B].

        Args:
            values: g of the score of every bin [B].
        """
        curves = special.expit(self.offset[:, None] + self.slope[:, None] * values)
        return with_lapses(curves, self.lapses, self.prevalence)


def fit_logistic(
    bins: ScoreBins, transform: Transform, prior: LogisticPrior, rng: np.random.Generator, *, draws: int
) -> LogisticFit:
    """Learn a logistic curve from the labels.

    Args:
        bins: with the labels.
        transform: g.
        prior: of its parameters.
        rng: random numbers.
        draws: of the posterior to make.
    """
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
    """Points, and how wide the cell of each is."""
    even = np.linspace(-1, 1, count)
    stretched = 0.25 * even + 0.75 * even**_STEEPNESS_POWER
    points = centre + _REACH * scale * stretched
    return points, np.gradient(points)


def _log_t(points: Floats, centre: float, scale: float) -> Floats:
    """Log density of Student's t, up to a constant."""
    return -(_FREEDOM + 1) / 2 * np.log1p(((points - centre) / scale) ** 2 / _FREEDOM)


def projected(design: Floats, probabilities: Floats, shares: Floats, *, towards: Floats) -> Floats:
    """Coefficients [D] of the logistic curve that is nearest to given probabilities.

    That is the one of the highest expected likelihood of labels drawn of the probabilities; by Newton's
    method. A faint ridge keeps coefficients finite where any large ones would do.

    Args:
        design: what the coefficients multiply [B, D].
        probabilities: of the positive class in every bin [B].
        shares: of the items, of every bin [B]; they sum to 1.
        towards: where the ridge draws the coefficients to [D].
    """
    at = towards
    for _ in range(_NEWTON_STEPS):
        told = special.expit(design @ at)
        gradient = design.T @ (shares * (probabilities - told)) - _RIDGE * (at - towards)
        curvature = design.T @ (design * (shares * told * (1 - told))[:, None]) + _RIDGE * np.eye(len(at))
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        at = at + step * min(1.0, _LONGEST_STEP / max(largest, _CONVERGED))
        if largest < _CONVERGED:
            break
    return at
