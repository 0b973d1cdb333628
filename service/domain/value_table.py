"""Traffic by the values of one attribute: exact while they fit, and of the most frequent ones beyond that.

Where an attribute has more values than its bound, the table keeps those with most traffic, by the
space-saving algorithm (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in
data streams", ICDT 2005): a new value displaces the one with the lowest counter, and starts from that counter
as its error. The counter of a value is its decayed weight plus its error. Counts, weights and score sums
themselves are exact since the value got its row, and what is displaced moves to the row of `OTHER`. So a
value with more than 1 / bound of the traffic has a row, and `missed` bounds its traffic in `OTHER`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.domain.cells import OTHER, RESERVED
from service.domain.traffic_tables import Columns, TableSpec


@dataclass
class Block:
    """Numbers of one table; arrays are [rows, width].

    Attributes:
        counts: predictions ever counted.
        weights: sums of exp(lambda (t - landmark)); no columns in a table of counts alone.
        score_sums: weighted sums of scores, likewise.
    """

    counts: Ints
    weights: Floats
    score_sums: Floats

    @classmethod
    def empty(cls, spec: TableSpec, rows: int = 0) -> Block:
        """A block without traffic."""
        weighted = spec.width if spec.is_weighted else 0
        return cls(
            np.zeros((rows, spec.width), np.int64), np.zeros((rows, weighted)), np.zeros((rows, weighted))
        )

    def part(self, rows: Any) -> Block:
        """A block of some of the rows, in the given order."""
        return Block(self.counts[rows], self.weights[rows], self.score_sums[rows])

    def grow(self, rows: int) -> None:
        """Make room for more rows."""
        more = ((0, rows - len(self.counts)), (0, 0))
        self.counts = np.pad(self.counts, more)
        self.weights, self.score_sums = np.pad(self.weights, more), np.pad(self.score_sums, more)

    def add(self, rows: Indices, columns: Indices, weights: Floats, scores: Floats) -> None:
        """Count predictions [n] in their rows and columns."""
        places = rows * self.counts.shape[1] + columns
        np.add.at(self.counts.reshape(-1), places, 1)
        if self.weights.shape[1]:
            np.add.at(self.weights.reshape(-1), places, weights)
            np.add.at(self.score_sums.reshape(-1), places, weights * scores)

    def add_block(self, rows: Indices, other: Block, factor: float = 1.0) -> None:
        """Add the rows of another block to some rows of this one, its weights multiplied by a factor."""
        np.add.at(self.counts, rows, other.counts)
        np.add.at(self.weights, rows, other.weights * factor)
        np.add.at(self.score_sums, rows, other.score_sums * factor)

    def fold(self, rows: Sequence[int], into: int) -> None:
        """Move the numbers of some rows to another one."""
        for column in (self.counts, self.weights, self.score_sums):
            column[into] += column[rows].sum(axis=0)
            column[rows] = 0

    def scale(self, factor: float) -> None:
        """Multiply weights and score sums by a factor, to move them to another landmark."""
        self.weights *= factor
        self.score_sums *= factor


class ValueTable:
    """The tables of one attribute, which share their rows.

    Invariants: every row has one name; `OTHER` and `MISSING` never lose theirs, and do not count towards the
    bound. One of the tables is weighted.

    Attributes:
        specs: the tables, by their columns.
        names: of the rows, in their order.
        rows: row of every value.
        blocks: numbers of the rows, by columns; arrays may have spare rows.
        missed: decayed weight that a value may have had before it got its row, at most [rows].
        changed: which rows have changed since `mark_flushed` [rows].
        changed_names: rows whose name or `missed` has changed since then.
    """

    def __init__(self, specs: Sequence[TableSpec]) -> None:
        self.specs = {spec.columns: spec for spec in specs}
        self._limit = min(spec.rows for spec in specs) - len(RESERVED)
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.blocks = {spec.columns: Block.empty(spec) for spec in specs}
        self.missed = np.zeros(0)
        self.changed: Flags = np.zeros(0, np.bool_)
        self.changed_names: set[int] = set()

    def __len__(self) -> int:
        return len(self.names)

    def block(self, columns: Columns) -> Block:
        """Numbers of the rows, without spare rows."""
        return self.blocks[columns].part(slice(0, len(self)))

    def totals(self) -> Floats:
        """Decayed weight of every row [rows]."""
        weighted = next(columns for columns, spec in self.specs.items() if spec.is_weighted)
        return np.asarray(self.blocks[weighted].weights[: len(self)].sum(axis=1), np.float64)

    @property
    def most_missed(self) -> float:
        """Largest decayed weight that a value without a row can have; 0 if none has ever lost its row.

        Whoever displaced it took over its counter as an error, and passes that on when it is displaced.
        """
        return float(self.missed[: len(self)].max(initial=0.0))

    @property
    def room(self) -> int:
        """Number of values that still get a row without displacing another."""
        return max(0, self._limit - (len(self) - sum(name in self.rows for name in RESERVED)))

    def restore(self, names: Sequence[str], missed: Floats) -> None:
        """Add rows of stored values, in their order, to an empty table."""
        for name in names:
            self._append(name)
        self.missed[: len(names)] = missed

    def place(self, names: Sequence[str], weights: Floats) -> list[str]:
        """Give rows to new values, as far as their traffic is enough; displaced values, now in `OTHER`.

        Args:
            names: of values, all different [n].
            weights: about to be added to each [n].
        """
        coming = dict(zip(names, weights.tolist(), strict=True))
        for name in [name for name in names if name in RESERVED and name not in self.rows]:
            self._append(name)
        new = sorted((name for name in names if name not in self.rows), key=lambda name: -coming[name])
        room, before = self.room, self.most_missed
        for name in new[:room]:
            row = self._append(name)
            self.missed[row] = before
        return self._displace(new[room:], coming) if new[room:] else []

    def _displace(self, new: Sequence[str], coming: Mapping[str, float]) -> list[str]:
        """Give new values the rows of those with the lowest counters; returns the displaced values.

        `coming` are weights about to be added, by value.
        """
        other = self.rows[OTHER] if OTHER in self.rows else self._append(OTHER)
        counters = (self.totals() + self.missed[: len(self)]).tolist()
        for name, row in self.rows.items():
            counters[row] += coming.get(name, 0.0)
        reserved = {self.rows[name] for name in RESERVED if name in self.rows}
        heap = [(counter, row) for row, counter in enumerate(counters) if row not in reserved]
        heapq.heapify(heap)
        owners: dict[int, str] = {}
        errors: dict[int, float] = {}
        for name in new:
            lowest, row = heap[0]
            owners[row], errors[row] = name, lowest
            heapq.heapreplace(heap, (lowest + coming[name], row))
        for block in self.blocks.values():
            block.fold(list(owners), other)
        displaced = []
        for row, name in owners.items():
            displaced.append(self.names[row])
            del self.rows[self.names[row]]
            self.names[row] = name
            self.rows[name] = row
            self.missed[row] = errors[row]
        self.changed[[*owners, other]] = True
        self.changed_names.update(owners)
        return displaced

    def _append(self, name: str) -> int:
        row = len(self.names)
        self.names.append(name)
        self.rows[name] = row
        if row >= len(self.missed):
            size = max(8, 2 * row)
            for block in self.blocks.values():
                block.grow(size)
            self.missed = np.pad(self.missed, (0, size - len(self.missed)))
            self.changed = np.pad(self.changed, (0, size - len(self.changed)))
        self.changed[row] = True
        self.changed_names.add(row)
        return row

    def scale(self, factor: float) -> None:
        """Multiply weights by a factor, to move them to another landmark."""
        for block in self.blocks.values():
            block.scale(factor)
        self.missed *= factor
        self.changed[: len(self)] = True
        self.changed_names.update(range(len(self)))

    def mark_flushed(self) -> None:
        """Clear the marks of changes."""
        self.changed[:] = False
        self.changed_names.clear()


def merge_tables(specs: Sequence[TableSpec], shards: Sequence[tuple[ValueTable, float]]) -> ValueTable:
    """Tables of one attribute, merged over shards, with every value that has a row in some shard.

    Missed weights add up over shards (Agarwal and others, "Mergeable summaries", PODS 2012). A shard without
    a row for a value may have missed as much of it as of any value without a row there. `shards` are the
    tables of each, and the factor of its weights.
    """
    every = list(dict.fromkeys(name for table, _ in shards for name in table.rows))
    merged = ValueTable(specs)
    merged.restore(every, np.zeros(len(every)))
    for table, factor in shards:
        rows = np.array([merged.rows[name] for name in table.names], np.intp)
        for columns, block in merged.blocks.items():
            block.add_block(rows, table.block(columns), factor)
        missed = np.full(len(every), table.most_missed)
        missed[rows] = table.missed[: len(table)]
        for name in RESERVED & merged.rows.keys():
            missed[merged.rows[name]] = 0.0
        merged.missed[: len(every)] += missed * factor
    return merged
