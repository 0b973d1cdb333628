"""Inference responses as columns: the same predictions as when every row is an object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_open_inference import (
    CLASSES,
    DECODER,
    IDS,
    LONGEST,
    MODEL,
    RESPONSE_EVENT,
    SCORES,
    SPREAD,
    Record,
    columns,
    content,
    response,
    tensor,
)

from consumers.formats.parts import DecodedColumns, decode_parts
from consumers.formats.records import DecodedRecords, decode_records
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES

Where = tuple[int, int | None]
CAMERAS = tensor("attributes.camera", ["dock", "gate"])


def in_parts(records: Sequence[Record]) -> dict[Where, Any]:
    """What becomes of every row when records are decoded in parts."""
    return {
        where: found
        for part in decode_parts(records, message_bytes=LONGEST, formats=[DECODER])
        for where, found in _rows(part)
    }


def by_object(records: Sequence[Record]) -> dict[Where, Any]:
    """The same when each row is an object."""
    return dict(_rows(decode_records(records, message_bytes=LONGEST, formats=[DECODER])))


def _rows(part: DecodedColumns | DecodedRecords) -> Any:
    for place, element, error in part.errors:
        yield (place, element), content(error)
    times, ids = part.times, part.item_ids
    for row, (place, element) in enumerate(zip(part.places, part.elements, strict=True)):
        prediction = part.predictions[row]
        said = content(prediction)
        # Of columns the times are in a column of their own.
        said[prediction.__struct_fields__.index("time")] = None if np.isnan(times[row]) else times[row]
        assert ids[row] == prediction.item_id
        assert part.rows_by_model().keys() == {prediction.model}
        yield (int(place), None if element is None else int(element)), said


def kinds(*values: bytes, headers: Sequence[tuple[str, bytes | None]] = ()) -> list[type]:
    """What the parts of some records are."""
    records = [Record(value, headers) for value in values]
    return [type(part) for part in decode_parts(records, message_bytes=LONGEST, formats=[DECODER])]


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A response of few rows; most are valid."""
    count = draw(st.integers(0, 4))
    outputs = [tensor(name, values, kind) for name, (kind, values) in draw(columns(count)).items()]
    if draw(st.booleans()):
        outputs.append(tensor("probabilities", [0.25, 0.75] * count, "FP64", [count, 2]))
    shared = draw(st.sampled_from([{}, {"attributes.line": "4"}]))
    return response(*draw(st.permutations(outputs)), parameters=shared)


@settings(max_examples=300)
@given(st.lists(responses(), max_size=4))
def test_rows_are_the_same_as_objects_and_as_columns(values: list[bytes]) -> None:
    records = list(map(Record, values))
    assert in_parts(records) == by_object(records)


@pytest.mark.parametrize(
    "outputs",
    [
        (IDS, CLASSES, SCORES),
        (IDS, SPREAD),
        (CLASSES, SCORES),
        (tensor("item_id", [1, 2], "INT64", [2, 1]), CLASSES, SCORES, CAMERAS),
        (IDS, CLASSES, SCORES, tensor("time", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00"])),
        (IDS, CLASSES, SCORES, tensor("payload_uri", ["s3://a", "s3://b"])),
    ],
)
@pytest.mark.parametrize("headers", [(), RESPONSE_EVENT])
def test_valid_responses_of_one_kind_are_columns_together(outputs: Any, headers: Any) -> None:
    value = response(*outputs, parameters={"attributes.line": "4"})
    assert kinds(value, value, headers=headers) == [DecodedColumns]
    records = [Record(value, headers)] * 2
    assert in_parts(records) == by_object(records)


@pytest.mark.parametrize("other", [(IDS, CLASSES, SCORES, CAMERAS), (IDS, SPREAD)])
def test_another_kind_of_response_begins_a_part_of_its_own(other: Any) -> None:
    values = [response(), response(), response(*other), json.dumps([]).encode(), response()]
    assert kinds(*values) == [DecodedColumns, DecodedColumns, DecodedRecords, DecodedColumns]
    assert in_parts(list(map(Record, values))) == by_object(list(map(Record, values)))


def test_responses_of_many_kinds_are_read_row_by_row() -> None:
    values = [
        response(IDS, CLASSES, SCORES, tensor(f"attributes.a{number}", ["x", "y"])) for number in range(100)
    ]
    assert kinds(*values) == [DecodedRecords]
    assert in_parts(list(map(Record, values))) == by_object(list(map(Record, values)))


@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999999Z"]
)
def test_a_refused_row_at_an_end_of_the_calendar_has_a_dead_letter(time: str) -> None:
    value = response(IDS, CLASSES, SCORES, tensor("time", ["2026-01-31T12:00:00Z", time]))
    (part,) = decode_parts([Record(value)], message_bytes=LONGEST, formats=[DECODER])
    (text,) = part.texts(0, [1])
    assert json.loads(text)["time"] == time


@pytest.mark.parametrize(
    "odd",
    [
        tensor("score", [0.5, None], "FP32"),
        tensor("score", [0.5, "0.5"], "FP32"),
        tensor("score", [[0.5], [0.25]], "FP32", [2, 1]),
        tensor("score", [0.5], "FP32", [2]),
    ],
)
def test_responses_with_an_odd_row_are_read_row_by_row(odd: dict[str, Any]) -> None:
    value = response(IDS, CLASSES, odd)
    assert kinds(response(), value, response()) == [DecodedColumns, DecodedRecords, DecodedColumns]
    records = list(map(Record, [response(), value, response()]))
    assert in_parts(records) == by_object(records)


def test_a_response_in_a_record_that_is_said_to_be_an_event_is_none() -> None:
    headers = [*RESPONSE_EVENT, ("content-type", b"application/cloudevents+json")]
    assert kinds(response(), headers=headers) == [DecodedRecords]


def test_what_all_rows_share_is_bounded_as_in_json() -> None:
    count = 2_000
    outputs = tensor("predicted_class", ["7"] * count), tensor("score", [0.5] * count, "FP32")
    value = response(*outputs, parameters={"attributes.a": "x" * 5_000})
    [part] = decode_parts([Record(value)], message_bytes=LONGEST, formats=[DECODER])
    assert [error.reason for _, _, error in part.errors] == ["message_too_large"]


def test_a_dead_letter_of_a_row_is_a_native_message() -> None:
    [part] = decode_parts(
        [Record(response(IDS, CLASSES, SCORES, CAMERAS))], message_bytes=LONGEST, formats=[DECODER]
    )
    (text,) = part.texts(0, [1])
    assert json.loads(text) == {
        "model": MODEL,
        "item_id": "b",
        "predicted_class": "1",
        "score": 0.25,
        "attributes": {"camera": "gate"},
    }


def test_too_many_attributes_are_refused() -> None:
    many = [tensor(f"attributes.a{number}", ["x", "y"]) for number in range(MOST_ATTRIBUTES + 1)]
    [part] = decode_parts(
        [Record(response(IDS, CLASSES, SCORES, *many))], message_bytes=LONGEST, formats=[DECODER]
    )
    assert all(isinstance(error, BadMessage) for _, _, error in part.errors)
    assert len(part.errors) == 1
