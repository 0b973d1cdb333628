"""The logistic curves that are nearest to given probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from service.statistics.binary.logistic_projection import project_logistic

VALUES = np.linspace(-4, 4, 50)
DESIGN = np.column_stack((np.ones(50), VALUES))


def projected(probabilities: np.ndarray) -> np.ndarray:
    (curve,) = project_logistic(DESIGN, probabilities[None], np.full(50, 0.02), towards=np.array([0.0, 1.0]))
    return curve


def test_a_curve_is_nearest_to_itself() -> None:
    assert projected(special.expit(0.7 + 1.4 * VALUES)) == pytest.approx([0.7, 1.4], abs=1e-3)


def test_a_curve_near_a_step_is_steep_and_finite() -> None:
    assert 5 < projected((VALUES > 0).astype(float))[1] < 500


def test_curves_are_the_same_alone_and_together() -> None:
    draws = np.array([special.expit(0.7 + 1.4 * VALUES), VALUES > 0, np.full(50, 0.01)], float)
    together = project_logistic(DESIGN, draws, np.full(50, 0.02), towards=np.array([0.0, 1.0]))
    assert together == pytest.approx(np.array([projected(each) for each in draws]), abs=1e-9)
