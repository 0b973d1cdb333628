"""Dirichlet distributions of class probabilities, such as a row of a confusion matrix.

Arrays are [..., K]: any number of leading axes, then the classes. Parameters that are not positive raise
ValueError.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas


def mean(alpha: Floats) -> Floats:
    """Means [..., K]."""
    betas.require_positive(alpha)
    return np.asarray(alpha / alpha.sum(axis=-1, keepdims=True), np.float64)


def expected_variance_drop(alpha: Floats, probabilities: Floats) -> Floats:
    """Sum of the variances minus its expectation after a label, of class k with `probabilities` [..., K].

    The reward for estimating a confusion matrix (Ji et al. 2021, table 1), without the class's share of the
    traffic; at the mean it is the sum of the variances / (A + 1). A label of class j adds 2 a_j + 1 to Q =
    sum_k a_k^2, so with c = sum_j p_j a_j the expectation is (1 - (Q + 2 c + 1) / (A + 1)^2) / (A + 2),
    without a sum over pairs of classes.
    """
    betas.require_positive(alpha)
    total, square = alpha.sum(axis=-1), np.einsum("...k,...k->...", alpha, alpha)
    likely = np.einsum("...k,...k->...", alpha, probabilities)
    # Over one denominator: the difference is smaller than its terms by a factor of A.
    remaining = (3 * total + 2) * square / total**2
    return np.asarray((total + 2 + 2 * likely - remaining) / ((total + 1) ** 2 * (total + 2)), np.float64)


def sample(alpha: Floats, rng: np.random.Generator) -> Floats:
    """A draw for every parameter vector [..., K]; each sums to 1, however small the parameters.

    Gamma(a) is drawn as Gamma(a + 1) U^(1 / a), in logarithms: with parameters such as 1e-6 every gamma
    variate would be 0, and their shares undefined.
    """
    betas.require_positive(alpha)
    logs = np.log(rng.standard_gamma(alpha + 1.0))
    logs -= rng.standard_exponential(logs.shape) / alpha
    return np.asarray(special.softmax(logs, axis=-1), np.float64)


def cost_moments(alpha: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Mean and variance [...] of the expected cost sum_k c_k theta_k, for costs c_k of any unit [..., K]."""
    shares = mean(alpha)
    expected = np.einsum("...k,...k->...", shares, costs)
    spread = np.einsum("...k,...k->...", shares, (costs - expected[..., None]) ** 2)
    return expected, spread / (alpha.sum(axis=-1) + 1)
