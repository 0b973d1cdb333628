"""Decodes records of the predictions topic.

A record is native (`consumers.formats.native`), or a format rewrites it as native JSON. The rest is the
same: how it is decoded, what is refused and why, and what a dead letter contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from consumers.formats.columns import Texts, seconds_of
from consumers.formats.decode_errors import guarded
from consumers.formats.event_headers import Headers, check_event
from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.native import (
    WirePrediction,
    decode_array,
    decode_prediction,
    decode_predictions,
    element_texts,
)
from service.domain.arrays import Floats, Indices
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE

Format = Callable[[Headers, bytes], bytes | None]
"""Rewrites a record, given its headers and value, as native JSON; None if the record is of another format.

It raises `BadMessage` if nothing in the record can be used.
"""

Formats = Sequence[Format] | MappedTopic
"""How records that are not native are read: by the first format that accepts one, or all by a mapping."""


@dataclass(frozen=True)
class DecodedRecords:
    """Predictions of a batch of records.

    Attributes:
        predictions: those that could be parsed, in order [n].
        places: index of the record of each [n].
        elements: position of each in its record's array or response; None where it is alone [n].
        errors: what could not be parsed, in order: index of the record, element, and why.
        arrays: the native JSON of records that are arrays, by index.
    """

    predictions: list[WirePrediction]
    places: Sequence[int] | Indices
    elements: Sequence[int | None]
    errors: list[tuple[int, int | None, BadMessage]]
    arrays: Mapping[int, bytes] = field(default_factory=dict, compare=False)

    def moved(self, by: int) -> DecodedRecords:
        """The same with an array of places, where so many records come before them."""
        is_range = isinstance(self.places, range)  # of every record once, and slow to convert
        places = np.arange(len(self.places)) if is_range else np.asarray(self.places, np.intp)
        return DecodedRecords(
            self.predictions,
            places + by,
            self.elements,
            [(place + by, element, error) for place, element, error in self.errors],
            {place + by: text for place, text in self.arrays.items()},
        )

    def texts(self, place: int, elements: Sequence[int]) -> list[bytes]:
        """Native JSON of some elements of the record at an index."""
        found = element_texts(self.arrays[place]) if elements else []
        return [bytes(found[element]) for element in elements]

    @property
    def item_ids(self) -> Texts:
        """Of the predictions [n]."""
        return Texts.of([p.item_id for p in self.predictions])

    @property
    def times(self) -> Floats:
        """That the predictions claim, in seconds since the epoch; NaN where there is none [n]."""
        return seconds_of([p.time for p in self.predictions])

    def rows_by_model(self) -> dict[str, Indices]:
        """Indices of every model's predictions [r]."""
        names = [p.model for p in self.predictions]
        if names and names.count(names[0]) == len(names):
            return {names[0]: np.arange(len(names))}
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        coded = np.array([codes[name] for name in names], dtype=np.intp)
        order, ends = np.argsort(coded, kind="stable"), np.cumsum(np.bincount(coded, minlength=len(codes)))
        return dict(zip(codes, np.split(order, ends[:-1]), strict=False))


def decode_records(records: Sequence[Any], *, message_bytes: int, formats: Formats) -> DecodedRecords:
    """Check the headers of a batch of Kafka records, and parse their values, of `message_bytes` at most."""
    values = [record.value or b"" for record in records]
    decoded = None if isinstance(formats, MappedTopic) else decode_alone(records, values, message_bytes)
    return decode_each(records, values, message_bytes, formats) if decoded is None else decoded


def decode_alone(
    records: Sequence[Any], values: Sequence[bytes], message_bytes: int
) -> DecodedRecords | None:
    """Predictions of records if each is a valid native one by itself; else None."""
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
    return None


def decode_each(
    records: Sequence[Any], values: Sequence[bytes], message_bytes: int, formats: Formats
) -> DecodedRecords:
    """The same, where some of the records are arrays, of another format, or invalid."""
    predictions: list[WirePrediction] = []
    places: list[int] = []
    elements: list[int | None] = []
    errors: list[tuple[int, int | None, BadMessage]] = []
    arrays: dict[int, bytes] = {}
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
        arrays[place] = value
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
    return DecodedRecords(predictions, places, elements, errors, arrays)


def native_text(record: Any, formats: Formats) -> bytes:
    """A record's value as native JSON: one prediction, or an array of them, none of which is validated yet.

    Raises:
        BadMessage: the record is of no format, or nothing in it can be used.
        Unavailable: what the format needs cannot be asked now.
    """
    if isinstance(formats, MappedTopic):
        return guarded(formats.rewrite, record)
    headers, value = record.headers, record.value or b""
    for rewrite in formats:
        if (text := guarded(rewrite, headers, value)) is not None:
            return text
    check_event(headers, PREDICTION_TYPE)
    return value
