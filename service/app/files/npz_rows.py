"""Rows of an npz archive of arrays with one row per prediction, as `credence replay` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.app.files.rows import Row, Table, UnusableFileError
from service.domain.errors import BadMessage, RecordingError

if TYPE_CHECKING:
    import numpy.typing as npt

_MOST_EXACT = 2.0**53
_MOST_DIMENSIONS = 2  # [N], or [N, K] of lists


def npz_table(path: str, *, row_bytes: int) -> Table:
    """Rows of an archive, which is in memory as a whole; an array [N, K] has a list in each row.

    Rows over `row_bytes` are refused.

    Raises:
        UnusableFileError: it is no npz archive, or its arrays are not of the same rows.
        OSError: the file cannot be opened.
    """
    from service.replay.archives import read_arrays  # noqa: PLC0415 - with numpy

    try:
        arrays = read_arrays(Path(path), needed=(), wished=None)
    except RecordingError as error:
        raise UnusableFileError(path, error.problem) from error
    for name, array in arrays.items():
        if array.ndim not in (1, _MOST_DIMENSIONS):
            shape = list(array.shape)
            raise UnusableFileError(
                path, f"array '{name}' must be [N] or [N, K], a row per prediction, but has the shape {shape}"
            )
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array):,}" for name, array in arrays.items())
        raise UnusableFileError(
            path, f"the arrays differ in their number of rows: {lengths}; save those of the same predictions"
        )
    return Table(list(arrays), _rows(arrays, row_bytes), unit="row")


def _rows(arrays: Mapping[str, npt.NDArray[Any]], row_bytes: int) -> Iterator[Row]:
    whole = {name: _without_decimals(array) for name, array in arrays.items()}
    for at in range(max(map(len, whole.values()), default=0)):
        size = sum(array[at].nbytes for array in whole.values())
        if size > row_bytes:
            yield Row(at + 1, problem=BadMessage("row_too_long", f"the row is over {row_bytes} bytes"))
            continue
        cells = {name: array[at].tolist() for name, array in whole.items()}
        yield Row(at + 1, {name: cell for name, cell in cells.items() if not _is_missing(cell)}, size=size)


def _without_decimals(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Classes that were saved as 3.0 are the class 3, as in `credence replay`."""
    import numpy as np  # noqa: PLC0415 - slow to import

    is_one_number = array.ndim == 1 and array.dtype.kind == "f"
    if is_one_number and np.all((np.mod(array, 1) == 0) & (np.abs(array) < _MOST_EXACT)):
        return array.astype(np.int64)
    return array


def _is_missing(cell: Any) -> bool:
    return bool(cell == "" or cell != cell)  # noqa: PLR0124 - NaN
