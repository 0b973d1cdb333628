"""Posteriors of many probabilities at once: a mixture, over hyperparameters, of independent Betas."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas

_MASS = 1e-6  # tolerance of the probability below a quantile
_LOGIT_RANGE = 37.0  # quantiles are within expit(+-37): as close to 0, and closer to 1, than doubles can tell
_BISECTED = 4  # every so many steps the bracket is halved, whatever Newton's method does
_LOGIT_STEP = 1e-9  # tolerance on the logit scale where the mass jumps, as it does for tiny parameters
_APART = 0.25  # components are separate if at least this share of the variance is between them
_HALVINGS = 12  # bisection steps for a starting point, which need not be exact


@dataclass(frozen=True)
class BetaMixture:
    """theta_g | j ~ Beta(alpha_jg, beta_jg), independent over g given the component j.

    A fixed prior has one component. With the learned prior, components are the hyperparameters that remain
    plausible given the labels; they make groups dependent, so a label of one group informs the others.
    Leading axes hold independent runs.
    """

    weights: Floats  # of the components [..., J], summing to 1
    alpha: Floats  # shape [..., J, G]
    beta: Floats  # shape [..., J, G]

    def mean(self) -> Floats:
        """Posterior means [..., G]."""
        return self._mixed(betas.mean(self.alpha, self.beta))

    def variance(self) -> Floats:
        """Posterior variances [..., G], by the law of total variance."""
        means = betas.mean(self.alpha, self.beta)
        between = (means - self._mixed(means)[..., None, :]) ** 2
        return self._mixed(betas.variance(self.alpha, self.beta) + between)

    def interval(self, mass: float) -> tuple[Floats, Floats]:
        """Exact equal-tailed intervals with probability `mass` [..., G]."""
        tail = (1 - mass) / 2
        upper = self.quantile(1 - tail)
        # Both are found but for rounding.
        return np.minimum(self.quantile(tail), upper), upper

    def quantile(self, probability: float) -> Floats:
        """Quantiles of every group [..., G], to 1e-6 of probability."""
        mean = self.mean()
        start = betas.matching(mean.ravel(), self.variance().ravel())
        return _mixture_quantile(*self._columns(), start, probability).reshape(mean.shape)

    def probability_below(self, threshold: float | Floats) -> Floats:
        """P(theta_g < threshold) [..., G], exact; one threshold, or one per group [G]."""
        return self._mixed(np.asarray(special.betainc(self.alpha, self.beta, threshold), np.float64))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Joint draws of all groups [size, G]."""
        components = rng.choice(len(self.weights), size=size, p=self.weights)
        return rng.beta(self.alpha[components], self.beta[components])

    def part(self, groups: Indices) -> Self:
        """The posterior of some of the groups."""
        return type(self)(self.weights, self.alpha[..., groups], self.beta[..., groups])

    def _mixed(self, values: Floats) -> Floats:
        """Weighted mean over the components."""
        return (self.weights[..., None, :] @ values)[..., 0, :]

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        """Weights, alpha and beta with a column for every group of every run [J, ... * G]."""
        weights = np.broadcast_to(self.weights[..., None], self.alpha.shape)
        weights, alpha, beta = (
            np.moveaxis(values, -2, 0).reshape(self.alpha.shape[-2], -1)
            for values in (weights, self.alpha, self.beta)
        )
        return weights, alpha, beta


