"""`credence status`: what the status page shows, in short, in the terminal."""

from __future__ import annotations

import argparse
import os
import secrets
import time
from datetime import UTC, datetime
from typing import Any
from unicodedata import category

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from service.app.monitor_wiring import model_monitor
from service.config.loader import load_settings
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.assessments import AssessmentState
from service.serving.documents.findings import Finding
from service.serving.documents.group_measures import GroupState
from service.serving.documents.groups import GroupTable, group_table
from service.serving.documents.models import AttributeState, ModelState, Thresholds, model_state
from service.serving.documents.performance_documents import PerformanceSummary
from service.serving.documents.words import cell_of_interval, cell_of_probability, percent
from service.serving.measures import measures_of
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.lease import shared_hash_key

_MOST_GROUPS = 20
_MOST_FINDINGS = 10
_MOST_NEXT = 3
_PARTIAL = 0.01
"""A group that may miss so much of its traffic is marked as partial; the page does the same."""
_FOLDED = 0.05
"""An attribute with so much of the traffic in `__other__` has a line; the alert begins there too."""
_STYLE: dict[str, Any] = {
    "box": SIMPLE_HEAD,
    "padding": (0, 1, 0, 0),
    "show_edge": False,
    "title_justify": "left",
}
_FAILED = "bold red"


def status(options: argparse.Namespace) -> int:
    """Print what is believed now."""
    settings = load_settings(options.config, os.environ)
    connection = Connection(build_redis(settings.redis), settings.redis.prefix)
    hash_key = settings.hash_key_bytes() or shared_hash_key(connection)
    rng = np.random.default_rng(secrets.randbits(128))
    snapshots = [
        model_monitor(settings, name, connection, hash_key=hash_key, rng=rng).refresh(time.time())
        for name in settings.models
    ]
    Console().print(status_view(snapshots))
    return 0


def shown(name: str) -> str:
    """A name that came with messages, without what would drive the terminal instead of being shown."""
    return "".join("\N{REPLACEMENT CHARACTER}" if category(c)[0] == "C" else c for c in name)


def status_view(snapshots: list[ModelSnapshot]) -> Group:
    """Everything that a terminal needs to show."""
    return Group(*(part for snapshot in snapshots for part in _model_view(snapshot)))


def _model_view(snapshot: ModelSnapshot) -> list[Table | Text]:
    state = model_state(snapshot)
    parts: list[Table | Text] = [Text(f"\n{_headline(state)}", style="bold")]
    if not state.groupings:
        return [*parts, Text("no traffic yet")]
    parts += _findings(state)
    parts += [Text(f"! {shown(one.sentence)}", style="bold red") for one in state.changes[:_MOST_FINDINGS]]
    parts += [
        Text(shown(_folded(one)), style="yellow") for one in state.attributes if one.other_share >= _FOLDED
    ]
    parts += [_performance(one) for one in state.performances]
    parts.append(Text(shown(state.drift.sentence), style="bold" if state.drift.drifted_groups else "dim"))
    for grouping in state.groupings:
        told = group_table(snapshot, grouping.name, limit=_MOST_GROUPS)
        parts.append(_grouping_table(told, state.thresholds))
        if any(group.cost for group in told.groups):
            parts.append(_cost_table(group_table(snapshot, grouping.name, sort="cost", limit=_MOST_GROUPS)))
    if state.thresholds.min_accuracy is not None:
        parts.append(_legend())
    if state.assessments:
        parts.append(_assessment_table(state.assessments))
    parts += [_member_table(one) for one in state.assessments if one.members]
    parts += [_challenge_table(one) for one in state.assessments if one.challenge]
    return parts


def _headline(state: ModelState) -> str:
    told = [
        f"{state.predictions:,} predictions",
        f"{state.outcomes:,} outcomes",
        f"{state.pool_items:,} items pooled",
    ]
    if state.last_label_at is not None:
        told.append(f"last label {_moment(state.last_label_at)}")
    return f"{state.model}: {', '.join(told)}"


def _findings(state: ModelState) -> list[Text]:
    wanted = [w for w in (state.thresholds.min_accuracy, state.thresholds.max_ece) if w is not None]
    if not wanted:
        return [
            Text("no threshold of groups is configured (alerts.min_accuracy, alerts.max_ece)", style="dim")
        ]
    if not state.findings:
        sure = percent(state.thresholds.confidence)
        return [Text(f"no group violates a threshold ({sure} confidence)", style="green")]
    lines = [Text(f"! {shown(_finding(one))}", style="bold red") for one in state.findings[:_MOST_FINDINGS]]
    if state.finding_count > _MOST_FINDINGS:
        lines.append(Text(f"! and {state.finding_count - _MOST_FINDINGS} more", style="bold red"))
    return lines


