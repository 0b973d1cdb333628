"""`credence demo`: starts all processes, shows them, and judges at the end; or plays one part of them."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from rich.console import Console

from service.config.settings import Settings
from service.demo.children import Children, Stopped
from service.demo.configuration import MIN_SECONDS, configuration, half_life_seconds
from service.demo.journal import label_delays
from service.demo.labeller import answer_requests, human_plan
from service.demo.observer import Observer
from service.demo.process import REPAIR_FILE
from service.demo.producer import produce
from service.demo.random_sampling import Recording, random_labels_needed
from service.demo.report import Measurements, failures, print_report
from service.demo.stage import FAILED, MISUSED, Stage, lacks_classifiers, perform, refuse_length
from service.demo.story import RECOVERY
from service.demo.view import render
from service.demo.watching import watch
from service.demo.world import CLASSES, DEGRADED_CAMERA, DEGRADES_AFTER, MODEL, RATE
from service.domain.errors import ConfigurationError
from service.telemetry.logs import configure_logs

_REPLAYS = 50
_REPAIR_PART = 2 / 3
"""How long a repaired camera may take to recover, as a part of the run."""
_SPARE = 1.5
"""Labels are also requested while the verdict is computed."""
_PARTS_SEED = 1
"""Of the world that both parts share, when each is played by itself."""


def run_demo(*, seconds: float, console: Console, seed: int = 1, repair: bool = False) -> int:
    """Run the demo, with predictions for this many seconds; the exit code.

    With `repair` the camera is repaired after the verdict, which nothing of that changes.
    0: the loop closed. 1: it did not, or a process died; what failed is printed. 2: impossible arguments.
    130: a signal stopped it.
    """
    if refuse_length(seconds, MIN_SECONDS, console):
        return MISUSED
    if lacks_classifiers(console):
        return FAILED
    return perform(
        lambda stage: Demo(stage, repair=repair).run(), seconds=seconds, seed=seed, console=console
    )


class Demo:
    """One run on a stage."""

    def __init__(self, stage: Stage, *, repair: bool = False) -> None:
        self._stage = stage
        self._repair_seconds = _REPAIR_PART * stage.seconds if repair else 0.0
        self._credence_started = 0.0
        self._observer = Observer(stage.folder, stage.monitoring_port)

    def run(self) -> int:
        """Start, watch, stop, judge; the exit code."""
        stage = self._stage
        stage.print(
            f"Credence demo: {stage.seconds:g} s of a digit classifier behind two cameras. After "
            f"{DEGRADES_AFTER * stage.seconds:g} s {DEGRADED_CAMERA} degrades; Credence does not know it."
        )
        with Children(stage.folder, stage.stop.wait) as children:
            with stage.console.status("Starting broker, Redis, labeller, producer and Credence"):
                self._start(children)
            stage.print_address()
            watch(
                stage,
                children,
                self._observer,
                goes_on=lambda: time.time() < self._ends_at,
                frame=lambda: render(self._observer, time.time(), stage.seconds),
            )
            if self._repair_seconds:
                return self._judge_and_repair(children)
        return self._judge()

    def _start(self, children: Children) -> None:
        stage, observer = self._stage, self._observer
        config = stage.start_parts(
            children,
            lambda places: configuration(
                places, seconds=stage.seconds, seed=stage.seed, more_seconds=_SPARE * self._repair_seconds
            ),
            {"the labeller": "service.demo.labeller", "the producer": "service.demo.producer"},
            observer.are_children_ready,
        )
        self._credence_started = time.time()
        stage.start_credence(children, config)
        stage.go()
        stage.wait_for(children, observer.is_credence_served, what="credence run")

    @property
    def _ends_at(self) -> float:
        return (self._observer.history.streaming_at or time.time()) + self._stage.seconds

    def _judge_and_repair(self, children: Children) -> int:
        """Judge while all goes on, then show how the repaired camera recovers; the verdict's exit code."""
        stage, observer = self._stage, self._observer
        code = self._judge()
        stage.print("")
        (stage.folder / REPAIR_FILE).touch()
        ends_at = time.time() + self._repair_seconds
        watch(
            stage,
            children,
            observer,
            goes_on=lambda: time.time() < ends_at and not observer.story.has(RECOVERY),
            frame=lambda: render(observer, time.time(), stage.seconds + self._repair_seconds),
        )
        if not observer.story.has(RECOVERY):
            stage.print(f"{DEGRADED_CAMERA} did not recover within {self._repair_seconds:g} s.")
        return code

    def _judge(self) -> int:
        observer = self._observer
        observer.read_journals()
        results = observer.results()
        with self._stage.console.status("Replaying the recorded stream with random sampling"):
            measured = self._measure()
        print_report(self._stage.console, results, measured, observer.findings)
        problems = failures(observer.reading, results, observer.findings)
        return self._stage.print_verdict(problems, "The loop closed.")

    def _measure(self) -> Measurements:
        history, reading = self._observer.history, self._observer.reading
        camera = reading.groups.get(("camera", DEGRADED_CAMERA))
        recording = Recording(
            stream=history.stream,
            answer_times=np.array(history.answer_times),
            at=reading.snapshot_time or reading.time,
            width=camera.upper - camera.lower if camera else 0.0,
            half_life_seconds=half_life_seconds(self._stage.seconds),
            degraded_at=history.degraded_at,
        )
        needed: list[int | None] = []
        for labels in random_labels_needed(recording, seeds=_REPLAYS):
            if self._stage.stop.requested:
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
        answer_requests(settings.kafka, human_plan(_PARTS_SEED))
