"""The groups of a grouping, sorted: the document, made from a snapshot."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from service.domain.arrays import Floats
from service.domain.errors import NotKnown
from service.monitoring.drift import GroupingDrift
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Seconds, Verdict
from service.serving.documents.evidence import group_evidence
from service.serving.documents.group_measures import ChangePointState, GroupState
from service.serving.metrics import read_measures

SortKey = Literal[
    "evidence", "accuracy", "group", "share", "labels", "ece", "gap", "cost", "uncertainty", "drift"
]
Order = Literal["asc", "desc"]


class GroupTable(Document):
    """Groups of one grouping, sorted."""

    model: str
    taken_at: Seconds
    grouping: str
    sort: SortKey
    total: int = Field(description="groups that match the search")
    groups: list[GroupState]


def group_table(
    snapshot: ModelSnapshot,
    grouping_name: str,
    *,
    sort: SortKey = "evidence",
    order: Order | None = None,
    search: str = "",
    group: str | None = None,
    limit: int = 100,
    offset: int = 0,
) -> GroupTable:
    """Groups of one grouping, sorted; without an order, the most alarming first.

    Only groups whose name contains `search` in any case are listed, or `group` alone.

    Raises:
        NotKnown: there is no such grouping, or it has had no traffic.
    """
    grouping = find_grouping(snapshot, grouping_name)
    wanted = search.casefold()
    fitting = np.array(
        [g for g, name in enumerate(grouping.groups) if wanted in name.casefold() and group in {None, name}],
        dtype=np.intp,
    )
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(grouping_name)
    values, alarming = _sort_values(grouping, drift, sort)
    ranks = np.unique(values, return_inverse=True)[1]
    descending = (order or alarming) == "desc"
    ordered = fitting[np.argsort(-ranks[fitting] if descending else ranks[fitting], kind="stable")]
    return GroupTable.of(
        snapshot,
        grouping=grouping_name,
        sort=sort,
        total=len(fitting),
        groups=[
            group_state(snapshot, grouping_name, grouping, int(g)) for g in ordered[offset : offset + limit]
        ],
    )


def group_state(
    snapshot: ModelSnapshot, grouping_name: str, grouping: GroupingSnapshot, group: int
) -> GroupState:
    """The estimates of one group."""
    name = grouping.groups[group]
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(grouping_name)
    begun = snapshot.since.get(("accuracy_low", grouping_name, name))
    change = grouping.change_points.get(name)
    return GroupState(
        **read_measures(GroupState, grouping, group),
        group=name,
        verdict=_verdict(grouping, group),
        drifted=None if drift is None else bool(drift.drifted[group]),
        drift_score=None if drift is None else float(drift.score[group]),
        evidence=group_evidence(grouping_name, grouping, group, snapshot.settings),
        low_since=None if begun is None else begun.time,
        low_since_or_earlier=begun is not None and begun.or_earlier,
        change_point=None
        if change is None
        else ChangePointState.of(change, labels_before=change.before, kept=change.weight),
    )


def _verdict(grouping: GroupingSnapshot, group: int) -> Verdict:
    """Whether a group meets the accuracy threshold."""
    if not grouping.has_min_accuracy[group]:
        return "none"
    if grouping.low[group]:
        return "fails"
    return "meets" if grouping.meets[group] else "open"


def find_grouping(snapshot: ModelSnapshot, name: str) -> GroupingSnapshot:
    """A grouping by name.

    Raises:
        NotKnown: there is none, or it has had no traffic.
    """
    if name not in snapshot.groupings:
        raise NotKnown("the model has no such grouping, or no traffic yet")
    return snapshot.groupings[name]


def find_group(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> tuple[GroupingSnapshot, int]:
    """A grouping, and the position of one of its groups.

    Raises:
        NotKnown: there is none, or it has had no traffic.
    """
    grouping = find_grouping(snapshot, grouping_name)
    if group_name not in grouping.groups:
        raise NotKnown("the grouping has no such group, or it has had no traffic")
    return grouping, grouping.groups.index(group_name)


def _sort_values(
    grouping: GroupingSnapshot, drift: GroupingDrift | None, sort: SortKey
) -> tuple[npt.NDArray[np.generic], Order]:
    """What groups are sorted by, and which end is alarming."""
    beliefs = grouping.beliefs
    cost = grouping.cost
    columns: dict[SortKey, tuple[npt.NDArray[np.generic], Order]] = {
        "evidence": (_evidence(grouping), "desc"),
        "accuracy": (grouping.accuracy.mean, "asc"),
        "group": (np.array([name.casefold() for name in grouping.groups]), "asc"),
        "share": (beliefs.shares, "desc"),
        "labels": (beliefs.labels_counted, "desc"),
        "ece": (grouping.ece.mean, "desc"),
        "gap": (beliefs.scores - grouping.accuracy.mean, "desc"),
        "cost": (cost.mean if cost else np.zeros(len(grouping.groups)), "desc"),
        "drift": (np.zeros(len(grouping.groups)) if drift is None else drift.score, "desc"),
        "uncertainty": (grouping.accuracy.upper - grouping.accuracy.lower, "desc"),
    }
    return columns[sort]


def _evidence(grouping: GroupingSnapshot) -> Floats:
    """Evidence that a group is bad: the probability of its being below the threshold, then its accuracy."""
    below = np.zeros(len(grouping.groups)) if grouping.accuracy_below is None else grouping.accuracy_below
    worse: Floats = np.round(np.nan_to_num(below), 2) - grouping.accuracy.mean * 1e-3
    return worse
