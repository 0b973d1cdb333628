"""Background jobs that run when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Later(Executor):
    """Keeps what it is given until `run` is called."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - whoever reads the result gets it
                future.set_exception(error)

        self.waiting.append(run)
        return future

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()
