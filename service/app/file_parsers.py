"""Commands that send a file: `credence predictions send` and `credence labels send`."""

from __future__ import annotations

import argparse
from typing import Any

from service.app.action_parsers import add_actions, add_command, positive

FORMATS = ("csv", "jsonl", "parquet", "npz")

_ROWS = """\
File formats: csv (the first line names the columns), jsonl (an object in each line), parquet (needs
`pip install 'credence[parquet]'`) and npz (arrays with one row per prediction, as `credence replay` reads).
csv and jsonl may be compressed with gzip. Text is UTF-8. Empty cells of csv, and null, are missing values.
Ids and classes stay text: 007 stays 007, and integers become their digits.
Times are ISO 8601 (UTC unless an offset is given) or seconds since 1970, in the years 2000 to 2099.

Each row is checked as the consumer of the topic checks it. A bad row, which the consumer would refuse, is not
sent. The first ten bad rows are named with line, column and reason, and the exit code is 1. All other rows
are sent. With --strict nothing is sent if any row is bad. The file is then read twice, and cannot be a pipe.
If a row of csv with a quote is cut or cannot be parsed, it is unknown where the next row begins. Reading then
ends with an error; the rows before are sent.
The exit code is 0 only if every row is good and Kafka has acknowledged every message."""

_PREDICTIONS = f"""\
Send the predictions of a file to the predictions topic, one message per row.

The columns are the fields of the contract: model, item_id, predicted_class, score, probabilities, attributes,
time, payload, payload_uri, votes. A row needs item_id, and either predicted_class and score, or the
probabilities of all classes: columns probability.CLASS, or one list in the order of the model's classes.
Attributes are the columns with the names that the model's groupings use, and columns attributes.NAME. Votes
are columns votes.NAME. In csv, cells of probabilities, attributes and votes are JSON.

{_ROWS}

A prediction that is sent twice counts twice. If a run fails, it prints the --from-line to continue from.
"""

_PREDICTIONS_EXAMPLES = """\
examples:
  credence predictions send yesterday.csv --dry-run
  credence predictions send yesterday.csv.gz --column item_id=uuid --column attributes.region=Region
  credence predictions send - --format jsonl --model animals < predictions.jsonl
"""

_LABELS = f"""\
Send the labels of a file to the labels topic, one message per row.

The columns are the fields of the contract: model, request_id, item_id, kind, true_class, annotator, time.

A row with a request_id answers this request, or corrects or retracts its label. It needs the item_id too,
unless the request is open. A row without a request_id answers the open request of its item_id. If several
people label items, it answers the first open request that its annotator may answer. Each request is answered
by the first row for it; a later row that names the request is bad. Items without an open request are counted
as "not requested". They are not sent, and the exit code is still 0. Open requests are read from Redis.

{_ROWS}

A label that is sent twice changes nothing.
"""

_LABELS_EXAMPLES = """\
examples:
  credence labels send answers.csv --dry-run
  credence labels send truth.parquet --column true_class=label --column time=labelled_at
  credence labels send answers.jsonl --vendor acme
"""


def add_predictions(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence predictions`; `configured` has the option that names the configuration."""
    actions = add_actions(commands, "predictions", "send predictions from a file", about=_PREDICTIONS)
    add_command(
        actions,
        "send",
        "files_command:send_predictions",
        "send the predictions of a file",
        configured,
        _file_options(),
        about=_PREDICTIONS,
        epilog=_PREDICTIONS_EXAMPLES,
    )


def add_labels(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence labels`."""
    actions = add_actions(commands, "labels", "send labels from a file", about=_LABELS)
    sending = add_command(
        actions,
        "send",
        "files_command:send_labels",
        "send the labels of a file",
        configured,
        _file_options(),
        about=_LABELS,
        epilog=_LABELS_EXAMPLES,
    )
    sending.add_argument("--annotator", type=_text, metavar="NAME", help="who labelled rows that name nobody")
    sending.add_argument(
        "--vendor",
        metavar="NAME",
        help="vendor whose key signs the labels; required if vendors are configured",
    )


def _file_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("file", metavar="FILE", help="the file; - is standard input, and needs --format")
    options.add_argument("--format", choices=FORMATS, help="format of the file (default: by its name)")
    options.add_argument(
        "--model",
        metavar="NAME",
        help="model of rows that name none; rows of other models are bad (default: the only model)",
    )
    options.add_argument(
        "--column",
        type=_text,
        action="append",
        default=[],
        metavar="FIELD=COLUMN",
        help="column of a field, if it has another name; FIELD= reads none; repeatable",
    )
    options.add_argument(
        "--delimiter",
        type=delimiter,
        default=",",
        metavar="CHAR",
        help="between cells of csv (default: a comma)",
    )
    options.add_argument(
        "--from-line",
        type=positive,
        default=1,
        metavar="N",
        help="skip rows before line N (parquet, npz: row N)",
    )
    how = options.add_mutually_exclusive_group()
    how.add_argument("--strict", action="store_true", help="send nothing if any row is bad")
    how.add_argument("--dry-run", action="store_true", help="check all rows and send nothing, without Kafka")
    return options


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("it is not UTF-8") from None
    return text


def delimiter(text: str) -> str:
    """One character between cells of csv.

    Raises:
        argparse.ArgumentTypeError: the text is something else.
    """
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f"'{text}' is not one character, or tab")
    return character
