"""`credence predictions send` and `credence labels send`: the rows of a file become records of a topic."""

from __future__ import annotations

import argparse
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack

from service.app.consumer_wiring import label_checks
from service.app.files.delivery import Delivery, open_delivery
from service.app.files.label_rows import LabelRows
from service.app.files.opening import READ_AT_ONCE, STANDARD_INPUT, Format, chosen_format, open_rows
from service.app.files.prediction_rows import PredictionRows
from service.app.files.records import Record, RowMaker
from service.app.files.report import Report
from service.app.files.rows import Row, Table, UnusableFileError
from service.app.plain_text import plain
from service.app.wiring import connect, model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import BadMessage, misuse
from service.store.open_requests import OpenRequests

_BATCH_ROWS = 500
_BATCH_BYTES = 2_097_152
"""Rows that are checked at once; the fewer, the longer they are."""

_ROW_FACTOR = 4
"""A row may have columns that are not sent, so it may be so many times as long as a message."""

_CHANGED = "the file changed while it was read"


def send_predictions(options: argparse.Namespace) -> int:
    """Send the predictions of a file."""
    settings = load_settings(options.config, os.environ)

    def maker() -> RowMaker:
        return PredictionRows(settings, renamed=options.column, model=options.model)

    return _FileRun(options, settings, maker, settings.kafka.topics.predictions).run()


def send_labels(options: argparse.Namespace) -> int:
    """Send the labels of a file."""
    settings = load_settings(options.config, os.environ)

    def open_requests() -> Mapping[str, OpenRequests]:
        connection = connect(settings)
        return {name: OpenRequests(connection, model_keys(settings, name)) for name in settings.models}

    def maker() -> RowMaker:
        return LabelRows(
            settings,
            label_checks(settings),
            renamed=options.column,
            model=options.model,
            vendor=options.vendor,
            annotator=options.annotator,
            connect=open_requests,
        )

    return _FileRun(options, settings, maker, settings.kafka.topics.labels).run()


class _FileRun:
    """One run of a command.

    Args:
        options: of the command line.
        settings: the configuration.
        maker: makes what makes records of rows, for each time that the file is read.
        topic: of the records.

    Raises:
        ConfigurationError: the options do not fit the file.
    """

    def __init__(
        self, options: argparse.Namespace, settings: Settings, maker: Callable[[], RowMaker], topic: str
    ) -> None:
        self._options = options
        self._settings = settings
        self._maker = maker
        self._topic = topic
        kind = chosen_format(options.file, options.format)
        if (kind in READ_AT_ONCE or options.strict) and is_read_once(options.file):
            raise misuse(
                plain(options.file),
                "parquet, npz and --strict need a regular file: standard input and pipes are read once, in "
                "order",
            )
        self._kind: Format = kind

    def run(self) -> int:
        """Check the rows, and send them; the exit code."""
        # The client logs each of its attempts; the command itself says what failed.
        logging.getLogger("kafka").addHandler(logging.NullHandler())
        if self._options.strict or self._options.dry_run:
            is_good = self._read(sends=False)
            if self._options.dry_run or not is_good:
                print("nothing was sent")
                return 0 if is_good else 1
        return 0 if self._read(sends=True) else 1

    def _read(self, *, sends: bool) -> bool:
        """Read the whole file once, and send its rows or only check them; whether all of them are good."""
        rows = self._maker()
        options, next_number, is_read = self._options, self._options.from_line, False
        version = self._version()
        with ExitStack() as stack:
            table = stack.enter_context(self._open(rows))
            rows.begin(table, options.file)
            report = Report(unit=table.unit, column_of=rows.column_of, shows_progress=sys.stderr.isatty())
            delivery = self._delivery(report) if sends else None
            try:
                for batch in batches(table.rows, first=options.from_line):
                    for row, made in rows.make(batch, time.time()):
                        if delivery is not None and options.strict and isinstance(made, BadMessage):
                            raise UnusableFileError(options.file, "it changed after it was checked")
                        report.count(row.number, made)
                        if delivery is not None and isinstance(made, Record):
                            delivery.send(row.number, made)
                        next_number = row.number + 1
                    report.show_progress(0 if delivery is None else delivery.acknowledged)
                if delivery is not None:
                    delivery.finish()
                is_read = True
            finally:
                if delivery is not None:
                    next_number = delivery.close() or next_number
                acknowledged = None if delivery is None else delivery.acknowledged
                print(*report.summary(self._topic, acknowledged), sep="\n")
                notes = rows.notes() if version == self._version() else [*rows.notes(), _CHANGED]
                if delivery is not None and not is_read:
                    notes.append(_unfinished(table.unit, next_number))
                for note in notes:
                    print(f"note: {note}", file=sys.stderr)
        if options.from_line > 1 and not report.read:
            raise UnusableFileError(
                options.file, f"no row begins at or after {table.unit} {options.from_line:,}"
            )
        return not report.refused

    def _open(self, rows: RowMaker) -> AbstractContextManager[Table]:
        return open_rows(
            self._options.file,
            kind=self._kind,
            delimiter=self._options.delimiter,
            row_bytes=_ROW_FACTOR * self._settings.bounds.message_bytes,
            used=rows.used,
        )

    def _delivery(self, report: Report) -> Delivery:
        return open_delivery(self._settings.kafka, self._topic, on_refusal=report.refuse)

    def _version(self) -> tuple[int, int] | None:
        """What differs once the file has changed."""
        if self._options.file == STANDARD_INPUT:
            return None
        try:
            status = os.stat(self._options.file)  # noqa: PTH116 - a name of a pipe, too
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns


def is_read_once(path: str) -> bool:
    """Whether it has its content only once, as pipes have; what is not there is named when it is opened."""
    try:
        return path == STANDARD_INPUT or not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - also pipes
    except OSError:
        return False


def batches(rows: Iterator[Row], *, first: int = 1, most_rows: int = _BATCH_ROWS) -> Iterator[list[Row]]:
    """Rows from a number on, in batches of bounded size; those before a damage come before its error."""
    batch: list[Row] = []
    size = 0
    try:
        for row in rows:
            if row.number < first:
                continue
            batch.append(row)
            size += row.size
            if len(batch) >= most_rows or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except UnusableFileError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _unfinished(unit: str, number: int) -> str:
    return (
        f"this run did not finish. All rows before {unit} {number} are done. Continue with "
        f"--from-line {number}; some of the rows from there on may be sent twice"
    )
