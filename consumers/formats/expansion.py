"""Bounds what the names of a schema make of the few bytes of a value that stand for them."""

from __future__ import annotations

from typing import Any

from service.domain.errors import BadMessage

_LEAST = 65_536
_MOST_PER_BYTE = 64
"""How long, and how many times as long as its value, a text may be."""

_HARMLESS = 4_194_304
"""Characters that a value may become without being counted."""


def check_expansion(found: Any, *, value_bytes: int, most_names: int, longest_name: int) -> None:
    """Refuse what would be a very long text, before it is written.

    Args:
        found: content of the value, not recursive.
        value_bytes: length of the value.
        most_names: at most so many names and symbols are in it.
        longest_name: characters of the longest.

    Raises:
        BadMessage: its names and texts alone are longer than the text may be.
    """
    if most_names * longest_name <= _HARMLESS:
        return
    room = max(_LEAST, _MOST_PER_BYTE * value_bytes)
    rest = [found]
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            room -= len(part)
        elif isinstance(part, dict):
            room -= sum(map(len, part))
            rest.extend(part.values())
        elif isinstance(part, list):
            rest.extend(part)
        if room < 0:
            raise BadMessage("message_too_large", "the value is very long when it is written as JSON")
