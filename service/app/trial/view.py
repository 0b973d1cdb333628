"""What the terminal shows while a trial runs: bars, or a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from service.serving.documents.models import ModelState

_LINE_SECONDS: Final = 5.0


class View:
    """The progress of one trial.

    Args:
        console: that it is shown on; bars if that is a terminal.
        rows: of the file.
        labels: that may be requested.
        clock: in seconds, of any origin.
    """

    def __init__(
        self, console: Console, *, rows: int, labels: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._clock = clock
        self._rows, self._labels = rows, labels
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._row_task = self._progress.add_task("rows", total=rows, note="")
        self._label_task = self._progress.add_task("labels", total=labels, note="")
        self._line_at = clock()
        self._last_line = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, rows: int, state: ModelState | None) -> None:
        """Show how far the trial is."""
        labels = 0 if state is None else state.outcomes
        note = _accuracy(state)
        self._progress.update(self._row_task, completed=rows)
        self._progress.update(self._label_task, completed=labels, note=note)
        if not self._console.is_terminal and self._clock() >= self._line_at:
            self._line_at = self._clock() + _LINE_SECONDS
            line = f"{rows:,} of {self._rows:,} rows, {labels:,} of {self._labels:,} labels"
            self._print(f"{line}, {note}" if note else line)

    def _print(self, line: str) -> None:
        # A person who labels may take hours; a log needs no line that says nothing new.
        if line != self._last_line:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._last_line = line


def _accuracy(state: ModelState | None) -> str:
    if state is None or state.accuracy is None:
        return ""
    accuracy = state.accuracy
    return f"accuracy {accuracy.mean:.1%} (95% interval {accuracy.lower:.1%} - {accuracy.upper:.1%})"
