"""How commands are added to the command line."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(
    commands: Any, name: str, function: str, text: str, *parents: argparse.ArgumentParser, about: str = ""
) -> argparse.ArgumentParser:
    """Add a command, and return its parser.

    Args:
        commands: of the parser that the command belongs to.
        name: of the command.
        function: `module:function` that runs it; the module is in `service.app`.
        text: its line in the list of commands.
        parents: have further options.
        about: the first paragraph of its own help; the text if empty.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=about or text,
        parents=parents,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=f"service.app.{function}")
    return parser


def add_actions(commands: Any, name: str, text: str, *, about: str, epilog: str = "") -> Any:
    """Add a command that has actions; each is added to the result."""
    parser = commands.add_parser(
        name,
        help=text,
        description=about,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser.add_subparsers(title="actions", metavar="ACTION", required=True)


def add_confirmation(parser: argparse.ArgumentParser, *, dry_run: str, yes: str) -> None:
    """Add `--yes`, without which a command changes nothing, and `--dry-run`, which says so."""
    confirmation = parser.add_mutually_exclusive_group()
    confirmation.add_argument("--dry-run", action="store_true", help=f"{dry_run} (the default)")
    confirmation.add_argument("--yes", action="store_true", help=yes)
