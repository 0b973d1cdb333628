"""Rows of CSV (RFC 4180) and of JSON lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import BufferedReader

import msgspec

from consumers.formats.native import attempt
from service.app.files.lines import Lines
from service.app.files.rows import Row, Table, UnusableFileError
from service.domain.errors import BadMessage

_BOM = b"\xef\xbb\xbf"
_OTHER_UNICODE = (b"\xff\xfe", b"\xfe\xff")

_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
"""Delimiters that are usual, as an option of the command line names them."""

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def csv_table(handle: BufferedReader, source: str, *, delimiter: str, row_bytes: int) -> Table:
    """Rows of CSV text, whose first line names the columns.

    Raises:
        UnusableFileError: there is no such line, or another delimiter is in it.
    """
    _skip_mark(handle, source)
    lines = Lines(handle, row_bytes=row_bytes)
    # No cell is longer than its row, which `lines` bounds.
    csv.field_size_limit(row_bytes)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        columns = next(reader, [])
    except (csv.Error, BadMessage) as error:
        why = _problem(error).detail
        raise UnusableFileError(source, f"the line that names the columns cannot be read: {why}") from error
    if not lines.is_utf8:
        raise UnusableFileError(source, "the line that names the columns is not UTF-8")
    if not any(columns):
        raise UnusableFileError(source, "there is no line that names the columns; the first line must")
    if len(columns) == 1 and (other := next((each for each in _DELIMITERS if each in columns[0]), None)):
        name = _DELIMITERS[other]
        raise UnusableFileError(
            source,
            f"the first line names one column only, with {name} in its name; if that is the delimiter, add "
            f"--delimiter {name}",
        )
    return Table(columns, _csv_rows(reader, lines, columns, source))


def _csv_rows(reader: Iterator[list[str]], lines: Lines, columns: list[str], source: str) -> Iterator[Row]:
    while True:
        lines.begin_row()
        number = lines.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, BadMessage) as error:
            problem = _problem(error)
            if lines.has_quote:
                # The next line may be inside a cell; a row made of it would be text of a cell.
                raise UnusableFileError(
                    source,
                    f"line {number:,}: {problem.detail}. It is unknown where the next row begins, so the "
                    "rest was not read. Correct the quotes of this row",
                ) from error
            yield Row(number, problem=problem)
            continue
        if not lines.is_utf8:
            yield Row(number, problem=BadMessage("not_utf8", "the row is not UTF-8"))
        elif len(cells) == len(columns):
            named = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            yield Row(number, named, size=lines.row_size)
        elif cells:
            detail = f"{len(cells)} cells, but the first line names {len(columns)} columns"
            yield Row(number, problem=BadMessage("malformed_csv", detail))


def _problem(error: csv.Error | BadMessage) -> BadMessage:
    """What is wrong with a row; the parser names what it expected, and quotes no cell."""
    if isinstance(error, BadMessage):
        return error
    text = str(error)
    is_break = text.startswith("new-line character")
    return BadMessage("malformed_csv", "a line break in a cell without quotes" if is_break else text)


def jsonl_table(handle: BufferedReader, source: str, *, row_bytes: int) -> Table:
    """Rows of JSON lines: an object in each line; empty lines are skipped.

    Raises:
        UnusableFileError: the text is not UTF-8.
    """
    _skip_mark(handle, source)
    return Table(None, _json_rows(Lines(handle, row_bytes=row_bytes)))


def _json_rows(lines: Lines) -> Iterator[Row]:
    while True:
        lines.begin_row()
        number = lines.number + 1
        try:
            line = lines.read()
        except BadMessage as error:
            yield Row(number, problem=error)
            continue
        if not line:
            return
        if not line.strip():
            continue
        cells = attempt(_decode_object, line)
        if isinstance(cells, BadMessage):
            yield Row(number, problem=cells)
        else:
            named = {name: text for name, text in cells.items() if bytes(text) != b"null"}
            yield Row(number, named, size=lines.row_size)


def _skip_mark(handle: BufferedReader, source: str) -> None:
    """Skip a byte order mark of UTF-8, and refuse one of UTF-16."""
    start = handle.peek(len(_BOM))
    if start.startswith(_OTHER_UNICODE):
        raise UnusableFileError(source, "it is UTF-16; save it as UTF-8")
    if start.startswith(_BOM):
        handle.read(len(_BOM))
