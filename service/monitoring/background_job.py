"""Jobs that take seconds: they run beside the rounds, and again after a rest."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

Result = TypeVar("Result")

log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class Lesson(Generic[Result]):
    """Data to learn from.

    Attributes:
        learn: learns from them; takes seconds if `is_all`.
        is_all: whether they are all that there are.
    """

    learn: Callable[[], Result]
    is_all: bool


class BackgroundLearning(Generic[Result]):
    """What is learned from data that change: within a round from few, then in the background from all.

    Within the round, because nothing can be shown without. That is again so once the data were gone.

    Attributes:
        learned: the latest result; None before the first one, and without data.
    """

    def __init__(self, executor: Executor, rest_seconds: float, *, model: str, what: str) -> None:
        self._executor = executor
        self._rest_seconds = rest_seconds
        self._model = model
        self._what = what  # begins what is logged of a failure
        self._forget()

    def _forget(self) -> None:
        self._job = BackgroundJob[Result](ImmediateExecutor(), self._rest_seconds)
        self._learned_from: object = None
        self.learned: Result | None = None

    def refresh(
        self, version: object, lesson: Callable[[bool], Lesson[Result] | None], *, now: float
    ) -> None:
        """Collect what was learned, and learn again if it is due and the data have another `version`.

        `lesson` gathers data within the round, few of them if it is asked for the first ones; None if there
        are none. After the first learning the second one follows at once, unless that was from all data.
        """
        self._take(now)
        if not self._job.is_due(now) or version == self._learned_from:
            return
        is_first = self.learned is None
        found = lesson(is_first)
        if found is None:
            self._forget()
            return
        self._learned_from = version
        self._job.start(found.learn)
        self._take(now)
        if is_first and self.learned is not None:
            self._job = BackgroundJob(self._executor, self._rest_seconds)
            if not found.is_all:
                self._learned_from = None

    def _take(self, now: float) -> None:
        if (ended := self._job.take(now)) is None:
            return
        error = ended.exception()
        if error is None:
            self.learned = ended.result()
        else:
            self._learned_from = None
            log.error(
                "%s; what was learned before is used",
                self._what,
                extra={"model": self._model},
                exc_info=error,
            )
