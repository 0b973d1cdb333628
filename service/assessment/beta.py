"""Beta beliefs about a probability: moments, intervals, expected distance from a score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]


def mean(alpha: Floats, beta: Floats) -> Floats:
    """Mean of Beta(alpha, beta)."""
    return alpha / (alpha + beta)


def variance(alpha: Floats, beta: Floats) -> Floats:
    """Variance of Beta(alpha, beta)."""
    total = alpha + beta
    return alpha * beta / (total * total * (total + 1))


def interval(alpha: Floats, beta: Floats, mass: float) -> tuple[Floats, Floats]:
    """Equal-tailed interval that holds `mass` of Beta(alpha, beta)."""
    tail = (1 - mass) / 2
    lower, upper = special.betaincinv(alpha, beta, tail), special.betainccinv(alpha, beta, tail)
    return np.asarray(lower, np.float64), np.asarray(upper, np.float64)


def matching(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Parameters (alpha, beta) of the Beta with given moments.

    The variance is kept within what a Beta of that mean can have, so that rounding cannot
    make a parameter negative.
    """
    centre = np.clip(mean, 1e-12, 1 - 1e-12)
    spread = centre * (1 - centre)
    strength = np.maximum(spread / np.clip(variance, 1e-15, None) - 1, 1e-6)
    return centre * strength, (1 - centre) * strength


def merged(
    share: Floats, first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Parameters of the one Beta with the moments of two: `share` of the first, the rest of the second."""
    means, others = mean(*first), mean(*second)
    centre = share * means + (1 - share) * others
    within = share * variance(*first) + (1 - share) * variance(*second)
    return matching(centre, within + share * (1 - share) * (means - others) ** 2)


def distance_moments(alpha: Floats, beta: Floats, score: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of |theta - s| for theta ~ Beta(alpha, beta).

    E|theta - s| = s (2 F(s; a, b) - 1) + mu (1 - 2 F(s; a + 1, b)), with F the regularised incomplete
    beta function and mu = a / (a + b): split the integral at s, and use
    integral of t f(t; a, b) over [0, s] = mu F(s; a + 1, b).
    """
    mu = mean(alpha, beta)
    below = special.betainc(alpha, beta, score)
    below_shifted = special.betainc(alpha + 1, beta, score)
    expected = score * (2 * below - 1) + mu * (1 - 2 * below_shifted)
    squared = variance(alpha, beta) + (mu - score) ** 2
    return expected, np.maximum(squared - expected**2, 0.0)
