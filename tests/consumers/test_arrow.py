"""Records in Arrow's streaming format: the same predictions are accepted as in JSON, for the same reasons."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from arrow_streams import TIME, table_of, written
from hypothesis import given, settings
from hypothesis import strategies as st
from model_ingest import ingest
from test_decoders import PREDICTION, PREDICTIONS, SPREAD

from consumers.formats.arrow import arrow_rows
from consumers.formats.arrow_columns import decode_columns
from consumers.formats.native import decode_predictions, element_texts
from consumers.formats.parts import DecodedColumns, decode_parts
from consumers.formats.records import DecodedRecords, native_text
from service.domain.errors import BadMessage
from service.domain.messages import LABEL_TYPE

LONGEST = 1_000_000
Headers = Sequence[tuple[str, bytes | None]]
CONTENT_TYPE = [("content-type", b"application/vnd.apache.arrow.stream")]
REASONS = {
    "malformed_json",
    "missing_field",
    "invalid_field",
    "invalid_arrow",
    "message_too_large",
    "unknown_class",
    "unknown_model",
    "invalid_score",
    "invalid_probabilities",
}

ROWS = [
    PREDICTION
    | {
        "item_id": f"ü-{row}",
        "score": row / 10,
        "attributes": {"camera": "dock", "region": f"r{row % 2}"} if row % 3 else {"camera": "gate"},
        "time": f"2026-01-31T12:00:0{row}.000001+00:00",
        "payload_uri": f"s3://{row}",
    }
    for row in range(10)
]


class Record(NamedTuple):
    value: bytes
    headers: Headers = ()


def outcomes(values: Sequence[bytes], headers: Headers = ()) -> list[Any]:
    """What becomes of every prediction of some records, in order: its content, or why it is refused."""
    model = ingest()
    found: list[Any] = []
    records = [Record(value, headers) for value in values]
    for part in decode_parts(records, message_bytes=LONGEST, formats=[arrow_rows]):
        found += [(place, element, error.reason) for place, element, error in part.errors]
        times, ids = part.times, part.item_ids
        for name, rows in part.rows_by_model().items():
            checked, _ = model.resolve([part.predictions[row] for row in rows.tolist()])
            together, _ = model.resolve(part.predictions)
            for at, row in enumerate(rows.tolist()):
                p = part.predictions[row]
                where = int(part.places[row]), part.elements[row]
                if at in checked.refused:
                    found.append((*where, checked.refused[at].reason))
                    continue
                assert (p.model, p.item_id) == (name, ids[row])
                attributes = json.loads(bytes(p.attributes) or b"{}")
                result = int(checked.classes[at]), float(checked.scores[at])
                assert result == (together.classes[row], together.scores[row])
                time = None if np.isnan(times[row]) else float(times[row])
                payload = json.loads(bytes(p.payload) or b"null")
                content = (
                    name,
                    p.item_id,
                    *result,
                    p.probabilities,
                    attributes,
                    time,
                    payload,
                    p.payload_uri,
                )
                found.append((*where, content))
    return sorted(found, key=lambda each: (each[0], -1 if each[1] is None else each[1]))


def as_json(rows: Any) -> bytes:
    return json.dumps(rows).encode()


@pytest.mark.parametrize("in_dictionaries", [True, False])
@pytest.mark.parametrize("as_struct", [True, False])
@pytest.mark.parametrize("as_column", [True, False])
def test_rows_are_the_predictions_that_native_json_would_be(
    in_dictionaries: bool, as_struct: bool, as_column: bool
) -> None:
    table = table_of(ROWS, in_dictionaries=in_dictionaries, as_struct=as_struct, as_column=as_column)
    assert decode_columns([written(table)]) is not None
    assert outcomes([written(table)]) == outcomes([as_json(ROWS)])


def test_class_probabilities_become_a_matrix() -> None:
    rows = [SPREAD | {"item_id": str(row), "probabilities": [row / 8, 1 - row / 8, 0, 0]} for row in range(8)]
    found = decode_columns([written(table_of(rows, floats=pa.float32()))])
    assert found is not None
    columns, _ = found
    assert columns.probabilities is not None
    np.testing.assert_array_equal(columns.probabilities, [row["probabilities"] for row in rows])
    assert outcomes([written(table_of(rows))]) == outcomes([as_json(rows)])


def test_successive_records_are_decoded_together() -> None:
    extra = ROWS[0] | {"attributes": {"weather": "rain"}}
    values = [written(table_of(rows)) for rows in (ROWS[:3], ROWS[3:], [extra])]
    parts = decode_parts(list(map(Record, values)), message_bytes=LONGEST, formats=[arrow_rows])
    assert [type(part) for part in parts] == [DecodedColumns, DecodedColumns]
    assert outcomes(values) == outcomes([as_json(ROWS[:3]), as_json(ROWS[3:]), as_json([extra])])


def test_formats_may_alternate_and_keep_the_order_of_the_records() -> None:
    values = [
        written(table_of(rows)) if place % 2 else as_json(rows)
        for place, rows in enumerate([ROWS[:2], ROWS[2:5], ROWS[5:6], ROWS[6:]])
    ]
    assert outcomes(values) == outcomes(
        [as_json(rows) for rows in (ROWS[:2], ROWS[2:5], ROWS[5:6], ROWS[6:])]
    )


def test_a_stream_of_several_batches_is_one_record() -> None:
    table = pa.concat_tables([table_of(ROWS[:4]), table_of(ROWS[4:])])
    assert outcomes([written(table)]) == outcomes([as_json(ROWS)])


def test_rows_may_be_of_several_models() -> None:
    rows = [ROWS[0], ROWS[1] | {"model": "other"}]
    value = written(table_of(rows, as_column=True))
    assert [json.loads(bytes(text))["model"] for text in element_texts(arrow_rows((), value) or b"")] == [
        "digits",
        "other",
    ]


def fields_in_arrow(text: bytes) -> dict[str, Any] | None:
    """The fields of a message if an Arrow stream can say exactly the same; else None."""
    try:
        fields = json.loads(text.decode("utf-8"))
        written(table_of([fields], as_column=True))
        moment = datetime.fromisoformat(fields.get("time", "2026-01-31T12:00:00Z")).astimezone(UTC)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException):
        return None
    ((_, decoded),) = decode_predictions(text)
    attributes = fields.get("attributes", {})
    is_same = (
        fields.keys() <= KNOWN
        and None not in fields.values()
        and getattr(decoded, "reason", "") != "malformed_json"
        and type(fields.get("score")) is not bool
        and isinstance(attributes, dict)
        and None not in attributes.values()
        and ("time" not in fields or getattr(decoded, "time", None) == moment)
    )
    return fields if is_same else None


KNOWN = {
    "model",
    "item_id",
    "predicted_class",
    "score",
    "probabilities",
    "attributes",
    "time",
    "payload",
    "payload_uri",
}
CASES = [(text, fields) for text, _ in PREDICTIONS if (fields := fields_in_arrow(text)) is not None]


@pytest.mark.parametrize("at", range(len(CASES)))
def test_arrow_accepts_and_refuses_what_native_json_does(at: int) -> None:
    text, fields = CASES[at]
    good = PREDICTION | {"item_id": "z"}
    rows = [good, fields, good]
    native = outcomes([b",".join([b"[" + as_json(good), text, as_json(good) + b"]"])])
    assert outcomes([written(table_of(rows, as_column=True))]) == native


def test_enough_cases_of_the_contract_can_be_written_in_arrow() -> None:
    assert len(CASES) > 40


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"item_id": None}, "missing_field"),
        ({"item_id": ""}, "invalid_field"),
        ({"predicted_class": "8"}, "unknown_class"),
        ({"predicted_class": None}, "missing_field"),
        ({"score": 1.5}, "invalid_score"),
        ({"score": float("nan")}, "invalid_field"),
        ({"score": float("inf")}, "invalid_field"),
    ],
)
def test_a_bad_row_is_refused_and_the_others_are_not(change: dict[str, Any], reason: str) -> None:
    rows = [row | change if place == 4 else row for place, row in enumerate(ROWS)]
    found, expected = outcomes([written(table_of(rows))]), outcomes([as_json(ROWS)])
    assert found.pop(4) == (0, 4, reason)
    assert expected.pop(4)[2][1] == "ü-4"
    assert found == expected


def test_the_text_of_a_row_is_a_native_message() -> None:
    text = native_text(Record(written(table_of(ROWS))), [arrow_rows])
    assert [json.loads(bytes(each)) for each in element_texts(text)] == ROWS


def test_a_payload_is_json_text() -> None:
    rows = [ROWS[0] | {"payload": {"pixels": [1, 2]}, "payload_uri": None}, ROWS[1] | {"payload": None}]
    assert outcomes([written(table_of(rows))]) == outcomes([as_json([rows[0], ROWS[1]])])


def test_text_that_is_not_json_is_a_payload_too() -> None:
    table = table_of(ROWS[:1]).drop_columns("payload_uri")
    table = table.append_column("payload", pa.array(['1},{"model":"x"']))
    assert outcomes([written(table)])[0][2][7] == '1},{"model":"x"'


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_may_have_any_unit(unit: str) -> None:
    table = table_of(ROWS[:1]).drop_columns("time")
    stamps = pa.array([1_800_000_000], pa.int64()).cast(pa.timestamp("s", "Europe/Berlin"))
    table = table.append_column("time", stamps.cast(pa.timestamp(unit, "Europe/Berlin")))
    assert outcomes([written(table)])[0][2][6] == 1_800_000_000.0


def test_a_time_beyond_the_year_9999_is_refused() -> None:
    table = table_of(ROWS[:2]).drop_columns("time")
    table = table.append_column("time", pa.array([0, 2**62], pa.int64()).cast(TIME))
    assert outcomes([written(table)])[1] == (0, 1, "invalid_field")


def test_a_record_is_recognised_by_its_header_as_well() -> None:
    value = written(table_of(ROWS))
    assert outcomes([value], CONTENT_TYPE) == outcomes([value])
    assert outcomes([b"\0" * 20], CONTENT_TYPE) == [(0, None, "invalid_arrow")]


def test_a_refused_row_is_replayed_as_json_with_the_header_of_its_record() -> None:
    text = json.dumps(ROWS[0]).encode()
    assert outcomes([text], CONTENT_TYPE)[0][2] == outcomes([as_json(ROWS)])[0][2]


def test_a_record_of_another_event_is_refused() -> None:
    assert outcomes([written(table_of(ROWS))], [("ce_type", LABEL_TYPE.encode())]) == [
        (0, None, "unsupported_event")
    ]


def test_a_stream_without_rows_is_nothing_at_all() -> None:
    assert outcomes([written(table_of(ROWS).slice(0, 0))]) == []


@pytest.mark.parametrize(
    ("column", "array"),
    [
        ("item_id", pa.array([1])),
        ("item_id", pa.array(["a"], pa.string_view())),
        ("score", pa.array(["0.5"])),
        ("time", pa.array([0], pa.timestamp("us"))),
        ("time", pa.array(["2026-01-31T12:00:00Z"])),
        ("probabilities", pa.array([0.5])),
        ("attributes", pa.array(["a"])),
        ("attributes.camera", pa.array([1])),
        ("payload", pa.array([b"{}"])),
        ("item_id", pa.nulls(1)),
    ],
)
def test_a_column_of_another_type_is_refused_with_its_name(column: str, array: Any) -> None:
    table = table_of([PREDICTION])
    table = table.drop_columns(column) if column in table.column_names else table
    value = written(table.append_column(column, array))
    with pytest.raises(BadMessage, match=r"invalid_arrow: (\w+): the type must be") as refused:
        arrow_rows((), value)
    assert refused.value.detail.startswith(column.split(".", maxsplit=1)[0])
    assert outcomes([value]) == [(0, None, "invalid_arrow")]


def test_two_columns_of_one_name_are_refused() -> None:
    table = table_of(ROWS)
    value = written(table.append_column("score", table["score"]))
    assert outcomes([value]) == [(0, None, "invalid_arrow")]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_buffers_are_refused_before_they_are_decompressed(codec: str) -> None:
    rows = [PREDICTION | {"item_id": "a" * 200}] * 10_000
    with pytest.raises(BadMessage, match="compressed"):
        arrow_rows((), written(table_of(rows), compression=codec))


def test_more_rows_than_bytes_are_refused() -> None:
    table = pa.table({"item_id": pa.nulls(10_000_000)})
    with pytest.raises(BadMessage, match="more rows than the value has bytes"):
        arrow_rows((), written(table))


def test_a_long_text_that_very_many_rows_share_is_refused() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int8()), pa.array(["a" * 100_000]))
    with pytest.raises(BadMessage, match="message_too_large"):
        arrow_rows((), written(pa.table({"item_id": ids})))
    assert outcomes([written(pa.table({"item_id": ids}))]) == [(0, None, "message_too_large")]


def test_codes_beyond_the_dictionary_are_refused() -> None:
    classes = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["7"]), safe=False)
    table = table_of(ROWS[:2]).drop_columns("predicted_class").append_column("predicted_class", classes)
    assert outcomes([written(table)]) == [(0, None, "invalid_arrow")]


@pytest.mark.parametrize("offsets", [[0, 900, 3], [0, -5, 3], [2, 1, 3]])
def test_offsets_outside_of_the_text_are_refused(offsets: list[int]) -> None:
    bounds = pa.py_buffer(np.array(offsets, np.int32).tobytes())
    ids = pa.StringArray.from_buffers(2, bounds, pa.py_buffer(b"abc"))
    value = written(table_of(ROWS[:2]).drop_columns("item_id").append_column("item_id", ids))
    assert outcomes([value]) == [(0, None, "invalid_arrow")]


def test_text_that_is_not_utf_8_is_refused() -> None:
    ids = pa.array([b"\xff"], pa.binary()).cast(pa.binary()).view(pa.string())
    table = table_of(ROWS[:1]).drop_columns("item_id").append_column("item_id", ids)
    assert outcomes([written(table)]) == [(0, None, "invalid_arrow")]


STREAM = written(table_of(ROWS))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(STREAM) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_streams_are_predictions_or_refusals(damage: list[tuple[int, int]]) -> None:
    value = bytearray(STREAM)
    for at, byte in damage:
        value[at] = byte
    for *_, outcome in outcomes([bytes(value)]):
        assert isinstance(outcome, tuple) or outcome in REASONS


@settings(max_examples=100)
@given(st.integers(0, len(STREAM)), st.binary(max_size=40))
def test_truncated_streams_are_predictions_or_refusals(length: int, rest: bytes) -> None:
    for *_, outcome in outcomes([STREAM[:length] + rest], CONTENT_TYPE):
        assert isinstance(outcome, tuple) or outcome in REASONS


def test_without_pyarrow_the_dead_letter_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadMessage, match=r"arrow_not_installed: .*pip install 'credence\[arrow\]'"):
        arrow_rows((), STREAM)


def test_a_single_prediction_in_json_is_not_arrow() -> None:
    text = json.dumps(PREDICTION).encode()
    assert arrow_rows((), text) is None
    assert decode_columns([text]) is None
    assert decode_predictions(text)[0][0] is None


def test_times_are_those_of_the_json() -> None:
    found = decode_columns([STREAM])
    assert found is not None
    columns, _ = found
    assert columns.times.tolist() == [datetime.fromisoformat(row["time"]).timestamp() for row in ROWS]


def test_a_bad_record_takes_no_other_of_the_same_schema_with_it() -> None:
    batches = [ROWS[:2], [ROWS[2] | {"score": 7.0}, ROWS[3] | {"item_id": ""}], ROWS[4:6]]
    values = [written(table_of(rows)) for rows in batches]
    assert outcomes(values) == outcomes(list(map(as_json, batches)))
    parts = decode_parts(list(map(Record, values)), message_bytes=LONGEST, formats=[arrow_rows])
    assert [type(part) for part in parts] == [DecodedColumns, DecodedRecords, DecodedColumns]
