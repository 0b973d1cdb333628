"""Options of the task drift, without --after."""

from __future__ import annotations

import argparse
from typing import Final

from service.config import defaults
from service.replay.options.arguments import counts, positive, share

TASK: Final = "drift"

HEALTHY: Final = 300
"""Labels before a drift."""

SHAPES: Final = ("abrupt", "ramp", "recurring")

POINTS: Final = (5, 10, 20)
WINDOW: Final = 200
HALF_LIFE: Final = 100
RUN_LENGTH: Final = defaults.RUN_LENGTH
ALPHA: Final = 0.05
REFERENCE: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this task alone."""
    group = parser.add_argument_group(
        "of the task drift",
        f"Streams of labels of every group, whose accuracy falls after {HEALTHY} of them: how well beliefs\n"
        "follow, without forgetting, with a window or a half-life, and with forgetting after changes; and\n"
        "how soon the posterior and evidence tell a decline, and how often they tell one that is none.",
    )
    group.add_argument(
        "--drift", action="append", choices=SHAPES, help="repeatable (default: all of them, in turn)"
    )
    group.add_argument(
        "--points",
        type=counts,
        metavar="N,...",
        help=f"by how much the accuracy falls (default: {','.join(map(str, POINTS))})",
    )
    group.add_argument(
        "--window", type=positive, metavar="N", help=f"labels that the window holds (default: {WINDOW})"
    )
    group.add_argument("--half-life", type=positive, metavar="N", help=f"in labels (default: {HALF_LIFE})")
    group.add_argument(
        "--run-length",
        type=positive,
        metavar="N",
        help="labels from one change to the next, of forgetting; and until a false one is announced "
        f"(default: {RUN_LENGTH})",
    )
    group.add_argument(
        "--alpha",
        type=share,
        metavar="SHARE",
        help="of groups that have not declined, those that evidence may ever tell of; the posterior has to "
        f"be as sure as 1 less this (default: {ALPHA})",
    )
    group.add_argument(
        "--reference",
        type=positive,
        metavar="N",
        help=f"first labels that a decline is measured from, up to {HEALTHY} (default: {REFERENCE})",
    )
