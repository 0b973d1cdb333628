"""`credence status`: the snapshot as tables in the terminal."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from service.assessment_snapshot import AssessmentSnapshot
from service.grouping_snapshot import GroupingSnapshot
from service.snapshot import ModelSnapshot

_MOST_GROUPS = 20
_STYLE: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)}


def status_view(snapshots: list[ModelSnapshot]) -> Group:
    """Everything that a terminal needs to show."""
    return Group(*(part for snapshot in snapshots for part in _model_view(snapshot)))


def _model_view(snapshot: ModelSnapshot) -> list[Table | Text]:
    parts: list[Table | Text] = [
        Text(
            f"\n{snapshot.model}: {snapshot.predictions:,} predictions, {snapshot.outcomes:,} outcomes, "
            f"{snapshot.pool_items:,} items pooled",
            style="bold",
        )
    ]
    parts += [_grouping_table(name, grouping) for name, grouping in snapshot.groupings.items()]
    if snapshot.assessments:
        parts.append(_assessment_table(snapshot))
    if not snapshot.groupings:
        parts.append(Text("no traffic yet"))
    return parts


def _grouping_table(name: str, grouping: GroupingSnapshot) -> Table:
    table = Table(title=f"by {name}, least accurate first", title_justify="left", **_STYLE)
    table.add_column("group", no_wrap=True, min_width=10)
    for heading, width in (("share %", 7), ("labels", 6), ("accuracy %", 19), ("ECE %", 18)):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    cost = grouping.confusion.cost.estimate if grouping.confusion and grouping.confusion.cost else None
    if cost is not None:
        table.add_column("cost", justify="right", no_wrap=True, min_width=20)
    order = grouping.accuracy_mean.argsort()
    for i in order[:_MOST_GROUPS]:
        accuracy = (grouping.accuracy_lower[i], grouping.accuracy_mean[i], grouping.accuracy_upper[i])
        expected = () if cost is None else (_interval(cost.lower[i], cost.mean[i], cost.upper[i], 3),)
        table.add_row(
            grouping.groups[i],
            f"{100 * grouping.beliefs.shares[i]:.1f}",
            f"{grouping.beliefs.labels_counted[i]}",
            _percent_interval(*accuracy),
            _percent_interval(grouping.ece_lower[i], grouping.ece_mean[i], grouping.ece_upper[i]),
            *expected,
        )
    if len(order) > _MOST_GROUPS:
        table.caption = f"{len(order) - _MOST_GROUPS} more groups are not shown"
    return table


def _percent_interval(lower: float, mean: float, upper: float) -> str:
    return _interval(100 * lower, 100 * mean, 100 * upper, 1)


def _interval(lower: float, mean: float, upper: float, decimals: int) -> str:
    return f"{mean:.{decimals}f} [{lower:.{decimals}f}, {upper:.{decimals}f}]"


def _assessment_table(snapshot: ModelSnapshot) -> Table:
    table = Table(title="assessments", title_justify="left", **_STYLE)
    table.add_column("name", no_wrap=True, min_width=10)
    for heading in ("issued", "answered", "skipped", "expired", "open", "left"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    table.add_column("found", no_wrap=True, min_width=10)
    for name, state in snapshot.assessments.items():
        table.add_row(
            name,
            *(str(state.events[event]) for event in ("issued", "answered", "skipped", "expired")),
            f"{state.open_requests}",
            f"{state.budget_remaining}",
            _found(state),
        )
    return table


def _found(state: AssessmentSnapshot) -> str:
    """What an assessment has found, and how sure it is."""
    if state.extreme is not None and len(state.groups):
        best = int(state.extreme.argmax())
        return f"{state.end}: {state.groups[best]} ({state.extreme[best]:.0%})"
    if state.compared is not None:
        told = {"below": state.compared.below, "like": state.compared.within, "above": state.compared.above}
        word = max(told, key=lambda verdict: told[verdict])
        return f"{state.compared.first} {word} {state.compared.second} ({told[word]:.0%})"
    return ""
