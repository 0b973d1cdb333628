"""What `credence reference` takes."""

from __future__ import annotations

import argparse
import math
from typing import Any

from service.app.options.commands import add_actions, add_command
from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment

DESCRIPTION = """\
A model's reference is the time that "now" is compared with. Unless you set a window, it is the first labels
of every group (models.<name>.reference.labels), and for the drift of unlabelled traffic the first predictions
(models.<name>.drift.reference_predictions).

`set` makes the predictions of a time window the reference. Later predictions are "now", and evidence starts
again with them: set the reference after a repair, or when you deploy a new version. Choose the window by the
time of a deployment, never by its labels: compared with a time chosen because it looks good, everything after
it looks worse than it is. `clear` removes the window. Nothing else changes; every process follows with its
next round.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence reference set animals                                   everything until now
  credence reference set animals --since 2026-01-31 --until 2026-02-07
  credence reference set animals --since 2h --until 2026-12-24     from two hours ago until then
  credence reference show
"""


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command; `configured` has the option that names the configuration."""
    text = 'show or set what "now" is compared with'
    actions = add_actions(commands, "reference", text, about=DESCRIPTION, epilog=EPILOG)
    setting = add_command(actions, "set", "reference_command:set_reference", "set a window", configured)
    setting.add_argument("model", metavar="MODEL", help="name of the model")
    setting.add_argument(
        "--since", type=moment, default=-math.inf, metavar="TIME", help="predicted at this time or later"
    )
    setting.add_argument(
        "--until", type=moment, metavar="TIME", help="predicted before this time (default: now)"
    )
    text = "show the reference"
    showing = add_command(actions, "show", "reference_command:show_reference", text, configured)
    showing.add_argument("model", metavar="MODEL", nargs="?", help="name of the model (default: all models)")
    text = "remove the window; the first labels of every group are the reference again"
    clearing = add_command(actions, "clear", "reference_command:clear_reference", text, configured)
    clearing.add_argument("model", metavar="MODEL", help="name of the model")
