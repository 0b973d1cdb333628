"""Processes of several roles as a cluster runs them: replaced one by one, scraped, under load."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from harness import Deployment, Labeller, Process, wait_for

START_SECONDS = 90.0
"""Patience with a process that starts while others do, on a busy machine."""

_STOP_SECONDS = 60.0


class Fleet:
    """The processes of one deployment, by name; a context manager that leaves none behind.

    Args:
        deployment: that they play.

    Attributes:
        members: the process that has each name now.
        targets: file in which Prometheus finds what to scrape.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.members: dict[str, Process] = {}
        self.targets = deployment.folder / "targets.json"
        self._deployment = deployment
        self._stack = ExitStack()
        self._commands: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, name: str, *command: str, **variables: str) -> None:
        """Start one more process, and do not wait for it."""
        self._commands[name] = command, variables
        self.members[name] = self._started(name)
        self._tell_targets()

    def revive(self, name: str) -> None:
        """Start a process that ended anew, in its place, and do not wait for it."""
        self.members[name] = self._started(name, port=self.members[name].port)

    def wait_until_ready(self) -> None:
        """Wait until all say that they do their work."""
        for name, process in self.members.items():
            wait_for(process.ready, seconds=START_SECONDS, what=f"{name} ready")

    def replace(self, name: str, *, noticed: Callable[[Process], bool]) -> None:
        """End a process once another one does its work, as a Deployment of Kubernetes does it.

        Args:
            name: of the process.
            noticed: whether Prometheus has found the other one. It takes up to five seconds for it, which is
                what `minReadySeconds` is for.
        """
        old, new = self.members[name], self._started(name)
        self._tell_targets(old, new)
        wait_for(new.ready, seconds=START_SECONDS, what=f"the new {name} ready")
        wait_for(lambda: noticed(new), seconds=START_SECONDS, what=f"the new {name} scraped")
        self.members[name] = new
        end(old)
        self._tell_targets()

    def restart(self, name: str, *, noticed: Callable[[Process], bool]) -> None:
        """End a process, then start another one in its place, as a StatefulSet of Kubernetes does it.

        Args:
            name: of the process.
            noticed: whether Prometheus has scraped what the other one does, before the next one goes.
        """
        end(self.members[name])
        self.revive(name)
        new = self.members[name]
        wait_for(new.ready, seconds=START_SECONDS, what=f"{name} ready again")
        wait_for(lambda: noticed(new), seconds=START_SECONDS, what=f"{name} scraped again")

    def _started(self, name: str, *, port: int | None = None) -> Process:
        command, variables = self._commands[name]
        return self._stack.enter_context(self._deployment.process(*command, port=port, **variables))

    def _tell_targets(self, *more: Process) -> None:
        ports = sorted({process.port for process in (*self.members.values(), *more)})
        logged = self.targets.with_suffix(".new")
        logged.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}" for port in ports]}]))
        logged.rename(self.targets)


def end(process: Process) -> None:
    """Ask a process to stop; it does, and says that all went well."""
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(_STOP_SECONDS) == 0, process.log.read_text()[-2_000:]


def scraping(fleet: Fleet, *, seconds: float, rules: Path) -> dict[str, Any]:
    """Configuration of a Prometheus that scrapes all processes of a fleet, those to come too."""
    interval = f"{round(1_000 * seconds)}ms"
    return {
        "global": {"scrape_interval": interval, "evaluation_interval": interval},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "credence",
                "scrape_timeout": interval,
                "file_sd_configs": [{"files": [str(fleet.targets)], "refresh_interval": "1s"}],
            }
        ],
    }


class Load:
    """Predictions that flow and people who answer, until stopped.

    Attributes:
        sent: predictions sent; they are those of the first so many items.
        labeller: who answers.
    """

    def __init__(self, deployment: Deployment, *, predictions_per_second: int) -> None:
        self.sent = 0
        self.labeller = Labeller(deployment)
        self._deployment = deployment
        self._per_second = predictions_per_second
        self._no_more_predictions, self._no_more_answers = threading.Event(), threading.Event()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Predictions and answers flow, and answers still do for as long as `drain` wants them."""
        with ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(self._predict), pool.submit(self._answer)]
            try:
                yield
            finally:
                self._no_more_predictions.set()
                self._no_more_answers.set()
            for part in parts:
                part.result()

    def drain(self, done: Callable[[], bool], *, seconds: float, what: str) -> None:
        """Send no more predictions, and go on answering until all is done."""
        self._no_more_predictions.set()
        wait_for(done, seconds=seconds, what=what)

    def _predict(self) -> None:
        batch = max(1, self._per_second // 10)
        due = time.monotonic()
        while not self._no_more_predictions.wait(max(0.0, due - time.monotonic())):
            self._deployment.send_predictions(range(self.sent, self.sent + batch))
            self.sent += batch
            due += batch / self._per_second

    def _answer(self) -> None:
        while not self._no_more_answers.is_set():
            self.labeller.answer()