def _finding(finding: Finding) -> str:
    if finding.grouping == "all":
        return finding.sentence
    return f"{finding.sentence} It has {percent(finding.share)} of the traffic."


def _folded(attribute: AttributeState) -> str:
    """How much of the traffic has a value of an attribute that is not told apart."""
    return (
        f"attribute {attribute.attribute}: {percent(attribute.other_share)} of traffic in __other__; "
        f"{attribute.values:,} values have groups (bounds.attribute_values: {attribute.limit:,})"
    )


def _performance(one: PerformanceSummary) -> Text:
    """How a binary classifier does; as a finding, where a target is known to be missed."""
    missed = any(measure.verdict == "fails" for measure in one.measures)
    return Text(f"{'! ' if missed else ''}{one.name}: {shown(one.sentence)}", style=_FAILED if missed else "")


def _grouping_table(told: GroupTable, thresholds: Thresholds) -> Table:
    table = Table(title=_title(told.grouping), **_STYLE)
    table.add_column("group", overflow="fold", min_width=8)
    columns = [
        each.column
        for name, each in measures_of(GroupState)
        if each.column and any(getattr(group, name) is not None for group in told.groups)
    ]
    for column in columns:
        heading = column.heading.format(min_accuracy=100 * (thresholds.min_accuracy or 0))
        table.add_column(heading, justify="right", no_wrap=True)
    for group in told.groups:
        name = f"{shown(group.group)}{' (drifted)' if group.drifted else ''}{_partial(group)}"
        cells = (Text(one.text(group), style=_FAILED if one.has_failed(group) else "") for one in columns)
        table.add_row(Text(name), *cells)
    if told.total > len(told.groups):
        table.caption = f"{told.total - len(told.groups)} more groups are not shown"
    return table


def _cost_table(told: GroupTable) -> Table:
    table = Table(title=f"\nexpected cost, by {told.grouping}", **_STYLE)
    table.add_column("group", overflow="fold", min_width=8)
    table.add_column("cost", justify="right", no_wrap=True)
    for group in told.groups:
        if group.cost is not None:
            table.add_row(Text(shown(group.group)), cell_of_interval(group.cost, scale=1, decimals=3))
    return table


def _legend() -> Text:
    return Text("~40, 2 h: about 40 more labels (2 h) until decided", style="dim")


def _title(grouping: str) -> str:
    what = (
        "all traffic" if grouping == "all" else f"by {grouping}, sorted by probability of being below target"
    )
    return f"\n{what}"


def _partial(group: GroupState) -> str:
    """That some of a group's traffic may be counted elsewhere, where it is worth saying."""
    if group.missed_traffic < _PARTIAL:
        return ""
    return f" (partial: up to {group.missed_traffic:.0%} in __other__)"


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _assessment_table(states: list[AssessmentState]) -> Table:
    table = Table(title="\nassessments", **_STYLE)
    table.add_column("name", overflow="fold", min_width=8)
    for heading in ("issued", "answered", "expired", "open", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("found", "asks next"):
        table.add_column(heading, min_width=12)
    for state in states:
        table.add_row(
            state.name,
            *(str(state.events[event]) for event in ("issued", "answered", "expired")),
            f"{state.open_requests}",
            f"{state.budget.remaining}",
            Text(shown(state.found)),
            Text(shown(", ".join(f"{one.group} {one.probability:.0%}" for one in state.next[:_MOST_NEXT]))),
        )
    return table


def _member_table(state: AssessmentState) -> Table:
    table = Table(title=f"\n{state.name}: the ensemble and its members", **_STYLE)
    table.add_column("member", overflow="fold", min_width=8)
    for heading in ("precision %", "labels", "calls positive", "target missed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for member in state.members:
        table.add_row(
            Text(shown(member.member)),
            cell_of_interval(member.precision),
            f"{member.labels:.0f}",
            f"{member.share:.1%}",
            "" if member.missed is None else cell_of_probability(member.missed),
        )
    return table


def _challenge_table(state: AssessmentState) -> Table:
    table = Table(title=f"\n{state.name}: challenger minus model, in points", **_STYLE)
    table.add_column("group", overflow="fold", min_width=8)
    for heading in ("difference", "better", "worse", "disagree", "labels"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in state.challenge:
        told = one.difference
        table.add_row(
            Text(shown(one.group)),
            f"{100 * told.mean:+.1f} [{100 * told.lower:+.1f}, {100 * told.upper:+.1f}]",
            cell_of_probability(one.better),
            cell_of_probability(one.worse),
            f"{one.disagreement:.1%}",
            f"{one.labels:.0f}",
        )
    return table
