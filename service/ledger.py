"""The outcomes of one model as columns, kept current from its append-only stream."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from service.cells import CellSpace, Combination, CombinationDirectory
from service.store.facts import OutcomeEntry

_GROWTH = 2
_UNPLACED = -1
_UNKNOWN = -1

RECENT = 50
"""Outcomes that are kept as they came, for people to look at."""


class OutcomeColumns(NamedTuple):
    """Outcomes as columns [n].

    Attributes:
        cells: cell of each.
        correct: 1.0 where the predicted class is the true one, else 0.0.
        predicted_at: seconds since the epoch.
        given_at: when the label was given, seconds since the epoch; of a corrected one, the first time.
        sources: codes of who asked.
        true_classes: index of the true class, -1 for one that the model does not have.
    """

    cells: npt.NDArray[np.intp]
    correct: npt.NDArray[np.float64]
    predicted_at: npt.NDArray[np.float64]
    given_at: npt.NDArray[np.float64]
    sources: npt.NDArray[np.intp]
    true_classes: npt.NDArray[np.intp]


class OutcomeLedger:
    """Folds outcome entries: the last word on an item counts, a retraction removes it.

    Invariant: folding a stream in one go or piece by piece gives the same columns.
    """

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._class_index = {name: i for i, name in enumerate(space.classes)}
        self._rows: dict[str, int] = {}
        self._sources: list[tuple[str, str]] = []
        self._source_index: dict[tuple[str, str], int] = {}
        self._unplaced: dict[int, tuple[Combination, int, float]] = {}
        self._length = 0
        self._alive = np.zeros(16, dtype=bool)
        self._cells = np.full(16, _UNPLACED, dtype=np.intp)
        self._correct = np.zeros(16)
        self._true_class = np.full(16, _UNKNOWN, dtype=np.intp)
        self._predicted_at = np.zeros(16)
        self._given_at = np.zeros(16)
        self._recent: dict[str, OutcomeEntry] = {}
        self._columns: OutcomeColumns | None = None
        self._source = np.zeros(16, dtype=np.intp)
        self.first_label_at: float | None = None
        self.last_label_at: float | None = None

    def __len__(self) -> int:
        return int(self._alive[: self._length].sum())

    @property
    def sources(self) -> list[tuple[str, str]]:
        """Who asked: (assessment, grouping), in the order of the codes in `columns`."""
        return self._sources

    def fold(self, entries: Iterable[OutcomeEntry]) -> None:
        """Take in further entries, in the stream's order."""
        for entry in entries:
            self._columns = None
            row = self._rows.setdefault(entry.request_id, self._length)
            if row == self._length:
                self._append(row, entry)
            self._remember(entry)
            self._alive[row] = entry.kind != "retracted"
            self._correct[row] = float(entry.fact.predicted_class == entry.true_class)
            self._true_class[row] = self._class_index.get(entry.true_class, _UNKNOWN)
            if entry.kind != "retracted":
                self.last_label_at = max(self.last_label_at or entry.time, entry.time)
                self.first_label_at = min(self.first_label_at or entry.time, entry.time)

    def place(self, directory: CombinationDirectory) -> None:
        """Find the cells of outcomes whose attribute values have been seen in traffic by now."""
        if not self._unplaced:
            return
        placed = {
            row: number
            for row, (raw, _, _) in self._unplaced.items()
            if (number := directory.number(directory.fold(raw))) is not None
        }
        if not placed:
            return
        self._columns = None
        rows = np.fromiter(placed, dtype=np.intp, count=len(placed))
        self._cells[rows] = self._space.cells(
            combinations=np.fromiter(placed.values(), dtype=np.intp, count=len(placed)),
            classes=np.array([self._unplaced[row][1] for row in placed], dtype=np.intp),
            scores=np.array([self._unplaced[row][2] for row in placed]),
        )
        for row in placed:
            del self._unplaced[row]

    @property
    def recent(self) -> list[OutcomeEntry]:
        """The outcomes that came last, the newest first."""
        return list(reversed(self._recent.values()))

    def columns(self) -> OutcomeColumns:
        """The outcomes that count; those that have no cell yet are left out. Made once until some change."""
        if self._columns is None:
            self._columns = self._made_columns()
        return self._columns

    def _made_columns(self) -> OutcomeColumns:
        kept = np.flatnonzero(self._alive[: self._length] & (self._cells[: self._length] != _UNPLACED))
        return OutcomeColumns(
            self._cells[kept],
            self._correct[kept],
            self._predicted_at[kept],
            self._given_at[kept],
            self._source[kept],
            self._true_class[kept],
        )

    def _remember(self, entry: OutcomeEntry) -> None:
        self._recent.pop(entry.request_id, None)
        if entry.kind != "retracted":
            self._recent[entry.request_id] = entry
            for request_id in list(islice(self._recent, max(0, len(self._recent) - RECENT))):
                del self._recent[request_id]

    def _append(self, row: int, entry: OutcomeEntry) -> None:
        if row == len(self._alive):
            self._grow()
        self._length += 1
        source = (entry.assessment, entry.grouping)
        if source not in self._source_index:
            self._source_index[source] = len(self._sources)
            self._sources.append(source)
        self._source[row] = self._source_index[source]
        self._predicted_at[row] = entry.fact.predicted_at
        self._given_at[row] = entry.time
        class_index = self._class_index.get(entry.fact.predicted_class)
        if class_index is not None:
            raw = self._space.raw_combination(entry.fact.attributes)
            self._unplaced[row] = (raw, class_index, entry.fact.score)

    def _grow(self) -> None:
        more = (_GROWTH - 1) * len(self._alive)
        self._alive = np.pad(self._alive, (0, more))
        self._cells = np.pad(self._cells, (0, more), constant_values=_UNPLACED)
        self._correct = np.pad(self._correct, (0, more))
        self._true_class = np.pad(self._true_class, (0, more), constant_values=_UNKNOWN)
        self._predicted_at = np.pad(self._predicted_at, (0, more))
        self._given_at = np.pad(self._given_at, (0, more))
        self._source = np.pad(self._source, (0, more))
