"""How precision and recall depend on the probability of the positive class in each group of scores."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats

_LEAST_PREVALENCE = 1e-6  # with fewer positive items, recall is undefined


def curve_influence(shares: Floats, positive: Floats) -> Floats:
    """Factor of the variance of P(positive) in every group [G], in the variance of precision and recall.

    With p_g the share of group g, q_g its probability of the positive class, c_t the share of the items that
    are called positive at threshold t, and r_t the recall there, to first order

        d precision_t / d q_g = p_g [g >= t] / c_t,   d recall_t / d q_g = p_g ([g >= t] - r_t) / sum p q,

    and the influence is the mean over the thresholds of the sum of both squares. Shares p and probabilities q
    are by group [G], the group of the lowest scores first.
    """
    tiny = np.finfo(float).tiny
    called = np.maximum(np.cumsum(shares[::-1])[::-1], tiny)
    right = np.cumsum((shares * positive)[::-1])[::-1]
    total = max(float(right[0]), _LEAST_PREVALENCE)
    above = np.tri(len(shares))
    precision, recall = above / called, (above - right / total) / total
    influence: Floats = shares**2 * (precision**2 + recall**2).mean(axis=1)
    return influence
