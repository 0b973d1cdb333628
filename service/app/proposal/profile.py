"""A profile of a sample: its columns, and an even sample of its rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from service.app.files.cells import to_text, to_texts
from service.app.files.columns import ATTRIBUTE, VOTE, listed, plain_name
from service.app.files.rows import BadCell, Row, Table, UnusableFileError
from service.app.proposal.column_tally import ColumnProfile, ColumnTally
from service.app.proposal.record_cells import RecordCells
from service.domain.errors import BadMessage

MOST_COLUMNS: Final = 256
MOST_HELD_VALUES: Final = 500_000
"""Different values of all columns together; beyond it, those of the column that has the most are dropped."""

_BOUNDED_EVERY = 100  # rows

_SAMPLED_ROWS = 2_000
_SAMPLED_BYTES = 33_554_432

_OBJECTS = {"attributes": ATTRIBUTE, "votes": VOTE}
"""Objects of native messages whose entries are columns, and what the names of these begin with."""


@dataclass(frozen=True)
class Profile:
    """What a sample holds.

    Attributes:
        source: of the sample, for people.
        unit: what rows are numbered by.
        rows: that were profiled.
        refused: rows that could not be read.
        first_refusal: where and why the first of them could not.
        others: rows of other models, which were left out.
        columns: by name, in the order of the file.
        sample: the cells of some rows, drawn evenly.
        is_whole: whether all rows of the source were read.
        records: what the columns are that are paths into records of another shape; None without such records.
    """

    source: str
    unit: str
    rows: int
    refused: int
    first_refusal: str
    others: int
    columns: Mapping[str, ColumnProfile]
    sample: Sequence[Mapping[str, Any]]
    is_whole: bool
    records: RecordCells | None = None

    @property
    def refusals(self) -> str:
        """How many rows cannot be read, and why the first one cannot, as a sentence."""
        rows = f"{self.unit}s" if self.refused > 1 else self.unit
        return f"{self.refused:,} {rows} cannot be read, the first at {self.first_refusal}."


def profile_rows(
    table: Table, source: str, *, most_rows: int | None, model: str | None, model_column: str
) -> Profile:
    """Profile the rows of a table, in bounded memory.

    Args:
        table: is read once.
        source: of its rows.
        most_rows: that are read; all if None.
        model: whose rows are profiled, where rows name their model; all if None.
        model_column: that names it; empty for none.

    Raises:
        UnusableFileError: there are no rows, too many columns, or no row can be used.
    """
    if twice := [name for name, count in Counter(table.columns).items() if count > 1 and name]:
        raise UnusableFileError(
            source, f"there is more than one column {listed(twice)}; give each a name of its own"
        )
    profiler = _Profiler(source, table.unit, model, model_column, table.columns or ())
    for row in islice(table.rows, most_rows):
        profiler.add(row)
    is_whole = most_rows is None or next(iter(table.rows), None) is None
    return profiler.profile(is_whole=is_whole)


class _Profiler:
    """Profiles rows one by one."""

    def __init__(
        self, source: str, unit: str, model: str | None, model_column: str, columns: Sequence[str]
    ) -> None:
        self._source, self._unit = source, unit
        self._model, self._model_column = model, model_column
        self._tallies: dict[str, ColumnTally] = {}
        for name in columns:
            self._tally(name, 1)
        self._rows = self._refused = self._others = 0
        self._first_refusal = ""
        self._sample = _EvenSample()

    def add(self, row: Row) -> None:
        """Profile a row, unless it cannot be read, or is of another model."""
        if row.problem is not None:
            self._refuse(row.number, row.problem)
            return
        try:
            cells = dict(_entries(row.cells))
            cell = cells.get(self._model_column)
            if self._model and cell is not None and to_text(cell, self._model_column) != self._model:
                self._others += 1
                return
            for name, cell in cells.items():
                self._tally(name, row.number).add(cell, row.number)
        except BadMessage as error:
            self._refuse(row.number, error)
            return
        self._rows += 1
        self._sample.add(cells, row.size)
        if self._rows % _BOUNDED_EVERY == 0:
            self._bound()

    def profile(self, *, is_whole: bool) -> Profile:
        """The profile of all rows."""
        if not self._rows:
            problem = "there are no rows; a sample needs predictions"
            if self._others:
                problem = f"no row is of model {self._model}, the --model; {self._others:,} are of others"
            elif self._refused:
                problem = f"no row can be used: {self._first_refusal}"
            raise UnusableFileError(self._source, problem)
        columns = {name: tally.profile(self._rows) for name, tally in self._tallies.items()}
        return Profile(
            self._source,
            self._unit,
            self._rows,
            self._refused,
            self._first_refusal,
            self._others,
            columns,
            self._sample.rows(),
            is_whole,
        )

    def _tally(self, name: str, number: int) -> ColumnTally:
        found = self._tallies.get(name)
        if found is None:
            if len(self._tallies) >= MOST_COLUMNS:
                raise UnusableFileError(
                    self._source,
                    f"{self._unit} {number:,} has column {len(self._tallies) + 1:,}; a sample may have "
                    f"{MOST_COLUMNS}. Leave out columns that are no attributes",
                )
            found = self._tallies[name] = ColumnTally(name, self._unit)
        return found

    def _refuse(self, number: int, error: BadMessage) -> None:
        self._refused += 1
        column = f", column {plain_name(error.column)}" if isinstance(error, BadCell) else ""
        place = f"{self._unit} {number:,}{column}"
        self._first_refusal = self._first_refusal or f"{place}: {error.detail}"

    def _bound(self) -> None:
        held = {name: len(tally.counts) for name, tally in self._tallies.items() if tally.counts is not None}
        if sum(held.values()) > MOST_HELD_VALUES:
            self._tallies[max(held, key=held.__getitem__)].close()


def _entries(cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The cells of a row; objects of attributes and of votes have a cell for each of their entries."""
    for name, cell in cells.items():
        if (prefix := _OBJECTS.get(name)) is None:
            yield name, cell
    for name, prefix in _OBJECTS.items():
        if (cell := cells.get(name)) is not None:
            for key, text in to_texts(cell, name).items():
                # A column of the same name has precedence, as when a file is sent.
                if prefix + key not in cells and (prefix == VOTE or key not in cells):
                    yield prefix + key, text


class _EvenSample:
    """Some of the rows, each with the same chance: those below a cutoff, which falls as they become many."""

    def __init__(self) -> None:
        self._rng = random.Random(0)  # noqa: S311 - a sample, no secret
        self._kept: list[tuple[float, int, Mapping[str, Any]]] = []
        self._bytes = 0
        self._cutoff = 1.0

    def add(self, cells: Mapping[str, Any], size: int) -> None:
        """Keep a row, perhaps."""
        draw = self._rng.random()
        if draw >= self._cutoff:
            return
        self._kept.append((draw, size, cells))
        self._bytes += size
        while len(self._kept) > _SAMPLED_ROWS or (self._bytes > _SAMPLED_BYTES and len(self._kept) > 1):
            self._cutoff /= 2
            self._kept = [each for each in self._kept if each[0] < self._cutoff]
            self._bytes = sum(size for _, size, _ in self._kept)

    def rows(self) -> list[Mapping[str, Any]]:
        """The cells of the rows that were kept."""
        return [cells for _, _, cells in self._kept]
