"""`credence status`: the status page in short, in the terminal."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Group
from rich.table import Table
from rich.text import Text

from service.app.error_rate_table import rate_table
from service.app.monitor_wiring import read_snapshots
from service.app.terminal_tables import FAILED, table, text
from service.app.wide_console import wide_console
from service.app.wiring import connect
from service.config.loader import load_settings
from service.domain.times import duration, in_words
from service.monitoring.pipeline import PipelineState, read_pipeline
from service.monitoring.pipeline_problems import pipeline_line, pipeline_problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.annotators import LabellerState
from service.serving.documents.assessments import AssessmentState
from service.serving.documents.group_measures import GroupState
from service.serving.documents.groupings import GroupingSummary
from service.serving.documents.groups import GroupTable, group_table
from service.serving.documents.models import ModelState, model_state
from service.serving.documents.problems import ModelStatus, ProblemState
from service.serving.documents.words import cell_of_interval, cell_of_probability
from service.serving.metrics import Column, measures_of

_MOST_GROUPS = 20
_MOST_PROBLEMS = 10
_MOST_NEXT = 3
_MOST_ANNOTATORS = 10
_PARTIAL = 0.01
"""Share of a group's traffic that may be missing before the group is marked as partial, as on the page."""
_STYLES: dict[ModelStatus, str] = {
    "critical": FAILED,
    "warning": "bold yellow",
    "info": "bold",
    "ok": "green",
}
"""Of a model's status, and of a problem's severity; the others are plain."""


def status(options: argparse.Namespace) -> int:
    """Print the current estimates."""
    settings = load_settings(options.config, os.environ)
    connection = connect(settings)
    snapshots = read_snapshots(settings, connection, settings.models)
    now = time.time()
    taken = min(snapshot.taken_at for snapshot in snapshots)
    pipeline = read_pipeline(connection, now=now, estimates_at=taken)
    view = status_view(snapshots, pipeline, now=now, tick_seconds=settings.schedule.tick_seconds)
    wide_console().print(view)
    return 0


def status_view(
    snapshots: list[ModelSnapshot],
    pipeline: PipelineState | None = None,
    *,
    now: float,
    tick_seconds: float,
) -> Group:
    """The pipeline in short, then all models, one after the other; a round is due every `tick_seconds`."""
    parts = [] if pipeline is None else _pipeline_view(pipeline, now)
    troubles = pipeline_problems(pipeline, now)
    states = [
        (one, model_state(one, pipeline=troubles, now=now, tick_seconds=tick_seconds)) for one in snapshots
    ]
    return Group(*parts, *(part for snapshot, state in states for part in _model_view(snapshot, state)))


def _pipeline_view(state: PipelineState, now: float) -> list[Text]:
    """A line of health, and one for every problem."""
    styles = {"critical": FAILED, "warning": "yellow", "info": ""}
    problems = [text(f"! {one.sentence}", styles[one.severity]) for one in pipeline_problems(state, now)]
    return [text(pipeline_line(state, now), "dim" if not problems else ""), *problems]


def _model_view(snapshot: ModelSnapshot, state: ModelState) -> list[Table | Text]:
    parts: list[Table | Text] = [Text(f"\n{_counts(state)}", "bold"), *_problems(state)]
    if not state.groupings:
        return parts
    parts += [text(f"{one.name}: {one.sentence}") for one in state.performances]
    if all(one.kind != "drift" for one in state.problems):
        parts.append(text(state.drift.sentence, "dim"))
    if state.reference.incomplete_groups:
        parts.append(text(state.reference.sentence, "dim"))
    if state.waiting is not None:
        parts.append(text(state.waiting.sentence, "dim"))
    for grouping in state.groupings:
        parts += _grouping_parts(snapshot, grouping)
    if any(grouping.has_min_accuracy.any() for grouping in snapshot.groupings.values()):
        legend = "~40, 2 h: about 40 more labels, in 2 h, until decided; >10 y: not at this budget"
        parts.append(Text(legend, "dim"))
    if state.assessments:
        parts.append(_assessment_table(state.assessments))
    parts += [_member_table(one) for one in state.assessments if one.members]
    parts += [_challenge_table(one) for one in state.assessments if one.challenge]
    parts += [rate_table(one.name, one.error_rates) for one in state.assessments if one.error_rates]
    return [*parts, *_labellers(state)]


