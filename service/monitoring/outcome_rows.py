"""The outcomes of one model as columns, in the order of their stream, and what they were drawn for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Codes, Flags, Indices, Ints, UInt64s
from service.domain.cells import grouping_key
from service.domain.groupings import value_of_stratum
from service.domain.request_order import NO_PLACE, Places
from service.domain.stratum_estimator import ESTIMATOR_TYPE
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

ESTIMATOR_COLUMN: Final = {"estimator": ESTIMATOR_TYPE}
"""Of every outcome, if error rates are estimated: 40 bytes more, of the draw of its stratum."""

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

WITHOUT_EVIDENCE: Final = ""
"""In place of a grouping, of requests that were aimed by votes, or drawn for a stratum."""


def drawn_group(fact: Fact) -> GroupKey:
    """The group that a request was drawn for."""
    if fact.voters:
        return WITHOUT_EVIDENCE, ""
    key = grouping_key(fact.grouping, fact.definition)
    if not fact.estimator:
        return key, fact.group
    # The group, not the stratum: what becomes of requests is compared by score within it.
    return drawn_by_stratum(key, value_of_stratum(fact.group))


def drawn_by_stratum(key: str, group: str) -> GroupKey:
    """What a group is known by whose strata are drawn, for the grouping by these."""
    return WITHOUT_EVIDENCE, f"{key}\0{group}"


def stratum_group(drawn: GroupKey) -> GroupKey | None:
    """The grouping by strata, and the group, of which `drawn_by_stratum` made this; None of all others."""
    key, end, group = drawn[1].partition("\0")
    return (key, group) if drawn[0] == WITHOUT_EVIDENCE and end else None


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
        """Place of the first request, or further draw, of every group.

        Of every request, `codes` has the group that it was drawn for, and `places` its place [n].
        """
        found = np.full(len(self._codes), NO_PLACE, np.uint64)
        np.minimum.at(found, codes, places)
        firsts = dict(zip(self._codes, found.tolist(), strict=True))
        for key, place in further.items():
            firsts[key] = min(place, firsts.get(key, NO_PLACE))
        return {key: place for key, place in firsts.items() if place != NO_PLACE}

    def keep(self, kept: Flags) -> None:
        """Let go of groups but these [codes], and number those without gaps."""
        self._codes = {key: number for number, key in enumerate(compress(self._codes, kept))}
