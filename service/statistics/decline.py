"""Anytime-valid evidence that a group is less accurate than in a reference, itself known only by labels.

`log_e_below` tests against a *known* accuracy. That of a reference is unknown. Let r be its true value: one
e-process tests r by the reference's labels, another tests "the accuracy now is r or more". A weighted mean of
both is an e-process too, and the minimum of these means over all r is no more than the one at the true r: an
e-process for "it is as accurate as the reference", whatever that is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from service.domain.arrays import Floats
from service.statistics.e_processes import log_e_below, log_e_is_not
from service.statistics.ratios import ratio

_OF_REFERENCE: Final = 0.2  # weight of the evidence against r
_BISECTIONS: Final = 40
_NEAR_END: Final = 1e-9


def log_e_declined(
    correct: Floats, wrong: Floats, reference_correct: Floats, reference_wrong: Floats
) -> Floats:
    """Log e-value against "the accuracy is no lower than in the reference".

    Valid while either sample grows. With a long reference it is nearly that against a known accuracy. Counts
    of correct and wrong labels, now and in the reference, may be of any shape.

    Raises:
        ValueError: a count is negative.
    """
    now = np.asarray(correct, np.float64), np.asarray(wrong, np.float64)
    then = np.asarray(reference_correct, np.float64), np.asarray(reference_wrong, np.float64)
    s, f, s0, f0 = np.broadcast_arrays(*now, *then)
    likeliest = ratio(s0, s0 + f0, _NEAR_END)
    # Below the likeliest reference, the lower it is the more speaks against it, and the less for a decline.
    low, high = np.full(s.shape, _NEAR_END), np.clip(likeliest, _NEAR_END, 1 - _NEAR_END)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        against, decline = _weighted(s, f, s0, f0, middle)
        too_low = against > decline
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    # Where the two cross neither is more than the least mean, and their sum no less: so the greater is told.
    return np.maximum(*_weighted(s, f, s0, f0, low))


def _weighted(s: Floats, f: Floats, s0: Floats, f0: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Weighted log e-values against a reference accuracy, and against "the accuracy now is that or more"."""
    return (
        np.log(_OF_REFERENCE) + log_e_is_not(s0, f0, reference),
        np.log1p(-_OF_REFERENCE) + log_e_below(s, f, reference),
    )
