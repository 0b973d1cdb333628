"""Whether what is missing depends on what is seen: approximate Bayes factors within strata."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Flags, Floats, Indices

_SPREAD = 1.0  # standard deviation of the log odds ratio that dependence is expected to have


def log_bayes_factor(outcome: Flags, covariate: Floats, strata: Indices) -> float:
    """Log Bayes factor of "the odds of an outcome depend on a covariate" against "they do not".

    Each stratum has odds of its own. The log odds ratio per unit of the covariate is normal under dependence,
    with mean 0 and standard deviation 1, and estimated by one step from the score test (Cochran, 1954;
    Wakefield, Genetic Epidemiology 2009, eq. 2). It is 0 where nothing can be learned.

    Args:
        outcome: of every observation [n].
        covariate: likewise [n].
        strata: number of each observation's stratum, from 0 [n].
    """
    sizes = np.bincount(strata).astype(np.float64)
    filled = np.maximum(sizes, 1.0)
    rates = np.bincount(strata, outcome) / filled
    centred = covariate - (np.bincount(strata, covariate) / filled)[strata]
    score = float(((outcome - rates[strata]) * centred).sum())
    spreads = np.bincount(strata, centred**2)
    # The variance of the score given how often the outcome occurs in each stratum.
    information = float((rates * (1 - rates) * filled / np.maximum(filled - 1, 1.0) * spreads).sum())
    if information <= 0:
        return 0.0
    variance, expected = 1 / information, _SPREAD**2
    gain = expected / (variance + expected)
    return float(0.5 * np.log1p(-gain) + 0.5 * score**2 / information * gain)


def ranks(values: Floats) -> Floats:
    """Ranks with mean 0 and, without ties, standard deviation 1; equal values have equal ranks [n]."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - counts / 2
    return np.asarray(np.sqrt(12.0) * (middles[inverse.ravel()] / max(len(values), 1) - 0.5), np.float64)
