"""The logistic curves that are nearest to given probabilities."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats

_NEWTON_STEPS = 100
_LONGEST_STEP = 2.0
_CONVERGED = 1e-9
_RIDGE = 1e-6


def project_logistic(design: Floats, probabilities: Floats, shares: Floats, *, towards: Floats) -> Floats:
    """Coefficients [S, D] of the logistic curves of a design [B, D] that are nearest to probabilities [S, B].

    Each maximises the expected likelihood of labels drawn from its probabilities, with shares of items that
    sum to 1 [B], by Newton's method. A small ridge towards given coefficients [D] keeps them finite where the
    classes are separable.
    """
    size = len(towards)
    squares = (design[:, :, None] * design[:, None, :]).reshape(-1, size * size)
    found = np.tile(towards, (len(probabilities), 1))
    moving = np.arange(len(found))
    for _ in range(_NEWTON_STEPS):
        at = found[moving]
        fitted = special.expit(at @ design.T)
        gradient = (shares * (probabilities[moving] - fitted)) @ design - _RIDGE * (at - towards)
        curvature = ((shares * fitted * (1 - fitted)) @ squares).reshape(-1, size, size)
        step = np.linalg.solve(curvature + _RIDGE * np.eye(size), gradient[..., None])[..., 0]
        largest = np.abs(step).max(axis=1)
        found[moving] += step * np.minimum(1.0, _LONGEST_STEP / np.maximum(largest, _CONVERGED))[:, None]
        moving = moving[largest >= _CONVERGED]
        if not len(moving):
            break
    return found
