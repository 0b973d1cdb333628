"""What must hold of every decoder of records, and that decoders to columns find what the plain ones find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from properties import LONGEST_DETAIL, prediction_can_be_kept

from consumers.formats.native import WirePrediction, decode_attributes, decode_label
from consumers.formats.parts import Part, decode_parts
from consumers.formats.records import DecodedRecords, Formats, decode_records
from service.domain.errors import BadMessage

MESSAGE_BYTES = 1_000_000
REASONS = {
    *("malformed_json", "malformed_record", "message_too_large", "unsupported_event", "unknown_schema"),
    *("missing_field", "invalid_field", "unknown_model", "invalid_probabilities", "invalid_score"),
    *("invalid_tensor", "invalid_arrow", "unsupported_schema"),
}
_UNFORESEEN = "the value cannot be decoded"
"""What a decoder's last resort says; it holds, but somebody must look at the error."""

_LEAST_WRITTEN, _WRITTEN_PER_BYTE = 100_000, 200
"""How long the texts of a record may be together."""

_KEPT = 3
"""Predictions of a record that are kept, to see that they come back."""

_Found = tuple[int, int | None, Any]
"""Place of a record, element in it, and what it says or why it is refused."""


def predictions_stand(records: Sequence[Any], formats: Formats) -> None:
    """Records of the predictions topic give predictions or reasons, in proportion to what they are."""
    parts = decode_parts(records, message_bytes=MESSAGE_BYTES, formats=formats)
    if any(not isinstance(part, DecodedRecords) for part in parts):
        plain = decode_records(records, message_bytes=MESSAGE_BYTES, formats=formats)
        columns_are_like_rows(parts, plain)
    for part in parts:
        for _, _, error in part.errors:
            refusal_stands(error)
        for prediction in part.predictions[:_KEPT]:
            with suppress(BadMessage):  # of its attributes, which are parsed later
                prediction_can_be_kept(prediction)
        _letters_stand(part, records)


def columns_are_like_rows(parts: Sequence[Part], plain: DecodedRecords) -> None:
    """Columns say what the plain decoder says of the same records; it decides what they leave to it."""
    found = [each for part in parts for each in _found_in(part)]
    expected = _found_in(plain)
    assert _sorted(found) == _sorted(expected), "columns differ from rows"


def labels_stand(record: Any, rewrite: Callable[[Any], bytes]) -> None:
    """A record of the labels topic gives a label or a reason."""
    try:
        text = rewrite(record)
        assert len(text) <= _LEAST_WRITTEN + _WRITTEN_PER_BYTE * len(record.value or b"")
        label = decode_label(text)
    except BadMessage as error:
        refusal_stands(error)
        return
    assert label.model
    assert label.item_id
    if label.time is not None:
        label.time.timestamp()


def refusal_stands(error: BadMessage) -> None:
    """A refusal can be a metric's label and a header, tells nothing long, and was thought of."""
    assert error.reason in REASONS, error
    assert len(error.detail) <= LONGEST_DETAIL, error.detail
    assert not error.detail.startswith(_UNFORESEEN), error.detail
    error.detail.encode()


def _letters_stand(part: Part, records: Sequence[Any]) -> None:
    """A dead letter of every bad element can be written, and they are bounded by their record."""
    by_place: dict[int, list[int]] = {}
    for place, element, _ in part.errors:
        if element is not None:
            by_place.setdefault(place, []).append(element)
    for place, elements in by_place.items():
        texts = part.texts(place, elements)
        assert len(texts) == len(elements)
        most = _LEAST_WRITTEN + _WRITTEN_PER_BYTE * len(records[place].value)
        assert sum(map(len, texts)) <= most


def _found_in(part: Part) -> list[_Found]:
    times = part.times
    found: list[_Found] = [
        (int(part.places[row]), _element(part.elements[row]), _content(prediction, times[row]))
        for row, prediction in enumerate(part.predictions)
    ]
    return found + [(place, element, (error.reason, error.detail)) for place, element, error in part.errors]


def _content(prediction: WirePrediction, time: Any) -> tuple[Any, ...]:
    """What a prediction says, in a form in which equal ones are equal."""
    try:
        attributes: Any = decode_attributes(prediction.attributes)
    except BadMessage:  # the step refuses them
        attributes = bytes(prediction.attributes)
    return (
        *(prediction.model, prediction.item_id, prediction.predicted_class, prediction.score),
        *(prediction.probabilities, attributes, bytes(prediction.payload), prediction.payload_uri),
        prediction.votes,
        None if np.isnan(time) else float(time),
    )


def _element(element: Any) -> int | None:
    return None if element is None else int(element)


def _sorted(found: list[_Found]) -> list[_Found]:
    return sorted(found, key=lambda each: (each[0], -1 if each[1] is None else each[1]))
