"""What `credence dead-letters` takes."""

from __future__ import annotations

import argparse
from typing import Any

from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment

DESCRIPTION = """\
Messages that could not be used, from the dead-letter topic.

`list` shows them with the reason and where each stood; never their content, which may be private, unless
--values asks for it. `replay` sends their messages back to the topic, partition and time that they came from,
each once: Redis holds what was sent. Without --yes, it only shows what it would do.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence dead-letters list --summary
  credence dead-letters list --since 2h --reason unknown_class --json
  credence dead-letters replay --reason unknown_class --since 1d           what would be sent
  credence dead-letters replay --reason unknown_class --since 1d --yes     send it
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "dead-letters",
        help="list dead letters, and redrive them after the fix",
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
    listing.set_defaults(command="service.app.dead_letters_command:list_letters")

    again = actions.add_parser("replay", help="send them back", parents=[configured, chosen])
    really = again.add_mutually_exclusive_group()
    really.add_argument("--dry-run", action="store_true", help="show what would be sent (the default)")
    really.add_argument("--yes", action="store_true", help="send")
    again.add_argument(
        "--retry-unfinished",
        action="store_true",
        help="send those too whose earlier replay was cut off; look first whether they arrived",
    )
    again.add_argument(
        "--not-read-again",
        action="store_true",
        help="send also predictions that a change of classes made valid, because the topic no longer held "
        "them when it was read again; predictions that it still held would count twice",
    )
    again.set_defaults(command="service.app.dead_letters_command:replay_letters")


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
