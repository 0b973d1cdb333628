"""Rows of files: what is read is what was written, in bounded memory, and a bad row spoils no other."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from pyarrow import parquet

from service.app.files.opening import format_of, open_rows
from service.app.files.rows import Row, Table, UnusableFileError

ROW_BYTES = 2_000

# Control characters, separators and line ends of all kinds included; surrogates are no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True)


@contextmanager
def table_of(path: Path, *, delimiter: str = ",", row_bytes: int = ROW_BYTES) -> Iterator[Table]:
    kind = format_of(str(path))
    assert kind is not None

    def everything(columns: Collection[str]) -> Collection[str]:
        return columns

    with open_rows(str(path), kind=kind, delimiter=delimiter, row_bytes=row_bytes, used=everything) as table:
        yield table


def rows_of(path: Path, **options: Any) -> list[Row]:
    with table_of(path, **options) as table:
        return list(table.rows)


def cells_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    rows = rows_of(path, **options)
    assert [row.problem for row in rows] == [None] * len(rows)
    return [dict(row.cells) for row in rows]


def written(folder: Path, content: bytes | str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def reasons(rows: list[Row]) -> list[tuple[int, str | None]]:
    return [(row.number, row.problem and row.problem.reason) for row in rows]


@st.composite
def tables(draw: st.DrawFn, cells: st.SearchStrategy[Any]) -> tuple[list[str], list[list[Any]]]:
    names = draw(NAMES)
    row = st.lists(cells, min_size=len(names), max_size=len(names))
    return names, draw(st.lists(row, max_size=10))


# Round trips


@given(table=tables(TEXT), delimiter=st.sampled_from(",;\t|"), end=st.sampled_from(["\n", "\r\n"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_csv_are_those_that_were_written(
    tmp_path: Path, table: tuple[list[str], list[list[str]]], delimiter: str, end: str
) -> None:
    names, rows = table
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([names, *rows])
    path = written(tmp_path, text.getvalue())
    expected = [{name: cell for name, cell in zip(names, row, strict=True) if cell} for row in rows]
    assert cells_of(path, delimiter=delimiter) == expected


@given(
    table=tables(TEXT | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_json_lines_are_those_that_were_written(
    tmp_path: Path, table: tuple[list[str], list[list[Any]]]
) -> None:
    names, rows = table
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    path = written(tmp_path, "".join(f"{json.dumps(each)}\n" for each in objects), "rows.jsonl")
    read = [{k: msgspec.json.decode(text) for k, text in cells.items()} for cells in cells_of(path)]
    assert read == objects


@given(names=NAMES, columns=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_parquet_are_those_that_were_written(
    tmp_path: Path, names: list[str], columns: st.DataObject
) -> None:
    size = columns.draw(st.integers(0, 10))
    kinds = [TEXT, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans()]
    values = {
        name: columns.draw(
            st.lists(st.none() | columns.draw(st.sampled_from(kinds)), min_size=size, max_size=size)
        )
        for name in names
    }
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(values), path)
    expected = [
        {name: values[name][row] for name in names if values[name][row] is not None} for row in range(size)
    ]
    assert cells_of(path) == expected


# Text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.xlsx", None),
        ("csv", None),
    ],
)
def test_the_name_of_a_file_says_its_format(name: str, kind: str | None) -> None:
    assert format_of(name) == kind


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, name: str) -> None:
    text = "a\n1\n" if name.endswith("csv") else '{"a":"1"}\n'
    (cells,) = cells_of(written(tmp_path, b"\xef\xbb\xbf" + text.encode(), name))
    assert list(cells) == ["a"]


def test_utf_16_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(UnusableFileError, match="it is UTF-16; save it as UTF-8"):
        rows_of(path)


def test_a_row_is_numbered_by_its_first_line(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,b\n1,"two\nlines"\n\n3,4')
    assert [(row.number, dict(row.cells)) for row in rows_of(path)] == [
        (2, {"a": "1", "b": "two\nlines"}),
        (5, {"a": "3", "b": "4"}),
    ]


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_compressed_text_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    assert cells_of(written(tmp_path, gzip.compress(b"a\n1\n"), name)) == [{"a": "1"}]


def test_compressed_text_that_ends_too_early_is_an_error_after_its_rows(tmp_path: Path) -> None:
    whole = gzip.compress(b"a\n" + b"1\n" * 100)
    with table_of(written(tmp_path, whole[:-8])) as table:
        assert next(table.rows).cells == {"a": "1"}
        with pytest.raises(UnusableFileError, match="is damaged, or ends too early"):
            list(table.rows)


@pytest.mark.parametrize("content", ["", "\n", ",,\n1,2,3\n"])
def test_csv_without_names_of_columns_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnusableFileError, match="there is no line that names the columns"):
        rows_of(written(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "content"), [("rows.csv", "a,b\n"), ("rows.jsonl", ""), ("b.jsonl", "\n\n")]
)
def test_a_file_may_have_no_rows(tmp_path: Path, name: str, content: str) -> None:
    assert rows_of(written(tmp_path, content, name)) == []


def test_rows_of_another_width_are_bad(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1\n1,2\n1,2,3\n")
    assert reasons(rows_of(path)) == [(2, "malformed_csv"), (3, None), (4, "malformed_csv")]


@pytest.mark.parametrize("bad", ['"a"b,c', '"open', "a\rb,c"])
def test_a_row_that_is_not_csv_is_bad_and_quotes_nothing(tmp_path: Path, bad: str) -> None:
    *_, row = rows_of(written(tmp_path, f"a,b\n1,2\n{bad}\n"))
    assert row.problem is not None
    assert (row.number, row.problem.reason) == (3, "malformed_csv")
    assert "open" not in row.problem.detail


def test_a_row_that_is_not_utf_8_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\n\xff\xfe\nc\n")
    assert reasons(rows_of(path)) == [(2, "not_utf8"), (3, None)]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_line_that_is_too_long_is_bad_and_the_next_is_read(tmp_path: Path, name: str) -> None:
    good = "x\n" if name.endswith("csv") else '{"a":1}\n'
    path = written(tmp_path, f"{good}{good}{'y' * 10 * ROW_BYTES}\n{good}", name)
    rows = rows_of(path)
    assert [row.problem and row.problem.reason for row in rows][-2:] == ["row_too_long", None]


def test_a_quote_that_does_not_end_takes_no_more_than_a_row(tmp_path: Path) -> None:
    path = written(tmp_path, 'a\n"open\n' + "1\n" * ROW_BYTES)
    rows = rows_of(path)
    assert reasons(rows)[0] == (2, "row_too_long")
    assert len(rows) > ROW_BYTES / 2
    assert {row.problem for row in rows[1:]} == {None}


def test_csv_may_have_ten_thousand_columns(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(10_000)]
    path = written(tmp_path, "\n".join([",".join(names), ",".join(["1"] * len(names))]))
    assert cells_of(path, row_bytes=1_000_000) == [dict.fromkeys(names, "1")]


@pytest.mark.parametrize("line", ["[1]", '"a"', "{", '{"a": NaN}', "null", '{"a": 01}'])
def test_a_line_that_is_no_object_is_bad(tmp_path: Path, line: str) -> None:
    rows = rows_of(written(tmp_path, f'{line}\n{{"a": 1}}\n', "rows.jsonl"))
    assert [row.problem is None for row in rows] == [False, True]


def test_null_is_a_missing_value_and_empty_text_is_not(tmp_path: Path) -> None:
    (cells,) = cells_of(written(tmp_path, '{"a": null, "b": ""}', "rows.jsonl"))
    assert list(cells) == ["b"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError, match=r"absent\.csv: no such file or directory"):
        rows_of(tmp_path / "absent.csv")


# Parquet


def test_what_is_no_parquet_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError, match="it is no Parquet file, or a damaged one"):
        rows_of(written(tmp_path, "a,b\n", "rows.parquet"))


def test_without_pyarrow_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnusableFileError, match=r"run: pip install 'credence\[parquet\]'"):
        rows_of(written(tmp_path, "", "rows.parquet"))


def test_times_of_parquet_are_read_to_the_microsecond(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    nanoseconds = pa.array([1_769_860_800_123_456_789], pa.timestamp("ns", "Europe/Berlin"))
    parquet.write_table(pa.table({"time": nanoseconds}), path)
    assert cells_of(path) == [{"time": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)}]


def test_a_value_that_python_cannot_hold_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    ends = pa.py_buffer(b"".join(at.to_bytes(4, "little") for at in (0, 1, 2)))
    texts = pa.StringArray.from_buffers(2, ends, pa.py_buffer(b"\xffb"))
    parquet.write_table(pa.table({"a": texts}), path)
    rows = rows_of(path)
    assert reasons(rows) == [(1, "invalid_field"), (2, None)]
    assert rows[1].cells == {"a": "b"}


def test_a_parquet_file_that_is_damaged_inside_is_an_error_after_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    column = pa.table({"a": [str(number) for number in range(10_000)]})
    parquet.write_table(column, path, compression="none", use_dictionary=False, row_group_size=5_000)
    content = bytearray(path.read_bytes())
    # In the second half, lengths of text that reach beyond the end.
    begin = 3 * len(content) // 4
    content[begin : begin + 100] = b"\xff" * 100
    path.write_bytes(content)
    with table_of(path) as table:
        assert next(table.rows).cells == {"a": "0"}
        with pytest.raises(UnusableFileError, match="it is damaged after row"):
            list(table.rows)
