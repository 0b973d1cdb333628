"""The parser of `credence try`. Light: it imports no library."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Final

from service.app.action_parsers import add_command, positive
from service.app.init_parser import add_columns, add_goals

EXAMPLE: Final = "example"
"""Stands for the recording that the command makes itself."""

_ABOUT = """\
Try Credence on a file of predictions: csv, jsonl, parquet or npz, a prediction in each row. The command
starts its own broker and Redis, proposes a configuration as `credence init` does, streams the file through
`credence run`, and serves the status page meanwhile. It ends with a report in the terminal and in one HTML
file.

If the file has true classes, they answer the label requests, and the report compares each interval with the
truth. Without them you label on the labelling page; its address and login are printed.

The word `example` instead of a file tries a recording of handwritten digits. Rows count in the order of the
file, as predicted now. Bad rows are named and left out. The file is read twice, so it cannot be a pipe.
"""

_EXAMPLES = """\
examples:
  credence try example
  credence try predictions.csv --labels 500 --cost 0.12
  credence try predictions.parquet --truth species --attributes region,device --report trial.html
  credence try predictions.jsonl --rate 200 --delay 5 --noise 0.02
  credence try predictions.csv --truth ''       label yourself

exit codes: 0 the report is written; 1 the trial failed; 2 the command line or the file's columns are not
valid; 130 interrupted: the report covers what was streamed and labelled by then.
"""


def add_try(commands: Any) -> None:
    """Add `credence try`."""
    text = "try Credence on a file of predictions, with its own broker and Redis"
    parser = add_command(commands, "try", "try_command:try_file", text, about=_ABOUT, epilog=_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help=f"the file; `{EXAMPLE}` is a recording of digits")
    parser.add_argument(
        "--labels",
        type=positive,
        metavar="N",
        help="labels to request (default: 60 for each grouping that gets labels, at least 200; 200 if you "
        "label)",
    )
    parser.add_argument(
        "--rate", type=_positive_number, metavar="N", help="rows a second (default: as fast as it goes)"
    )
    parser.add_argument(
        "--delay",
        type=_number,
        default=0.0,
        metavar="SECONDS",
        help="time from a request to its answer by the true class (default: 0)",
    )
    parser.add_argument(
        "--noise",
        type=_below_one,
        default=0.0,
        metavar="SHARE",
        help="share of answers that name a wrong class (default: 0)",
    )
    parser.add_argument(
        "--cost", type=_number, metavar="NUMBER", help="cost of a label, in any unit, for the report"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="HTML file, which must not exist (default: credence-try.html, or the next free name); the "
        "configuration goes beside it, with the ending .yaml",
    )
    add_columns(parser)
    add_goals(parser)
    # Of `credence init`, whose proposal this makes of a whole file.
    parser.set_defaults(bootstrap_servers=None, records=None)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 on")
    return number


def _positive_number(text: str) -> float:
    number = _number(text)
    if not number:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def _below_one(text: str) -> float:
    number = _number(text)
    if number >= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share from 0 to below 1, such as 0.02")
    return number
