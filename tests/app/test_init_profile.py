"""The profile of a sample: what is counted of its columns, and its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from service.app.files.rows import Row, Table, UnusableFileError
from service.app.proposal import profile as profiles
from service.app.proposal.column_tally import MOST_VALUES
from service.app.proposal.profile import Profile, profile_rows


def profiled(rows: Sequence[Mapping[str, Any]], *, most_rows: int | None = None, size: int = 0) -> Profile:
    numbered = (Row(number, row, size=size) for number, row in enumerate(rows, 1))
    return profile_rows(
        Table(None, numbered, "line"), "a file", most_rows=most_rows, model=None, model_column="model"
    )


def test_values_are_counted_up_to_a_bound_and_then_at_least_so_many() -> None:
    rows = [{"few": str(number % 7), "many": str(number)} for number in range(MOST_VALUES + 5)]
    found = profiled(rows).columns
    assert found["few"].distinct == 7
    assert sum((found["few"].counts or {}).values()) == len(rows)
    assert (found["many"].counts, found["many"].distinct) == (None, MOST_VALUES)
    assert found["many"].is_unique


def test_a_column_that_starts_late_is_missing_in_the_rows_before() -> None:
    found = profiled([{"a": "1"}] * 3 + [{"a": "1", "b": "2"}]).columns
    assert found["a"].missing_share == 0
    assert found["b"].missing_share == 0.75


def test_numbers_have_extremes_with_their_rows_and_a_mean() -> None:
    numbers = profiled([{"a": "2"}, {"a": "-1"}, {"a": "5"}]).columns["a"].numbers
    assert numbers is not None
    assert (numbers.lowest, numbers.lowest_row, numbers.highest, numbers.highest_row) == (-1, 2, 5, 3)
    assert numbers.mean == 2


def test_the_first_value_of_another_kind_is_placed() -> None:
    column = profiled([{"a": 1}, {"a": "b"}, {"a": 0.5}]).columns["a"]
    assert (column.not_number, column.not_text) == (2, 3)


def test_times_have_a_first_and_a_last_one() -> None:
    days = ["2026-01-03", "2026-01-01", "2026-01-02"]
    assert profiled([{"a": day} for day in days]).columns["a"].times == (
        "2026-01-01T00:00:00Z",
        "2026-01-03T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ([0.5, 0.4, 0.1], "line 2 has 3 numbers, those before it 2"),
        ([0.9, 0.9], "line 2: the numbers are not probabilities that sum to 1"),
        ("no list", "line 2 has no list"),
        (["a"], "line 2: expected a number, with a decimal point"),
    ],
)
def test_lists_that_are_no_probabilities_are_placed(second: object, problem: str) -> None:
    assert profiled([{"a": [0.5, 0.5]}, {"a": second}]).columns["a"].lists_problem == problem


def test_long_values_are_shortened_and_stay_different() -> None:
    column = profiled([{"a": "x" * 5_000 + str(number)} for number in range(3)]).columns["a"]
    assert column.distinct == 3
    assert max(map(len, column.counts or ())) < 100


def test_the_sample_of_rows_is_bounded_in_number_and_size_and_even() -> None:
    rows = [{"a": str(number)} for number in range(20_000)]
    sample = [int(row["a"]) for row in profiled(rows).sample]
    assert 500 < len(sample) <= 2_000
    # Of 20,000 rows in a random half or quarter, the mean is within 4 standard errors (5,774 / sqrt(500)).
    assert abs(sum(sample) / len(sample) - 10_000) < 4 * 5_774 / 500**0.5
    large = profiled(rows[:200], size=1_000_000).sample
    assert 0 < len(large) <= 33


def test_values_of_all_columns_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MOST_HELD_VALUES", 300)
    rows = [{"few": str(number % 5), "many": str(number), "some": str(number % 90)} for number in range(400)]
    found = profiled(rows).columns
    assert found["many"].counts is None
    assert found["few"].counts is not None
    assert found["some"].distinct == 90


def test_too_many_columns_are_an_error_that_names_the_row() -> None:
    rows = [{"a": "1"}, {f"c{number}": "1" for number in range(300)}]
    with pytest.raises(UnusableFileError, match="line 2 has column 257; a sample may have 256"):
        profiled(rows)


def test_a_limit_of_rows_says_whether_there_are_more() -> None:
    rows = [{"a": "1"}] * 3
    assert not profiled(rows, most_rows=2).is_whole
    assert profiled(rows, most_rows=3).is_whole
    assert profiled(rows, most_rows=2).rows == 2


def test_entries_of_attributes_are_columns_and_a_column_of_their_own_name_wins() -> None:
    found = profiled([{"attributes": {"region": "north", "city": "x"}, "city": "y"}]).columns
    assert [*found] == ["city", "attributes.region"]
    assert found["city"].counts == {"y": 1}
