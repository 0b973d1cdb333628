"""Options of the task ensemble."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

TASK: Final = "ensemble"

LABELS: Final = (20, 50, 100)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this task alone."""
    group = parser.add_argument_group(
        "of the task ensemble",
        "Precision of an ensemble and its members on one class, with labels that they share. Each FILE is a\n"
        "member, recorded on the same items in the same order; `digits` are three.",
    )
    group.add_argument(
        "--ensemble",
        type=Path,
        metavar="FILE",
        help="recording of the ensemble's own decision (default: positive is what more than half of the "
        "members call so)",
    )
