"""What `credence dead-letters` takes."""

from __future__ import annotations

import argparse
from typing import Any

from service.app.options.commands import add_actions, add_command, add_confirmation
from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment

DESCRIPTION = """\
Dead letters are messages that Credence could not use. It keeps them in the dead-letter topic.

`list` shows each one with its reason and its place in the source topic. It shows message contents, which may
be private, only with --values. `replay` sends messages back to the topic, partition and time that they came
from. Redis remembers what was sent, so each message is sent once. Without --yes, `replay` sends nothing.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence dead-letters list --summary
  credence dead-letters list --since 2h --reason unknown_class --json
  credence dead-letters replay --reason unknown_class --since 1d           show what would be sent
  credence dead-letters replay --reason unknown_class --since 1d --yes     send it
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command; `configured` has the option that names the configuration."""
    text = "list dead letters, and redrive them after the fix"
    actions = add_actions(commands, "dead-letters", text, about=DESCRIPTION, epilog=EPILOG)
    parents = configured, _filter_options()

    listing = add_command(actions, "list", "dead_letters_command:list_letters", "show dead letters", *parents)
    shape = listing.add_mutually_exclusive_group()
    shape.add_argument("--summary", action="store_true", help="count them by source topic and reason")
    shape.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    listing.add_argument(
        "--values", action="store_true", help="show message contents too; they may be private"
    )

    again = add_command(
        actions, "replay", "dead_letters_command:replay_letters", "send messages back", *parents
    )
    add_confirmation(again, dry_run="show what would be sent", yes="send")
    again.add_argument(
        "--retry-unfinished",
        action="store_true",
        help="also send messages whose earlier replay was interrupted; check first whether they arrived",
    )
    again.add_argument(
        "--not-read-again",
        action="store_true",
        help="also send predictions that a change of classes made valid, if the topic no longer held them "
        "when it was read again; predictions that it still held would count twice",
    )


def _filter_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    which = options.add_argument_group("which")
    which.add_argument("--reason", action="append", default=[], help="such as unknown_class; repeatable")
    which.add_argument("--source-topic", metavar="TOPIC", help="topic that the message came from")
    which.add_argument("--partition", type=int, metavar="P", help="partition that it came from")
    which.add_argument("--since", type=moment, metavar="TIME", help="written at this time or later")
    which.add_argument("--until", type=moment, metavar="TIME", help="written before this time")
    which.add_argument("--limit", type=_positive, metavar="N", help="at most N, the oldest first")
    return options


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)
