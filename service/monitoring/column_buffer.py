"""Columns that grow at their end and are forgotten from their beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Indices

_FEWEST = 64
_GROWTH = 1.25


class GrowingColumns:
    """Named columns of equal length.

    Invariant: there is room for a quarter more rows than there ever were at one time, whatever has come and
    gone.

    Args:
        types: type of every column, by name.
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
            there = column[self._begin : self._end].copy()
            if grows:
                self._columns[name] = np.zeros(self._room, dtype=column.dtype)
            self._columns[name][:length] = there
        self._begin, self._end = 0, length
