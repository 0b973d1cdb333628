"""Posteriors of many probabilities at once: a mixture, over hyperparameters, of independent Betas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics import beta as betas
from service.statistics import ranking
from service.statistics.quantiles import mixture_quantile


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

    @property
    def size(self) -> int:
        """Number of groups G."""
        return int(self.alpha.shape[-1])

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
        return mixture_quantile(*self._columns(), start, probability).reshape(mean.shape)

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

    def extreme_probabilities(self, rng: np.random.Generator, *, top_m: int, draws: int) -> Floats:
        """P(group is among the `top_m` lowest) [G], from joint draws.

        Its standard error is at most 1 / (2 sqrt(draws)).
        """
        if top_m >= self.size:
            return np.ones(self.size)
        return ranking.extreme_probabilities(ranking.ranks(self.sample(rng, draws)), top_m)

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
