"""What the JSON decoder finds wrong with a message, in words that do not quote it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import msgspec

from service.domain.errors import BadMessage, Unavailable

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_QUOTED = re.compile(r"""'.*'|".*\"""", re.DOTALL)
_PLACE = re.compile(r"(.*) - at `\$(?:\[[^\]]*\])?\.?(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TYPE = re.compile(r"`([a-z]+)[^`]*`")

_LONGEST_PATH = 100
"""Characters of a path in a detail, which is a header of the dead letter: values may be nested deeply."""

_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
    "datetime": "a time",
}
_PLAIN = {
    "Invalid RFC3339 encoded datetime": "expected a time in the format of RFC 3339",
    "Invalid enum value (value)": "expected one of the values of the contract",
}


def guarded(
    decode: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """What a decoder returns; whatever else it raises is the fault of the one record.

    Decoders of libraries read what anybody may have sent. An error that no one thought of must not end the
    process, which would read the same record again after every restart.

    Raises:
        BadMessage: the record cannot be used.
        Unavailable: what the decoder needs cannot be asked now.
    """
    try:
        return decode(*args, **kwargs)
    except (BadMessage, Unavailable):
        raise
    except Exception as error:
        # Its text may quote the record.
        kind = type(error).__name__
        raise BadMessage("malformed_record", f"the value cannot be decoded ({kind})") from error


def not_json(error: Exception) -> BadMessage:
    """The message that is no JSON text."""
    match error:
        case UnicodeDecodeError():
            return BadMessage("malformed_json", "not UTF-8")
        case RecursionError():
            return BadMessage("malformed_json", "nested too deeply")
        case _:
            return BadMessage("malformed_json", "not JSON")


def bad_field(error: msgspec.ValidationError) -> BadMessage:
    """The message that the decoder refused, with the path of the field that is wrong."""
    text, path = _QUOTED.sub("(value)", str(error)), ""
    if placed := _PLACE.fullmatch(text):
        text, path = placed.groups()
    if len(path) > _LONGEST_PATH:
        path = f"{path[:_LONGEST_PATH]}..."
    if missing := _MISSING.fullmatch(text):
        return BadMessage("missing_field", f"{path}.{missing[1]} is missing".lstrip("."))
    plain = _PLAIN.get(text, _TYPE.sub(lambda found: _TYPES.get(found[1], found[1]), text))
    plain = plain[:1].lower() + plain[1:]
    return BadMessage("invalid_field", f"{path}: {plain}" if path else plain)
