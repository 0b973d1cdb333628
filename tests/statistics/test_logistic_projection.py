"""The logistic curve that is nearest to given probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from service.statistics.binary.logistic_projection import project_logistic

VALUES = np.linspace(-4, 4, 50)
DESIGN = np.column_stack((np.ones(50), VALUES))


def projected(probabilities: np.ndarray) -> np.ndarray:
    return project_logistic(DESIGN, probabilities, np.full(50, 0.02), towards=np.array([0.0, 1.0]))


def test_a_curve_is_nearest_to_itself() -> None:
    assert projected(special.expit(0.7 + 1.4 * VALUES)) == pytest.approx([0.7, 1.4], abs=1e-3)


def test_a_curve_near_a_step_is_steep_and_finite() -> None:
    assert 5 < projected((VALUES > 0).astype(float))[1] < 500
