"""Places of further draws of labelled items: a label has one in the sample of each grouping that drew it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Indices, Ints
from service.domain.request_order import Places
from service.monitoring.column_buffer import GrowingColumns

GroupKey = tuple[str, str]
"""What a grouping is known by, and the name of a group."""

_SEQUENCE_BITS = 20
"""Of a key, for the sequence number: a million entries a millisecond."""


def outcome_keys(milliseconds: npt.NDArray[Any], sequence: npt.NDArray[Any]) -> Ints:
    """Positions of outcomes in their stream as one number each, in the same order [n]."""
    return milliseconds.astype(np.int64) << _SEQUENCE_BITS | sequence.astype(np.int64)


class SharedDraws:
    """Draws whose label had been requested before, for another grouping."""

    def __init__(self) -> None:
        self._columns = GrowingColumns(
            {"outcome": np.int64, "place": np.uint64, "grouping": np.int32, "group": np.int32}
        )
        self._groupings: dict[str, int] = {}
        self._groups: dict[GroupKey, int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, outcome: int, place: int, *, grouping: str, group: GroupKey) -> None:
        """Add a draw.

        Args:
            outcome: key of the outcome, as `outcome_keys` gives it.
            place: of the draw in the order of requests.
            grouping: that the item was drawn for, by name.
            group: that it was drawn for.
        """
        self._columns.extend(
            outcome=[outcome],
            place=np.array([place], np.uint64),
            grouping=[self._groupings.setdefault(grouping, len(self._groupings))],
            group=[self._groups.setdefault(group, len(self._groups))],
        )

    def places(self, grouping: str, outcomes: Ints, places: Places) -> Places:
        """Places of outcomes in the sample of one grouping [n].

        Args:
            grouping: its name.
            outcomes: keys of the outcomes, ascending [n].
            places: of their requests [n].
        """
        code = self._groupings.get(grouping)
        if code is None:
            return places
        chosen = np.flatnonzero(self._columns["grouping"] == code)
        rows, found = _rows(outcomes, self._columns["outcome"][chosen])
        own = places.copy()
        own[rows[found]] = self._columns["place"][chosen[found]]
        return own

    def first_places(self, outcomes: Ints) -> dict[GroupKey, int]:
        """Of every group that such draws were made for, the place of the first one.

        Args:
            outcomes: keys of the outcomes that are there, ascending [n].
        """
        firsts = np.full(len(self._groups), np.iinfo(np.uint64).max, dtype=np.uint64)
        _, found = _rows(outcomes, self._columns["outcome"])
        np.minimum.at(firsts, self._columns["group"][found], self._columns["place"][found])
        told = zip(self._groups, firsts.tolist(), strict=True)
        return {group: place for group, place in told if place != np.iinfo(np.uint64).max}

    def last_place(self, outcomes: Ints) -> int:
        """The highest place of draws that share the labels of some outcomes; 0 of none.

        Args:
            outcomes: keys of the outcomes, ascending [n].
        """
        _, found = _rows(outcomes, self._columns["outcome"])
        return int(self._columns["place"][found].max(initial=0))

    def keep(self, outcomes: Ints) -> None:
        """Let go of draws whose outcome is gone.

        Args:
            outcomes: keys of the outcomes that are there, ascending [n].
        """
        _, found = _rows(outcomes, self._columns["outcome"])
        kept = {name: self._columns[name][found].copy() for name in ("outcome", "place", "grouping", "group")}
        self._columns = GrowingColumns({name: column.dtype for name, column in kept.items()})
        self._columns.extend(**kept)


def _rows(outcomes: Ints, sought: Ints) -> tuple[Indices, Flags]:
    """Row of each outcome that is sought, and whether it is there [m]."""
    rows = np.searchsorted(outcomes, sought)
    found = np.zeros(len(sought), np.bool_)
    inside = rows < len(outcomes)
    found[inside] = outcomes[rows[inside]] == sought[inside]
    return rows, found
