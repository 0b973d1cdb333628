"""A job that takes seconds: it runs beside the rounds, and again after a rest."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Generic, TypeVar

import numpy as np

Result = TypeVar("Result")


class ImmediateExecutor(Executor):
    """Runs every job at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job and return its result."""
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised when the result is read
            done.set_exception(error)
        return done


class BackgroundJob(Generic[Result]):
    """At most one run at a time, and a rest from the end of one run to the next."""

    def __init__(self, executor: Executor, rest_seconds: float) -> None:
        self._executor = executor
        self._rest_seconds = rest_seconds
        self._running: Future[Result] | None = None
        self._due_at = -np.inf

    def is_due(self, now: float) -> bool:
        """Whether it may start."""
        return self._running is None and now >= self._due_at

    def start(self, job: Callable[..., Result], *args: Any, **kwargs: Any) -> None:
        """Start a run; `take` has its result."""
        self._running = self._executor.submit(job, *args, **kwargs)

    def take(self, now: float) -> Future[Result] | None:
        """A run that has ended since the last call, with its result or its error; then the rest begins."""
        if self._running is None or not self._running.done():
            return None
        ended, self._running = self._running, None
        self._due_at = now + self._rest_seconds
        return ended
