"""How far precision and recall move with what is believed of the items of one score."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats

_LEAST_PREVALENCE = 1e-6
"""Where next to nothing is positive, there is no recall to know."""


def curve_influence(shares: Floats, positive: Floats) -> Floats:
    """By how much the variance of precision and recall grows with that of P(positive) in every group [G].

    With p_g the share of group g, q_g its probability of the positive class, c_t the share of the items
    that are called positive at threshold t, and r_t the recall there, to first order

        d precision_t / d q_g = p_g [g >= t] / c_t,   d recall_t / d q_g = p_g ([g >= t] - r_t) / sum p q,

    and the influence is the mean over the thresholds of the sum of both, squared each.

    Args:
        shares: of the items, of every group [G], the group of the lowest scores first.
        positive: probability of the positive class in every group [G].
    """
    tiny = np.finfo(float).tiny
    called = np.maximum(np.cumsum(shares[::-1])[::-1], tiny)
    right = np.cumsum((shares * positive)[::-1])[::-1]
    total = max(float(right[0]), _LEAST_PREVALENCE)
    above = np.tri(len(shares))
    precision, recall = above / called, (above - right / total) / total
    influence: Floats = shares**2 * (precision**2 + recall**2).mean(axis=1)
    return influence
