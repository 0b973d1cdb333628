"""Text of others, for the terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """Text with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
