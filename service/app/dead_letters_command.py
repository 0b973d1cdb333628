"""`credence dead-letters`: look at refused messages, and send them back once the cause is mended."""

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
from typing import Any

from rich.console import Console

from consumers.dead_letter_format import Letter
from consumers.dead_letter_redrive import REPLAYED, WOULD_BE_REPLAYED, read_letters, replay
from service.app.dead_letter_views import document, line_of, rows, summary_table
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment
from service.kafka.clients import build_producer, build_reader
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.redrives import ReplayMarks

DESCRIPTION = """\
Messages that could not be used, from the dead-letter topic.

`list` shows them with the reason and where each stood; never their content, which may be private, unless
--values asks for it. `replay` sends their messages back to the topic, partition and time that they came from,
each once: it remembers in Redis what it sent. It only tells what it would do unless --yes is given.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence dead-letters list --summary
  credence dead-letters list --since 2h --reason unknown_class --json
  credence dead-letters replay --reason unknown_class --since 1d           what would be sent
  credence dead-letters replay --reason unknown_class --since 1d --yes     send it
"""


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


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "dead-letters",
        help="look at refused messages, and send them back once the cause is mended",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    chosen = _filter_options()

    listing = actions.add_parser("list", help="show them", parents=[configured, chosen])
    shape = listing.add_mutually_exclusive_group()
    shape.add_argument("--summary", action="store_true", help="count them by source topic and reason")
    shape.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    listing.add_argument(
        "--values", action="store_true", help="show the messages too; they may hold what is private"
    )
    listing.set_defaults(command=_list)

    again = actions.add_parser("replay", help="send them back", parents=[configured, chosen])
    really = again.add_mutually_exclusive_group()
    really.add_argument("--dry-run", action="store_true", help="tell what would be sent (the default)")
    really.add_argument("--yes", action="store_true", help="send")
    again.add_argument(
        "--retry-unfinished",
        action="store_true",
        help="send those too whose earlier replay was cut off; look first whether they arrived",
    )
    again.add_argument(
        "--not-read-again",
        action="store_true",
        help="send predictions too that a change of classes would have mended, as the topic no longer held "
        "them when it was read again; those that it held would count twice",
    )
    again.set_defaults(command=_replay)


def _filter_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    which = options.add_argument_group("which")
    which.add_argument("--reason", action="append", default=[], help="such as unknown_class; repeatable")
    which.add_argument("--source-topic", metavar="TOPIC", help="topic that the message came from")
    which.add_argument("--partition", type=int, metavar="P", help="partition that it came from")
    which.add_argument("--since", type=moment, metavar="TIME", help="written at this time or later")
    which.add_argument("--until", type=moment, metavar="TIME", help="written before this time")
    which.add_argument("--limit", type=_positive, metavar="N", help="at most so many, the oldest first")
    return options


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def _chosen(options: argparse.Namespace, settings: Settings) -> Iterator[Letter]:
    """The letters that the options choose, as they are read."""
    which = LetterFilter(
        frozenset(options.reason), options.source_topic, options.partition, options.since, options.until
    )
    with closing(build_reader(settings.kafka)) as reader:
        letters = read_letters(reader, settings.kafka.topics.dead_letters)
        yield from islice(filter(which.takes, letters), options.limit)


def _list(options: argparse.Namespace) -> int:
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


def _replay(options: argparse.Namespace) -> int:
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
