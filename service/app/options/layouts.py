"""What `credence layouts` takes."""

from __future__ import annotations

import argparse
from typing import Any

DESCRIPTION = """\
Redis keeps traffic and pool of a model under a layout: a fingerprint of its classes and of the half-life of
traffic. Change one of these and a new layout begins; the old one stays, so that the change can be taken back,
until it is removed here.

`list` shows all layouts. `remove` removes those that this configuration does not use; with --in-use those
that it does use instead: stop all predictions consumers before, and start them afterwards; they rebuild
traffic and pool from what Kafka retains. Requests and labels are no part of a layout. Without --yes,
it only shows what it would do.
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "layouts",
        help="list stored traffic and pools, and remove those that are not used",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show them", parents=[configured])
    listing.set_defaults(command="service.app.layouts_command:list_layouts")
    removing = actions.add_parser("remove", help="remove them", parents=[configured])
    removing.add_argument("--model", metavar="NAME", help="of this model alone; it need not be configured")
    removing.add_argument(
        "--in-use",
        action="store_true",
        help="layouts that this configuration uses, to rebuild traffic and pools from Kafka",
    )
    really = removing.add_mutually_exclusive_group()
    really.add_argument("--dry-run", action="store_true", help="show what would be removed (the default)")
    really.add_argument("--yes", action="store_true", help="remove")
    removing.set_defaults(command="service.app.layouts_command:remove_layouts")
