"""Records of the predictions topic: in which format each is, and the predictions of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.native import (
    Headers,
    WirePrediction,
    check_event,
    decode_array,
    decode_prediction,
    decode_predictions,
    element_texts,
)
from consumers.formats.open_inference import OpenInference, Rows, tells_a_response
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE

Decoded = list[tuple[int | None, WirePrediction | BadMessage]]

_RESPONSE_START = b'{"model_name"'
"""How most responses begin. They are found without it too, but later."""


@dataclass(frozen=True)
class DecodedRecords:
    """What the values of some records hold; `predictions`, `places` and `elements` go together.

    Attributes:
        predictions: those that could be parsed, in the order in which they came.
        places: which record each came in.
        elements: its position in that record's array or response; None where it came alone.
        errors: of what could not be parsed, in order: which record, which element, and why.
    """

    predictions: list[WirePrediction]
    places: Sequence[int]
    elements: Sequence[int | None]
    errors: list[tuple[int, int | None, BadMessage]]


def decode_records(records: Sequence[Any], *, message_bytes: int, responses: OpenInference) -> DecodedRecords:
    """Predictions of many records: their headers are checked, and their values parsed.

    Args:
        records: as the Kafka client gives them.
        message_bytes: longest value that is taken.
        responses: decodes those that are inference responses.
    """
    values = [record.value or b"" for record in records]
    try:
        for headers in [record.headers for record in records if record.headers]:
            check_event(headers, PREDICTION_TYPE)
        text = b"".join(values)
        if not text.isascii():
            for value in values:
                str(value, "utf-8")
        if len(text) <= message_bytes or max(map(len, values)) <= message_bytes:
            count = len(values)
            return DecodedRecords(list(map(decode_prediction, values)), range(count), [None] * count, [])
    except (BadMessage, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass  # some hold many, or cannot be used: one by one, then
    return _decode_one_by_one(records, values, message_bytes, responses)


def _decode_one_by_one(
    records: Sequence[Any], values: Sequence[bytes], message_bytes: int, responses: OpenInference
) -> DecodedRecords:
    predictions: list[WirePrediction] = []
    places: list[int] = []
    elements: list[int | None] = []
    errors: list[tuple[int, int | None, BadMessage]] = []
    for place, (record, value) in enumerate(zip(records, values, strict=True)):
        try:
            if len(value) > message_bytes:
                raise BadMessage("message_too_large", f"the value is over {message_bytes} bytes")  # noqa: TRY301
            if not record.headers and (array := decode_array(value)) is not None:
                predictions += array
                places += repeat(place, len(array))
                elements += range(len(array))
                continue
            found = _contents(record.headers, value, responses)
            if isinstance(found, Rows):
                if (at_once := found.at_once()) is not None:
                    predictions += at_once
                    places += repeat(place, len(at_once))
                    elements += range(len(at_once))
                    continue
                found = list(enumerate(found.one_by_one()))
        except BadMessage as error:
            errors.append((place, None, error))
            continue
        for element, one in found:
            if isinstance(one, BadMessage):
                errors.append((place, element, one))
            else:
                predictions.append(one)
                places.append(place)
                elements.append(element)
    return DecodedRecords(predictions, places, elements, errors)


def _contents(headers: Headers, value: bytes, responses: OpenInference) -> Rows | Decoded:
    """The rows of a response, or native predictions.

    Raises:
        BadMessage: the record holds neither.
    """
    if headers or value.startswith(_RESPONSE_START):
        rows = _rows(headers, value, responses)
        return decode_predictions(value) if rows is None else rows
    # What can be used as native messages is no response, and need not be searched for the marks of one.
    decoded = decode_predictions(value)
    element, first = decoded[0] if decoded else (None, None)
    if element is None and isinstance(first, BadMessage):
        return _rows(headers, value, responses) or decoded
    return decoded


def _rows(headers: Headers, value: bytes, responses: OpenInference) -> Rows | None:
    told = tells_a_response(headers)
    if not told:
        check_event(headers, PREDICTION_TYPE)
    return responses.rows(value, told=told)


def texts_of(record: Any, responses: OpenInference) -> Callable[[int], bytes]:
    """The text of any prediction of a record that holds many, as a native message of its own.

    Args:
        record: that was decoded, and of which more than one prediction came.
        responses: that decoded it.
    """
    rows = _rows(record.headers, record.value, responses)
    if rows is not None:
        return rows.text
    elements = element_texts(record.value)
    return lambda element: bytes(elements[element])
