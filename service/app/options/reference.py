"""What `credence reference` takes."""

from __future__ import annotations

import argparse
import math
from typing import Any

from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment

DESCRIPTION = """\
A model's reference is the time that "now" is compared with. Unless a window is set, it is the first labels of
every group (models.<name>.reference.labels), and for the drift of unlabelled traffic the first predictions
(models.<name>.drift.reference_predictions).

`set` makes it the predictions of a window of time. Those that are made after it are "now", and evidence
starts again with them: set it after a repair, or when a new version is deployed. Choose it by when something
was deployed, never by what its labels say: compared with a time that was chosen because it looks good, what
follows looks worse than it is. `clear` takes the window back. Nothing else is changed; every process follows
with its next look.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence reference set animals                                   all until now
  credence reference set animals --since 2026-01-31 --until 2026-02-07
  credence reference set animals --since 2h --until 2026-12-24     from the repair two hours ago until then
  credence reference show
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "reference",
        help='show or set what "now" is compared with',
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    setting = actions.add_parser("set", help="make it a window of time", parents=[configured])
    setting.add_argument("model", metavar="MODEL", help="whose")
    setting.add_argument(
        "--since", type=moment, default=-math.inf, metavar="TIME", help="predicted then or later"
    )
    setting.add_argument("--until", type=moment, metavar="TIME", help="predicted before (default: now)")
    setting.set_defaults(command="service.app.reference_command:set_reference")
    showing = actions.add_parser("show", help="show it", parents=[configured])
    showing.add_argument("model", metavar="MODEL", nargs="?", help="whose (default: of all models)")
    showing.set_defaults(command="service.app.reference_command:show_reference")
    clearing = actions.add_parser(
        "clear", help="let it be the first labels of every group again", parents=[configured]
    )
    clearing.add_argument("model", metavar="MODEL", help="whose")
    clearing.set_defaults(command="service.app.reference_command:clear_reference")
