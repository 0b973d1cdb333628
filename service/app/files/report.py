"""What became of the rows of a file: problems and progress on standard error, and a summary."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

from consumers.refusals import field_of
from service.app.files.columns import plain_name
from service.app.files.records import Made, NotRequested
from service.app.files.rows import BadCell
from service.app.plain_text import plain
from service.domain.errors import BadMessage

_SHOWN_PROBLEMS = 10
_PROGRESS_SECONDS = 0.5
_CLEAR = "\r\x1b[K"
"""Returns to the beginning of a terminal's line, and empties it."""


class Report:
    """Counts rows, and names the first ones that are refused.

    It never shows what is in a row: what it prints may end up in a log.

    Args:
        unit: what rows are numbered by.
        column_of: the column of a field.
        shows_progress: whether a line of progress is kept up to date, which a terminal alone can.

    Attributes:
        read: rows that were read.
        usable: messages that are valid.
        not_requested: labels that nobody has requested, and that the model does not take.
        unrequested: those of them that are labels without a request.
        beside: those of them that are sent beside the answer of a request.
        refused: rows that are refused, by reason.
        problems: lines about the first of them, as they were printed.
    """

    def __init__(self, *, unit: str, column_of: Callable[[str], str], shows_progress: bool) -> None:
        self._unit = unit
        self._column_of = column_of
        self._shows_progress = shows_progress
        self._shown_at = time.monotonic()
        self.read = self.usable = self.not_requested = self.unrequested = self.beside = 0
        self.refused: Counter[str] = Counter()
        self.problems: list[str] = []

    def count(self, number: int, made: Made) -> None:
        """Count a row, and what became of it."""
        self.read += 1
        if isinstance(made, BadMessage):
            self.refuse(number, made)
        elif isinstance(made, NotRequested):
            self.not_requested += 1
        else:
            beside = made.beside is not None
            self.usable += 1 + beside
            self.unrequested += made.unrequested + beside
            self.beside += beside

    def refuse(self, number: int, error: BadMessage) -> None:
        """Count a row that is refused, here or by Kafka, and name one of the first."""
        self.refused[error.reason] += 1
        if (count := self.refused.total()) <= _SHOWN_PROBLEMS:
            column = error.column if isinstance(error, BadCell) else self._column(error)
            place = f"{self._unit} {number:,}" + (f", column {plain_name(column)}" if column else "")
            self.problems.append(f"{place}: {error.reason}: {plain(error.detail)}")
            self._print(self.problems[-1])
        elif count == _SHOWN_PROBLEMS + 1:
            self._print("further rows are refused; the summary counts them")

    def show_progress(self, acknowledged: int) -> None:
        """Bring the line of progress up to date, now and then."""
        now = time.monotonic()
        if self._shows_progress and now - self._shown_at >= _PROGRESS_SECONDS:
            self._shown_at = now
            line = f"{self.read:,} rows read, {acknowledged:,} sent"
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)

    def summary(self, topic: str, acknowledged: int | None) -> list[str]:
        """Lines for people; without a number of acknowledged records, of a run that sends nothing."""
        if self._shows_progress:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
        done = (
            f"{self.usable:,} would be sent to {topic}"
            if acknowledged is None
            else f"{acknowledged:,} sent to {topic}"
        )
        lines = [f"{self.read:,} rows read, {done}, {self.refused.total():,} refused"]
        if self.unrequested:
            lines.append(f"  without a request: {self.unrequested:,}")
        if self.beside:
            lines.append(f"    of these, beside the answer of a request: {self.beside:,}")
        if self.not_requested:
            lines.append(f"  not requested: {self.not_requested:,}")
        return [*lines, *(f"  {reason}: {count:,}" for reason, count in self.refused.most_common())]

    def _column(self, error: BadMessage) -> str:
        found = field_of(error.reason, error.detail)
        return self._column_of(found) if found else ""

    def _print(self, text: str) -> None:
        start = _CLEAR if self._shows_progress else ""
        print(f"{start}{text}", file=sys.stderr)
