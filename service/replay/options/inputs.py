"""Options of the task drift, with --after."""

from __future__ import annotations

import argparse
from typing import Final

from service.config import defaults
from service.replay.options.arguments import part, positive
from service.replay.options.recordings import CORRUPTION_NAMES, DIGITS, Binning

HARD: Final = "hard"
"""Stands for the items with the lowest scores where a recording would be named."""

HEALTHY_WINDOWS: Final = 3
"""Windows before the change: the reference, and two others."""

BINS: Final = 10
BINNING: Final[Binning] = "equal_width"
"""As the service's score bins are, unless told."""

GROUPS: Final = 10
PREDICTIONS: Final = 100
ALPHA: Final = 0.05

_HEALTHY = HEALTHY_WINDOWS * defaults.REFERENCE_PREDICTIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of changing inputs alone."""
    group = parser.add_argument_group(
        "of the task drift, with --after",
        f"Streams of predictions of groups, one of which changes after {_HEALTHY:,} of them, so that\n"
        "scores, predicted classes and labels change together: how soon that is detected without labels,\n"
        "what scores promise then, and how soon labels confirm it, with a share of them aimed and without.",
    )
    group.add_argument(
        "--after",
        action="append",
        metavar="AFTER",
        help="what the group's inputs become, repeatable: a second recording of the same classes by the same "
        f"model; of `{DIGITS}` {', '.join(CORRUPTION_NAMES)}: its images with that done to them; of any FILE "
        f"{HARD}: the half of its own items with the lowest scores",
    )
    group.add_argument(
        "--mixed", type=part, metavar="SHARE", help="of the group's items, those that are (default: all)"
    )
    group.add_argument(
        "--groups", type=positive, metavar="N", help=f"that share the traffic alike (default: {GROUPS})"
    )
    group.add_argument(
        "--per-label",
        type=positive,
        metavar="N",
        help=f"predictions of all groups for each of which a label comes (default: {PREDICTIONS})",
    )
