"""Quotients of arrays that may have nothing to divide by."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats, Ints


def ratio(
    numerator: Floats | Ints | float, denominator: Floats | Ints, otherwise: Floats | float = np.nan
) -> Floats:
    """Numerator / denominator, which broadcast; `otherwise` where the denominator is not above 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient = np.array(np.broadcast_to(otherwise, shape), np.float64)
    return np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) > 0)
