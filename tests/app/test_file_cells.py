"""Cells of files: what becomes of them, and what is refused because it would have to be guessed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from service.app.files.cells import to_json, to_number, to_numbers, to_text, to_texts, to_time
from service.app.files.rows import BadCell


def raw(text: str) -> msgspec.Raw:
    """A cell of JSON lines."""
    return msgspec.Raw(text.encode())


def refusal(convert: Callable[[Any, str], Any], cell: Any) -> str:
    with pytest.raises(BadCell) as refused:
        convert(cell, "c")
    assert (refused.value.column, refused.value.reason) == ("c", "invalid_field")
    return refused.value.detail


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("007", "007"),
        (" a ", " a "),
        (7, "7"),
        (b"caf\xc3\xa9", "café"),
        (raw('"007"'), "007"),
        (raw("7"), "7"),
        (raw("-0"), "-0"),
        (raw("123456789012345678901234567890"), "123456789012345678901234567890"),
    ],
)
def test_ids_and_classes_stay_text_and_integers_become_their_digits(cell: Any, text: str) -> None:
    assert to_text(cell, "c") == text


@pytest.mark.parametrize(
    "cell", [True, 7.0, raw("7.0"), raw("true"), raw("[]"), b"\xff", Decimal(7), raw("1" * 999)]
)
def test_nothing_else_becomes_text(cell: Any) -> None:
    assert refusal(to_text, cell)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("0.5", 0.5),
        ("1e-3", 0.001),
        (1, 1.0),
        (Decimal("0.25"), 0.25),
        (raw("0.5"), 0.5),
        (raw('"0.5"'), 0.5),
    ],
)
def test_numbers_are_parsed(cell: Any, number: float) -> None:
    assert to_number(cell, "c") == number


@pytest.mark.parametrize(
    "cell",
    [
        "nan",
        "inf",
        "-Infinity",
        "1e400",
        raw("1e400"),
        float("nan"),
        float("inf"),
        10**400,
        Decimal("Infinity"),
    ],
)
def test_a_number_must_be_finite(cell: Any) -> None:
    assert refusal(to_number, cell) == "the number is not finite"


@pytest.mark.parametrize(
    "cell", ["0,5", "1_0", "٣", "50%", "", True, raw("true"), raw("[1]"), datetime.now(UTC)]
)
def test_nothing_else_becomes_a_number(cell: Any) -> None:
    assert refusal(to_number, cell).startswith("expected a number")


NOON = "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31T14:00:00+02:00", NOON),
        ("2026-01-31 12:00:00", NOON),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("20260131", "2026-01-31T00:00:00Z"),
        ("1769860800", NOON),
        ("1769860800.25", "2026-01-31T12:00:00.250000Z"),
        (1_769_860_800, NOON),
        (Decimal(1_769_860_800), NOON),
        (raw("1769860800.0"), NOON),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), NOON),
        (datetime(2026, 1, 31, 12), NOON),  # noqa: DTZ001 - as a file without a time zone has it
        (datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        (date(2026, 1, 31), "2026-01-31T00:00:00Z"),
    ],
)
def test_times_are_of_iso_8601_or_in_seconds(cell: Any, time: str) -> None:
    assert to_time(cell, "c") == time


@pytest.mark.parametrize(
    "cell", ["yesterday", "31.01.2026", "", "0001-01-01T00:00:00+23:00", True, raw("[]"), "9" * 99]
)
def test_nothing_else_becomes_a_time(cell: Any) -> None:
    assert refusal(to_time, cell).startswith("expected a time")


@pytest.mark.parametrize("cell", [1_769_860_800_000, "1769860800000", -1, float("nan"), float("inf")])
def test_milliseconds_are_not_taken_for_seconds(cell: Any) -> None:
    assert refusal(to_time, cell)


@pytest.mark.parametrize(
    "cell", [20_260_131, 202_601_311_200, "202601311200", "100000000", raw("20260131"), Decimal(20_260_131)]
)
def test_dates_without_signs_are_not_taken_for_seconds(cell: Any) -> None:
    assert "must be seconds since 1970, in the years 2000 to 2099" in refusal(to_time, cell)


@pytest.mark.parametrize("cell", ["[0.1, 0.9]", [0.1, 0.9], raw("[0.1, 0.9]")])
def test_lists_of_numbers_are_lists_or_json(cell: Any) -> None:
    assert to_numbers(cell, "c") == [0.1, 0.9]


@pytest.mark.parametrize(
    "cell", ["0.1 0.9", "{}", [None], [float("nan")], raw("[1e400]"), raw("7"), "[" * 100_000]
)
def test_nothing_else_becomes_a_list_of_numbers(cell: Any) -> None:
    assert refusal(to_numbers, cell)


@pytest.mark.parametrize(
    "cell", ['{"a": 1, "b": null}', {"a": "1", "b": None}, [("a", "1")], [(b"a", 1)], raw('{"a": 1}')]
)
def test_texts_by_name_are_objects_maps_or_json(cell: Any) -> None:
    assert to_texts(cell, "c") == {"a": "1"}


@pytest.mark.parametrize("cell", ["a", "[]x", raw("[1]"), {"a": 1.5}, 7])
def test_nothing_else_becomes_texts_by_name(cell: Any) -> None:
    assert refusal(to_texts, cell)


@pytest.mark.parametrize("name", [True, 1.5, None, {"k": "1"}, ["k"], b"\xff"])
def test_names_of_a_map_must_be_text(name: Any) -> None:
    assert refusal(to_texts, [(name, "x")])


def test_a_name_that_is_twice_in_a_map_is_refused() -> None:
    assert refusal(to_texts, [("1", "x"), (1, "y")]) == "a name is there twice"


def test_a_payload_stays_as_it_is_written() -> None:
    text = '{"b": 1.0, "a": [1e5, "\\u00e9"]}'
    assert bytes(to_json(raw(text), "c")) == text.encode()


def test_a_payload_of_text_is_text() -> None:
    assert bytes(to_json("[1]", "c")) == b'"[1]"'


@pytest.mark.parametrize(
    "cell",
    [
        {1.5j: 2},
        float("nan"),
        {"a": [float("inf")]},
        b"hello",
        [("k", b"\xff")],
        functools.reduce(lambda inner, _: [inner], range(9_999), 1),
    ],
)
def test_a_payload_that_json_cannot_hold_is_refused(cell: Any) -> None:
    assert refusal(to_json, cell)


@given(
    cell=st.text()
    | st.integers()
    | st.floats()
    | st.binary()
    | st.booleans()
    | st.lists(st.text() | st.floats())
)
@pytest.mark.parametrize("convert", [to_text, to_number, to_time, to_numbers, to_texts])
def test_a_cell_is_converted_or_refused_and_never_fails_otherwise(
    convert: Callable[[Any, str], Any], cell: Any
) -> None:
    with suppress(BadCell):
        convert(cell, "c")
