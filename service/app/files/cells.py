"""Cells of a file as values of the contract; nothing is guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from service.app.files.rows import BadCell

Converter = Callable[[Any, str], Any]
"""Makes a field's value of a cell, which is not empty, and the name of its column, for `BadCell`."""

_LONGEST_DIGITS = 256
"""Of an integer that is a name; Python does not print one of any length."""

_EPOCH = re.compile(r"\d{9,12}(\.\d+)?", re.ASCII)
"""Seconds since 1970 as text; fewer digits may be a date (20260131)."""

_FIRST_SECOND, _LAST_SECOND = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100 in seconds since 1970; 20260131 and milliseconds are not between them."""

_KINDS = {
    bool: "a boolean",
    int: "a number",
    float: "a number with decimals",
    str: "text",
    list: "a list",
    dict: "an object",
}


def to_text(cell: Any, column: str) -> str:
    """Text; integers become their digits.

    Raises:
        BadCell: it is something else.
    """
    value = parsed(cell, column)
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BadCell(column, "the text is not UTF-8") from None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_LONGEST_DIGITS:
        # Of JSON its own digits: -0 is another id than 0.
        return bytes(cell).decode() if isinstance(cell, msgspec.Raw) else str(value)
    raise BadCell(column, f"expected text or an integer, got {_kind(value)}")


def to_number(cell: Any, column: str) -> float:
    """A finite number.

    Raises:
        BadCell: it is something else.
    """
    value = parsed(cell, column)
    if isinstance(value, str):
        # Python alone takes digits of other scripts and underscores for numbers.
        if not value.isascii() or "_" in value:
            raise BadCell(column, "expected a number")
        try:
            value = float(value)
        except ValueError:
            raise BadCell(column, "expected a number, with a decimal point") from None
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise BadCell(column, f"expected a number, got {_kind(value)}")
    try:
        number = float(value)
    except (OverflowError, ValueError):
        number = math.inf
    if not math.isfinite(number):
        raise BadCell(column, "the number is not finite")
    return number


def to_time(cell: Any, column: str) -> str:
    """A time of RFC 3339 in UTC: of ISO 8601, in UTC unless it has an offset, or of seconds since the epoch.

    Raises:
        BadCell: it is no time.
    """
    value = parsed(cell, column)
    try:
        if isinstance(value, str):
            value = float(value) if _EPOCH.fullmatch(value) else datetime.fromisoformat(value)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            if not _FIRST_SECOND <= value < _LAST_SECOND:
                raise BadCell(
                    column,
                    "expected a time: a number must be seconds since 1970, in the years 2000 to 2099; write "
                    "dates as 2026-01-31",
                )
            value = datetime.fromtimestamp(float(value), UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    raise BadCell(column, "expected a time: 2026-01-31T12:00:00Z, or seconds since 1970")


def to_numbers(cell: Any, column: str) -> list[float]:
    """A list of finite numbers; text is JSON.

    Raises:
        BadCell: it is something else.
    """
    value = _from_json(cell, column)
    if not isinstance(value, list):
        raise BadCell(column, f"expected a list of numbers, got {_kind(value)}")
    return [to_number(each, column) for each in value]


def to_texts(cell: Any, column: str) -> dict[str, str]:
    """Texts by name, without those that are missing; text is JSON.

    Raises:
        BadCell: it is something else.
    """
    value = _from_json(cell, column)
    if isinstance(value, list) and all(isinstance(each, tuple) for each in value):
        pairs = value  # a map of Parquet
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        raise BadCell(column, f"expected an object, got {_kind(value)}")
    names = [to_text(name, column) for name, _ in pairs]
    if len(set(names)) < len(names):
        raise BadCell(column, "a name is there twice")
    return {
        name: to_text(text, column) for name, (_, text) in zip(names, pairs, strict=True) if text is not None
    }


def to_json(cell: Any, column: str) -> Any:
    """Any value that JSON can hold, as it is.

    Raises:
        BadCell: JSON cannot hold it.
    """
    try:
        _check_json(cell, column)
        return msgspec.Raw(msgspec.json.encode(cell))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise BadCell(column, "JSON cannot hold the value") from None


def _check_json(value: Any, column: str) -> None:
    """Refuse what the encoder would write as something else: null, or text of its own."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadCell(column, "the number is not finite")
    if isinstance(value, bytes):
        raise BadCell(column, "the value is binary, which JSON cannot hold; store text")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            _check_json(each, column)


def parsed(cell: Any, column: str) -> Any:
    """The value of JSON text; any other cell is its own.

    Raises:
        BadCell: it is not JSON, or a number beyond all bounds.
    """
    return _decoded(cell, column) if isinstance(cell, msgspec.Raw) else cell


def _from_json(cell: Any, column: str) -> Any:
    """The same; text, as in CSV, is JSON."""
    value = parsed(cell, column)
    return _decoded(value.encode(errors="replace"), column) if isinstance(value, str) else value


def _decoded(text: Any, column: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        # The only value that is valid JSON and is refused is a number beyond all bounds.
        raise BadCell(column, "the number is not finite") from None
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise BadCell(column, "expected JSON") from None


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "something else")
