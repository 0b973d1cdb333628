"""The outcomes of one model as columns, in the order of their stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Indices, Ints, UInt64s
from service.monitoring.outcome_aggregates import mixed
from service.store.facts import Position

_FEWEST = 64
_GROWTH = 1.25

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
"""Of a key, or of a mark before it is mixed, for the sequence number: a million entries a millisecond."""


class GrowingColumns:
    """Named columns of equal length, which grow at their end and are forgotten from their beginning.

    Invariant: there is room for a quarter more rows than there ever were at one time, whatever has come and
    gone.
    """

    def __init__(self, types: Mapping[str, npt.DTypeLike]) -> None:
        self._begin = 0
        self._end = 0
        self._room = _FEWEST
        self._columns = {name: np.zeros(_FEWEST, dtype=kind) for name, kind in types.items()}

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The rows of one column [n]: a view, good for writing until rows are added or forgotten."""
        return self._columns[name][self._begin : self._end]

    def extend(self, **values: npt.ArrayLike) -> None:
        """Add rows; every column is given, all of one length."""
        count = len(np.asarray(next(iter(values.values()))))
        if self._end + count > self._room:
            self._make_room(count)
        for name, column in self._columns.items():
            column[self._end : self._end + count] = values[name]
        self._end += count

    def forget(self, count: int) -> None:
        """Drop so many rows from the beginning."""
        self._begin += count

    def drop(self, rows: Indices) -> None:
        """Drop some rows, wherever they stand."""
        kept = np.delete(np.arange(len(self)), rows)
        for name in self._columns:
            self[name][: len(kept)] = self[name][kept]
        self._end = self._begin + len(kept)

    def _make_room(self, count: int) -> None:
        """Move the rows to the front; to where there is more room, if they would soon not fit again."""
        length = len(self)
        wanted = int(_GROWTH * (length + count))
        grows = wanted > self._room
        self._room = max(self._room, wanted)
        for name, column in self._columns.items():
            kept = column[self._begin : self._end].copy()
            if grows:
                self._columns[name] = np.zeros(self._room, dtype=column.dtype)
            self._columns[name][:length] = kept
        self._begin, self._end = 0, length


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
        keys: Ints = self["milliseconds"][rows] << _SEQUENCE_BITS | self["sequence"][rows]
        return keys

    def marks(self, rows: Indices) -> UInt64s:
        """Which outcome each is, and whether it is right, as a number as good as random [n]."""
        keys = self["milliseconds"][rows] << _SEQUENCE_BITS | self["sequence"][rows]
        return mixed(keys << 1 | self["correct"][rows])

    def renumber(self, name: str, count: int) -> Flags:
        """Number the `count` codes of a column without gaps; which ones are still used [count]."""
        column = self[name]
        kept: Flags = np.bincount(column[column != NONE], minlength=count) > 0
        column[:] = np.append(np.cumsum(kept) - 1, NONE)[column]  # -1 is the last one, and stays
        return kept
