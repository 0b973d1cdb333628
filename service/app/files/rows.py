"""Rows of a file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.app.plain_text import plain
from service.domain.errors import BadMessage, CredenceError


class UnusableFileError(CredenceError):
    """A file that cannot be read, or whose columns do not suffice.

    Args:
        source: the file.
        problem: what is wrong with it, and what to do; it quotes no row.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{plain(source)}: {problem}")


class BadCell(BadMessage):
    """One cell cannot be used.

    Attributes:
        column: of the cell, as the file names it.
    """

    def __init__(self, column: str, detail: str, *, reason: str = "invalid_field") -> None:
        super().__init__(reason, detail)
        self.column = column


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        number: of its first line, or, where a file has no lines, of the row; from 1.
        cells: by column, without the empty ones. Text of CSV, JSON text (`msgspec.Raw`) of JSON lines, and
            Python values of Parquet.
        problem: why it cannot be read; None if it can.
        size: of its text in bytes; 0 where there is none.
    """

    number: int
    cells: Mapping[str, Any] = field(default_factory=dict)
    problem: BadMessage | None = None
    size: int = 0


@dataclass(frozen=True)
class Table:
    """An open file.

    Attributes:
        columns: of every row; None if each row names its own.
        rows: read while they are iterated.
        unit: what rows are numbered by.
    """

    columns: Sequence[str] | None
    rows: Iterator[Row]
    unit: str = "line"
