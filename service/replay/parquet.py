"""Reading recordings from Parquet files, with pyarrow, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.errors import RecordingError
from service.replay.columns import Columns

_LABEL_COLUMNS = ("label", "labels", "true_class")

_LISTS = "probabilities"

_BATCH_ROWS = 8_192
"""Rows are copied into the table so many at a time, so that no second one stands beside it."""


def read_parquet(path: Path) -> Columns:
    """Read labels, probabilities and, if they are there, predicted classes.

    Raises:
        RecordingError: pyarrow is missing, the file is no Parquet, or a column is missing or cannot be read.
        OSError: the file cannot be opened.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
        from pyarrow import parquet  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise RecordingError(
            path, "reading Parquet needs pyarrow; run: pip install 'credence[replay]'"
        ) from error
    with path.open("rb") as handle:
        try:
            return _read(path, parquet.ParquetFile(handle))
        # pyarrow decodes names of columns without care, hence ValueError.
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RecordingError(path, "it is no Parquet file, or a damaged one; write it again") from error


def _read(path: Path, file: Any) -> Columns:
    names: list[str] = file.schema_arrow.names
    label = next((name for name in _LABEL_COLUMNS if name in names), None)
    if label is None:
        raise RecordingError(path, f"there is no column of true classes; name it {', '.join(_LABEL_COLUMNS)}")
    sources = _probability_columns(path, names)
    _check_types(path, file.schema_arrow, sources)
    single = [label, *(["predicted"] if "predicted" in names else [])]
    classes: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in single}
    table = np.empty((0, len(sources)))
    start = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[*single, *sources]):
        for name, parts in classes.items():
            parts.append(batch.column(name).to_numpy(zero_copy_only=False))
        if sources == [_LISTS]:
            block = _lists(path, batch.column(_LISTS), start, table.shape[1] if start else None)
        else:
            block = np.column_stack([batch.column(name).to_numpy(zero_copy_only=False) for name in sources])
        if start == 0:
            table = np.empty((file.metadata.num_rows, block.shape[1]))
        table[start : start + len(block)] = block
        start += len(block)
    joined = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in classes.items()}
    return Columns(path, table, joined[label], joined.get("predicted"))


def _probability_columns(path: Path, names: Sequence[str]) -> list[str]:
    """The column of lists, or the columns of scores in the order of the classes."""
    if _LISTS in names:
        return [_LISTS]
    scores = [f"score_{place}" for place in range(sum(map(_is_score, names)))]
    missing = [name for name in scores or ["score_0"] if name not in names]
    if missing:
        raise RecordingError(
            path,
            f"there is no column '{missing[0]}'; give the probabilities as columns score_0, score_1 and so "
            f"on, one for every class, or as one column '{_LISTS}' of lists",
        )
    return scores


def _is_score(name: str) -> bool:
    return name.startswith("score_") and name.removeprefix("score_").isdecimal()


def _check_types(path: Path, schema: Any, sources: Sequence[str]) -> None:
    from pyarrow import types  # noqa: PLC0415 - an extra, slow to import

    for name in sources:
        kind = schema.field(name).type
        if name == _LISTS:
            if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
                raise RecordingError(path, f"column '{name}' must be of lists of numbers, but is of {kind}")
            kind = kind.value_type
        if not (types.is_floating(kind) or types.is_integer(kind)):
            raise RecordingError(path, f"column '{name}' must be of numbers, but is of {kind}")


def _lists(path: Path, column: Any, start: int, width: int | None) -> npt.NDArray[Any]:
    """Lists as rows; `start` rows came before, all of `width` probabilities."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    expected = int(lengths[0]) if width is None else width
    ragged = lengths != expected
    if ragged.any():
        row = int(ragged.argmax())
        raise RecordingError(
            path,
            f"row {start + row} (counted from 0) has {lengths[row]} probabilities, but the first row has "
            f"{expected}; every row needs those of all classes",
        )
    rows: npt.NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False).reshape(len(lengths), expected)
    return rows
