"""How far precision and recall move with what is believed of one score."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.tasks import curve_influence

SHARES = np.array([0.6, 0.2, 0.15, 0.05])
POSITIVE = np.array([0.02, 0.2, 0.6, 0.95])


def curves(positive: np.ndarray) -> np.ndarray:
    """Precision and recall at every threshold [2, T]."""
    right = np.cumsum((SHARES * positive)[::-1])[::-1]
    return np.stack((right / np.cumsum(SHARES[::-1])[::-1], right / right[0]))


def test_it_is_the_squared_slope_of_both_curves() -> None:
    step = 1e-6
    found = curve_influence(SHARES, POSITIVE)
    for group in range(len(SHARES)):
        moved = POSITIVE + step * (np.arange(len(SHARES)) == group)
        slope = (curves(moved) - curves(POSITIVE)) / step
        assert found[group] == pytest.approx((slope**2).sum(axis=0).mean(), rel=1e-4)


def test_no_positive_item_at_all_is_no_error() -> None:
    assert np.all(np.isfinite(curve_influence(SHARES, np.zeros(4))))
