"""Rows of files: what is read is what was written, in bounded memory, and a bad row spoils no other."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
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
# One name with a delimiter in it is taken for several with another delimiter.
NAMES = st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True).filter(
    lambda names: len(names) > 1 or not set(names[0]) & set(",;|\t")
)


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
    table=tables(TEXT | st.just('a"\n1,2\n')),
    broken=st.sets(st.integers(0, 20)),
    row_bytes=st.integers(40, 200),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_row_of_csv_is_made_of_the_text_of_a_cell(
    tmp_path: Path, table: tuple[list[str], list[list[str]]], broken: set[int], row_bytes: int
) -> None:
    rows = [["a", "b"], *([row[0], row[-1]] for row in table[1])]
    text = b""
    written_rows: dict[int, dict[str, str]] = {}
    for number, row in enumerate(rows):
        line = text.count(b"\n") + 1
        cells = [b'"' + cell.replace('"', '""').encode() + b'"' for cell in row]
        if number in broken and number:
            # In the first cell, or after it.
            cells[0] = cells[0][:1] + b"\xff" + cells[0][1:] if number % 2 else cells[0] + b" pipe"
        else:
            written_rows[line] = {name: cell for name, cell in zip("ab", row, strict=True) if cell}
        text += b",".join(cells) + b"\n"
    read: list[Row] = []
    with table_of(written(tmp_path, text), row_bytes=row_bytes) as open_table, suppress(UnusableFileError):
        read.extend(open_table.rows)
    for row in read:
        if row.problem is None:
            assert row.cells == written_rows[row.number]
        else:
            assert row.problem.reason == "not_utf8"


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


@pytest.mark.parametrize(
    ("content", "delimiter", "named"),
    [("a;b\n1;2\n", ",", "';'"), ("a\tb\n", ",", "tab"), ("a|b\n", ",", "'|'"), ("a,b\n", ";", "','")],
)
def test_another_delimiter_in_the_first_line_is_named(
    tmp_path: Path, content: str, delimiter: str, named: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnusableFileError, match=re.escape(f"add --delimiter {named}")):
        rows_of(path, delimiter=delimiter)


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


def test_a_row_with_a_line_break_without_quotes_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\na\rb,c\n3,4\n")
    assert reasons(rows_of(path)) == [(2, None), (3, "malformed_csv"), (4, None)]


@pytest.mark.parametrize(
    "bad",
    [
        '"5" pipe\n3,4\nend"',
        '"hidden\n3,4\n',
        'a\rb,"hidden\n3,4\nend"',
        f'"{"x" * ROW_BYTES}\n3,4\nend"',
        f'{"x" * 2 * ROW_BYTES},"hidden\n3,4\nend"',
        f'"hidden\n{"x" * 2 * ROW_BYTES}\n3,4\nend"',
    ],
)
def test_after_a_row_whose_quotes_are_unknown_nothing_is_read(tmp_path: Path, bad: str) -> None:
    with table_of(written(tmp_path, f"a,b\n1,2\n{bad}\n5,6\n")) as table:
        assert next(table.rows).cells == {"a": "1", "b": "2"}
        with pytest.raises(UnusableFileError, match=r"line 3: .* unknown where the next row begins") as error:
            next(table.rows)
    assert "hidden" not in str(error.value)
    assert "xx" not in str(error.value)


def test_a_row_that_is_not_utf_8_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\n\xff\xfe\nc\n")
    assert reasons(rows_of(path)) == [(2, "not_utf8"), (3, None)]


def test_lines_of_a_cell_that_is_not_utf_8_are_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path, b'a,b\n1,"caf\xe9\n3,4\n"\n5,6\n')
    assert reasons(rows_of(path)) == [(2, "not_utf8"), (5, None)]


def test_names_of_columns_that_are_not_utf_8_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError, match="the line that names the columns is not UTF-8"):
        rows_of(written(tmp_path, b"caf\xe9\n1\n"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_line_that_is_too_long_is_bad_and_the_next_is_read(tmp_path: Path, name: str) -> None:
    good = "x\n" if name.endswith("csv") else '{"a":1}\n'
    path = written(tmp_path, f"{good}{good}{'y' * 10 * ROW_BYTES}\n{good}", name)
    rows = rows_of(path)
    assert [row.problem and row.problem.reason for row in rows][-2:] == ["row_too_long", None]


def test_control_characters_of_a_name_are_escaped(tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError) as error:
        rows_of(tmp_path / "a\x1b[31m.csv")
    assert r"a\x1b[31m.csv: no such file" in str(error.value)


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


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([[("k", "1")], [], None], pa.map_(pa.string(), pa.string())), [[("k", "1")], [], None]),
        (pa.array([{"a": [1]}, None, {"a": None}]), [{"a": [1]}, None, {"a": None}]),
        (pa.array([[1], [2]], pa.list_(pa.int64(), 1)), [[1], [2]]),
        (pa.array([[1], None], pa.large_list(pa.int64())), [[1], None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([7, None, 7]).dictionary_encode(), [7, None, 7]),
    ],
)
@pytest.mark.parametrize("row_bytes", [1, ROW_BYTES])
def test_values_of_all_kinds_of_columns_are_read(
    tmp_path: Path, column: pa.Array, values: list[Any], row_bytes: int
) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a": column}), path)
    rows = rows_of(path, row_bytes=row_bytes)
    if row_bytes == ROW_BYTES:
        assert [row.cells.get("a") for row in rows] == values
    assert {reason for _, reason in reasons(rows)} == {None if row_bytes == ROW_BYTES else "row_too_long"}


def test_times_of_parquet_are_read_to_the_microsecond(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    nanoseconds = pa.array([1_769_860_800_123_456_789], pa.timestamp("ns", "Europe/Berlin"))
    parquet.write_table(pa.table({"time": nanoseconds}), path)
    assert cells_of(path) == [{"time": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)}]


@pytest.mark.parametrize(
    "time",
    [
        pa.array([1_769_860_800_000_000, 1_769_860_800], pa.timestamp("s")),
        pa.array([1_769_860_800_000_000_000, 1_769_860_800_000], pa.timestamp("ms")),
    ],
)
def test_a_time_beyond_all_bounds_is_bad_and_the_next_is_read(tmp_path: Path, time: pa.Array) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"time": time}), path)
    assert reasons(rows_of(path)) == [(1, "invalid_field"), (2, None)]


def test_a_value_of_parquet_that_is_too_long_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    texts = ["a", "x" * 2 * ROW_BYTES, "b"]
    for column in (pa.array(texts), pa.array(texts).dictionary_encode()):
        parquet.write_table(pa.table({"a": column}), path)
        assert reasons(rows_of(path)) == [(1, None), (2, "row_too_long"), (3, None)]


@pytest.mark.parametrize(
    "values",
    [
        pa.nulls(ROW_BYTES),
        pa.array([True] * ROW_BYTES),
        pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), ["x" * 100]),
        pa.StructArray.from_arrays([pa.nulls(ROW_BYTES)], ["k"]),
    ],
)
def test_a_list_that_is_longer_in_python_than_in_the_file_is_bad(tmp_path: Path, values: pa.Array) -> None:
    path = tmp_path / "rows.parquet"
    column = pa.ListArray.from_arrays(pa.array([0, len(values), len(values)], pa.int32()), values)
    parquet.write_table(pa.table({"a": column}), path)
    assert reasons(rows_of(path)) == [(1, "row_too_long"), (2, None)]


def test_rows_of_parquet_have_the_size_of_their_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    # One value, stored once: the file is small, and its rows are not.
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), ["x" * 1_000])
    parquet.write_table(pa.table({"a": column}), path)
    assert path.stat().st_size < 10_000
    rows = rows_of(path)
    assert len(rows) == 1_000
    assert min(row.size for row in rows) >= 1_000


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
