"""The outcomes of one model as columns, in the order of their stream, and what they were drawn for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Codes, Flags, Indices, Ints, UInt64s
from service.domain.cells import grouping_key
from service.domain.request_order import NO_PLACE, Places
from service.monitoring.outcome_aggregates import NO_CLASS, mixed
from service.store.outcome_entries import Position
from service.store.records import Fact

_FEWEST = 64
_GROWTH = 1.25

NONE = -1  # no predicted class, no sum

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
    "pending": np.bool_,
    "place": np.uint64,
    "drawn_for": np.int32,
    "suspected": np.bool_,
    "attempt": np.uint8,
}
"""Of every outcome, 70 bytes. The settings allow 10,000 classes, which fit 16 bits.

`sum` is which of the sums it counts in: none if it is retracted, of a class that the model does not have,
or `pending`, which means that its sum is to be found.
`true_class` is an index, or says why there is no label (`outcome_aggregates`).
`place` is that of its request among all requests, `drawn_for` the group that the request was drawn for, and
`suspected` whether that group was under suspicion then.
"""

RIVAL_COLUMN: Final = {"rival": np.int16}
"""Of every outcome, if labels may be wrong and there are other classifiers: 2 bytes more.

The class of a challenger, or the positive one of an ensemble, where that is not the predicted class; or none.
"""

_SEQUENCE_BITS = 20
"""Of a key, or of a mark before it is mixed, for the sequence number: a million entries a millisecond."""


def position_key(position: Position) -> int:
    """A position of the stream as one number, in the same order."""
    milliseconds, sequence = position
    return milliseconds << _SEQUENCE_BITS | sequence


def key_position(key: int) -> Position:
    """The position of which `position_key` made a number."""
    return key >> _SEQUENCE_BITS, key & (1 << _SEQUENCE_BITS) - 1


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

    def __init__(self, more: Mapping[str, npt.DTypeLike] | None = None) -> None:
        super().__init__({**_COLUMNS, **(more or {})})

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
        """Which outcome each is, and what its label says, as a number as good as random [n].

        That is whether the prediction is right, or that there is no label.
        """
        keys = self["milliseconds"][rows] << _SEQUENCE_BITS | self["sequence"][rows]
        unanswered = self["true_class"][rows] < NO_CLASS
        return mixed(keys << 2 | unanswered.astype(np.int64) << 1 | self["correct"][rows])

    def renumber(self, name: str, count: int) -> Flags:
        """Number the `count` codes of a column without gaps; which ones are still used [count]."""
        column = self[name]
        kept: Flags = np.bincount(column[column != NONE], minlength=count) > 0
        column[:] = np.append(np.cumsum(kept) - 1, NONE)[column]  # -1 is the last one, and stays
        return kept


GroupKey = tuple[str, str]
"""What a grouping is known by, as `grouping_key` makes it, and the name of one of its groups."""

_BY_VOTES: GroupKey = ("", "")  # what requests were drawn for that were aimed by votes


def drawn_group(fact: Fact) -> GroupKey:
    """The group that a request was drawn for."""
    return _BY_VOTES if fact.voters else (grouping_key(fact.grouping, fact.definition), fact.group)


class DrawnGroups:
    """Numbers the groups that labels were requested for, in the order in which requests bring them."""

    def __init__(self) -> None:
        self._codes: dict[GroupKey, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, fact: Fact) -> int:
        """Code of the group that a request was drawn for; of a new one, the next number."""
        return self._codes.setdefault(drawn_group(fact), len(self._codes))

    def first_places(
        self, codes: Codes, places: Places, further: Mapping[GroupKey, int]
    ) -> dict[GroupKey, int]:
        """Place of the first request, or further draw, of every group; groups by votes are left out.

        Of every request, `codes` has the group that it was drawn for, and `places` its place [n].
        """
        found = np.full(len(self._codes), NO_PLACE, np.uint64)
        np.minimum.at(found, codes, places)
        firsts = dict(zip(self._codes, found.tolist(), strict=True))
        for key, place in further.items():
            firsts[key] = min(place, firsts.get(key, NO_PLACE))
        return {key: place for key, place in firsts.items() if place != NO_PLACE and key != _BY_VOTES}

    def keep(self, kept: Flags) -> None:
        """Let go of groups but these [codes], and number those without gaps."""
        self._codes = {key: number for number, key in enumerate(compress(self._codes, kept))}


class SharedDraws:
    """Further draws of items whose label had been requested before, for another grouping.

    A label has a place in the sample of each grouping that drew it. Outcomes are known by their keys, as
    `OutcomeRows.outcome_keys` gives them; methods take those that are there, ascending [n].
    """

    def __init__(self) -> None:
        self._columns = GrowingColumns(
            {
                "outcome": np.int64,
                "place": np.uint64,
                "grouping": np.int32,
                "group": np.int32,
                "suspected": np.bool_,
            }
        )
        self._groupings: dict[str, int] = {}
        self._groups: dict[GroupKey, int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, outcome: int, place: int, *, grouping: str, group: GroupKey, suspected: bool) -> None:
        """Add a draw of an outcome, for a group of a grouping; its place is in the order of requests."""
        self._columns.extend(
            outcome=[outcome],
            place=np.array([place], np.uint64),
            grouping=[self._groupings.setdefault(grouping, len(self._groupings))],
            group=[self._groups.setdefault(group, len(self._groups))],
            suspected=[suspected],
        )

    def places(self, grouping: str, outcomes: Ints, places: Places, suspected: Flags) -> tuple[Places, Flags]:
        """Places of outcomes in the sample of one grouping, from those of their requests [n].

        And whether their groups in that grouping were suspected, likewise.
        """
        code = self._groupings.get(grouping)
        if code is None:
            return places, suspected
        chosen = np.flatnonzero(self._columns["grouping"] == code)
        rows, found = _rows(outcomes, self._columns["outcome"][chosen])
        own, flags = places.copy(), suspected.copy()
        own[rows[found]] = self._columns["place"][chosen[found]]
        flags[rows[found]] = self._columns["suspected"][chosen[found]]
        return own, flags

    def first_places(self, outcomes: Ints) -> dict[GroupKey, int]:
        """Of every group that such draws were made for, the place of the first one."""
        firsts = np.full(len(self._groups), NO_PLACE, dtype=np.uint64)
        _, found = _rows(outcomes, self._columns["outcome"])
        np.minimum.at(firsts, self._columns["group"][found], self._columns["place"][found])
        places = zip(self._groups, firsts.tolist(), strict=True)
        return {group: place for group, place in places if place != NO_PLACE}

    def last_place(self, outcomes: Ints) -> int:
        """The highest place of draws that share the labels of these outcomes; 0 of none."""
        _, found = _rows(outcomes, self._columns["outcome"])
        return int(self._columns["place"][found].max(initial=0))

    def keep(self, outcomes: Ints) -> None:
        """Drop draws whose outcome was trimmed."""
        _, found = _rows(outcomes, self._columns["outcome"])
        names = ("outcome", "place", "grouping", "group", "suspected")
        kept = {name: self._columns[name][found].copy() for name in names}
        self._columns = GrowingColumns({name: column.dtype for name, column in kept.items()})
        self._columns.extend(**kept)


def _rows(outcomes: Ints, sought: Ints) -> tuple[Indices, Flags]:
    """Row of each outcome that is sought, and whether it is there [m]."""
    rows = np.searchsorted(outcomes, sought)
    found = np.zeros(len(sought), np.bool_)
    inside = rows < len(outcomes)
    found[inside] = outcomes[rows[inside]] == sought[inside]
    return rows, found