def _mixture_quantile(
    weights: Floats, alpha: Floats, beta: Floats, matched: tuple[Floats, Floats], probability: float
) -> Floats:
    """Quantile of every mixture [n], whose components are Beta(alpha, beta) with these weights, all [J, n].

    Newton's method on probit(P(theta < expit(t))), which is nearly linear in t, within a bracket. It starts
    at the quantile of the Beta with the mixture's moments (`matched` [n]) where components agree. That Beta
    alone is not enough: with few labels, where components disagree, its 95% interval holds as little as 75%
    of the mixture. Where components are separate there is hardly any mass between them, and Newton's steps
    from there lead anywhere: it starts at the quantile of a mixture of normals instead.
    """
    t, reach = _start(weights, alpha, beta, matched, probability)
    low, high = np.full(t.size, -_LOGIT_RANGE), np.full(t.size, _LOGIT_RANGE)
    target = special.ndtri(probability)
    norms = special.gammaln(alpha) + special.gammaln(beta) - special.gammaln(alpha + beta)
    sought = np.arange(t.size)
    for step in count(1):
        if not sought.size:
            break
        below, density = _mass_below(
            weights[:, sought], alpha[:, sought], beta[:, sought], norms[:, sought], t[sought]
        )
        short = below < probability
        low[sought[short]] = t[sought[short]]
        high[sought[~short]] = t[sought[~short]]
        near = np.abs(below - probability) < _MASS
        has_converged = near | (high[sought] - low[sought] < _LOGIT_STEP)
        sought, score, density = (
            sought[~has_converged],
            special.ndtri(below[~has_converged]),
            density[~has_converged],
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = (target - score) * np.exp(-0.5 * score**2) / np.sqrt(2 * np.pi) / density
        start = t[sought]
        # Where the mass jumps, Newton's steps stay inside and come no nearer, or have no length: so from time
        # to time the bracket is halved, or, while one of its ends is not known, that is gone after.
        is_bracketed = (low[sought] > -_LOGIT_RANGE) & (high[sought] < _LOGIT_RANGE)
        in_turn = step % _BISECTED == 0
        far = np.where(score < target, reach[sought], -reach[sought])
        seeking = ~is_bracketed & (in_turn | ~(np.abs(newton) < reach[sought]))
        reach[sought[seeking]] *= 2
        moved = np.where(seeking, start + far, start + newton)
        inside = (moved > low[sought]) & (moved < high[sought]) & (seeking | ~(is_bracketed & in_turn))
        t[sought] = np.where(inside, moved, (low[sought] + high[sought]) / 2)
    return np.asarray(special.expit(t), np.float64)


def _start(
    weights: Floats, alpha: Floats, beta: Floats, matched: tuple[Floats, Floats], probability: float
) -> tuple[Floats, Floats]:
    """Where to begin on the logit scale, and how far a first step may go [n]."""
    total = matched[0] + matched[1]
    mean = matched[0] / total
    variance = mean * (1 - mean) / (total + 1)
    between = (weights * (alpha / (alpha + beta) - mean) ** 2).sum(axis=0)
    apart = between > _APART * variance
    t = np.empty(apart.shape)
    t[~apart] = special.logit(special.betaincinv(matched[0][~apart], matched[1][~apart], probability))
    reach = np.sqrt(variance) / (mean * (1 - mean))
    if apart.any():
        t[apart] = _quantile_of_normals(weights[:, apart], alpha[:, apart], beta[:, apart], probability)
    return np.clip(t, -_LOGIT_RANGE, _LOGIT_RANGE), reach


def _quantile_of_normals(weights: Floats, alpha: Floats, beta: Floats, probability: float) -> Floats:
    """Quantiles [n] if every component were normal on the logit scale.

    With approximately its mean and variance there, psi(a) - psi(b) and psi'(a) + psi'(b), by the first terms
    of their series.
    """
    centres = np.log(alpha / beta) - 0.5 / alpha + 0.5 / beta
    deviations = np.sqrt(1 / alpha + 1 / beta + 0.5 / alpha**2 + 0.5 / beta**2)
    # A mixture's quantile lies among those of its components.
    ends = centres + special.ndtri(probability) * deviations
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = (weights * special.ndtr((middle - centres) / deviations)).sum(axis=0) < probability
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray((low + high) / 2, np.float64)


def _mass_below(
    weights: Floats, alpha: Floats, beta: Floats, norms: Floats, t: Floats
) -> tuple[Floats, Floats]:
    """P(theta < expit(t)) of every column [J, n], and its derivative by t."""
    logs = alpha * special.log_expit(t) + beta * special.log_expit(-t)
    below = (weights * special.betainc(alpha, beta, special.expit(t))).sum(axis=0)
    return below, (weights * np.exp(logs - norms)).sum(axis=0)
