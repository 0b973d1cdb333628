"""The processes that the demo starts, each with a log, and the error if one dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self, TypeVar

from service.config.loader import ENVIRONMENT_PREFIX
from service.demo.servers import Child, EmbeddedBroker, EmbeddedRedis

_TAIL_LINES = 25
_LOOK_SECONDS = 0.05

AnyChild = TypeVar("AnyChild", bound=Child)


class ChildDiedError(Exception):
    """A process of the demo ended, or did not do its work, unexpectedly; `tail` is the end of its log."""

    def __init__(self, message: str, tail: str) -> None:
        """Keep what happened and the log apart."""
        self.tail = tail
        super().__init__(message)


class Stopped(Exception):  # noqa: N818 - no error: it carries a signal to where the demo ends
    """A signal asked the demo to stop."""


class Children:
    """Starts the demo's processes, watches them, and stops them in the reverse order.

    Logs go to the folder; `wait` waits this many seconds, and is True if the demo should stop.
    """

    def __init__(self, folder: Path, wait: Callable[[float], bool]) -> None:
        self._folder = folder
        self._wait = wait
        self._stack = ExitStack()
        self._running: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def start_broker(self, *, port: int | None = None) -> EmbeddedBroker:
        """Start the bundled broker, on a free port unless one is given."""
        with self._log("the bundled broker") as log:
            broker = self._keep(EmbeddedBroker(port=port, output=log))
        # It keeps nothing, and asked politely it would wait seconds for its consumers' sessions to end.
        self._stack.callback(broker.process.kill)
        return broker

    def start_redis(self, *, port: int | None = None) -> EmbeddedRedis:
        """Start Redis, on a free port unless one is given; its facts are in the temporary folder."""
        folder = self._folder / "redis"
        folder.mkdir()
        with self._log("Redis") as log:
            return self._keep(EmbeddedRedis(folder=folder, port=port, output=log))

    def start(self, name: str, module: str, arguments: Sequence[str]) -> Child:
        """Start a Python module."""
        return self._keep(self._spawn(name, module, arguments))

    def finish(self, name: str, module: str, arguments: Sequence[str]) -> None:
        """Run a Python module to its end; `ChildDiedError` if it fails, `Stopped` if a signal comes."""
        with self._spawn(name, module, arguments) as child:
            while child.process.poll() is None:
                self.pause(_LOOK_SECONDS)
            if child.process.returncode != 0:
                raise self._died(child)

    def wait_until(self, ready: Callable[[], bool], *, what: str, seconds: float) -> None:
        """Wait until ready; `ChildDiedError` if a process dies or time is up, `Stopped` at a signal."""
        left = seconds
        while not ready():
            self.check()
            self.pause(_LOOK_SECONDS)
            left -= _LOOK_SECONDS
            if left <= 0:
                tails = [f"{child.name}:\n{self.tail(child.name)}" for child in self._running]
                raise ChildDiedError(f"{what} is not ready after {seconds:g} s", "\n".join(tails))

    def check(self) -> None:
        """Raise `ChildDiedError` if a process has ended."""
        for child in self._running:
            if child.process.poll() is not None:
                raise self._died(child)

    def pause(self, seconds: float) -> None:
        """Wait; `Stopped` if a signal comes."""
        if self._wait(seconds):
            raise Stopped

    def tail(self, name: str) -> str:
        """The end of a process's log."""
        text = (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-_TAIL_LINES:])

    def _spawn(self, name: str, module: str, arguments: Sequence[str]) -> Child:
        # The demo must not reach the servers that the user's own variables name.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ENVIRONMENT_PREFIX)}
        with self._log(name) as log:
            return Child(
                name, [sys.executable, "-m", module, *arguments], output=log, environment=environment
            )

    def _keep(self, child: AnyChild) -> AnyChild:
        self._running.append(self._stack.enter_context(child))
        return child

    def _log(self, name: str) -> IO[bytes]:
        return (self._folder / f"{name}.log").open("ab")

    def _died(self, child: Child) -> ChildDiedError:
        return ChildDiedError(
            f"{child.name} ended unexpectedly with code {child.process.returncode}", self.tail(child.name)
        )
