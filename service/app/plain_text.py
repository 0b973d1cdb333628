"""Text of others, and sizes, for people."""

from __future__ import annotations

from typing import Final

_THOUSAND: Final = 1_000


def plain(text: str) -> str:
    """Text with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def in_bytes(size: int) -> str:
    """A size in its largest unit: `240.5 kB`."""
    number, units = float(size), ["B", "kB", "MB", "GB"]
    while number >= _THOUSAND and len(units) > 1:
        number /= _THOUSAND
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{number:.1f} {units[0]}"
