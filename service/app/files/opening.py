"""Opens a file of predictions or labels, whatever its format."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from typing import BinaryIO, Literal, cast

from service.app.files.npz_rows import npz_table
from service.app.files.parquet_rows import parquet_table
from service.app.files.rows import Row, Table, UnusableFileError
from service.app.files.text_rows import csv_table, jsonl_table
from service.app.plain_text import plain
from service.domain.errors import ConfigurationError

Format = Literal["csv", "jsonl", "parquet", "npz"]

STANDARD_INPUT = "-"

_GZIP = b"\x1f\x8b"
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".npz": "npz",
}
READ_AT_ONCE: frozenset[Format] = frozenset({"parquet", "npz"})
"""Formats that cannot be read in order, so not from a pipe."""

_DAMAGED = (OSError, EOFError, zlib.error)


def format_of(path: str) -> Format | None:
    """The format that the name of a file says; None if it says none."""
    name = path.lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def chosen_format(path: str, given: Format | None) -> Format:
    """The format that `--format` names, or else the name of the file.

    Raises:
        ConfigurationError: neither names one.
    """
    if (kind := given or format_of(path)) is not None:
        return kind
    source = (
        "standard input has no name that says a"
        if path == STANDARD_INPUT
        else f"{plain(path)}: its name says no"
    )
    problem = (
        f"{source} format; add --format csv, jsonl, parquet or npz. For csv with "
        "another delimiter than a comma add --delimiter, such as --delimiter tab"
    )
    raise ConfigurationError([("--format", problem)], "the command line")


@contextmanager
def open_rows(
    path: str,
    *,
    kind: Format,
    delimiter: str,
    row_bytes: int,
    used: Callable[[Collection[str]], Collection[str]],
) -> Iterator[Table]:
    """The rows of a file.

    Args:
        path: of the file; `-` is standard input.
        kind: its format; CSV and JSON lines may be compressed with gzip.
        delimiter: between the cells of CSV.
        row_bytes: longest row, as text or in memory.
        used: chooses the columns of Parquet that are read; of an npz archive all are.

    Raises:
        UnusableFileError: it cannot be read, perhaps not to its end.
    """
    source = "standard input" if path == STANDARD_INPUT else path
    with ExitStack() as stack:
        try:
            handle = _open(path, stack)
            if kind == "parquet":
                table = parquet_table(handle, source, row_bytes=row_bytes, used=used)
            elif kind == "npz":
                table = npz_table(path, row_bytes=row_bytes)
            else:
                text = _decompressed(handle, stack)
                if kind == "csv":
                    table = csv_table(text, source, delimiter=delimiter, row_bytes=row_bytes)
                else:
                    table = jsonl_table(text, source, row_bytes=row_bytes)
        except _DAMAGED as error:
            raise _unreadable(source, error) from error
        yield Table(table.columns, _readable(table.rows, source), table.unit)


def _open(path: str, stack: ExitStack) -> BinaryIO:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer
    return stack.enter_context(open(path, "rb"))  # noqa: PTH123 - a name of a pipe, too


def _decompressed(handle: BinaryIO, stack: ExitStack) -> BufferedReader:
    # By its first bytes, which no text in UTF-8 begins with: a pipe has no name.
    buffered = cast("BufferedReader", handle)
    if buffered.peek(len(_GZIP)).startswith(_GZIP):
        return cast("BufferedReader", stack.enter_context(gzip.GzipFile(fileobj=buffered)))
    return buffered


def _readable(rows: Iterator[Row], source: str) -> Iterator[Row]:
    try:
        yield from rows
    except _DAMAGED as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: Exception) -> UnusableFileError:
    if isinstance(error, OSError) and error.errno:
        return UnusableFileError(source, os.strerror(error.errno).lower())
    return UnusableFileError(source, "the compressed text is damaged, or ends too early")
