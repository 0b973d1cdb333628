"""`credence demo`: starts all processes, shows them, and judges at the end; or plays one part of them."""

from __future__ import annotations

import importlib.util
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import yaml
from rich.console import Console
from rich.live import Live

from service.config.settings import Settings
from service.demo.children import ChildDiedError, Children, Stopped
from service.demo.configuration import MIN_SECONDS, configuration, half_life_seconds
from service.demo.journal import label_delays
from service.demo.labeller import answer_requests
from service.demo.observer import Observer
from service.demo.process import GO_FILE, StopFlag
from service.demo.producer import produce
from service.demo.random_sampling import Recording, random_labels_needed
from service.demo.report import Measurements, failures, print_report
from service.demo.servers import free_port
from service.demo.view import change_line, compact_line, render
from service.demo.world import CLASSES, DEGRADED_CAMERA, DEGRADES_AFTER, MODEL, RATE
from service.domain.errors import ConfigurationError, EmbeddedServerError
from service.telemetry.logs import configure_logs

SUCCEEDED, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

_POLL_SECONDS = 0.25
_LINE_SECONDS = 5.0
_READY_SECONDS = 120.0  # on a machine that has much else to do
_REPLAYS = 50
_PARTS_SEED = 1
"""Of the world that both parts share, when each is played by itself."""


def run_demo(*, seconds: float, console: Console, seed: int = 1) -> int:
    """Run the demo, with predictions for this many seconds; the exit code.

    0: the loop closed. 1: it did not, or a process died; what failed is printed. 2: impossible arguments.
    130: a signal stopped it.
    """
    if not MIN_SECONDS <= seconds < float("inf"):
        console.print(f"The demo needs at least {MIN_SECONDS:g} seconds, not {seconds:g}.")
        return MISUSED
    if importlib.util.find_spec("sklearn") is None:
        console.print("The demo needs scikit-learn; run: pip install 'credence[demo]'", markup=False)
        return FAILED
    stop = StopFlag(*_stopping_signals())
    try:
        with tempfile.TemporaryDirectory(prefix="credence-demo-") as folder:
            return Demo(Path(folder), seconds, seed, console, stop).run()
    except Stopped:
        console.print("Stopped.")
        return INTERRUPTED
    except ChildDiedError as death:
        console.print(f"The demo failed: {death}", style="bold red", markup=False)
        console.print(death.tail, markup=False, highlight=False)
        return FAILED
    except EmbeddedServerError as error:
        console.print(f"The demo cannot start: {error}", style="bold red", markup=False)
        return FAILED
    finally:
        stop.restore()


