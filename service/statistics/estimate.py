"""Estimates with their intervals: posterior means, and posterior medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices


@dataclass(frozen=True)
class Estimate:
    """Means and intervals of several quantities, arrays of one shape; NaN where one does not exist."""

    lower: Floats
    mean: Floats
    upper: Floats

    def part(self, which: Indices) -> Estimate:
        """The estimates of some of the quantities."""
        return Estimate(self.lower[which], self.mean[which], self.upper[which])

    @classmethod
    def of(cls, draws: Floats, mass: float) -> Estimate:
        """Mean and equal-tailed interval from draws [S, ...], of which NaN are ignored."""
        filled, is_filled = _fill_empty(draws)
        tail = (1 - mass) / 2
        lower, upper = _quantiles(filled, [tail, 1 - tail])
        mean = np.nanmean(filled, axis=0)
        return cls(*(np.where(is_filled, each, np.nan) for each in (lower, mean, upper)))


@dataclass(frozen=True)
class MedianEstimate:
    """Medians and intervals of several quantities, arrays of one shape; NaN where one does not exist.

    A median minimises the expected absolute error. So a curve of medians minimises the expected area to the
    true curve, and where a posterior is skewed, the median is amid its mass and the mean is not.
    """

    lower: Floats
    median: Floats
    upper: Floats

    def part(self, which: Indices) -> MedianEstimate:
        """The estimates of some of the quantities."""
        return MedianEstimate(self.lower[which], self.median[which], self.upper[which])

    @classmethod
    def of(cls, draws: Floats, mass: float) -> MedianEstimate:
        """Median and equal-tailed interval from draws [S, ...], of which NaN are ignored."""
        filled, is_filled = _fill_empty(draws)
        tail = (1 - mass) / 2
        return cls(*(np.where(is_filled, each, np.nan) for each in _quantiles(filled, [tail, 0.5, 1 - tail])))


def _fill_empty(draws: Floats) -> tuple[Floats, Flags]:
    """Draws [S, ...], with 0 for columns that are all NaN, and which columns are not [...]."""
    is_filled = np.asarray(~np.isnan(draws).all(axis=0))
    return np.where(is_filled, draws, 0.0), is_filled


def _quantiles(draws: Floats, shares: Sequence[float]) -> Floats:
    """Quantiles [Q, ...] of the draws [S, ...] that are numbers."""
    # What ignores NaN goes column by column, and takes ten times as long; mostly there are none.
    quantile = np.nanquantile if np.isnan(draws).any() else np.quantile
    found: Floats = quantile(draws, shares, axis=0)
    return found
