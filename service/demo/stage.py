"""What all demos share: what ends them, their exit codes, and the processes of one run."""

from __future__ import annotations

import importlib.util
import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from service.demo.children import ChildDiedError, Children, Stopped
from service.demo.configuration import Places
from service.demo.ports import free_port
from service.demo.process import GO_FILE, StopFlag
from service.domain.errors import EmbeddedServerError

SUCCEEDED, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

POLL_SECONDS = 0.25
_READY_SECONDS = 120.0  # on a machine that has much else to do


@dataclass
class Stage:
    """Where one run plays: a folder with its configuration, journals, logs and facts."""

    folder: Path
    seconds: float
    seed: int
    console: Console
    stop: StopFlag
    http_port: int = field(default_factory=free_port)
    monitoring_port: int = field(default_factory=free_port)

    def print(self, line: str) -> None:
        """Print one line as it is."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def print_address(self) -> None:
        """Say where the status page is."""
        self.print(f"Look at http://127.0.0.1:{self.http_port}/ while this runs.")

    def start_parts(
        self,
        children: Children,
        configure: Callable[[Places], Mapping[str, Any]],
        modules: Mapping[str, str],
        are_ready: Callable[[], bool],
    ) -> Path:
        """Start broker, Redis, and the labeller and producer, modules by name; the configuration's path.

        The producer may stream as soon as `go` is called.
        """
        config = self.folder / "credence.yaml"
        places = Places(
            bootstrap_server=children.start_broker().bootstrap_server,
            redis_url=children.start_redis().url,
            http_port=self.http_port,
            monitoring_port=self.monitoring_port,
        )
        config.write_text(yaml.safe_dump(dict(configure(places)), sort_keys=False), encoding="utf-8")
        with_config = ["--config", str(config)]
        children.finish("credence topics create", "service.app.cli", ["topics", "create", *with_config])
        arguments = [*with_config, "--folder", str(self.folder)]
        arguments += ["--seed", str(self.seed), "--seconds", str(self.seconds)]
        for name, module in modules.items():
            children.start(name, module, arguments)
        self.wait_for(children, are_ready, what="the producer or the labeller")
        return config

    def go(self) -> None:
        """Let the producer stream."""
        (self.folder / GO_FILE).touch()

    def start_credence(self, children: Children, config: Path) -> None:
        """Start `credence run`."""
        children.start("credence run", "service.app.cli", ["run", "--config", str(config)])

    def wait_for(self, children: Children, ready: Callable[[], bool], *, what: str) -> None:
        """Wait until ready, as long as a busy machine may take."""
        children.wait_until(ready, what=what, seconds=_READY_SECONDS)

    def print_verdict(self, problems: list[str], success: str) -> int:
        """Print what failed, or the success; the exit code."""
        for problem in problems:
            self.console.print(f"Failed: {problem}", style="bold red", markup=False)
        if problems:
            return FAILED
        self.console.print(success, style="bold green")
        return SUCCEEDED


def perform(
    play: Callable[[Stage], int], *, seconds: float, seed: int, console: Console, what: str = "demo"
) -> int:
    """Play a demo on a stage of its own; its exit code, or that of what ended it.

    `what` names it for people.
    """
    stop = StopFlag(*stopping_signals())
    try:
        with tempfile.TemporaryDirectory(prefix=f"credence-{what}-") as folder:
            return play(Stage(Path(folder), seconds, seed, console, stop))
    except Stopped:
        console.print("Stopped.")
        return INTERRUPTED
    except ChildDiedError as death:
        console.print(f"The {what} failed: {death}", style="bold red", markup=False)
        console.print(death.tail, markup=False, highlight=False)
        return FAILED
    except EmbeddedServerError as error:
        console.print(f"The {what} cannot start: {error}", style="bold red", markup=False)
        return FAILED
    finally:
        stop.restore()


def refuse_length(seconds: float, least: float, console: Console) -> bool:
    """Whether a run of this many seconds is impossible; if so, the minimum is printed."""
    if least <= seconds < float("inf"):
        return False
    console.print(f"The demo needs at least {least:g} seconds, not {seconds:g}.")
    return True


def lacks_classifiers(console: Console) -> bool:
    """Whether scikit-learn is not installed; if so, how to install it is printed."""
    if importlib.util.find_spec("sklearn") is not None:
        return False
    console.print("The demo needs scikit-learn; run: pip install 'credence[demo]'", markup=False)
    return True


def stopping_signals() -> list[signal.Signals]:
    """Ctrl-C, SIGTERM, and a closed terminal unless `nohup` ignores it."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    return stopping
