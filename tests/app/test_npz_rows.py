"""Arrays of an npz archive as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.app.files.opening import open_rows
from service.app.files.rows import Row, UnusableFileError


def rows_of(path: Path, **arrays: Any) -> list[Row]:
    np.savez(path, **arrays)
    with open_rows(str(path), kind="npz", delimiter=",", row_bytes=1_000, used=set) as table:
        assert table.columns == list(arrays)
        assert table.unit == "row"
        return list(table.rows)


def test_every_array_is_a_column_and_one_of_two_dimensions_holds_lists(tmp_path: Path) -> None:
    first, second = rows_of(
        tmp_path / "a.npz",
        probabilities=np.array([[0.25, 0.75], [1.0, 0.0]]),
        labels=np.array([1, 0]),
        region=np.array(["north", "south"]),
    )
    assert (first.number, second.number) == (1, 2)
    assert first.cells == {"probabilities": [0.25, 0.75], "labels": 1, "region": "north"}
    assert second.cells == {"probabilities": [1.0, 0.0], "labels": 0, "region": "south"}


def test_classes_that_were_saved_with_decimals_are_integers(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.npz", labels=np.array([3.0]), score=np.array([0.5]))
    assert repr(row.cells) == repr({"labels": 3, "score": 0.5})


def test_nan_and_empty_text_are_missing(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.npz", score=np.array([np.nan]), region=np.array([""]))
    assert row.cells == {}


def test_numbers_beyond_exact_integers_stay_numbers(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.npz", amount=np.array([1e300]))
    assert row.cells == {"amount": 1e300}


def test_a_row_that_is_too_long_is_bad(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.npz", probabilities=np.full((1, 1_000), 0.001))
    assert row.problem is not None
    assert row.problem.reason == "row_too_long"


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": np.zeros(2), "b": np.zeros(3)}, "the arrays differ in their number of rows: a 2, b 3"),
        ({"a": np.array(1.0)}, "array 'a' must be [N] or [N, K]"),
        ({"a": np.zeros((2, 2, 2))}, "has the shape [2, 2, 2]"),
    ],
)
def test_arrays_of_other_shapes_are_an_error(tmp_path: Path, arrays: dict[str, Any], said: str) -> None:
    with pytest.raises(UnusableFileError) as error:
        rows_of(tmp_path / "a.npz", **arrays)
    assert said in str(error.value)


def test_what_is_no_archive_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_text("no archive")
    with (
        pytest.raises(UnusableFileError, match="it is no npz archive"),
        open_rows(str(path), kind="npz", delimiter=",", row_bytes=1_000, used=set),
    ):
        pass
