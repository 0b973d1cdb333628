"""What `credence layouts` takes."""

from __future__ import annotations

import argparse
from typing import Any

from service.app.options.commands import add_actions, add_command, add_confirmation

DESCRIPTION = """\
Redis keeps the traffic and the pool of a model under a layout: a fingerprint of its classes and of the
half-life of traffic. If you change one of these, a new layout begins. The old one stays, so that you can undo
the change, until you remove it here.

`list` shows all layouts. `remove` removes those that this configuration does not use. With --in-use it
removes those that it does use: stop all predictions consumers first, and start them afterwards; they rebuild
traffic and pool from what Kafka retains. Label requests and labels are not part of a layout. Without --yes,
`remove` removes nothing.
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command; `configured` has the option that names the configuration."""
    text = "list stored traffic and pools, and remove those that are not used"
    actions = add_actions(commands, "layouts", text, about=DESCRIPTION)
    add_command(actions, "list", "layouts_command:list_layouts", "show layouts", configured)
    removing = add_command(actions, "remove", "layouts_command:remove_layouts", "remove layouts", configured)
    removing.add_argument(
        "--model", metavar="NAME", help="only layouts of this model; it need not be configured"
    )
    removing.add_argument(
        "--in-use",
        action="store_true",
        help="layouts that this configuration uses, to rebuild traffic and pools from Kafka",
    )
    add_confirmation(removing, dry_run="show what would be removed", yes="remove")
