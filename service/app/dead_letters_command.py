"""`credence dead-letters`: list dead letters, and redrive them after the fix.

Anybody who writes the topics chooses reasons, keys and messages, so terminal control characters are escaped.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from rich.table import Table
from rich.text import Text

from consumers.dead_letter_format import Letter
from consumers.dead_letter_redrive import REPLAYED, WOULD_BE_REPLAYED, read_letters, replay
from service.app.plain_text import plain
from service.app.wide_console import wide_console
from service.app.wiring import connect
from service.config.loader import load_settings
from service.config.settings import Settings
from service.kafka.clients import build_producer, build_reader
from service.store.redrives import ReplayMarks

_NO_LETTER = "(not written by Credence)"
_ROW = "{:20}  {:21}  {:>9}  {}  {}"


def _is_chosen(letter: Letter, options: argparse.Namespace) -> bool:
    """Whether all filters of the command line hold for a letter."""
    place, written = letter.place, letter.timestamp_ms / 1000
    topic, partition = (None, None) if place is None else (place.topic, place.partition)
    return (
        (not options.reason or letter.reason in options.reason)
        and options.source_topic in (None, topic)
        and options.partition in (None, partition)
        and (options.since is None or written >= options.since)
        and (options.until is None or written < options.until)
    )


def _chosen(options: argparse.Namespace, settings: Settings) -> Iterator[Letter]:
    """The chosen letters, as they are read."""
    with closing(build_reader(settings.kafka)) as reader:
        letters = read_letters(reader, settings.kafka.topics.dead_letters)
        yield from islice((one for one in letters if _is_chosen(one, options)), options.limit)


def list_letters(options: argparse.Namespace) -> int:
    """Print the chosen letters."""
    letters = _chosen(options, load_settings(options.config, os.environ))
    if options.json:
        for letter in letters:
            print(json.dumps(document(letter, values=options.values)))
    elif options.summary:
        wide_console().print(summary_table(letters))
    else:
        for row in rows(letters, values=options.values):
            print(row)
    return 0


def replay_letters(options: argparse.Namespace) -> int:
    """Send the messages of the chosen letters back, or print which would be sent."""
    settings = load_settings(options.config, os.environ)
    topics = settings.kafka.topics
    reads_again = settings.kafka.start == "earliest" and not options.not_read_again
    outcomes: Counter[str] = Counter()
    with ExitStack() as stack:
        producer = None
        if options.yes:
            producer = stack.enter_context(closing(build_producer(settings.kafka, name="replay")))
        replaying = replay(
            _chosen(options, settings),
            producer=producer,
            marks=ReplayMarks(connect(settings)),
            topics={topics.predictions, topics.labels},
            read_again={topics.predictions} if reads_again else (),
            retry_unfinished=options.retry_unfinished,
            now=time.time(),
        )
        for letter, what in replaying:
            print(line_of(letter, what))
            outcomes[what] += 1
    if options.yes:
        print(f"{outcomes[REPLAYED]} replayed, {outcomes.total() - outcomes[REPLAYED]} skipped")
    else:
        print(f"dry run: {outcomes[WOULD_BE_REPLAYED]} of {outcomes.total()} would be replayed with --yes")
    return 0


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
    kinds: dict[tuple[str, str], tuple[int, int, int]] = {}
    for letter in letters:
        kind = ("" if letter.place is None else letter.place.topic, letter.reason or _NO_LETTER)
        time_ms = letter.timestamp_ms
        count, first, last = kinds.get(kind, (0, time_ms, time_ms))
        kinds[kind] = count + 1, min(first, time_ms), max(last, time_ms)
    shown = Table(box=None, pad_edge=False)
    for name in ("source topic", "reason", "letters", "first", "last"):
        shown.add_column(name, overflow="fold", justify="right" if name == "letters" else "left")
    for kind, (count, first, last) in sorted(kinds.items(), key=lambda item: -item[1][0]):
        cells = [*kind, str(count), _short_time(first), _short_time(last)]
        shown.add_row(*(Text(plain(cell)) for cell in cells))
    shown.caption = f"{sum(count for count, _, _ in kinds.values())} dead letters"
    return shown


def line_of(letter: Letter, what: str) -> str:
    """One line about what is done with a letter."""
    place = f"letter {letter.partition}/{letter.offset}" if letter.place is None else str(letter.place)
    return plain(f"{place} ({letter.reason or _NO_LETTER}): {what}")


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
