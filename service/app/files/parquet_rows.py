"""Rows of Parquet, read with pyarrow, which is an extra."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO

from service.app.files.rows import BadCell, Row, Table, UnusableFileError
from service.domain.errors import BadMessage

_BATCH_ROWS = 50
"""Rows that are decoded at once. A small file can have very long values, as each may be stored once."""

_BATCH_BYTES = 1_048_576
"""Rows of larger batches become Python's values one by one."""

_POINTER_BYTES = 8

_UNREADABLE = object()
"""Stands for a value that Python cannot hold, such as text that is not UTF-8, or a time in the year 10000."""


def parquet_table(
    handle: BinaryIO, source: str, *, row_bytes: int, used: Callable[[Collection[str]], Collection[str]]
) -> Table:
    """Rows of a Parquet file, in batches; `used` chooses the columns that are read.

    Rows over `row_bytes` are refused.

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
    return Table(columns, _rows(file, source, sorted(used(columns)), row_bytes), unit="row")


def _rows(file: Any, source: str, columns: list[str], row_bytes: int) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

    number = 0
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False):
            for piece, size in _pieces(batch, min(_BATCH_BYTES, row_bytes)):
                if size > row_bytes:
                    number += 1
                    problem = BadMessage("row_too_long", f"the row is over {row_bytes} bytes")
                    yield Row(number, problem=problem)
                    continue
                values = [_values(column) for column in piece.columns]
                for cells in zip(*values, strict=True) if values else ((),) * piece.num_rows:
                    number += 1
                    yield _row(number, dict(zip(piece.schema.names, cells, strict=True)), size)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UnusableFileError(source, f"it is damaged after row {number}; write it again") from error


def _pieces(batch: Any, most_bytes: int) -> Iterator[tuple[Any, int]]:
    """A batch, or each of its rows if they are large, and the size of a row."""
    size = sum(map(_size, batch.columns))
    if size <= most_bytes:
        yield batch, size // batch.num_rows
    else:
        for number in range(batch.num_rows):
            row = batch.slice(number, 1)
            yield row, sum(map(_size, row.columns))


def _size(column: Any) -> int:
    """Bytes that the values of a column have in Python, about; in Arrow many may share one, or have none."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
    from pyarrow import compute  # noqa: PLC0415 - an extra, slow to import

    pointers = _POINTER_BYTES * len(column)
    kind = column.type
    if pa.types.is_struct(kind):
        return pointers + sum(map(_size, column.flatten()))
    if pa.types.is_map(kind):
        # Arrow flattens only lists.
        column = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if pa.types.is_nested(kind):
        return pointers + _size(column.flatten())
    if pa.types.is_dictionary(kind):
        if pa.types.is_primitive(kind.value_type):
            return pointers
        lengths = compute.binary_length(column.dictionary)
        return pointers + (compute.sum(lengths.take(column.indices)).as_py() or 0)
    return pointers + int(column.nbytes)


def _row(number: int, cells: dict[str, Any], size: int) -> Row:
    for column, value in cells.items():
        if value is _UNREADABLE:
            return Row(number, problem=BadCell(column, "the value cannot be read"))
    return Row(number, {column: value for column, value in cells.items() if value is not None}, size=size)


def _values(column: Any) -> list[Any]:
    """Values of a column as Python's."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

    try:
        if pa.types.is_timestamp(column.type):
            # Python's times have microseconds; in UTC they need no database of time zones.
            zone = None if column.type.tz is None else "UTC"
            column = column.cast(pa.timestamp("us", zone), safe=column.type.unit != "ns")
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        if len(column) == 1:
            return [_UNREADABLE]
        return [_values(column.slice(at, 1))[0] for at in range(len(column))]
    return values
