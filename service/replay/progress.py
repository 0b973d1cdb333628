"""Progress bars on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[str, int], Callable[[int], None]]
"""What is given starts a bar, of a name and so many runs; what it returns advances it."""


@contextmanager
def progress(*, for_programs: bool) -> Iterator[Advance]:
    """Progress bars, unless a program reads what is printed and nobody watches.

    Args:
        for_programs: whether the output is.
    """
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=for_programs and not console.is_terminal,
    )
    with bars:

        def start(name: str, runs: int) -> Callable[[int], None]:
            task = bars.add_task(name, total=runs)
            return lambda done: bars.advance(task, done)

        yield start
