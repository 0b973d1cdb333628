"""The accuracy of the weakest group of a grouping, whichever it is: the minimum over the groups."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.mixture import BetaMixture

_HALVINGS = 11  # of the range of accuracies, to 0.0005


def weakest_lower_end(accuracy: BetaMixture, tail: float) -> float:
    """The quantile of min_g theta_g with probability `tail`, given the posterior of the groups [J, G].

    Given the component j groups are independent: P(min > x) = sum_j w_j prod_g P(theta_g > x | j). It is
    below the lower end of any group's own interval, as any group may be the weakest.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # betaincc, ten times as slow, would be more exact only for groups that are surely below.
        above = 1 - special.betainc(accuracy.alpha, accuracy.beta, middle)
        if 1 - float(accuracy.weights @ above.prod(axis=-1)) < tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def probability_of_any(probabilities: Floats, choices: int) -> float:
    """A lower bound of the probability that something holds of the group of which it is most probable [n].

    The group is one of so many that could have been chosen (Bonferroni's inequality): unlike the posterior
    probability that it holds of any group, the bound does not depend on how groups differ. Where groups are
    alike, the spread between them, which labels never show to be 0, makes it nearly certain that one of many
    is far below the others.
    """
    return max(0.0, 1 - choices * float(1 - np.max(probabilities)))
