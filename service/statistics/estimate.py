"""An estimate with its interval, and a curve with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices


@dataclass(frozen=True)
class Estimate:
    """Mean and interval of several numbers, arrays of one shape.

    Attributes:
        lower: lower end of the interval.
        mean: of what is believed; NaN of what cannot exist.
        upper: upper end of the interval.
    """

    lower: Floats
    mean: Floats
    upper: Floats

    def part(self, which: Indices) -> Estimate:
        """Some of the numbers."""
        return Estimate(self.lower[which], self.mean[which], self.upper[which])

    @classmethod
    def of(cls, draws: Floats, mass: float) -> Estimate:
        """Sum up draws [S, ...] of the numbers by equal-tailed intervals; draws that are NaN say nothing.

        Args:
            draws: of the numbers.
            mass: of the intervals, below 1.
        """
        kept, some = _kept(draws)
        tail = (1 - mass) / 2
        lower, upper = _quantiles(kept, [tail, 1 - tail])
        mean = np.nanmean(kept, axis=0)
        return cls(*(np.where(some, each, np.nan) for each in (lower, mean, upper)))


@dataclass(frozen=True)
class Band:
    """A curve and the band around it, arrays of one shape; NaN where the curve cannot exist.

    The curve is that of medians, of which the area to the true curve is expected to be least.

    Attributes:
        lower: lower edge of the band.
        median: the curve.
        upper: upper edge of the band.
    """

    lower: Floats
    median: Floats
    upper: Floats

    @classmethod
    def of(cls, draws: Floats, mass: float) -> Band:
        """Sum up draws [S, ...] of a curve point by point; draws that are NaN say nothing.

        Args:
            draws: of the curve.
            mass: of the band at each point, below 1.
        """
        kept, some = _kept(draws)
        tail = (1 - mass) / 2
        return cls(*(np.where(some, each, np.nan) for each in _quantiles(kept, [tail, 0.5, 1 - tail])))


def _kept(draws: Floats) -> tuple[Floats, Flags]:
    """Draws [S, ...] with a number where none exists, and where some do [...]."""
    some = np.asarray(~np.isnan(draws).all(axis=0))
    return np.where(some, draws, 0.0), some


def _quantiles(draws: Floats, shares: Sequence[float]) -> Floats:
    """Quantiles [Q, ...] of the draws [S, ...] that are numbers."""
    # What ignores NaN goes column by column, and takes ten times as long; mostly there are none.
    quantile = np.nanquantile if np.isnan(draws).any() else np.quantile
    found: Floats = quantile(draws, shares, axis=0)
    return found
