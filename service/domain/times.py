"""Times on the command line, and lengths of time in words."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

HOW_TIMES_ARE_WRITTEN = """\
times are ISO 8601 (2026-01-31, 2026-01-31T12:00:00Z; UTC unless an offset is given), or how long ago:
90s, 15m, 2h, 7d"""

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str) -> float:
    """Seconds since the epoch.

    Raises:
        argparse.ArgumentTypeError: the text is not a time.
    """
    try:
        if ago := _AGO.fullmatch(text):
            count, unit = ago.groups()
            return (datetime.now(UTC) - timedelta(**{_UNITS[unit]: int(count)})).timestamp()
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time: write 2026-01-31T12:00:00Z or 2h"
        ) from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def in_words(moment: float) -> str:
    """A moment as it is written on the command line, to the second."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def duration(seconds: float) -> str:
    """A length of time as people read it: at least two of its unit, but seconds."""
    seconds = max(0.0, seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def days(text: str) -> float:
    """A length of time as on the command line (90m, 12h, 14d), in days.

    Raises:
        argparse.ArgumentTypeError: the text is something else, or no time at all.
    """
    given = _AGO.fullmatch(text)
    if given is None or not int(given[1]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a length of time: write 14d, 12h or 90m")
    return timedelta(**{_UNITS[given[2]]: int(given[1])}) / timedelta(days=1)
