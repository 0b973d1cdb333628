"""An estimate with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


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
        exists = ~np.isnan(draws)
        some = exists.any(axis=0)
        # Where no draw exists, nothing does: a number in their place is taken away below.
        kept = np.where(some, draws, 0.0)
        tail = (1 - mass) / 2
        lower, upper = np.nanquantile(kept, [tail, 1 - tail], axis=0)
        mean = np.nanmean(kept, axis=0)
        return cls(*(np.where(some, each, np.nan) for each in (lower, mean, upper)))
