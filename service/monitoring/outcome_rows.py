"""The outcomes of one model as columns, in the order of their stream."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Flags, Indices, Ints, UInt64s
from service.monitoring.column_buffer import GrowingColumns
from service.monitoring.outcome_aggregates import mixed
from service.monitoring.shared_draws import outcome_keys
from service.store.facts import Position

NONE = -1
"""No predicted class, no sum."""

_COLUMNS = {
    "milliseconds": np.int64,
    "sequence": np.uint32,
    "predicted_at": np.float64,
    "given_at": np.float64,
    "combination": np.int32,
    "predicted": np.int16,
    "score": np.float64,
    "source": np.int32,
    "true_class": np.int16,
    "correct": np.bool_,
    "challenger": np.bool_,
    "alive": np.bool_,
    "sum": np.int32,
    "place": np.uint64,
    "drawn_for": np.int32,
}
"""Of every outcome, 67 bytes. The settings allow 10,000 classes, which fit 16 bits.

`sum` is which of the sums it counts in: none if it is retracted, or of a class that the model does not have.
`place` is that of its request among all requests, and `drawn_for` the group that the request was drawn for.
"""

_SEQUENCE_BITS = 20
"""Of a mark, before it is mixed, for the sequence number: a million entries a millisecond."""


class OutcomeRows(GrowingColumns):
    """The columns of outcomes; a row is found by the position of its entry."""

    def __init__(self) -> None:
        super().__init__(_COLUMNS)

    def row(self, position: Position) -> int | None:
        """Row of the outcome at a position of the stream, if it is there."""
        row = self.first_from(position)
        if row == len(self) or (self["milliseconds"][row], self["sequence"][row]) != position:
            return None
        return row

    def first_from(self, position: Position) -> int:
        """Row of the first outcome at this position, or behind it."""
        milliseconds, sequence = position
        column = self["milliseconds"]
        begin, end = (int(np.searchsorted(column, milliseconds, side)) for side in ("left", "right"))
        return begin + int(np.searchsorted(self["sequence"][begin:end], sequence))

    def outcome_keys(self, rows: slice = slice(None)) -> Ints:
        """Positions as one number each, in the same order [n]."""
        return outcome_keys(self["milliseconds"][rows], self["sequence"][rows])

    def marks(self, rows: Indices) -> UInt64s:
        """Which outcome each is, and whether it is right, as a number as good as random [n]."""
        places = self["milliseconds"][rows] << _SEQUENCE_BITS | self["sequence"][rows]
        return mixed(places << 1 | self["correct"][rows])

    def renumber(self, name: str, count: int) -> Flags:
        """Number the codes of a column without gaps.

        Args:
            name: of the column.
            count: codes before.

        Returns:
            Which codes are still used [count].
        """
        column = self[name]
        kept: Flags = np.bincount(column[column != NONE], minlength=count) > 0
        column[:] = np.append(np.cumsum(kept) - 1, NONE)[column]  # -1 is the last one, and stays
        return kept
