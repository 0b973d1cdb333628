"""Predictions in Apache Arrow's IPC streaming format: a record has a schema and batches of rows.

A record whose rows are all plainly valid becomes columns, without an object per row. Any other is rewritten
as native JSON, and the native decoder decides on every row: so both formats accept the same predictions, and
refuse them for the same reasons. pyarrow is an extra, which is imported when the first such record comes.
"""

from __future__ import annotations

from consumers.formats.arrow_messages import CONTINUATION
from consumers.formats.arrow_stream import read_stream
from consumers.formats.arrow_text import rows_as_json
from consumers.formats.event_headers import Headers, check_event, fits_event
from service.domain.messages import PREDICTION_TYPE

CONTENT_TYPE = b"application/vnd.apache.arrow.stream"

_JSON_STARTS = (b"{", b"[")


def arrow_rows(headers: Headers, value: bytes) -> bytes | None:
    """The rows of a record as a native array; None if the record is not in this format.

    Raises:
        BadMessage: nothing in the record can be used.
    """
    if not _is_arrow(headers, value):
        return None
    check_event(headers, PREDICTION_TYPE)
    return rows_as_json(read_stream(value))


def schema_of(headers: Headers, value: bytes) -> bytes | None:
    """The message that begins a stream, its schema; None if the record is refused or in another format."""
    if not value.startswith(CONTINUATION) or not fits_event(headers, PREDICTION_TYPE):
        return None
    return value[: 8 + int.from_bytes(value[4:8], "little")]


def _is_arrow(headers: Headers, value: bytes) -> bool:
    if value.startswith(CONTINUATION):
        return True
    # A refused row is kept, and replayed, as JSON with the headers of its record.
    return is_declared(headers) and not value.lstrip().startswith(_JSON_STARTS)


def is_declared(headers: Headers) -> bool:
    """Whether headers say that the value is such a stream."""
    return any(name.lower() == "content-type" and content == CONTENT_TYPE for name, content in headers)
