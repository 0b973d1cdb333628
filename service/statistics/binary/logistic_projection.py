"""The logistic curve that is nearest to given probabilities."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats

_NEWTON_STEPS = 100
_LONGEST_STEP = 2.0
_CONVERGED = 1e-9
_RIDGE = 1e-6


def project_logistic(design: Floats, probabilities: Floats, shares: Floats, *, towards: Floats) -> Floats:
    """Coefficients [D] of the logistic curve of a design [B, D] that is nearest to given probabilities [B].

    It maximises the expected likelihood of labels drawn from the probabilities, with shares of items that sum
    to 1 [B], by Newton's method. A small ridge towards given coefficients [D] keeps them finite where the
    classes are separable.
    """
    at = towards
    for _ in range(_NEWTON_STEPS):
        fitted = special.expit(design @ at)
        gradient = design.T @ (shares * (probabilities - fitted)) - _RIDGE * (at - towards)
        curvature = design.T @ (design * (shares * fitted * (1 - fitted))[:, None]) + _RIDGE * np.eye(len(at))
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        at = at + step * min(1.0, _LONGEST_STEP / max(largest, _CONVERGED))
        if largest < _CONVERGED:
            break
    return at
