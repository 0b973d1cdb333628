"""Readers of recordings: tables of text, and Parquet with pyarrow, which is an extra."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.errors import RecordingError
from service.replay.columns import Columns, no_attribute

_LABEL_COLUMNS = ("label", "labels", "true_class")

_LISTS = "probabilities"

_BATCH_ROWS = 8_192
"""Rows are copied into the table so many at a time, so that no second one stands beside it."""


def read_text(path: Path, *, attribute: str | None = None) -> Columns:
    """Read rows of the true class and the probabilities of all classes.

    Commas separate the columns if the first line has any, else spaces and tabs do. A header line is skipped,
    and so is what follows a `#`. For an attribute the header names the columns.

    Raises:
        RecordingError: there are no rows, or a line cannot be read.
        OSError: the file cannot be opened.
    """
    with path.open(encoding="utf-8-sig") as handle:
        try:
            contents = ((number, line.partition("#")[0].strip()) for number, line in enumerate(handle, 1))
            rows = {number: content for number, content in contents if content}
        except UnicodeDecodeError as error:
            raise RecordingError(path, "it is no text in UTF-8; save it as plain text") from error
    first, content = next(iter(rows.items()), (0, ""))
    delimiter = "," if "," in content else None
    if attribute is not None and rows:
        return _read_named(path, rows, delimiter or " ", attribute)
    if _is_header(content.replace('"', "").split(delimiter)):
        rows.pop(first, None)
    if not rows:
        raise RecordingError(path, "there are no rows; record at least one prediction")
    try:
        table = np.loadtxt(list(rows.values()), dtype=np.float64, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        words = {number: content.split(delimiter) for number, content in rows.items()}
        raise RecordingError(path, _malformed(words)) from error
    return Columns(source=path, probabilities=table[:, 1:], labels=table[:, 0], lines=list(rows))


def _read_named(path: Path, rows: Mapping[int, str], delimiter: str, attribute: str) -> Columns:
    """By the names in the header: the attribute, the true class, and the probabilities of all classes.

    These are the columns `score_0` and so on, if there are any; else all the others.
    """
    lines = csv.reader(rows.values(), delimiter=delimiter, skipinitialspace=True)
    header, *table = [[word.strip() for word in words] for words in lines] or [[]]
    if attribute not in header:
        raise RecordingError(path, no_attribute(attribute, "column in the header line", header))
    label = next((name for name in _LABEL_COLUMNS if name in header), header[0])
    scores = _probability_columns(path, header) if any(map(_is_score, header)) else None
    scores = scores or [name for name in header if name not in {attribute, label, "predicted"}]
    numbers = list(rows)[1:]
    if len(table) != len(numbers):
        raise RecordingError(path, "a quoted value goes over several lines; write every row on one line")
    if not table:
        raise RecordingError(path, "there are no rows; record at least one prediction")
    for number, words in zip(numbers, table, strict=True):
        if len(words) != len(header):
            raise RecordingError(
                path, f"line {number} has {len(words)} columns, the header has {len(header)}"
            )
    columns = dict(zip(header, zip(*table, strict=True), strict=True))

    def numeric(name: str) -> npt.NDArray[Any]:
        bad = next((place for place, word in enumerate(columns[name]) if not _is_number(word)), None)
        if bad is not None:
            raise RecordingError(path, f"line {numbers[bad]}: column '{name}' is not a number; correct it")
        return np.array(columns[name], np.float64)

    return Columns(
        path,
        np.stack([numeric(name) for name in scores], axis=1),
        numeric(label),
        numeric("predicted") if "predicted" in columns else None,
        attribute=np.array(columns[attribute]),
        lines=numbers,
    )


def _is_header(words: list[str]) -> bool:
    """Whether a line names columns: by no number at all, or by a word and then the classes' numbers."""
    if any(map(_is_number, words[:1])):
        return False
    numbered = [str(place) for place in range(len(words) - 1)]
    return not any(map(_is_number, words)) or [word.strip() for word in words[1:]] == numbered


def _malformed(rows: Mapping[int, Sequence[str]]) -> str:
    """What is wrong with the first line that cannot be read, of all by their numbers."""
    expected = len(next(iter(rows.values())))
    for number, words in rows.items():
        if len(words) != expected:
            return (
                f"line {number} has {len(words)} columns, but the first row has {expected}; "
                "every row needs the true class and the probability of every class"
            )
        if not all(map(_is_number, words)):
            break
    column = sum(1 for _ in takewhile(_is_number, words)) + 1
    return (
        f"line {number}: column {column} is not a number; every row needs the true class and the "
        "probability of every class, all as numbers, separated by commas, spaces or tabs"
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    # Python alone takes digits of other scripts and underscores for numbers.
    return word.isascii() and "_" not in word


def read_parquet(path: Path, *, attribute: str | None = None) -> Columns:
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
            return _read(path, parquet.ParquetFile(handle), attribute)
        # pyarrow decodes names of columns without care, hence ValueError.
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RecordingError(path, "it is no Parquet file, or a damaged one; write it again") from error


def _read(path: Path, file: Any, attribute: str | None) -> Columns:
    names: list[str] = file.schema_arrow.names
    label = next((name for name in _LABEL_COLUMNS if name in names), None)
    if label is None:
        raise RecordingError(path, f"there is no column of true classes; name it {', '.join(_LABEL_COLUMNS)}")
    if attribute is not None and attribute not in names:
        raise RecordingError(path, no_attribute(attribute, "column", names))
    sources = _probability_columns(path, names)
    _check_types(path, file.schema_arrow, sources)
    wished = [label, "predicted" if "predicted" in names else None, attribute]
    single = list(dict.fromkeys(name for name in wished if name is not None))
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
    values = None if attribute is None else joined[attribute]
    return Columns(path, table, joined[label], joined.get("predicted"), attribute=values)


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
