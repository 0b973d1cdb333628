"""Arrow streams that are damaged, or made to take much more memory or time than their length, are refused."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from arrow_streams import Message, messages, stream_of, table_of, written
from test_arrow import ROWS, outcomes

from consumers.formats.arrow import arrow_rows
from consumers.formats.arrow_columns import decode_columns
from consumers.formats.arrow_messages import MOST_FIELDS, MOST_MESSAGES
from service.domain.errors import BadMessage

STREAM = written(table_of(ROWS))
SCHEMA, BATCH = 1, 3


def refusal(value: bytes) -> str:
    """Why a whole stream is refused, whichever way it is read."""
    assert decode_columns([value]) is None
    with pytest.raises(BadMessage) as refused:
        arrow_rows((), value)
    assert outcomes([value]) == [(0, None, refused.value.reason)]
    return str(refused.value)


def first(stream: bytearray, kind: int) -> Message:
    return next(message for message in messages(stream) if message.kind == kind)


def cut_behind(kind: int) -> bytes:
    return STREAM[: first(bytearray(STREAM), kind).end]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (STREAM + STREAM, "something follows the end"),
        (STREAM + b"garbage", "something follows the end"),
        (STREAM + STREAM[-8:], "something follows the end"),
        (STREAM[:-8], "was not closed"),
        (cut_behind(SCHEMA), "was not closed"),
        (STREAM[:-12], "cut off"),
        (cut_behind(SCHEMA) + b"????????" + STREAM[-8:], "does not begin"),
        (STREAM[:-8] + STREAM, "a stream must be a schema"),
    ],
)
def test_a_stream_ends_with_its_end_mark_at_the_end_of_the_record(value: bytes, why: str) -> None:
    assert why in refusal(value)


def test_metadata_of_an_older_version_is_refused() -> None:
    stream = bytearray(STREAM)
    batch = first(stream, BATCH)
    stream[batch.field(batch.root, 0)] -= 1
    assert "must be V5" in refusal(bytes(stream))


def test_buffers_that_share_their_bytes_are_refused() -> None:
    rows = [row | {"payload_uri": "x" * 1_000} for row in ROWS]
    stream = bytearray(written(table_of(rows, in_dictionaries=False)))
    at = max(first(stream, BATCH).buffers(), key=lambda place: struct.unpack_from("<q", stream, place + 8))
    for place in first(stream, BATCH).buffers():
        stream[place : place + 16] = stream[at : at + 16]
    assert "buffers overlap" in refusal(bytes(stream))


@pytest.mark.parametrize(("offset", "length"), [(-8, 8), (0, -8), (8, 2**62), (2**62, 2**62)])
def test_buffers_outside_of_their_message_are_refused(offset: int, length: int) -> None:
    stream = bytearray(STREAM)
    struct.pack_into("<qq", stream, first(stream, BATCH).buffers()[1], offset, length)
    assert "lie outside" in refusal(bytes(stream))


def test_very_many_columns_are_refused() -> None:
    columns = {f"c{number}": [1] for number in range(MOST_FIELDS)}
    assert "columns and fields" in refusal(written(pa.table({"item_id": ["a"]} | columns)))


def test_very_many_fields_of_a_struct_are_refused() -> None:
    deep = pa.array([{f"c{number}": 1 for number in range(MOST_FIELDS)}])
    assert "columns and fields" in refusal(written(pa.table({"item_id": ["a"], "other": deep})))


def test_metadata_that_occurs_again_and_again_is_refused() -> None:
    pairs = {str(number): "x" * 2_000 * (number == 0) for number in range(100)}
    stream = bytearray(written(table_of(ROWS).replace_schema_metadata(pairs)))
    schema = first(stream, SCHEMA)
    vector = schema.child(schema.header, 2)
    entries = range(vector + 4, vector + 4 + 4 * len(pairs), 4)
    longest = max(map(schema.follow, entries), key=lambda pair: schema.number("<I", schema.child(pair, 1)))
    for entry in entries:
        struct.pack_into("<I", stream, entry, longest - entry)
    assert "longer than the schema" in refusal(bytes(stream))


def test_a_very_long_schema_is_refused() -> None:
    assert "the schema, with its metadata" in refusal(
        written(table_of(ROWS).replace_schema_metadata({"pandas": "x" * 200_000}))
    )


def growing_batches(count: int) -> list[Any]:
    """Batches of a row each, whose dictionary gets an entry more."""
    names = [f"r{number}" for number in range(count)]
    return [
        pa.RecordBatch.from_pydict(
            {
                "item_id": [f"i{number}"],
                "predicted_class": ["7"],
                "score": [0.5],
                "attributes.region": pa.DictionaryArray.from_arrays(
                    pa.array([number], pa.int32()), pa.array(names[: number + 1])
                ),
            },
            metadata={"model": "digits"},
        )
        for number in range(count)
    ]


def test_dictionary_deltas_are_refused() -> None:
    assert len(outcomes([stream_of(growing_batches(3))])) == 3
    assert "deltas" in refusal(stream_of(growing_batches(3), emit_dictionary_deltas=True))


def test_very_many_messages_are_refused() -> None:
    batch = table_of(ROWS[:1], in_dictionaries=False).to_batches()[0]
    assert len(outcomes([stream_of([batch] * (MOST_MESSAGES - 1))])) == MOST_MESSAGES - 1
    assert "write more rows in a batch" in refusal(stream_of([batch] * MOST_MESSAGES))


def test_other_columns_are_not_even_decoded() -> None:
    invalid = pa.array([b"\xff"] * len(ROWS)).view(pa.string())
    views = pa.array(["é" * 100] * len(ROWS), pa.string_view())
    table = table_of(ROWS).append_column("comment", invalid).append_column("other", views)
    assert outcomes([written(table)]) == outcomes([STREAM])


@pytest.mark.parametrize("unit", [0, 1, 2])
def test_other_columns_may_have_types_that_python_does_not_know(unit: int) -> None:
    spans = pa.array([(1, 2, 3)] * len(ROWS), pa.month_day_nano_interval())
    stream = bytearray(written(table_of(ROWS).append_column("warranty", spans)))
    schema = first(stream, SCHEMA)
    fields = schema.child(schema.header, 1)
    last = schema.follow(fields + 4 * schema.number("<I", fields))
    struct.pack_into("<H", stream, schema.field(schema.child(last, 3), 0), unit)
    assert outcomes([bytes(stream)]) == outcomes([STREAM])


def test_a_stream_without_any_known_column_is_refused() -> None:
    assert "at least item_id is needed" in refusal(written(pa.table({"id": ["a"]})))


@pytest.mark.parametrize("change", [{}, {"predicted_class": "8"}])
@pytest.mark.parametrize("name", ["attributes.weather", "payload_uri", "predicted_class"])
def test_a_record_whose_rows_share_a_long_text_is_refused_as_a_whole(
    name: str, change: dict[str, str]
) -> None:
    rows = [{**ROWS[0], "item_id": str(row)} for row in range(1_000)]
    table = table_of([rows[0] | change, *rows[1:]])
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int8()), pa.array(["x" * 20_000]))
    table = table.drop_columns(name) if name in table.column_names else table
    assert "message_too_large" in refusal(written(table.append_column(name, shared)))


def test_control_characters_count_as_json_writes_them() -> None:
    rows = [{**ROWS[0], "item_id": str(row)} for row in range(1_000)]
    for character, is_refused in (("x", False), ("\x01", True)):
        shared = pa.DictionaryArray.from_arrays(
            pa.array([0] * 1_000, pa.int8()), pa.array([character * 1_000])
        )
        value = written(table_of(rows).append_column("attributes.weather", shared))
        refused = [reason for _, _, reason in outcomes([value]) if reason == "message_too_large"]
        assert bool(refused) == is_refused


def test_long_texts_of_a_dictionary_that_few_rows_have_are_no_reason_to_refuse() -> None:
    table = table_of(ROWS)
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 9 + [1], pa.int8()), pa.array(["short", "x" * 20_000, *map(str, range(100))])
    )
    found = decode_columns([written(table.append_column("attributes.weather", texts))])
    assert found is not None
    columns, _ = found
    weather = columns.attributes["weather"]
    assert [weather[row] for row in range(10)] == ["short"] * 9 + ["x" * 20_000]
    assert list(weather.names) == ["short", "x" * 20_000]


def batch_of(codes: list[int | None], names: list[str | None], **columns: Any) -> Any:
    """A record batch whose region is a dictionary of its own."""
    region = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(names, pa.string()))
    ids = list(map(str, range(len(codes))))
    fields = {"item_id": ids, "predicted_class": ["7"] * len(codes), "score": [0.5] * len(codes)}
    return pa.RecordBatch.from_pydict(
        fields | {"attributes.region": region} | columns, metadata={"model": "digits"}
    )


@pytest.mark.parametrize(
    "dictionaries",
    [
        [[f"{batch}-{number}" for number in range(100)] for batch in range(3)],
        [["a", None, "b"]],
        [["a", "b", "unused", *map(str, range(100))], ["b", "a"]],
    ],
)
def test_every_batch_may_have_dictionaries_of_its_own(dictionaries: list[list[str | None]]) -> None:
    used = [list(range(min(len(names), 100))) for names in dictionaries]
    batches = [batch_of([*codes, None], names) for codes, names in zip(used, dictionaries, strict=True)]
    found = decode_columns([stream_of(batches)])
    assert found is not None
    columns, _ = found
    region = columns.attributes["region"]
    expected = [
        name
        for codes, names in zip(used, dictionaries, strict=True)
        for name in [*(names[code] for code in codes), None]
    ]
    assert [region[row] for row in range(len(columns))] == expected


OVERFLOWING = next(
    stamp // 10**6 for k in range(1, 10**6) if (stamp := 1_800_000_000 * 10**6 + k * 2**64) % 10**6 == 0
)
"""In seconds: as microseconds in 64 bits it would be a time of 2027."""


@pytest.mark.parametrize(
    ("unit", "stamp"),
    [("s", OVERFLOWING), ("s", 2**62), ("ms", 2**62), ("s", -(2**62)), ("s", 253_402_300_800), ("us", 2**62)],
)
def test_a_time_outside_of_the_years_1_to_9999_is_refused_in_any_unit(unit: str, stamp: int) -> None:
    stamps = pa.array([0, stamp], pa.int64()).cast(pa.timestamp(unit, "UTC"))
    batch = batch_of([0, 0], ["a"], time=stamps)
    assert outcomes([stream_of([batch])])[1] == (0, 1, "invalid_field")


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("stamp", [-62_135_596_800, 253_402_300_799])
def test_the_first_and_the_last_second_of_these_years_are_not(unit: str, stamp: int) -> None:
    counted = stamp * {"s": 1, "ms": 1_000}[unit]
    stamps = pa.array([None, counted], pa.int64()).cast(pa.timestamp(unit, "UTC"))
    stream = stream_of([batch_of([0, 0], ["a"], time=stamps)])
    assert [content[6] for _, _, content in outcomes([stream])] == [None, stamp]


def test_times_that_floats_cannot_have_exactly_are_read_row_by_row() -> None:
    stamps = pa.array([2**33 * 10**6 - 1, 253_402_300_799_999_999], pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )
    (first, last) = (stream_of([batch_of([0], ["a"], time=stamps[at : at + 1])]) for at in range(2))
    assert decode_columns([first]) is not None
    assert decode_columns([last]) is None
    assert b'"time":"9999-12-31T23:59:59.999999+00:00"' in (arrow_rows((), last) or b"")


def test_a_row_without_a_model_has_the_one_of_the_metadata() -> None:
    batch = batch_of([0, 0], ["a"], model=pa.array([None, "other"]))
    models = [name for _, _, (name, *_) in outcomes([stream_of([batch])])]
    assert models == ["digits", "other"]


def test_nulls_in_the_dictionaries_of_several_batches_are_missing_values() -> None:
    batches = [batch_of([0, 1, None], ["a", None]), batch_of([1, 0], [None, "b"])]
    attributes = [content[5] for _, _, content in outcomes([stream_of(batches)])]
    assert attributes == [{"region": "a"}, {}, {}, {"region": "b"}, {}]
    assert outcomes([stream_of([batch]) for batch in batches]) == [
        (row // 3, row % 3, content) for row, (_, _, content) in enumerate(outcomes([stream_of(batches)]))
    ]
