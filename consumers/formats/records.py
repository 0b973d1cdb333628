"""Decodes records of the predictions topic.

A record is native (`consumers.formats.native`), or a format rewrites it as native JSON. The rest is the
same: how it is decoded, what is refused and why, and what a dead letter contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.native import (
    Headers,
    WirePrediction,
    check_event,
    decode_array,
    decode_prediction,
    decode_predictions,
)
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE

Format = Callable[[Headers, bytes], bytes | None]
"""Rewrites a record, given its headers and value, as native JSON; None if the record is of another format.

It raises `BadMessage` if nothing in the record can be used.
"""


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


def decode_records(
    records: Sequence[Any], *, message_bytes: int, formats: Sequence[Format]
) -> DecodedRecords:
    """Check the headers of a batch of Kafka records, and parse their values, of `message_bytes` at most."""
    values = [record.value or b"" for record in records]
    if isinstance(formats, MappedTopic):
        return _decode_each(records, values, message_bytes, formats)
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
        pass  # some are arrays or of another format, or are invalid
    return _decode_each(records, values, message_bytes, formats)


def _decode_each(
    records: Sequence[Any], values: Sequence[bytes], message_bytes: int, formats: Sequence[Format]
) -> DecodedRecords:
    predictions: list[WirePrediction] = []
    places: list[int] = []
    elements: list[int | None] = []
    errors: list[tuple[int, int | None, BadMessage]] = []
    for place, (record, value) in enumerate(zip(records, values, strict=True)):
        try:
            if len(value) > message_bytes:
                raise BadMessage("message_too_large", f"the value is over {message_bytes} bytes")  # noqa: TRY301
            array = None if record.headers or isinstance(formats, MappedTopic) else decode_array(value)
            if array is None:
                value = native_text(record, formats)  # noqa: PLW2901 - the same predictions
                array = decode_array(value)
        except BadMessage as error:
            errors.append((place, None, error))
            continue
        if array is not None:
            predictions += array
            places += repeat(place, len(array))
            elements += range(len(array))
            continue
        for element, one in decode_predictions(value):
            if isinstance(one, BadMessage):
                errors.append((place, element, one))
            else:
                predictions.append(one)
                places.append(place)
                elements.append(element)
    return DecodedRecords(predictions, places, elements, errors)


def native_text(record: Any, formats: Sequence[Format]) -> bytes:
    """A record's value as native JSON: one prediction, or an array of them, none of which is validated yet.

    Raises:
        BadMessage: the record is of no format, or nothing in it can be used.
    """
    if isinstance(formats, MappedTopic):
        return formats.rewrite(record)
    headers, value = record.headers, record.value or b""
    for rewrite in formats:
        if (text := rewrite(headers, value)) is not None:
            return text
    check_event(headers, PREDICTION_TYPE)
    return value
