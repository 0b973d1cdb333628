"""Prediction counts of all traffic tables at one time, and their differences between two times.

Counts only grow, so the traffic between two times is a difference, row by row and by name. A value that is
displaced by one with more traffic moves its counts to the row of `OTHER` (`service/domain/value_table.py`).
The difference accounts for that: what such a value had before is subtracted from `OTHER`, so no prediction
counts twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.domain.cells import OTHER, RESERVED
from service.domain.traffic import Traffic
from service.domain.traffic_tables import ALL_TRAFFIC
from service.domain.value_table import ValueTable

TableKey = tuple[str, str]
"""Attribute and columns of a table (`service/domain/traffic_tables.py`)."""

WHOLE: TableKey = (ALL_TRAFFIC, "class_bins")
"""The table of all traffic."""

BY_BIN: Final = ("class_bins", "bins", "selected_bins")
"""Columns with score bins."""

MOST_MISSED = 0.05
"""A row that may miss more than this share of its value's traffic is unreliable."""

_MUCH: Final = 0.5
_LEAST: Final = 1e-9
_NOTHING: Final = np.zeros(0)


@dataclass(frozen=True)
class TableCounts:
    """Predictions of one table.

    Attributes:
        meaning: differs when the same columns would mean something else.
        names: of the rows.
        counts: predictions ever counted, or since some time [rows, width].
        missed: largest share of a value's traffic that may be in `OTHER`, by decayed weight [rows]; empty if
            no row misses any.
    """

    meaning: str
    names: tuple[str, ...]
    counts: Ints
    missed: Floats = field(default_factory=lambda: _NOTHING)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.counts.shape[1])

    @property
    def is_partial(self) -> Flags:
        """Whether a row may miss more than `MOST_MISSED` of its value's traffic [rows]."""
        return self.missed > MOST_MISSED if self.missed.size else np.zeros(len(self.names), np.bool_)

    def is_like(self, other: TableCounts) -> bool:
        """Whether the columns of both mean the same."""
        return self.meaning == other.meaning and self.width == other.width

    def since(self, mark: TableCounts) -> TableCounts:
        """Predictions since an earlier time.

        A row that the mark (the same table then) does not have counts from 0. So does one that has lost much
        of its count in the mark, or some of it and may miss more: its value was displaced and has got a row
        again. A row that has lost less was displaced in one of several partitions.
        """
        rows = rows_of(self.names, mark.names)
        before = np.where(rows[:, None] >= 0, mark.counts[rows], 0) if mark.names else self.counts * 0
        decrease = np.maximum(before - self.counts, 0)
        share = decrease.sum(axis=1) / np.maximum(before.sum(axis=1), 1)
        lost = (share > 0) & ((share >= _MUCH) | self.is_partial)
        decrease[lost] = before[lost]
        before -= decrease
        if OTHER in self.names:
            other = self.names.index(OTHER)
            is_removed = np.ones(len(mark.names), np.bool_)
            is_removed[rows[rows >= 0]] = False
            decrease[other] = 0
            before[other] += decrease.sum(axis=0)
            before[other] += mark.counts[is_removed & (np.array(mark.names, object) != OTHER)].sum(axis=0)
        return TableCounts(self.meaning, self.names, np.maximum(self.counts - before, 0), self.missed)


