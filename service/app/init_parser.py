"""The parser of `credence init`. Light: it imports no library."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Final

from service.app.action_parsers import add_command, positive
from service.app.file_parsers import FORMATS, delimiter
from service.domain.times import days

COLUMN_OPTIONS: Final = {
    "item_id": "item",
    "predicted_class": "predicted",
    "probabilities": "probabilities",
    "score": "score",
    "time": "time",
    "true_class": "truth",
    "model": "model_column",
}
"""The option that names the column of every field, as argparse stores it."""

_LONGEST_DAYS = 3_650.0

_ABOUT = """\
Propose a configuration from a sample of predictions: the classes, groupings by class and attribute, what they
cost in memory, a threshold, and label budgets that find a fall of a group in the time asked for. Every key
has a comment that says why. The configuration is printed; --output writes it to a new file.

The sample is a file with one prediction per row (csv, jsonl, parquet or npz, as `credence predictions send`
and `credence replay` read), or the newest records of a topic. A file is read to its end, in bounded memory
(an npz archive as a whole); of each column up to 10,000 values are counted.

A prediction needs a predicted class and a score, or the probabilities of all classes: a column of lists, or
columns probability.CLASS or score_0, score_1 and so on. Columns are recognised by usual names, such as
item_id, prediction, confidence, timestamp or label. If two columns could be the same field, the command asks
for an option instead of guessing. Every other column is an attribute, unless it is constant, different in
every row, mostly empty, a number with more than 20 values, long text, or has more than 1,000 values. The
comments say which were left out.

Records of a topic may have another shape: nested JSON, data of CloudEvents, or values of a schema registry.
The configuration then has a mapping (kafka.mapping), with paths such as $.output.label as columns. Of
inference responses it says which tensors are which fields. FILE with --topic has such records, one JSON value
per line, as `kcat -C` prints them.

Kafka's address and login are those of the CREDENCE_KAFKA__... variables. The topic needs the right READ.
"""

_EXAMPLES = """\
examples:
  credence init predictions.csv --output credence.yaml
  credence init predictions.parquet --predicted guess --truth species --attributes region,device
  credence init recording.npz --decide-within 7d --detect 0.05
  credence init scores.jsonl --topic scores
  credence init --topic credence.predictions --records 5000 --bootstrap-servers kafka:9092
"""


def add_init(commands: Any) -> None:
    """Add `credence init`."""
    text = "propose a commented configuration from a sample of predictions"
    parser = add_command(commands, "init", "init_command:initialise", text, about=_ABOUT, epilog=_EXAMPLES)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the file; - is standard input, and needs --format"
    )
    parser.add_argument(
        "--topic",
        metavar="TOPIC",
        help="sample the newest records of this topic of predictions; with FILE, that has "
        "records of this topic, one JSON value per line",
    )
    parser.add_argument(
        "--records",
        type=positive,
        metavar="N",
        help="sample the newest N records of the topic (default: 10,000), or the first N rows of the file "
        "(default: all)",
    )
    parser.add_argument(
        "--bootstrap-servers", type=_listed, metavar="HOST:PORT", help="Kafka's servers, separated by commas"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to this file, which must not exist"
    )
    add_columns(parser)
    add_goals(parser)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which column of a file is what, and how the file is read."""
    columns = parser.add_argument_group("columns", "names of columns; '' is no column")
    for option, what in (
        ("--item", "id of the item"),
        ("--predicted", "predicted class"),
        (
            "--probabilities",
            "probabilities of all classes: a column of lists, or the beginning of several names",
        ),
        ("--score", "probability of the predicted class"),
        ("--time", "time of the prediction"),
        ("--truth", "true class"),
        ("--model-column", "name of the model (default: model)"),
    ):
        columns.add_argument(option, metavar="COLUMN", help=what)
    columns.add_argument(
        "--attributes", type=_listed, metavar="A,B", help="columns that become groupings, and no others"
    )
    columns.add_argument(
        "--classes", type=_listed, metavar="A,B", help="all classes, in the order of probabilities"
    )
    columns.add_argument(
        "--model", metavar="NAME", help="name of the model; rows of other models are left out"
    )
    columns.add_argument("--format", choices=FORMATS, help="format of the file (default: by its name)")
    columns.add_argument(
        "--delimiter",
        type=delimiter,
        default=",",
        metavar="CHAR",
        help="between cells of csv (default: a comma)",
    )


def add_goals(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which faults are to be found, and how soon."""
    goals = parser.add_argument_group("goals")
    goals.add_argument(
        "--decide-within",
        type=_days,
        default="14d",
        metavar="TIME",
        help="find a fault within this time, 9 of 10 times, such as 12h or 14d (default: 14d)",
    )
    goals.add_argument(
        "--detect",
        type=share,
        default="0.1",
        metavar="DROP",
        help="find a group whose accuracy falls by this much, across the threshold (default: 0.1)",
    )
    goals.add_argument(
        "--min-accuracy",
        type=share,
        metavar="SHARE",
        help="threshold of every group (default: from the sample)",
    )
    goals.add_argument(
        "--labels-per-day",
        type=positive,
        metavar="N",
        help="most labels a day in total; groupings that need the most get none (default: no limit)",
    )


def share(text: str) -> float:
    """A number between 0 and 1, both excluded.

    Raises:
        argparse.ArgumentTypeError: the text is something else.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1, such as 0.05")
    return number


def _days(text: str) -> float:
    found = days(text)
    if found > _LONGEST_DAYS:
        raise argparse.ArgumentTypeError(f"'{text}' is over ten years")
    return found


def _listed(text: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]
