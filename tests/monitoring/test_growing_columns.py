"""Columns that grow at the end and are forgotten from the beginning."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.monitoring.outcome_rows import GrowingColumns

TYPES = {"number": np.int64, "half": np.float64}


def grown(columns: GrowingColumns, first: int, count: int) -> None:
    numbers = np.arange(first, first + count)
    columns.extend(number=numbers, half=numbers / 2)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=30))
def test_rows_are_those_that_came_and_were_not_forgotten(steps: list[tuple[int, int]]) -> None:
    columns = GrowingColumns(TYPES)
    came = gone = 0
    for more, fewer in steps:
        grown(columns, came, more)
        came += more
        columns.forget(min(fewer, came - gone))
        gone = min(gone + fewer, came)
        assert len(columns) == came - gone
        np.testing.assert_array_equal(columns["number"], np.arange(gone, came))
        np.testing.assert_array_equal(columns["half"], np.arange(gone, came) / 2)


def test_what_is_written_to_a_column_stays() -> None:
    columns = GrowingColumns(TYPES)
    grown(columns, 0, 50)
    columns.forget(10)
    columns["number"][5] = -1
    grown(columns, 50, 500)
    assert columns["number"][5] == -1


def test_there_is_room_for_a_quarter_more_rows_than_there_ever_were() -> None:
    tracemalloc.start()
    columns = GrowingColumns(TYPES)
    for first in range(0, 1_000_000, 1_000):
        grown(columns, first, 1_000)
        columns.forget(max(0, len(columns) - 10_000))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 1.3 * 11_000 * 16