def _grouping_parts(snapshot: ModelSnapshot, grouping: GroupingSummary) -> list[Table | Text]:
    """The groups of one grouping, and what is said of all of them."""
    groups = group_table(snapshot, grouping.name, limit=_MOST_GROUPS)
    parts: list[Table | Text] = [_grouping_table(groups)]
    said = (grouping.weakest, grouping.certificate)
    parts += [text(one.sentence, "dim") for one in said if one is not None]
    if any(group.cost for group in groups.groups):
        parts.append(_cost_table(group_table(snapshot, grouping.name, sort="cost", limit=_MOST_GROUPS)))
    return parts


def _counts(state: ModelState) -> str:
    counts = (
        f"{state.model}: {state.predictions:,} predictions, {state.outcomes:,} labelled, "
        f"{state.pool_items:,} items in the pool"
    )
    if state.last_label_at is None:
        return counts
    return f"{counts}, last label {datetime.fromtimestamp(state.last_label_at, UTC):%Y-%m-%d %H:%M:%S UTC}"


def _problems(state: ModelState) -> list[Text]:
    """The model's state in a line, and its most severe problems."""
    line = state.headline
    if not line.problem_count:
        return [text(f"{line.title}. {line.detail}", _STYLES.get(line.status, "")), *_notes(state)]
    parts = [text(line.title, _STYLES.get(line.status, ""))]
    parts += [_problem(one) for one in state.problems[:_MOST_PROBLEMS]]
    if line.problem_count > _MOST_PROBLEMS:
        parts.append(text(f"  and {line.problem_count - _MOST_PROBLEMS:,} more"))
    return [*parts, *_notes(state)]


def _notes(state: ModelState) -> list[Text]:
    return [text(f"Note: {one.title}. {one.sentence} {one.action}", "dim") for one in state.notes]


def _problem(problem: ProblemState) -> Text:
    found = text(f"! {problem.title} ({problem.severity})", _STYLES.get(problem.severity, ""))
    since = f"Since {in_words(problem.since)}{' or earlier' if problem.since_or_earlier else ''}."
    runbook = f" Runbook: {problem.alert}." if problem.alert else ""
    return found.append("\n").append_text(text(f"  {problem.sentence} {since} {problem.action}{runbook}"))


def _grouping_table(groups: GroupTable) -> Table:
    columns = [
        (name, each.column)
        for name, each in measures_of(GroupState)
        if each.column and _is_shown(each.column, [getattr(group, name) for group in groups.groups])
    ]
    is_decided = any(group.accuracy_below is not None for group in groups.groups)
    order = "probability of being below target" if is_decided else "accuracy"
    title = "all traffic" if groups.grouping == "all" else f"by {groups.grouping}, sorted by {order}"
    targets = {group.min_accuracy for group in groups.groups}
    target = f"{100 * (next(iter(targets)) or 0):g}%" if len(targets) == 1 else "target"
    shown = table(title, "group", (one.heading.format(target=target) for _, one in columns))
    for group in groups.groups:
        name = text(f"{group.group}{' (drifted)' if group.drifted else ''}{_partial(group)}")
        shown.add_row(name, *(_cell(one, group, measure) for measure, one in columns))
    if groups.total > len(groups.groups):
        shown.caption = f"{groups.total - len(groups.groups)} more groups are not shown"
    return shown


def _is_shown(column: Column, values: list[object]) -> bool:
    """Whether there is something to see in a column of a measure that groups have these values of."""
    return any(value is not None for value in values) and not (column.is_of_unlike and len(set(values)) == 1)