def _stopping_signals() -> list[signal.Signals]:
    """Ctrl-C, SIGTERM, and a closed terminal unless `nohup` ignores it."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    return stopping


@dataclass
class Demo:
    """One run, whose configuration, journals, logs and facts are in a folder."""

    folder: Path
    seconds: float
    seed: int
    console: Console
    stop: StopFlag

    def __post_init__(self) -> None:
        self._http_port, self._monitoring_port = free_port(), free_port()
        self._credence_started = 0.0
        self._observer = Observer(self.folder, self._monitoring_port)

    def run(self) -> int:
        """Start, watch, stop, judge; the exit code."""
        self._print(
            f"Credence demo: {self.seconds:g} s of a digit classifier behind two cameras. After "
            f"{DEGRADES_AFTER * self.seconds:g} s {DEGRADED_CAMERA} degrades; Credence does not know it."
        )
        with Children(self.folder, self.stop.wait) as children:
            with self.console.status("Starting broker, Redis, labeller, producer and Credence"):
                self._start(children)
            self._print(f"Look at http://127.0.0.1:{self._http_port}/ while this runs.")
            if self.console.is_terminal:
                self._watch_live(children)
            else:
                self._watch_in_lines(children)
        return self._judge()

    def _start(self, children: Children) -> None:
        config = self.folder / "credence.yaml"
        document = configuration(
            seconds=self.seconds,
            bootstrap_server=children.start_broker().bootstrap_server,
            redis_url=children.start_redis().url,
            http_port=self._http_port,
            monitoring_port=self._monitoring_port,
            seed=self.seed,
        )
        config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        with_config = ["--config", str(config)]
        children.finish("credence topics create", "service.app.cli", ["topics", "create", *with_config])
        arguments = [*with_config, "--folder", str(self.folder)]
        arguments += ["--seed", str(self.seed), "--seconds", str(self.seconds)]
        children.start("the labeller", "service.demo.labeller", arguments)
        children.start("the producer", "service.demo.producer", arguments)
        children.wait_until(
            self._observer.are_children_ready, what="the producer or the labeller", seconds=_READY_SECONDS
        )
        self._credence_started = time.time()
        children.start("credence run", "service.app.cli", ["run", *with_config])
        (self.folder / GO_FILE).touch()
        children.wait_until(self._observer.is_credence_served, what="credence run", seconds=_READY_SECONDS)

    @property
    def _ends_at(self) -> float:
        return (self._observer.history.streaming_at or time.time()) + self.seconds

    def _step(self, children: Children) -> None:
        children.pause(_POLL_SECONDS)
        children.check()
        self._observer.refresh()

    def _watch_live(self, children: Children) -> None:
        with Live(console=self.console, auto_refresh=False) as live:
            while time.time() < self._ends_at:
                self._step(children)
                live.update(render(self._observer, time.time(), self.seconds), refresh=True)

    def _watch_in_lines(self, children: Children) -> None:
        history, findings = self._observer.history, self._observer.findings
        shown, next_line = 0, time.time()
        while time.time() < self._ends_at:
            self._step(children)
            for moment, line in findings.lines[shown:]:
                self._print(change_line(moment, line, history.streaming_at))
            shown = len(findings.lines)
            if time.time() >= next_line:
                self._print(compact_line(self._observer, time.time()))
                next_line += _LINE_SECONDS

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _judge(self) -> int:
        observer = self._observer
        observer.read_journals()
        results = observer.results()
        with self.console.status("Replaying the recorded stream with random sampling"):
            measured = self._measure()
        print_report(self.console, results, measured, observer.findings)
        problems = failures(observer.reading, results, observer.findings)
        for problem in problems:
            self.console.print(f"Failed: {problem}", style="bold red", markup=False)
        if problems:
            return FAILED
        self.console.print("The loop closed.", style="bold green")
        return SUCCEEDED

    def _measure(self) -> Measurements:
        history, reading = self._observer.history, self._observer.reading
        camera = reading.groups.get(("camera", DEGRADED_CAMERA))
        recording = Recording(
            stream=history.stream,
            answer_times=np.array(history.answer_times),
            at=reading.snapshot_time or reading.time,
            width=camera.upper - camera.lower if camera else 0.0,
            half_life_seconds=half_life_seconds(self.seconds),
            degraded_at=history.degraded_at,
        )
        needed: list[int | None] = []
        for labels in random_labels_needed(recording, seeds=_REPLAYS):
            if self.stop.requested:
                raise Stopped
            needed.append(labels)
        first_request = history.first_request_at
        return Measurements(
            streaming_at=history.streaming_at,
            degraded_at=history.degraded_at,
            first_request_seconds=first_request - self._credence_started if first_request else None,
            label_delays=label_delays(history.answer_times, self._observer.answer_counts),
            labels=reading.events.get("answered", 0),
            random_labels=needed,
            most_labels=recording.most_labels,
        )


def play_part(part: Literal["producer", "labeller"], settings: Settings, *, seconds: float) -> None:
    """Play one part until SIGTERM, with the model `digits` of the configuration.

    One of the producer's cameras degrades after a fraction of the seconds.

    Raises:
        ConfigurationError: the configuration has no such model, it has other classes, or vendors label it.
    """
    model = settings.models.get(MODEL)
    if model is None or tuple(model.classes) != CLASSES:
        problem = f"the demo needs this model, with the classes {', '.join(CLASSES)}"
        raise ConfigurationError([(f"models.{MODEL}", problem)])
    if part == "labeller" and settings.vendors_of(MODEL):
        problem = f"the demo's labeller is none of them; leave {MODEL} out of their `models`"
        raise ConfigurationError([("vendors", problem)])
    configure_logs(settings.log_level)
    if part == "producer":
        # No item comes again after a restart: an item is asked for once.
        produce(settings.kafka, seed=_PARTS_SEED, seconds=seconds, first=round(time.time() * RATE))
    else:
        answer_requests(settings.kafka, seed=_PARTS_SEED)
