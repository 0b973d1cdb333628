"""Predictions in Apache Arrow's IPC streaming format: a record has a schema and batches of rows.

A record whose rows are all plainly valid becomes columns, without an object per row. Any other is rewritten
as native JSON, and the native decoder decides on every row: so both formats accept the same predictions, and
refuse them for the same reasons. pyarrow is an extra, which is imported when the first such record comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consumers.formats.arrow_messages import CONTINUATION
from consumers.formats.arrow_stream import ArrowRows, read_stream
from consumers.formats.arrow_text import rows_as_json
from consumers.formats.columns import Coded, ModelColumns, Texts
from consumers.formats.native import Headers, check_event
from service.domain.arrays import Flags, Floats
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES, PREDICTION_TYPE

CONTENT_TYPE = b"application/vnd.apache.arrow.stream"

_JSON_STARTS = (b"{", b"[")
_LONGEST_NAME, _LONGEST_ID, _LONGEST_CLASS, _LONGEST_URI = 128, 256, 256, 2_048
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since the epoch."""


def arrow_rows(headers: Headers, value: bytes) -> bytes | None:
    """The rows of a record as a native array; None if the record is not in this format.

    Raises:
        BadMessage: nothing in the record can be used.
    """
    if not _is_arrow(headers, value):
        return None
    check_event(headers, PREDICTION_TYPE)
    return rows_as_json(read_stream(value))


def decode_columns(headers: Headers, value: bytes) -> ModelColumns | None:
    """The rows of a record as columns; None if it is not in this format, or a row may be invalid."""
    if not _is_arrow(headers, value):
        return None
    try:
        check_event(headers, PREDICTION_TYPE)
        batches = [_columns(rows) for rows in read_stream(value)]
    except BadMessage:
        return None
    columns = [each for each in batches if each is not None]
    if not columns or len(columns) < len(batches) or len({each.layout for each in columns}) > 1:
        return None
    return ModelColumns.join(columns)


def _is_arrow(headers: Headers, value: bytes) -> bool:
    if value.startswith(CONTINUATION):
        return True
    # A refused row is kept, and replayed, as JSON with the headers of its record.
    declared = any(name.lower() == "content-type" and content == CONTENT_TYPE for name, content in headers)
    return declared and not value.lstrip().startswith(_JSON_STARTS)


def _columns(rows: ArrowRows) -> ModelColumns | None:
    if len(rows.attributes) > MOST_ATTRIBUTES:
        return None
    model, item_ids = _model(rows), _item_ids(rows)
    classes = _coded(rows, rows.fields.get("predicted_class"))
    uris = _coded(rows, rows.fields.get("payload_uri"))
    scores, is_usable = _scores(rows)
    times, are_times = _times(rows)
    spread, is_spread = _probabilities(rows)
    attributes = {name: rows.coded(column) for name, column in rows.attributes.items()}
    payload = rows.fields.get("payload")
    if (
        model is None
        or item_ids is None
        or not (is_usable and are_times and is_spread)
        or not _are_short(classes, _LONGEST_CLASS)
        or not _are_short(uris, _LONGEST_URI)
        or not all(1 <= len(name) <= _LONGEST_NAME for name in attributes)
        or (payload is not None and payload.null_count < rows.count)
    ):
        return None
    return ModelColumns(
        model=model,
        item_ids=item_ids,
        classes=classes,
        scores=scores,
        probabilities=spread,
        times=times,
        payload_uris=uris,
        attributes=attributes,
    )


def _model(rows: ArrowRows) -> str | None:
    """The one model of all rows; None if there are several, or it is no name."""
    column = rows.fields.get("model")
    found: set[str | None] = {rows.model}
    if column is not None:
        coded = rows.coded(column)
        found = {coded.names[code] for code in np.unique(coded.codes).tolist()}
    name = found.pop()
    return name if not found and name and len(name) <= _LONGEST_NAME else None


def _item_ids(rows: ArrowRows) -> Texts | None:
    array = rows.fields.get("item_id")
    # Texts of a dictionary may be long, and repeated by every row.
    if array is None or array.null_count or hasattr(array, "dictionary"):
        return None
    data, bounds = rows.text_buffers(array)
    lengths = np.diff(bounds)
    # In bytes: an id of fewer characters may have more, and is left to the native decoder.
    if lengths.min() < 1 or lengths.max() > _LONGEST_ID:
        return None
    return Texts(data, bounds)


def _coded(rows: ArrowRows, array: Any) -> Coded:
    return Coded.missing(rows.count) if array is None else rows.coded(array)


def _are_short(texts: Coded, longest: int) -> bool:
    return all(name is None or 1 <= len(name) <= longest for name in texts.names)


def _scores(rows: ArrowRows) -> tuple[Floats, bool]:
    array = rows.fields.get("score")
    if array is None:
        return np.full(rows.count, np.nan), True
    scores: Floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return scores, int(np.count_nonzero(~np.isfinite(scores))) == array.null_count


def _times(rows: ArrowRows) -> tuple[Floats, bool]:
    """Times in seconds, and whether the native format can have all of them."""
    if (found := rows.microseconds()) is None:
        return np.full(rows.count, np.nan), True
    stamps, is_missing = found
    is_valid: Flags = is_missing | ((stamps >= _FIRST_TIME) & (stamps <= _LAST_TIME))
    return np.where(is_missing, np.nan, stamps / 1e6), bool(is_valid.all())


def _probabilities(rows: ArrowRows) -> tuple[Floats | None, bool]:
    array = rows.fields.get("probabilities")
    if array is None:
        return None, True
    width = getattr(array.type, "list_size", 0)
    if width < 2 or array.null_count:  # noqa: PLR2004 - the fewest classes
        return None, array.null_count == rows.count
    flat = array.flatten()
    values: Floats = flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(rows.count, width)
    return values, bool(np.isfinite(values).all())
