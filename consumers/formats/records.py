"""Decodes records of the predictions topic, each in its format."""

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
from consumers.formats.open_inference import OpenInference, Rows, is_response
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE

Decoded = list[tuple[int | None, WirePrediction | BadMessage]]

_RESPONSE_START = b'{"model_name"'
"""How most responses begin; others are recognised more slowly."""


@dataclass(frozen=True)
class DecodedRecords:
    """Predictions of a batch of records.

    Attributes:
        predictions: those that could be parsed, in order [n].
        places: index of the record of each [n].
        elements: position of each in its record's array or response; None where it is alone [n].
        errors: what could not be parsed, in order: index of the record, element, and why.
    """

    predictions: list[WirePrediction]
    places: Sequence[int]
    elements: Sequence[int | None]
    errors: list[tuple[int, int | None, BadMessage]]


def decode_records(records: Sequence[Any], *, message_bytes: int, responses: OpenInference) -> DecodedRecords:
    """Check the headers of a batch of Kafka records, and parse their values, of `message_bytes` at most."""
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
        pass  # some are arrays or responses, or are invalid
    return _decode_each(records, values, message_bytes, responses)


def _decode_each(
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
            array = None if record.headers else decode_array(value)
            found: Decoded = []
            if array is None:
                contents = _contents(record.headers, value, responses)
                if not isinstance(contents, Rows):
                    found = contents
                elif (array := contents.decode_all()) is None:
                    found = list(enumerate(contents.decode_each()))
        except BadMessage as error:
            errors.append((place, None, error))
            continue
        if array is not None:
            predictions += array
            places += repeat(place, len(array))
            elements += range(len(array))
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
        BadMessage: the record is neither.
    """
    if headers or value.startswith(_RESPONSE_START):
        rows = _rows(headers, value, responses)
        return decode_predictions(value) if rows is None else rows
    # A valid native message is no response.
    decoded = decode_predictions(value)
    element, first = decoded[0] if decoded else (None, None)
    if element is None and isinstance(first, BadMessage):
        return _rows(headers, value, responses) or decoded
    return decoded


def _rows(headers: Headers, value: bytes, responses: OpenInference) -> Rows | None:
    declared = is_response(headers)
    if not declared:
        check_event(headers, PREDICTION_TYPE)
    return responses.rows(value, declared=declared)


def texts_of(record: Any, responses: OpenInference) -> Callable[[int], bytes]:
    """A function for the text of any prediction of an array or a response, as a native message."""
    rows = _rows(record.headers, record.value, responses)
    if rows is not None:
        return rows.text
    elements = element_texts(record.value)
    return lambda element: bytes(elements[element])
