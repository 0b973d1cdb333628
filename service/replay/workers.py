"""Many runs of a study, in batches: in this process or in others, with progress bars on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import repeat, starmap
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Found = TypeVar("Found")

Advanced = Callable[[int], None]
"""Is called with the number of runs that are done."""

Advance = Callable[[str, int], Advanced]
"""Starts a bar of a name and so many runs; what it returns advances it."""


def batches(runs: int, most: int) -> list[tuple[int, int]]:
    """First run and number of runs of every batch, of `most` runs each at the most."""
    return [(first, min(most, runs - first)) for first in range(0, runs, most)]


class Workers:
    """Calls functions many times: in this process, or in those of an executor."""

    def __init__(self, executor: ProcessPoolExecutor | None = None) -> None:
        self._executor = executor

    def each(
        self,
        function: Callable[..., Found],
        arguments: Sequence[tuple[Any, ...]],
        advanced: Advanced | None = None,
        runs: Iterable[int] = repeat(1),
    ) -> list[Found]:
        """What a function finds for each of many arguments, in their order; calls are of so many runs."""
        if self._executor is None:
            results: Iterator[Found] = starmap(function, arguments)
        else:
            futures = [self._executor.submit(function, *given) for given in arguments]
            results = (future.result() for future in futures)
        found = []
        for result, count in zip(results, runs, strict=False):
            found.append(result)
            if advanced is not None:
                advanced(count)
        return found


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Workers in so many processes."""
    if jobs == 1:
        yield Workers()
        return
    with ProcessPoolExecutor(jobs) as executor:
        yield Workers(executor)


@contextmanager
def progress(*, for_programs: bool) -> Iterator[Advance]:
    """Progress bars, unless a program reads what is printed and nobody watches."""
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

        def start(name: str, runs: int) -> Advanced:
            task = bars.add_task(name, total=runs)
            return lambda done: bars.advance(task, done)

        yield start
