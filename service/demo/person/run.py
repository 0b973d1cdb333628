"""`credence demo --labeller me`: starts all processes, and a person labels until there are enough labels."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console, RenderableType
from rich.text import Text

from service.demo.children import Children, Stopped
from service.demo.configuration import MIN_SECONDS
from service.demo.desk import LABEL_PATH, Desk
from service.demo.metrics import fetch
from service.demo.observer import Observer
from service.demo.person.answers import Answers
from service.demo.person.configuration import FEWEST_LABELS, person_configuration
from service.demo.person.producer import DEGRADE_FILE, PAUSE_FILE
from service.demo.person.report import print_person_report
from service.demo.report import finding_times, print_numbers
from service.demo.stage import FAILED, MISUSED, SUCCEEDED, Stage, lacks_classifiers, perform, refuse_length
from service.demo.story import YOU
from service.demo.view import frame
from service.demo.watching import watch
from service.demo.world import DEGRADED_CAMERA, DEGRADES_AFTER

_SETTLING_SECONDS = 3.0
"""More than a round: the estimates of then include a label."""

_PAUSE_SECONDS = 60.0
"""Without a label for so long, a person is taking a break."""


def run_person_demo(*, labels: int, seconds: float, console: Console, seed: int = 1) -> int:
    """Run the demo until a person has given this many labels, or stops it; the exit code.

    `seconds` sets windows and half-lives alone. 0: it ended in one of these two ways. 1: a process died.
    2: impossible arguments. 130: a signal stopped it before it could be labelled.
    """
    if labels < FEWEST_LABELS:
        console.print(f"The demo needs at least {FEWEST_LABELS} labels, not {labels}.")
        return MISUSED
    if refuse_length(seconds, MIN_SECONDS, console):
        return MISUSED
    if lacks_classifiers(console):
        return FAILED
    return perform(lambda stage: PersonDemo(stage, labels).run(), seconds=seconds, seed=seed, console=console)


def is_pause(labelled_at: Iterable[float], began_at: float, now: float) -> bool:
    """Whether a person who labelled at these times is taking a break; all in seconds since the epoch."""
    return now - max(labelled_at, default=began_at) > _PAUSE_SECONDS


class PersonDemo:
    """One run on a stage, until there are this many labels."""

    def __init__(self, stage: Stage, labels: int) -> None:
        self._stage = stage
        self._labels = labels
        self._desk = Desk()
        self._observer = Observer(stage.folder, stage.monitoring_port, people=YOU)
        self._answers = Answers.of([])
        self._began_at = 0.0

    def run(self) -> int:
        """Start, have it labelled, stop, report; the exit code."""
        stage = self._stage
        stage.print(
            f"Credence demo: a digit classifier behind two cameras, and you label. After "
            f"{self._degrading_labels} of {self._labels} labels {DEGRADED_CAMERA} degrades; Credence does "
            "not know it."
        )
        with Children(stage.folder, stage.stop.wait) as children:
            with stage.console.status("Starting broker, Redis, producer and Credence"):
                self._start(children)
            stage.print_address()
            stage.print(f"Label at {self._desk.url} (any name; token {self._desk.token}).")
            stage.print(f"The run ends after {self._labels} labels, or when you press Ctrl-C.")
            self._began_at = time.time()
            # A signal is one of the two ways to end the run.
            with suppress(Stopped):
                watch(stage, children, self._observer, goes_on=self._goes_on, frame=self._frame)
        self._report()
        return SUCCEEDED

    @property
    def _degrading_labels(self) -> int:
        return round(DEGRADES_AFTER * self._labels)

    def _start(self, children: Children) -> None:
        stage, observer = self._stage, self._observer
        config = stage.start_parts(
            children,
            lambda places: person_configuration(
                places, self._desk, seconds=stage.seconds, seed=stage.seed, labels=self._labels
            ),
            {
                "the reader of labels": "service.demo.person.witness",
                "the producer": "service.demo.person.producer",
            },
            observer.are_children_ready,
        )
        stage.start_credence(children, config)
        stage.go()
        stage.wait_for(children, observer.is_credence_served, what="credence run")
        stage.wait_for(children, self._is_page_served, what="the labelling page")

    def _is_page_served(self) -> bool:
        return fetch(self._desk.port, LABEL_PATH) is not None

    def _goes_on(self) -> bool:
        """Degrade the camera when it is time; whether labels, or estimates from all of them, are missing."""
        given = self._observer.history.given
        self._answers = Answers.of(given)
        pause = self._stage.folder / PAUSE_FILE
        if is_pause((label.time for label in given), self._began_at, time.time()):
            pause.touch()
        else:
            pause.unlink(missing_ok=True)
        if len(self._answers) >= self._degrading_labels:
            (self._stage.folder / DEGRADE_FILE).touch()
        is_enough = len(self._answers) >= self._labels
        settled_at = self._answers.newest_at + _SETTLING_SECONDS
        return not is_enough or self._observer.reading.snapshot_time < settled_at

    def _frame(self) -> RenderableType:
        reading = self._observer.reading
        headline = Text.assemble(
            ("Credence demo", "bold"),
            f"  {len(self._answers)} of {self._labels} labels, {reading.open} open requests; label at "
            f"{self._desk.url}\n",
            f"token   {self._desk.token}\n",
            f"stream  {self._observer.rate:.0f} predictions/s, {reading.consumed} consumed\n",
        )
        return frame(headline, self._observer)

    def _report(self) -> None:
        observer, console = self._observer, self._stage.console
        observer.read_journals()
        print_person_report(
            console,
            Answers.of(observer.history.given),
            wanted=self._labels,
            first=observer.story.first,
            results=observer.results(),
        )
        console.print()
        history = observer.history
        print_numbers(console, finding_times(history.streaming_at, history.degraded_at, observer.findings))
