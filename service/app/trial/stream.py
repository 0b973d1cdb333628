"""Streams a file's rows to Kafka, as fast as it goes or at a chosen speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from service.app.files.delivery import Delivery
from service.app.files.records import Record
from service.app.files.report import Report
from service.app.files.rows import Table
from service.app.files_command import batches
from service.app.trial.rows import TrialRows

_BATCH_ROWS: Final = 500
_BATCHES_PER_SECOND: Final = 10
"""At a chosen speed, so that predictions come evenly."""

_RECORD_BYTES: Final = 131_072
"""Of predictions that are sent as one record; far below what brokers accept."""


class Pace:
    """Holds a stream back to a rate.

    Args:
        rate: rows a second; as fast as it goes if None.
        wait: waits so many seconds, or raises what ends the stream.
        clock: in seconds, of any origin.
    """

    def __init__(
        self,
        rate: float | None,
        wait: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._wait = wait
        self._clock = clock
        self._started = clock()

    @property
    def batch_rows(self) -> int:
        """Rows that are sent at once."""
        if self._rate is None:
            return _BATCH_ROWS
        return max(1, min(_BATCH_ROWS, int(self._rate / _BATCHES_PER_SECOND)))

    def hold(self, rows: int) -> None:
        """Wait until so many rows are due."""
        left = 0.0 if self._rate is None else self._started + rows / self._rate - self._clock()
        self._wait(max(left, 0.0))


def stream_rows(
    table: Table, rows: TrialRows, *, delivery: Delivery, report: Report, pace: Pace
) -> Iterator[None]:
    """Send all rows; stops for the caller after every batch.

    Raises:
        UnusableFileError: the file is damaged from some row on.
        Unavailable: Kafka does not take a record in time.
    """
    for batch in batches(table.rows, most_rows=pace.batch_rows):
        records: list[Record] = []
        first = batch[0].number
        for row, made in rows.make(batch, time.time()):
            report.count(row.number, made)
            if isinstance(made, Record):
                records.append(made)
        for record in packed(records):
            delivery.send(first, record)
        yield
        pace.hold(report.read)
    delivery.finish()


def packed(records: Sequence[Record]) -> Iterator[Record]:
    """The same predictions in few records: arrays of the contract, of bounded size."""
    pack: list[Record] = []
    size = 0
    for record in records:
        if pack and size + len(record.value) > _RECORD_BYTES:
            yield _array(pack)
            pack, size = [], 0
        pack.append(record)
        size += len(record.value) + 1
    if pack:
        yield _array(pack)


def _array(pack: Sequence[Record]) -> Record:
    if len(pack) == 1:
        return pack[0]
    return replace(pack[0], value=b"[" + b",".join(record.value for record in pack) + b"]")