def _cell(column: Column, group: GroupState, measure: str) -> Text:
    if getattr(group, measure) is None:
        return Text()
    return Text(column.text(group), FAILED if column.has_failed(group) else "")


def _cost_table(groups: GroupTable) -> Table:
    shown = table(f"expected cost, by {groups.grouping}", "group", ["cost"])
    for group in groups.groups:
        if group.cost is not None:
            shown.add_row(text(group.group), cell_of_interval(group.cost, scale=1, decimals=3))
    return shown


def _partial(group: GroupState) -> str:
    """A note that some of a group's traffic may be counted in `__other__`, if it is much."""
    if group.missed_traffic < _PARTIAL:
        return ""
    return f" (partial: up to {group.missed_traffic:.0%} in __other__)"


def _assessment_table(states: list[AssessmentState]) -> Table:
    counts = ("issued", "answered", "expired", "open", "left")
    shown = table("assessments", "name", counts, ["result", "next label"])
    for state in states:
        shown.add_row(
            state.name,
            *(str(state.events[event]) for event in ("issued", "answered", "expired")),
            f"{state.open_requests}",
            f"{state.budget.remaining}",
            text(state.found),
            text(", ".join(f"{one.group} {one.probability:.0%}" for one in state.next[:_MOST_NEXT])),
        )
    return shown


def _member_table(state: AssessmentState) -> Table:
    columns = ("precision %", "labels", "predicted positive", "below target")
    shown = table(f"{state.name}: the ensemble and its members", "member", columns)
    for member in state.members:
        shown.add_row(
            text(member.member),
            cell_of_interval(member.precision),
            f"{member.labels:.0f}",
            f"{member.share:.1%}",
            "" if member.missed is None else cell_of_probability(member.missed),
        )
    return shown


def _labellers(state: ModelState) -> list[Table | Text]:
    """Where labels may be wrong: how often people agree, and who is right how often."""
    parts: list[Table | Text] = []
    if state.label_agreement is not None:
        parts.append(text(state.label_agreement.sentence, "dim"))
    if state.label_errors is not None:
        parts.append(text(state.label_errors.sentence, "dim"))
    if any(one.vendor for one in state.vendors):
        parts.append(_labeller_table("vendors", ((one.vendor, one) for one in state.vendors)))
    if any(one.full_name for one in state.annotators):
        people = state.annotators[:_MOST_ANNOTATORS]
        parts.append(_labeller_table("annotators", ((one.full_name, one) for one in people)))
    return parts


def _labeller_table(title: str, labellers: Iterable[tuple[str, LabellerState]]) -> Table:
    columns = ("reliability %", "below threshold", "agreement %", "labels", "median time", "gold", "wrong %")
    shown = table(f"{title}, sorted by the lower end of reliability", "name", columns)
    for name, one in labellers:
        shown.add_row(
            text(name or "no name"),
            cell_of_interval(one.reliability),
            "" if one.below is None else cell_of_probability(one.below),
            "" if one.agreement is None else cell_of_interval(one.agreement),
            f"{one.labels:,}",
            "" if one.answer_seconds is None else duration(one.answer_seconds),
            f"{one.gold_labels:,}",
            "" if one.gold_wrong is None else cell_of_interval(one.gold_wrong),
        )
    return shown


def _challenge_table(state: AssessmentState) -> Table:
    columns = ("difference", "better", "worse", "disagree", "labels")
    shown = table(f"{state.name}: accuracy of challenger minus model, in points", "group", columns)
    for one in state.challenge:
        points = one.difference
        shown.add_row(
            text(one.group),
            f"{100 * points.mean:+.1f} [{100 * points.lower:+.1f}, {100 * points.upper:+.1f}]",
            cell_of_probability(one.better),
            cell_of_probability(one.worse),
            f"{one.disagreement:.1%}",
            f"{one.labels:.0f}",
        )
    return shown
