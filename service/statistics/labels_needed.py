"""What a group's labels are worth in its posterior, and how many more it needs."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas

_NODES = special.ndtri((np.arange(31) + 0.5) / 31)
_MARGIN = 1e-4  # accuracies are clipped to be this far from 0 and 1, where the normal approximation fails


def own_share(*, labels: Floats, mean: Floats, variance: Floats) -> Floats:
    """Weight of a group's own labels in its posterior [G], from their effective number and its moments.

    The posterior of a group with few labels is shrunk from the rate of its own labels towards what its scores
    and the other groups predict (Efron and Morris, JASA 1975; Gelman et al., Bayesian Data Analysis, 3rd
    edition, chapter 5). In a Beta-binomial model of strength N0, the mean given n labels with success rate r
    is lambda r + (1 - lambda) m with lambda = n / (n + N0), the weight of its own labels. Other posteriors
    are worth as many labels as the Beta with their mean and variance (effective sample size: Morita, Thall
    and Mueller, Biometrics 2008); the weight is then n over that number, and approximately how far the mean
    moves with the group's own rate (`tests/simulation/test_pooling.py`).
    """
    alpha, beta = betas.matching(mean, variance)
    return labels / np.maximum(labels, alpha + beta)


def labels_to_verdict(
    *, mean: Floats, variance: Floats, below: Floats, threshold: Floats | float, confidence: float
) -> Floats:
    """Labels until it is decided on which side of a threshold every accuracy is [G]; 0 once it is.

    The threshold t is one number, or each group's own [G]. The result is the median over the group's
    posterior. It is decided when t has probability c or more on one side; `below` is that below it [G]. A
    posterior of mean m and variance v [G] is worth n0 = m (1 - m) / v - 1 labels. If theta were true, its
    mean after n more would be expected at (n0 m + n theta) / (n0 + n), with a standard deviation of about s /
    sqrt(n0 + n), s^2 = theta (1 - theta). It is decided when the mean is z_c of these away from t: with d =
    |theta - t| and a = (m - t) sign(theta - t), the larger root x of d x^2 - z_c s x + n0 (a - d) = 0 gives n
    = x^2 - n0. The median is over the normal quantiles of theta.
    """
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 0.0)
    theta = np.clip(mean + _NODES[:, None] * np.sqrt(variance), _MARGIN, 1 - _MARGIN)
    distance = np.maximum(np.abs(theta - threshold), 1e-9)
    ahead = (mean - threshold) * np.sign(theta - threshold)
    needed = special.ndtri(confidence) * np.sqrt(theta * (1 - theta))
    discriminant = needed**2 - 4 * distance * size * (ahead - distance)
    root = (needed + np.sqrt(np.maximum(discriminant, 0.0))) / (2 * distance)
    more = np.where(discriminant > 0, np.maximum(root**2 - size, 0.0), 0.0)
    is_decided = (below >= confidence) | (below <= 1 - confidence)
    return np.where(is_decided, 0.0, np.maximum(np.median(more, axis=0), 1.0))
