"""Beta distributions of a probability: moments, intervals, distance from a score, value of a label."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats

_DENSITY_STEPS = 80  # bisection needs as many; Newton's method finds an interval in about ten
_DENSITY_TOLERANCE = 1e-12  # largest difference of the log densities at both ends, per unit of alpha + beta


def require_positive(*parameters: Floats) -> None:
    """Refuses parameters of an improper distribution, such as Beta(2, 0) from a score of 1.

    Raises:
        ValueError: a parameter is 0, negative or NaN.
    """
    # The least of an array is NaN if any is; one pass over it, as every formula calls this.
    if not all(np.min(parameter, initial=np.inf) > 0 for parameter in parameters):
        raise ValueError("the parameters of a belief must be positive")


def mean(alpha: Floats, beta: Floats) -> Floats:
    """Mean of Beta(alpha, beta)."""
    return alpha / (alpha + beta)


def variance(alpha: Floats, beta: Floats) -> Floats:
    """Variance of Beta(alpha, beta)."""
    total = alpha + beta
    return alpha * beta / (total * total * (total + 1))


def interval(alpha: Floats, beta: Floats, mass: float) -> tuple[Floats, Floats]:
    """Equal-tailed interval with probability `mass` under Beta(alpha, beta)."""
    tail = (1 - mass) / 2
    lower, upper = special.betaincinv(alpha, beta, tail), special.betainccinv(alpha, beta, tail)
    return np.asarray(lower, np.float64), np.asarray(upper, np.float64)


def highest_density(alpha: Floats, beta: Floats, mass: float) -> tuple[Floats, Floats]:
    """Shortest interval with probability `mass` under Beta(alpha, beta), strictly within 0 and 1.

    It starts at 0 where the density only falls, and ends at 1 where it only rises. Where there is no single
    peak (both parameters below 1, or both 1) it is the equal-tailed interval. The parameters broadcast.

    Raises:
        ValueError: a parameter is not positive.
    """
    require_positive(alpha, beta)
    a, b = (np.array(parameter, np.float64) for parameter in np.broadcast_arrays(alpha, beta))
    below = np.full(a.shape, (1 - mass) / 2)
    below[(a <= 1) & (b > 1) | (a < 1) & (b == 1)] = 0.0
    below[(a > 1) & (b <= 1) | (a == 1) & (b < 1)] = 1 - mass
    peaked = (a > 1) & (b > 1)
    below[peaked] = _mass_below_densest(a[peaked], b[peaked], mass)
    above = np.maximum(1 - mass - below, 0.0)
    lower, upper = special.betaincinv(a, b, below), special.betainccinv(a, b, above)
    return np.asarray(lower, np.float64), np.asarray(upper, np.float64)


def _mass_below_densest(alpha: Floats, beta: Floats, mass: float) -> Floats:
    """Mass below the highest-density interval, for parameters above 1 [N].

    Newton's method within a bisection bracket, on the difference of the log densities at both ends, which
    grows with the mass below.
    """
    low, high = np.zeros(alpha.shape), np.full(alpha.shape, 1 - mass)
    below: Floats = (low + high) / 2
    norm = special.betaln(alpha, beta)
    sought = np.arange(alpha.size)
    for _ in range(_DENSITY_STEPS):
        a, b, p = alpha[sought], beta[sought], below[sought]
        lower, rest = special.betaincinv(a, b, p), special.betaincinv(b, a, 1 - mass - p)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            first = (a - 1) * np.log(lower) + (b - 1) * np.log1p(-lower)
            second = (a - 1) * np.log1p(-rest) + (b - 1) * np.log(rest)
            gap = first - second
            rise = ((a - 1) / lower - (b - 1) / (1 - lower)) * np.exp(norm[sought] - first)
            fall = ((a - 1) / (1 - rest) - (b - 1) / rest) * np.exp(norm[sought] - second)
            step = p - gap / (rise - fall)
        low[sought[gap < 0]], high[sought[gap >= 0]] = p[gap < 0], p[gap >= 0]
        inside = (step > low[sought]) & (step < high[sought])
        open_ = np.abs(gap) > _DENSITY_TOLERANCE * (a + b)
        below[sought] = np.where(open_, np.where(inside, step, (low[sought] + high[sought]) / 2), p)
        sought = sought[open_]
        if not sought.size:
            break
    return below


def expected_variance_drop(alpha: Floats, beta: Floats, probability: Floats) -> Floats:
    """Var(theta) minus its expectation after one more label, which is right with `probability`.

    The reward for estimation (Ji et al. 2021, table 1), without the group's share of the traffic. With n = a
    + b, over one denominator, so that nothing cancels where the probability is near a / n: (a b (3 n + 2) -
    n^2 (a + p (b - a))) / (n^2 (n + 1)^2 (n + 2)). At p = a / n it is Var(theta) / (n + 1). All arguments
    broadcast.

    Raises:
        ValueError: a parameter is not positive.
    """
    require_positive(alpha, beta)
    total = alpha + beta
    squared = total * total
    drop: Floats = (beta - alpha) * probability
    drop += alpha
    drop *= -squared
    drop += alpha * beta * (3 * total + 2)
    drop /= squared * (total + 1) ** 2 * (total + 2)
    return drop


def matching(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Parameters (alpha, beta) of the Beta with these moments.

    The variance is clipped to what a Beta of that mean can have, so that rounding cannot make a parameter
    negative.
    """
    centre = np.clip(mean, 1e-12, 1 - 1e-12)
    spread = centre * (1 - centre)
    strength = np.maximum(spread / np.clip(variance, 1e-15, None) - 1, 1e-6)
    return centre * strength, (1 - centre) * strength


def distance_moments(alpha: Floats, beta: Floats, score: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of |theta - s| for theta ~ Beta(alpha, beta).

    E|theta - s| = s (2 F(s; a, b) - 1) + mu (1 - 2 F(s; a + 1, b)), with F the regularised incomplete beta
    function and mu = a / (a + b): split the integral at s, and use that the integral of t f(t; a, b) over [0,
    s] is mu F(s; a + 1, b). Only one F is evaluated: F(s; a + 1, b) = F(s; a, b) - s^a (1 - s)^b / (a B(a,
    b)).
    """
    mu = mean(alpha, beta)
    below = special.betainc(alpha, beta, score)
    log_density = special.xlogy(alpha, score) + special.xlog1py(beta, -score)
    log_density -= special.gammaln(alpha) + special.gammaln(beta) - special.gammaln(alpha + beta)
    below_shifted = below - np.exp(log_density) / alpha
    expected = score * (2 * below - 1) + mu * (1 - 2 * below_shifted)
    squared = variance(alpha, beta) + (mu - score) ** 2
    return expected, np.maximum(squared - expected**2, 0.0)
