"""Has a group become less accurate than it was? Evidence against a reference that is itself known by labels.

Whether the accuracy is below a *known* one is told by `log_e_below`. That of a reference is not known. Let r
be what it truly is: one e-process speaks against r, by the reference's labels, and another one against "now
it is r or more". A weighted mean of both is an e-process too, and so the least of these means over all r
is no more than the one at the true r: an e-process for "it is as accurate as the reference", whatever that
is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from service.domain.arrays import Floats
from service.statistics.e_processes import log_e_below, log_e_is_not

_OF_REFERENCE: Final = 0.2
"""Weight of the evidence against what the reference is taken for."""

_BISECTIONS: Final = 40
_NEAR_END: Final = 1e-9


def log_e_declined(
    correct: Floats, wrong: Floats, reference_correct: Floats, reference_wrong: Floats
) -> Floats:
    """Logarithm of the evidence that a group is less accurate than it was in the reference.

    Valid while either sample grows. Of a long reference it is nearly that of a known accuracy.

    Args:
        correct: labels that say so, of any shape.
        wrong: those that say otherwise.
        reference_correct: likewise, of the reference.
        reference_wrong: likewise.

    Raises:
        ValueError: a count is negative.
    """
    now = np.asarray(correct, np.float64), np.asarray(wrong, np.float64)
    then = np.asarray(reference_correct, np.float64), np.asarray(reference_wrong, np.float64)
    s, f, s0, f0 = np.broadcast_arrays(*now, *then)
    total = s0 + f0
    likeliest = np.divide(s0, total, out=np.full(s.shape, _NEAR_END), where=total > 0)
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
    """Weighted evidence, as logarithms: against a reference accuracy, and that it is now less than that."""
    return (
        np.log(_OF_REFERENCE) + log_e_is_not(s0, f0, reference),
        np.log1p(-_OF_REFERENCE) + log_e_below(s, f, reference),
    )