@dataclass(frozen=True)
class TrafficCounts:
    """Predictions of all tables of one model.

    Attributes:
        tables: by attribute and columns; that of all traffic is always among them.
    """

    tables: Mapping[TableKey, TableCounts]

    @classmethod
    def of(cls, traffic: Traffic) -> TrafficCounts:
        """A copy of the counts of some traffic."""
        return cls(
            {
                (attribute, columns): TableCounts(
                    spec.meaning,
                    tuple(table.names),
                    table.block(columns).counts.copy(),
                    _missed_shares(table),
                )
                for attribute, table in traffic.tables.items()
                for columns, spec in table.specs.items()
            }
        )

    @classmethod
    def unpack(cls, value: bytes) -> TrafficCounts:
        """Counts from their packed form."""
        stored = msgspec.msgpack.decode(zlib.decompress(value), type=list[_StoredTable])
        return cls(
            {
                (table.attribute, table.columns): TableCounts(
                    table.meaning,
                    tuple(table.names),
                    np.frombuffer(table.counts, "<i8").astype(np.int64).reshape(-1, table.width),
                    np.frombuffer(table.missed, "<f4").astype(np.float64),
                )
                for table in stored
            }
        )

    def pack(self) -> bytes:
        """The form stored in Redis: MessagePack, compressed in some milliseconds for 100,000 small counts."""
        stored = [
            _StoredTable(
                *key,
                table.meaning,
                list(table.names),
                table.width,
                table.counts.astype("<i8").tobytes(),
                table.missed.astype("<f4").tobytes(),
            )
            for key, table in self.tables.items()
        ]
        return zlib.compress(msgspec.msgpack.encode(stored), level=1)

    @property
    def whole(self) -> TableCounts:
        """The table of all traffic."""
        return self.tables[WHOLE]

    @property
    def predictions(self) -> int:
        """Number of predictions."""
        return int(self.whole.counts.sum())

    def by_bin(self) -> TrafficCounts:
        """The tables with score bins."""
        return TrafficCounts({key: table for key, table in self.tables.items() if key[1] in BY_BIN})

    def shared_with(self, other: TrafficCounts) -> TrafficCounts:
        """The tables that others have too, with columns that mean the same."""
        return TrafficCounts(
            {
                key: table
                for key, table in self.tables.items()
                if key in other.tables and table.is_like(other.tables[key])
            }
        )

    def continuing_until(self, later: TrafficCounts) -> TrafficCounts:
        """The tables that continue until a later time: neither removed nor restarted.

        A table restarts after its grouping or its score bins were removed for a while. Then it has no more
        predictions than came in all that time.
        """
        came = later.predictions - self.predictions
        tables = self.shared_with(later).tables
        return TrafficCounts(
            {
                key: table
                for key, table in tables.items()
                if not table.counts.any() or int(later.tables[key].counts.sum()) > came
            }
        )

    def since(self, mark: TrafficCounts) -> TrafficCounts:
        """Predictions since an earlier time; tables that do not continue since then count from 0."""
        continuing = mark.continuing_until(self).tables
        return TrafficCounts(
            {
                key: table.since(continuing[key]) if key in continuing else table
                for key, table in self.tables.items()
            }
        )


def merge_counts(parts: Sequence[TrafficCounts]) -> TrafficCounts:
    """Predictions of several shards together, in the tables whose columns mean the same in all of them."""
    keys = dict.fromkeys(key for part in parts for key in part.tables)
    found = {key: [part.tables[key] for part in parts if key in part.tables] for key in keys}
    return TrafficCounts(
        {
            key: _merge_tables(tables)
            for key, tables in found.items()
            if all(table.is_like(tables[0]) for table in tables)
        }
    )


def _merge_tables(tables: Sequence[TableCounts]) -> TableCounts:
    """The rows of all shards; a shard without a row for a value may have missed as much as of any other."""
    if len(tables) == 1:
        return tables[0]
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    counts = np.zeros((len(names), tables[0].width), np.int64)
    missed = np.zeros(len(names))
    reserved = np.array([name in RESERVED for name in names], np.bool_)
    for table in tables:
        rows = rows_of(table.names, names)
        counts[rows] += table.counts
        if table.missed.size:
            # As many as make up the share, which is of the row's counts and these.
            totals = table.counts.sum(axis=1)
            of_rows = totals * table.missed / np.maximum(1 - table.missed, _LEAST)
            everywhere = np.where(reserved, 0.0, of_rows.max())
            everywhere[rows] = of_rows
            missed += everywhere
    if not missed.any():
        return TableCounts(tables[0].meaning, names, counts)
    return TableCounts(tables[0].meaning, names, counts, missed / (counts.sum(axis=1) + missed))


class _StoredTable(msgspec.Struct, array_like=True, gc=False):
    attribute: str
    columns: str
    meaning: str
    names: list[str]
    width: int
    counts: bytes
    missed: bytes


def _missed_shares(table: ValueTable) -> Floats:
    """Largest share of each value's traffic that may be in `OTHER` [rows]; empty if no row misses any."""
    missed = table.missed[: len(table)]
    if not missed.any():
        return _NOTHING
    totals = table.totals() + missed
    return np.divide(missed, totals, out=np.zeros(len(totals)), where=totals > 0)


def rows_of(names: tuple[str, ...], among: tuple[str, ...]) -> Indices:
    """Index of each name among others [names]; -1 if it is not there."""
    places = {name: place for place, name in enumerate(among)}
    return np.fromiter((places.get(name, -1) for name in names), np.intp, len(names))
