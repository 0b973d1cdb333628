"""E-values of a decline after every label of one group, for benchmarks that look after each."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.e_detector import log_ratios, log_stakes, log_wealth_of_bets


def log_e_changed(correct: Flags, accuracy: float) -> Floats:
    """Log e-value of a decline after every label, by outcomes in their order [n].

    The accuracy is reached or exceeded before a decline.

    Raises:
        ValueError: the accuracy is not strictly within 0 and 1.
    """
    ratios = log_ratios(correct, accuracy)
    before = np.cumsum(ratios, axis=0) - ratios
    numbers = np.arange(len(correct), dtype=np.float64)
    # Sum over beginnings j of the stake times exp(S_n - S_j), of all n at once.
    begun = np.logaddexp.accumulate(log_stakes(numbers)[:, None] - before, axis=0)
    return log_wealth_of_bets(before + ratios + begun, numbers + 1)
