"""One trial: starts servers and Credence, streams the file, waits for the labels, and gathers the result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from service.app.files.columns import listed, plain_name
from service.app.files.delivery import open_delivery
from service.app.files.opening import Format, open_rows
from service.app.files.report import Report
from service.app.proposal.classes import possible_truths
from service.app.proposal.profile import Profile
from service.app.proposal.propose import Proposal
from service.app.trial.answers import Answering, TruthLabeller, truth_plan
from service.app.trial.configuration import trial_configuration
from service.app.trial.file_stamp import FileStamp, stamp_of
from service.app.trial.random_labels import random_labels
from service.app.trial.readings import Readings
from service.app.trial.results import (
    LabelCounts,
    NextSteps,
    RandomLabels,
    RowCounts,
    TrialGroup,
    TrialResult,
    lowest_of,
    read_groups,
)
from service.app.trial.rows import TrialRows, answerable_rows, has_truth
from service.app.trial.settling import Counts, Settling
from service.app.trial.stream import Pace, stream_rows
from service.app.trial.view import View
from service.config.loader import load_settings
from service.config.settings import Settings
from service.demo.children import Children, Stopped
from service.demo.desk import Desk
from service.demo.metrics import fetch
from service.demo.stage import FAILED, INTERRUPTED, POLL_SECONDS, SUCCEEDED, Stage, perform
from service.serving.documents.models import ModelState

_READING_SECONDS: Final = 1.0
_JOURNAL: Final = "labeller.jsonl"


@dataclass(frozen=True)
class TrialPlan:
    """What is tried, and how.

    Attributes:
        path: of the file.
        stamp: of the file, from before its profile was made.
        kind: its format.
        delimiter: between the cells of CSV.
        row_bytes: longest row.
        source: the file for people.
        profile: of the file.
        proposal: its configuration.
        labels: that may be requested.
        rate: rows a second; as fast as it goes if None.
        answering: how true classes answer requests.
        cost: of a label; None if not named.
        next: what to configure next.
    """

    path: str
    stamp: FileStamp | None
    kind: Format
    delimiter: str
    row_bytes: int
    source: str
    profile: Profile
    proposal: Proposal
    labels: int
    rate: float | None
    answering: Answering
    cost: float | None
    next: NextSteps

    @property
    def truth_hint(self) -> str:
        """How to name columns that may be true classes, in a sentence; empty without any."""
        proposal = self.proposal
        classes = proposal.settings.models[proposal.model].classes
        found = possible_truths(self.profile, proposal.roles, classes)
        if not found:
            return ""
        return f" If {listed(found)} is the true class, stop, and name it: --truth {plain_name(found[0])}."


class Trial:
    """One trial on a stage."""

    def __init__(self, plan: TrialPlan, stage: Stage) -> None:
        self._plan, self._stage = plan, stage
        self._desk = None if has_truth(plan.proposal) else Desk()
        self._readings = Readings(stage.http_port, plan.proposal.model)
        self._state: ModelState | None = None
        self._read_at = -_READING_SECONDS
        self._is_whole = False
        self._change_note = ""
        self._streamed_seconds = 0.0
        self._rows: TrialRows
        self._report: Report
        self._labeller: TruthLabeller | None = None

    def run(self) -> tuple[int, TrialResult | None]:
        """The exit code, and what was found; None if it was stopped before anything was."""
        stage, plan = self._stage, self._plan
        code = SUCCEEDED
        with ExitStack() as stack:
            children = stack.enter_context(Children(stage.folder, stage.stop.wait))
            with stage.console.status("Starting broker, Redis and Credence"):
                settings = self._start(children)
            stage.print_address()
            self._print_page()
            self._rows = TrialRows(settings, plan.proposal, plan.profile, shows_rows=self._desk is not None)
            for note in filter(None, (self._rows.item_note, self._rows.truth_note)):
                stage.print(note)
            self._start_labeller(settings, stack)
            try:
                with View(stage.console, rows=_rows_of(plan), labels=plan.labels) as view:
                    self._stream(settings, children, view)
                    self._settle(children, view)
            except Stopped:
                code = INTERRUPTED
                stage.print("Stopped; the report covers what was streamed and labelled so far.")
            self._read_state()
            if self._labeller is not None:
                self._labeller.stop()
            groups = (
                {} if self._state is None else read_groups(self._readings, self._state, self._rows.ledger)
            )
        if self._state is None or not groups:
            stage.print("There are no estimates, so there is no report.")
            return code or FAILED, None
        return code, self._result(self._state, groups)

    def _start(self, children: Children) -> Settings:
        stage, plan = self._stage, self._plan
        config = stage.start_parts(
            children,
            lambda places: trial_configuration(
                plan.proposal,
                places,
                labels=plan.labels,
                delay_seconds=plan.answering.delay_seconds,
                desk=self._desk,
            ),
            {},
            lambda: True,
        )
        stage.start_credence(children, config)
        stage.wait_for(children, self._is_ready, what="credence run")
        return load_settings(config, {})

    def _is_ready(self) -> bool:
        return fetch(self._stage.monitoring_port, "/readyz", accept="application/json") is not None

    def _print_page(self) -> None:
        if self._desk is None:
            return
        self._stage.print(
            f"The file has no true classes, so you label.{self._plan.truth_hint} "
            f"Open {self._desk.url} and log in with the token:\n  {self._desk.token}\n"
            f"The trial ends after {self._plan.labels:,} labels (--labels), or at Ctrl-C, with the report."
        )

    def _start_labeller(self, settings: Settings, stack: ExitStack) -> None:
        if self._desk is not None:
            return
        plan = truth_plan(self._rows.ledger, self._plan.answering)
        journal = self._stage.folder / _JOURNAL
        self._labeller = TruthLabeller(settings.kafka, self._plan.proposal.model, plan, journal)
        self._labeller.start()
        stack.callback(self._labeller.stop)

    def _stream(self, settings: Settings, children: Children, view: View) -> None:
        plan = self._plan
        started = time.monotonic()
        with ExitStack() as stack:
            table = stack.enter_context(
                open_rows(
                    plan.path,
                    kind=plan.kind,
                    delimiter=plan.delimiter,
                    row_bytes=plan.row_bytes,
                    used=self._rows.used,
                )
            )
            self._report = Report(unit=table.unit, column_of=self._rows.column_of, shows_progress=False)
            table = self._rows.begin(table, plan.source)
            delivery = open_delivery(
                settings.kafka, settings.kafka.topics.predictions, on_refusal=self._report.refuse
            )
            stack.callback(delivery.close)
            pace = Pace(plan.rate, children.pause)
            for _ in stream_rows(table, self._rows, delivery=delivery, report=self._report, pace=pace):
                self._streamed_seconds = time.monotonic() - started
                self._look(children, view)
        self._streamed_seconds = time.monotonic() - started
        self._is_whole = True
        if stamp_of(plan.path) != plan.stamp:
            self._change_note = (
                f"{plan.source} was changed while it was read, so rows may be missing, or fit the proposal "
                "badly. Try a copy of it."
            )
            self._stage.print(self._change_note)

    def _settle(self, children: Children, view: View) -> None:
        settling, sent = Settling(), len(self._rows.ledger)
        while not settling.is_settled(self._counts(), sent=sent, now=time.monotonic()):
            children.pause(POLL_SECONDS)
            self._look(children, view)

    def _counts(self) -> Counts | None:
        return None if self._state is None else Counts.of(self._state)

    def _look(self, children: Children, view: View) -> None:
        children.check()
        if self._labeller is not None:
            self._labeller.check()
        if time.monotonic() - self._read_at >= _READING_SECONDS:
            self._read_state()
            view.show(self._report.read, self._state)

    def _read_state(self) -> None:
        self._state = self._readings.state() or self._state
        self._read_at = time.monotonic()

    def _result(self, state: ModelState, groups: Mapping[str, Sequence[TrialGroup]]) -> TrialResult:
        plan, report = self._plan, self._report
        labels = LabelCounts(
            answered=state.outcomes,
            budget=sum(each.budget.labels for each in state.assessments),
            answering=None if self._desk is not None else plan.answering,
            cost=plan.cost,
        )
        rows = RowCounts(
            read=report.read,
            sent=len(self._rows.ledger),
            refused=dict(report.refused.most_common()),
            problems=report.problems,
            notes=[*filter(None, [self._change_note]), *self._rows.notes()],
            is_whole=self._is_whole,
            seconds=self._streamed_seconds,
        )
        return TrialResult(
            source=plan.source,
            model=state.model,
            at=state.taken_at,
            threshold=state.thresholds.min_accuracy,
            # Others are about the trial itself, such as its spent budget.
            reports=[f"{each.title}. {each.sentence}" for each in state.problems if each.group is not None],
            groups=groups,
            rows=rows,
            labels=labels,
            next=plan.next,
            random=self._random_labels(groups),
        )

    def _random_labels(self, groups: Mapping[str, Sequence[TrialGroup]]) -> RandomLabels | None:
        if self._labeller is None:
            return None
        labelled = self._labeller.labelled_items()
        with self._stage.console.status("Replaying the rows with labels drawn at random"):
            return random_labels(self._rows.ledger, labelled, lowest_of(groups))


def try_plan(plan: TrialPlan, console: Console) -> tuple[int, TrialResult | None]:
    """Run a trial in a temporary folder; the exit code, and what was found, if anything."""
    found: list[TrialResult] = []

    def play(stage: Stage) -> int:
        code, result = Trial(plan, stage).run()
        found.extend([] if result is None else [result])
        return code

    code = perform(play, seconds=0.0, seed=0, console=console, what="trial")
    return code, found[0] if found else None


def _rows_of(plan: TrialPlan) -> int:
    profile = plan.profile
    return answerable_rows(profile, plan.proposal) + profile.refused + profile.others
