"""Rows of Parquet, read with pyarrow, which is an extra."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO

from service.app.files.rows import BadCell, Row, Table, UnusableFileError

_BATCH_ROWS = 250

_UNREADABLE = object()
"""Stands for a value that Python cannot hold, such as text that is not UTF-8, or a time in the year 10000."""


def parquet_table(
    handle: BinaryIO, source: str, *, used: Callable[[Collection[str]], Collection[str]]
) -> Table:
    """Rows of a Parquet file, in batches; `used` chooses the columns that are read.

    Raises:
        UnusableFileError: pyarrow is missing, or the file is not Parquet.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
        from pyarrow import parquet  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise UnusableFileError(
            source, "reading Parquet needs pyarrow; run: pip install 'credence[parquet]'"
        ) from error
    try:
        # A buffer for each column, or whole row groups would be in memory.
        file = parquet.ParquetFile(handle, pre_buffer=False, buffer_size=1_048_576)
        columns: list[str] = file.schema_arrow.names
    # pyarrow decodes names of columns without care, hence ValueError.
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UnusableFileError(source, "it is no Parquet file, or a damaged one; write it again") from error
    return Table(columns, _rows(file, source, sorted(used(columns))), unit="row")


def _rows(file: Any, source: str, columns: list[str]) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

    number = 0
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False):
            values = [_values(column) for column in batch.columns]
            names = batch.schema.names
            for cells in zip(*values, strict=True) if values else ((),) * batch.num_rows:
                number += 1
                yield _row(number, dict(zip(names, cells, strict=True)))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UnusableFileError(source, f"it is damaged after row {number}; write it again") from error


def _row(number: int, cells: dict[str, Any]) -> Row:
    for column, value in cells.items():
        if value is _UNREADABLE:
            return Row(number, problem=BadCell(column, "the value cannot be read"))
    return Row(number, {column: value for column, value in cells.items() if value is not None})


def _values(column: Any) -> list[Any]:
    """Values of a column as Python's."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

    if pa.types.is_timestamp(column.type):
        # Python's times have microseconds; in UTC they need no database of time zones.
        zone = None if column.type.tz is None else "UTC"
        column = column.cast(pa.timestamp("us", zone), safe=False)
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(cell) for cell in column]
    return values


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (ValueError, OverflowError):
        return _UNREADABLE
