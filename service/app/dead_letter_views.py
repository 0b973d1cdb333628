"""Dead letters as a table, a summary, and JSON.

Anybody who writes the topics chooses reasons, keys and messages, so terminal control characters are escaped.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from consumers.dead_letter_format import Letter

_NO_LETTER = "(not written by Credence)"


def document(letter: Letter, *, values: bool) -> dict[str, Any]:
    """A letter as JSON; with `values` also its key, headers and message, as `…_base64` if not UTF-8."""
    place = letter.place
    shown: dict[str, Any] = {
        "partition": letter.partition,
        "offset": letter.offset,
        "time": _iso(letter.timestamp_ms),
        "reason": letter.reason,
        "detail": letter.detail,
        "source_topic": None if place is None else place.topic,
        "source_partition": None if place is None else place.partition,
        "source_offset": None if place is None else place.offset,
        "source_index": None if place is None else place.index,
        "source_time": None if place is None else _iso(place.timestamp_ms),
        "bytes": len(letter.value),
        "truncated": letter.truncated,
        "replayed_from": letter.replayed_from or None,
    }
    if values:
        shown |= _text_or_base64("value", letter.value)
        shown |= _text_or_base64("key", letter.key) if letter.key is not None else {"key": None}
        shown["headers"] = [{"name": n} | _text_or_base64("value", content) for n, content in letter.headers]
    return shown


_ROW = "{:20}  {:21}  {:>9}  {}  {}"


def rows(letters: Iterable[Letter], *, values: bool) -> Iterator[str]:
    """A table of letters, row by row as they come; with `values` each message is below its row."""
    yield _ROW.format("written", "reason", "bytes", "source", "detail")
    for letter in letters:
        place = "-" if letter.place is None else str(letter.place)
        reason = letter.reason or _NO_LETTER
        yield plain(
            _ROW.format(_short_time(letter.timestamp_ms), reason, len(letter.value), place, letter.detail)
        ).rstrip()
        if values:
            yield f"    {plain(letter.value.decode(errors='backslashreplace'))}"


def summary_table(letters: Iterable[Letter]) -> Table:
    """Number of letters, and the times of the first and last one, by source topic and reason."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for letter in letters:
        kind = ("" if letter.place is None else letter.place.topic, letter.reason or _NO_LETTER)
        counts[kind] += 1
        first[kind] = min(first.get(kind, letter.timestamp_ms), letter.timestamp_ms)
        last[kind] = max(last.get(kind, letter.timestamp_ms), letter.timestamp_ms)
    shown = Table(box=None, pad_edge=False)
    for name in ("source topic", "reason", "letters", "first", "last"):
        shown.add_column(name, overflow="fold", justify="right" if name == "letters" else "left")
    for kind, count in counts.most_common():
        cells = [*kind, str(count), _short_time(first[kind]), _short_time(last[kind])]
        shown.add_row(*(Text(plain(cell)) for cell in cells))
    shown.caption = f"{counts.total()} dead letters"
    return shown


def line_of(letter: Letter, what: str) -> str:
    """One line about what is done with a letter."""
    place = f"letter {letter.partition}/{letter.offset}" if letter.place is None else str(letter.place)
    return plain(f"{place} ({letter.reason or _NO_LETTER}): {what}")


def plain(text: str) -> str:
    """Text with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _text_or_base64(name: str, content: bytes) -> dict[str, str]:
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _iso(timestamp_ms: int | None) -> str | None:
    if timestamp_ms is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def _short_time(timestamp_ms: int) -> str:
    time = _iso(timestamp_ms)
    return str(timestamp_ms) if time is None else time[:19] + "Z"
