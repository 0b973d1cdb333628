"""Families of distributions of the scores within one class, on positions in [0, 1].

Every family has a location and a scale. Following Welinder, Welling and Perona (CVPR 2013, section 4.2) the
prior of a location is normal, where the location is a mean, and that of a scale is a gamma distribution. All
are weak, and all are proper, so that families can be compared by their marginal likelihoods.

Parameters are unbounded, P of them at once [P, 2]: the location (or a function of it) and the logarithm of
the scale; priors are densities of these.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from scipy import special

from service.domain.arrays import Floats

_NORMAL_CONSTANT = 0.5 * np.log(2 * np.pi)
_TINY = 1e-300
_LEAST = 1e-3
_NEAR_END = 1e-9


class Family(Protocol):
    """One family of distributions, with bounds of its parameters [2]."""

    name: str
    lowest: tuple[float, float]
    highest: tuple[float, float]

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """Probability of a score below every position [P, E], within the interval."""

    def log_prior(self, parameters: Floats) -> Floats:
        """Log density of the prior [P]."""

    def matching(self, positions: Floats, shares: Floats) -> Floats:
        """Parameters [2] near which the likelihood of positions [B] with these shares [B] may be high."""


def _log_normal_density(x: Floats, mean: float, deviation: float) -> Floats:
    density: Floats = -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation) - _NORMAL_CONSTANT
    return density


def _log_scale_density(log_scale: Floats, rate: float) -> Floats:
    """Log density of log x for x ~ Gamma(2, rate)."""
    density: Floats = 2 * (log_scale + np.log(rate)) - rate * np.exp(log_scale)
    return density


def _moments(values: Floats, shares: Floats) -> tuple[float, float]:
    mean = float(np.average(values, weights=shares))
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=shares)))
    return max(mean, _LEAST) if values.min() >= 0 else mean, max(deviation, _LEAST)


class Normal:
    """Normal; mass beyond an end of the interval is at the end."""

    name = "normal"
    lowest = (-1.0, -7.0)
    highest = (2.0, 1.0)

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """See `Family`."""
        location, scale = parameters[:, :1], np.exp(parameters[:, 1:])
        return np.asarray(special.ndtr((positions - location) / scale))

    def log_prior(self, parameters: Floats) -> Floats:
        """See `Family`."""
        return _log_normal_density(parameters[:, 0], 0.5, 0.5) + _log_scale_density(parameters[:, 1], 5.0)

    def matching(self, positions: Floats, shares: Floats) -> Floats:
        """See `Family`."""
        mean, deviation = _moments(positions, shares)
        return np.array([mean, np.log(deviation)])


class TruncatedNormal(Normal):
    """Normal, truncated to the interval."""

    name = "truncated normal"

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """See `Family`."""
        ends = super().below(parameters, np.array([0.0, 1.0]))
        inside = np.maximum(ends[:, 1:] - ends[:, :1], _TINY)
        return np.clip((super().below(parameters, positions) - ends[:, :1]) / inside, 0.0, 1.0)


class Gamma:
    """Gamma, by its mean and the ratio of deviation to mean; mass beyond the upper end is at the end."""

    name = "gamma"
    lowest = (-14.0, -4.0)
    highest = (1.5, 2.0)

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """See `Family`."""
        shape = np.exp(-2 * parameters[:, 1:])
        return np.asarray(special.gammainc(shape, shape * positions / np.exp(parameters[:, :1])))

    def log_prior(self, parameters: Floats) -> Floats:
        """See `Family`."""
        mean = np.exp(parameters[:, 0])
        # Normal, given that it is positive; and as a density of its logarithm.
        location: Floats = _log_normal_density(mean, 0.5, 0.5) - np.log(special.ndtr(1.0)) + parameters[:, 0]
        return location + _log_scale_density(parameters[:, 1], 2.0)

    def matching(self, positions: Floats, shares: Floats) -> Floats:
        """See `Family`."""
        mean, deviation = _moments(positions, shares)
        return np.array([np.log(mean), np.log(deviation / mean)])


class Beta:
    """Beta, by its mean and 1 / sqrt(alpha + beta)."""

    name = "beta"
    lowest = (-12.0, -3.2)
    highest = (12.0, 2.5)

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """See `Family`."""
        mean, strength = special.expit(parameters[:, :1]), np.exp(-2 * parameters[:, 1:])
        # 1 - mean would be 0 where the mean is near 1.
        return np.asarray(
            special.betainc(mean * strength, special.expit(-parameters[:, :1]) * strength, positions)
        )

    def log_prior(self, parameters: Floats) -> Floats:
        """See `Family`; the mean is uniform, as a normal one would not fit its interval."""
        location = special.log_expit(parameters[:, 0]) + special.log_expit(-parameters[:, 0])
        return np.asarray(location) + _log_scale_density(parameters[:, 1], 2.0)

    def matching(self, positions: Floats, shares: Floats) -> Floats:
        """See `Family`."""
        mean, deviation = _moments(positions, shares)
        strength = max(mean * (1 - mean) / deviation**2 - 1, 0.05)
        return np.array([special.logit(min(mean, 1 - _LEAST)), -0.5 * np.log(strength)])


class LogitNormal(Normal):
    """Normal on the logit scale."""

    name = "logit-normal"
    lowest = (-30.0, -4.5)
    highest = (30.0, 3.0)

    def below(self, parameters: Floats, positions: Floats) -> Floats:
        """See `Family`."""
        return super().below(parameters, special.logit(positions))

    def log_prior(self, parameters: Floats) -> Floats:
        """See `Family`."""
        return _log_normal_density(parameters[:, 0], 0.0, 5.0) + _log_scale_density(parameters[:, 1], 1.0)

    def matching(self, positions: Floats, shares: Floats) -> Floats:
        """See `Family`."""
        return super().matching(special.logit(np.clip(positions, _NEAR_END, 1 - _NEAR_END)), shares)


OF_PROBABILITIES: Final[tuple[Family, ...]] = (TruncatedNormal(), Gamma(), Normal(), Beta(), LogitNormal())
OF_REAL_SCORES: Final[tuple[Family, ...]] = (TruncatedNormal(), Gamma(), Normal(), Beta())
"""Candidate families, for scores that are probabilities and for others."""
