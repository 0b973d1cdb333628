"""Lengths of time in words."""

from __future__ import annotations

_MINUTE = 60.0
_HOUR = 3_600.0
_DAY = 86_400.0


def duration(seconds: float) -> str:
    """A length of time in its largest unit: `6 min`."""
    if seconds < _MINUTE:
        return f"{max(1, seconds):.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} d"
