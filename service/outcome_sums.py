"""Outcomes that are alike, together: what beliefs are made from.

All that beliefs need of an outcome is its cell, who asked, whether the prediction was right, the true class,
and what forgetting leaves of it, which only ever is summed up. So a million outcomes are as many rows as
there are different ones, and every sum is known by one number.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.int64]

NO_CLASS = -1
"""Index of a class that the model does not have."""

_FIELD_BITS = 16
_FIELD = (1 << _FIELD_BITS) - 1
"""In a key the cell comes first, in the next field the code of who asked, in the last what was said."""

_CHALLENGER_BIT = _FIELD_BITS - 1
"""Highest of what was said: the settings allow 10,000 classes, which with `correct` fit the 15 below."""


class OutcomeSums(NamedTuple):
    """Outcomes that are alike, together; columns [s].

    Attributes:
        cells: cell of each.
        sources: codes of who asked.
        correct: 1.0 where the predicted class is the true one, else 0.0.
        true_classes: index of the true class, -1 for one that the model does not have; told where a grouping
            is by predicted class, else -1 throughout.
        counts: outcomes in each.
        freshness: sum of what forgetting leaves of them.
        challenger: 1.0 where a challenger's class is the true one, else 0.0; 0.0 throughout without one.
    """

    cells: Indices
    sources: Indices
    correct: Floats
    true_classes: Indices
    counts: Indices
    freshness: Floats
    challenger: Floats

    @classmethod
    def of(cls, keys: Keys, counts: Indices, freshness: Floats) -> Self:
        """From keys and what was summed up [s]."""
        said = keys & _FIELD
        alone = said & ((1 << _CHALLENGER_BIT) - 1)
        cells, sources = cells_and_sources(keys)
        return cls(
            cells=cells,
            sources=sources,
            correct=(alone & 1).astype(np.float64),
            true_classes=(alone >> 1).astype(np.intp) + NO_CLASS,
            counts=counts,
            freshness=freshness,
            challenger=(said >> _CHALLENGER_BIT).astype(np.float64),
        )

    def part(self, which: Flags) -> OutcomeSums:
        """Some of the rows [s]."""
        cells, sources, correct, true_classes, counts, freshness, challenger = self
        return OutcomeSums(
            cells[which],
            sources[which],
            correct[which],
            true_classes[which],
            counts[which],
            freshness[which],
            challenger[which],
        )


def sum_keys(
    *, cells: Indices, sources: Indices, true_classes: Indices, correct: Flags, challenger: Flags
) -> Keys:
    """Key of the sum that each outcome counts in [n]; arguments as the columns of `OutcomeSums`."""
    said = (true_classes.astype(np.int64) - NO_CLASS) << 1 | correct
    said |= challenger.astype(np.int64) << _CHALLENGER_BIT
    return (cells.astype(np.int64) << _FIELD_BITS | sources) << _FIELD_BITS | said


def cells_and_sources(keys: Keys) -> tuple[Indices, Indices]:
    """Cell of every sum, and code of who asked [s]."""
    return (keys >> 2 * _FIELD_BITS).astype(np.intp), (keys >> _FIELD_BITS & _FIELD).astype(np.intp)
