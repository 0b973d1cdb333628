"""Rows of an Arrow stream as native JSON, for the native decoder to decide on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from consumers.formats.arrow_stream import ArrowRows
from consumers.formats.columns import utc_text
from consumers.formats.native import attempt
from service.domain.errors import BadMessage

_encode = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(msgspec.Raw).decode


def rows_as_json(batches: Sequence[ArrowRows]) -> bytes:
    """A native array of all rows, none of which is validated yet.

    Raises:
        BadMessage: a code is not in its dictionary.
    """
    return b"[" + b",".join(chain.from_iterable(map(_texts, batches))) + b"]"


def _texts(rows: ArrowRows) -> Iterator[bytes]:
    columns = {name: _values(rows, name, array) for name, array in rows.fields.items()}
    attributes = {name: _as_list(rows, array) for name, array in rows.attributes.items()}
    shared = {} if rows.model is None else {"model": rows.model}
    for row in range(rows.count):
        fields = {name: values[row] for name, values in columns.items() if values[row] is not None}
        named = {name: values[row] for name, values in attributes.items() if values[row] is not None}
        yield _encode(shared | fields | ({"attributes": named} if named else {}))


def _as_list(rows: ArrowRows, array: Any) -> list[Any]:
    if not hasattr(array, "dictionary"):
        found: list[Any] = array.to_pylist()
        return found
    coded = rows.coded(array)
    return [coded.names[code] for code in coded.codes.tolist()]


def _values(rows: ArrowRows, name: str, array: Any) -> Sequence[Any]:
    if name == "time":
        stamps, is_missing = rows.microseconds() or ((), ())
        return [
            None if missing else _time(int(stamp)) for stamp, missing in zip(stamps, is_missing, strict=True)
        ]
    convert = _CONVERSIONS.get(name)
    values = _as_list(rows, array)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _time(microseconds: int) -> str | int:
    """A time of RFC 3339; a number, which is refused, if it is not in the years 1 to 9999."""
    try:
        return utc_text(microseconds)
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
