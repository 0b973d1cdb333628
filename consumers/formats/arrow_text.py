"""Rows of an Arrow stream as native JSON, for the native decoder to decide on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from consumers.formats.arrow_stream import ArrowRows
from consumers.formats.native import attempt
from consumers.formats.open_inference import MOST_WRITTEN
from service.domain.errors import BadMessage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(msgspec.Raw).decode


def rows_as_json(rows: ArrowRows, *, value_bytes: int) -> bytes:
    """A native array of all rows, none of which is validated yet.

    Raises:
        BadMessage: it would be much longer than the record's value, of so many bytes.
    """
    _check_length(rows, value_bytes)
    columns = {name: _values(rows, name, array) for name, array in rows.fields.items()}
    attributes = {name: array.to_pylist() for name, array in rows.attributes.items()}
    shared = {} if rows.model is None else {"model": rows.model}
    found = []
    for row in range(rows.count):
        fields = {name: values[row] for name, values in columns.items() if values[row] is not None}
        named = {name: values[row] for name, values in attributes.items() if values[row] is not None}
        found.append(_encode(shared | fields | ({"attributes": named} if named else {})))
    return b"[" + b",".join(found) + b"]"


def _check_length(rows: ArrowRows, value_bytes: int) -> None:
    """Refuse rows that repeat long texts of a dictionary."""
    names = len((rows.model or "").encode()) + sum(map(len, rows.attributes))
    written = rows.count * names
    for array in (*rows.fields.values(), *rows.attributes.values()):
        if hasattr(array, "dictionary"):
            lengths = [len(text or "") for text in array.dictionary.to_pylist()]
            written += sum(lengths[code] for code in array.indices.to_pylist() if code is not None)
    if written > MOST_WRITTEN * value_bytes:
        raise BadMessage("message_too_large", "what many rows share is too long for so many rows")


def _values(rows: ArrowRows, name: str, array: Any) -> Sequence[Any]:
    if name == "time":
        stamps, is_missing = rows.microseconds() or ((), ())
        return [
            None if missing else _time(int(stamp)) for stamp, missing in zip(stamps, is_missing, strict=True)
        ]
    convert = _CONVERSIONS.get(name)
    values: list[Any] = array.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _time(microseconds: int) -> str | int:
    """A time of RFC 3339; a number, which is refused, if it is not in the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return microseconds


def _score(value: float) -> float | str:
    """The score; a text, which is refused, of what is no number in JSON."""
    return value if math.isfinite(value) else str(value)


def _payload(text: str) -> msgspec.Raw | str:
    """The JSON of a payload; text that is no JSON is a string."""
    parsed = attempt(_decode_text, text.encode())
    return text if isinstance(parsed, BadMessage) else msgspec.Raw(text.encode())


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"score": _score, "payload": _payload}
