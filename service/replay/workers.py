"""Many runs of a study, in batches: in this process or in others, with progress bars on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import starmap
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Found = TypeVar("Found")


def batches(runs: int, most: int) -> list[tuple[int, int]]:
    """First run and number of runs of every batch, of `most` runs each at the most."""
    return [(first, min(most, runs - first)) for first in range(0, runs, most)]


class Workers:
    """Calls functions many times: in this process, or in those of an executor; bars show how far they are."""

    def __init__(self, executor: ProcessPoolExecutor | None = None, bars: Progress | None = None) -> None:
        self._executor = executor
        self._bars = bars or Progress(disable=True)

    def each(
        self,
        function: Callable[..., Found],
        arguments: Sequence[tuple[Any, ...]],
        name: str = "",
        runs: Sequence[int] | None = None,
    ) -> list[Found]:
        """What a function finds for each of many arguments, in their order.

        A call is one run, or as many as given; a bar of this name counts them.
        """
        counts = runs or [1] * len(arguments)
        bar = self._bars.add_task(name, total=sum(counts))
        if self._executor is None:
            results: Iterator[Found] = starmap(function, arguments)
        else:
            futures = [self._executor.submit(function, *given) for given in arguments]
            results = (future.result() for future in futures)
        found = []
        for result, count in zip(results, counts, strict=True):
            found.append(result)
            self._bars.advance(bar, count)
        return found


@contextmanager
def workers(jobs: int, *, for_programs: bool = True) -> Iterator[Workers]:
    """Workers in so many processes.

    Their bars are on stderr, unless a program reads what is printed and nobody watches.
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
    with bars, nullcontext() if jobs == 1 else ProcessPoolExecutor(jobs) as executor:
        yield Workers(executor, bars)
