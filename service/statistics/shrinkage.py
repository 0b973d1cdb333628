"""How much of a group's posterior comes from its own labels, and how much from the prior.

The posterior of a group with few labels is shrunk from the rate of its own labels towards what its scores and
the other groups predict (Efron and Morris, JASA 1975; Gelman et al., Bayesian Data Analysis, 3rd edition,
chapter 5). In a Beta-binomial model of strength N0, the mean given n labels with success rate r is lambda r +
(1 - lambda) m with lambda = n / (n + N0), the weight of its own labels. Other posteriors are worth as many
labels as the Beta with their mean and variance (effective sample size: Morita, Thall and Mueller, Biometrics
2008); the weight is then n over that number, and approximately how far the mean moves with the group's own
rate (`tests/simulation/test_pooling.py`).
"""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.ratios import ratio


def own_share(*, labels: Floats, mean: Floats, variance: Floats) -> Floats:
    """Weight of a group's own labels in its posterior [G], from their effective number and its moments."""
    alpha, beta = betas.matching(mean, variance)
    return labels / np.maximum(labels, alpha + beta)


def own_rate(*, labels: Floats, correct: Floats) -> Floats:
    """Success rate of a group's own labels alone [G], from effective numbers; NaN without any."""
    return ratio(correct, labels)
