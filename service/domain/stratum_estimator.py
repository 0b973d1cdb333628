"""What is kept of the draw of a stratum, so that its label is evidence on error rates (pure).

A group's strata are known by their shares of its traffic. One of them is drawn with a known probability, and
a random item of it is labelled. With what was expected of all strata before, ten numbers make the label an
unbiased estimate of what any rate counts (`service/statistics/rates/drawn_evidence.py`). They are fixed when
the label is requested: whatever comes later, each label has one factor in the evidence.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Floats

NUMBERS: Final = (
    "other",
    "selected",
    "other_positive",
    "selected_positive",
    "other_rise",
    "selected_rise",
    "other_fall",
    "selected_fall",
    "expected",
    "weight",
)
"""Share of the group's traffic that could be drawn, of items of other classes and of the positive one; the
expected share of the group's traffic that is of these, and is positive; by how much a positive item of any of
these strata is above what was expected, times its weight, at the most, and a negative one below; the share of
positive items that was expected in the label's stratum; and its weight, which is its share over the
probability that it was drawn."""

ESTIMATOR_BYTES: Final = 4 * len(NUMBERS)
ESTIMATOR_TYPE: Final = f"V{ESTIMATOR_BYTES}"
"""Of a numpy column of packed numbers."""

NOTHING: Final = bytes(ESTIMATOR_BYTES)
"""Of a label that is not of a drawn stratum."""


def packed_estimator(numbers: Floats) -> bytes:
    """Numbers of one draw [10], as they are kept."""
    return numbers.astype("<f4").tobytes()


def unpacked_estimators(column: npt.NDArray[np.void]) -> Floats:
    """Numbers of draws [n, 10], from a column [n]."""
    return np.ascontiguousarray(column).view("<f4").reshape(len(column), len(NUMBERS)).astype(np.float64)
