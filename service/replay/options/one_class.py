"""Options of the tasks that hold one class against all others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from service.replay.options.arguments import class_or_all, counts


def add_arguments(parser: argparse.ArgumentParser, labels: Mapping[str, tuple[int, ...]]) -> None:
    """Add the options that these tasks share.

    Args:
        parser: of the command.
        labels: how many are asked for unless told, by task.
    """
    group = parser.add_argument_group(f"of the tasks {' and '.join(labels)}")
    group.add_argument(
        "--positive-class",
        type=class_or_all,
        metavar="K|all",
        help="default: the second of two classes; of more, all in turn",
    )
    defaults = "; ".join(f"{task} {','.join(map(str, numbers))}" for task, numbers in labels.items())
    group.add_argument(
        "--labels",
        type=counts,
        metavar="N,...",
        help=f"how many to ask for, with ensemble for each member (default: {defaults})",
    )
