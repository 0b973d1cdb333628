"""`credence dead-letters`: list dead letters, and redrive them after the fix."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice

from rich.console import Console

from consumers.dead_letter_format import Letter
from consumers.dead_letter_redrive import REPLAYED, WOULD_BE_REPLAYED, read_letters, replay
from service.app.dead_letter_views import document, line_of, rows, summary_table
from service.config.loader import load_settings
from service.config.settings import Settings
from service.kafka.clients import build_producer, build_reader
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.redrives import ReplayMarks


@dataclass(frozen=True)
class LetterFilter:
    """Which letters are chosen; all of what is given must hold.

    Attributes:
        reasons: any of them; all if empty.
        source_topic: that the message came from.
        source_partition: that it came from.
        since: seconds since the epoch, of when the letter was written.
        until: the same; exclusive.
    """

    reasons: frozenset[str] = frozenset()
    source_topic: str | None = None
    source_partition: int | None = None
    since: float | None = None
    until: float | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether a letter is among those."""
        place, written = letter.place, letter.timestamp_ms / 1000
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (self.source_topic is None or (place is not None and place.topic == self.source_topic))
            and (
                self.source_partition is None
                or (place is not None and place.partition == self.source_partition)
            )
            and (self.since is None or written >= self.since)
            and (self.until is None or written < self.until)
        )


def _chosen(options: argparse.Namespace, settings: Settings) -> Iterator[Letter]:
    """The letters that the options choose, as they are read."""
    which = LetterFilter(
        frozenset(options.reason), options.source_topic, options.partition, options.since, options.until
    )
    with closing(build_reader(settings.kafka)) as reader:
        letters = read_letters(reader, settings.kafka.topics.dead_letters)
        yield from islice(filter(which.takes, letters), options.limit)


def list_letters(options: argparse.Namespace) -> int:
    """Show the letters that were chosen."""
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
    """Send the messages of the letters that were chosen back, or say which would be sent."""
    settings = load_settings(options.config, os.environ)
    topics = settings.kafka.topics
    reads_again = settings.kafka.start == "earliest" and not options.not_read_again
    outcomes: Counter[str] = Counter()
    with ExitStack() as stack:
        producer = (
            stack.enter_context(closing(build_producer(settings.kafka, name="replay")))
            if options.yes
            else None
        )
        replaying = replay(
            _chosen(options, settings),
            producer=producer,
            marks=ReplayMarks(Connection(build_redis(settings.redis), settings.redis.prefix)),
            topics={topics.predictions, topics.labels},
            read_again={topics.predictions} if reads_again else (),
            retry_unfinished=options.retry_unfinished,
            now=time.time(),
        )
        for letter, what in replaying:
            print(line_of(letter, what))
            outcomes[what] += 1
    if options.yes:
        print(f"{outcomes[REPLAYED]} replayed, {outcomes.total() - outcomes[REPLAYED]} passed over")
    else:
        print(f"nothing was sent; {outcomes[WOULD_BE_REPLAYED]} of {outcomes.total()} would be with --yes")
    return 0
