"""Options of the task performance."""

from __future__ import annotations

import argparse
from typing import Final

from service.replay.options.arguments import real, target

TASK: Final = "performance"

LABELS: Final = (10, 20, 50, 100)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this task alone."""
    group = parser.add_argument_group(
        "of the task performance",
        "Precision, recall and F1 of one class against all others: from few random labels and all scores,\n"
        "and from the labels alone; both are held against all labels of the pool.",
    )
    group.add_argument(
        "--threshold", type=real, help="operating threshold (default: 0.5; of decision values 0)"
    )
    group.add_argument(
        "--target",
        type=target,
        metavar="NAME=SHARE,...",
        help="choose a threshold, as precision=0.8,recall=0.9",
    )
    group.add_argument(
        "--decision-values", action="store_true", help="take decision_values of an .npz for the scores"
    )
