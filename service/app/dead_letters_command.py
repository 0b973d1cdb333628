"""`credence dead-letters`: list dead letters, and redrive them after the fix."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice

from rich.console import Console

from consumers.dead_letter_format import Letter
from consumers.dead_letter_redrive import REPLAYED, WOULD_BE_REPLAYED, read_letters, replay
from service.app.dead_letter_views import document, line_of, rows, summary_table
from service.app.wiring import connect
from service.config.loader import load_settings
from service.config.settings import Settings
from service.kafka.clients import build_producer, build_reader
from service.store.redrives import ReplayMarks


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
        Console().print(summary_table(letters))
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
