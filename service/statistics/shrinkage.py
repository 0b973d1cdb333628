"""How far the belief about a group rests on its own labels, and how far on what all others tell.

A group of few labels is drawn from the rate of its own labels towards what its scores and the other groups
say of it: it is shrunken (Efron and Morris, JASA 1975; Gelman et al., Bayesian Data Analysis, 3rd edition,
chapter 5). In a Beta-binomial model of strength N0, the mean of n labels that are right at a rate r is

    lambda r + (1 - lambda) m,    lambda = n / (n + N0),

so lambda is the share that its own labels have. Other beliefs are no Beta, but are worth as many labels as
the Beta with their mean and variance (Morita, Thall and Mueller, Biometrics 2008, on effective sample sizes);
n over that number is the share then. It is also how far the mean moves where the own rate moves, about:
`tests/simulation/test_pooling.py` moves it.
"""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas


def own_share(*, labels: Floats, mean: Floats, variance: Floats) -> Floats:
    """Share of a belief that comes from a group's own labels, in [0, 1].

    Args:
        labels: effective number of the group's own [G].
        mean: of what is believed of its accuracy [G].
        variance: of the same [G].
    """
    alpha, beta = betas.matching(mean, variance)
    return labels / np.maximum(labels, alpha + beta)


def own_rate(*, labels: Floats, correct: Floats) -> Floats:
    """How many of a group's own labels say that it is right, by themselves [G]; NaN without any.

    Args:
        labels: effective number of the group's own [G].
        correct: of these, those that say so [G].
    """
    rate: Floats = np.full(labels.shape, np.nan)
    np.divide(correct, labels, out=rate, where=labels > 0)
    return rate
