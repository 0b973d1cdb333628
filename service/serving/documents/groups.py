"""Snapshots as the documents of groups: tables, reliability, what was believed earlier, confusion."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Floats, Indices
from service.domain.errors import NotKnown
from service.monitoring.drift import GroupingDrift
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import PastGrouping
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.evidence import group_evidence
from service.serving.documents.findings import verdict
from service.serving.documents.group_documents import (
    ConfusionMatrix,
    ConfusionRow,
    FrequentMistake,
    GroupTable,
    Reliability,
    ReliabilityBin,
    SortKey,
    Timeline,
    TimelinePoint,
)
from service.serving.documents.group_measures import GroupState, Relearning
from service.serving.documents.schemas import Interval
from service.serving.measures import read_measures
from service.statistics.confusion import Confusion
from service.statistics.estimate import Estimate

Order = Literal["asc", "desc"]

_MOST_MISTAKES = 20


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
    """Groups of one grouping, sorted.

    Args:
        snapshot: of the model.
        grouping_name: one that has traffic.
        sort: by what.
        order: ascending or descending; if None, the most alarming first.
        search: part of the names wanted, in any case.
        group: the one group that is wanted, if it is one.
        limit: groups at most.
        offset: groups left out before.

    Raises:
        NotKnown: there is no such grouping, or it has had no traffic.
    """
    grouping = _grouping(snapshot, grouping_name)
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
    return GroupTable(
        model=snapshot.model,
        taken_at=snapshot.taken_at,
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
    """What is believed of one group."""
    name = grouping.groups[group]
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(grouping_name)
    begun = snapshot.since.get(("accuracy_low", grouping_name, name))
    return GroupState(
        **read_measures(GroupState, grouping, group),
        group=name,
        verdict=verdict(grouping, group),
        drifted=None if drift is None else bool(drift.drifted[group]),
        suspicion=None if drift is None else float(drift.suspicion[group]),
        evidence=group_evidence(grouping_name, grouping, group, snapshot.settings),
        low_since=None if begun is None else begun.time,
        low_since_or_earlier=begun is not None and begun.or_earlier,
        relearned=_relearning(grouping, name),
    )


def _relearning(grouping: GroupingSnapshot, name: str) -> Relearning | None:
    change = grouping.relearned.get(name)
    if change is None:
        return None
    return Relearning(since=change.since, labels_before=change.before, kept=change.kept)


def reliability(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> Reliability:
    """How accurate a group is where the model says so much.

    Raises:
        NotKnown: there is no such group, or it has had no traffic.
    """
    grouping, group = _found(snapshot, grouping_name, group_name)
    beliefs, edges = grouping.beliefs, (0.0, *snapshot.settings.score_edges, 1.0)
    bin_count = len(edges) - 1
    bins = beliefs.bins.part(np.arange(group * bin_count, (group + 1) * bin_count))
    lower, upper = bins.interval(snapshot.settings.interval)
    accuracy = Estimate(lower, bins.mean(), upper)
    return Reliability(
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        grouping=grouping_name,
        group=group_name,
        ece=Interval.of(grouping.ece, group),
        bins=[
            ReliabilityBin(
                lower_edge=edges[b],
                upper_edge=edges[b + 1],
                share=float(beliefs.cells.shares[group, b]),
                score_mean=float(beliefs.cells.scores[group, b]),
                accuracy=Interval.of(accuracy, b),
            )
            for b in range(bin_count)
            if beliefs.cells.shares[group, b] > 0
        ],
    )


def timeline(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> Timeline:
    """What was believed of a group as time went by, up to now.

    Raises:
        NotKnown: there is no such group, or it has had no traffic.
    """
    grouping, group = _found(snapshot, grouping_name, group_name)
    points = [
        _point(moment.time, there, there.index[group_name])
        for moment in snapshot.past
        if (there := moment.groupings.get(grouping_name)) is not None and group_name in there.index
    ]
    points.append(
        TimelinePoint(
            time=snapshot.taken_at,
            accuracy=Interval.of(grouping.accuracy, group),
            ece=Interval.of(grouping.ece, group),
            labels=int(grouping.beliefs.labels_counted[group]),
        )
    )
    return Timeline(model=snapshot.model, grouping=grouping_name, group=group_name, points=points)


def confusion_matrix(snapshot: ModelSnapshot, *, classes: int) -> ConfusionMatrix:
    """What the true class is, given the predicted one, of the classes that are confused most.

    Args:
        snapshot: of the model.
        classes: how many at most.

    Raises:
        NotKnown: the model has no grouping by predicted class, too many classes, or no traffic.
    """
    told = next((g for g in snapshot.groupings.values() if g.confusion is not None), None)
    if told is None or told.confusion is None:
        raise NotKnown("there is no confusion matrix: no grouping by predicted class, or no traffic yet")
    matrix, shares = told.confusion, told.beliefs.shares
    predicted = matrix.beliefs.predicted
    wrong = matrix.mean * shares[:, None]
    wrong[np.arange(len(predicted)), predicted] = 0.0
    involved = wrong.sum(axis=0)
    involved[predicted] += wrong.sum(axis=1)
    shown = np.sort(np.argsort(-involved, kind="stable")[:classes])
    rows = np.array([g for g in range(len(predicted)) if predicted[g] in shown], dtype=np.intp)
    entries = _entries(snapshot, matrix.beliefs, np.repeat(rows, len(shown)), np.tile(shown, len(rows)))
    frequent = matrix.beliefs.most_frequent(_MOST_MISTAKES)
    mistakes = _entries(snapshot, matrix.beliefs, *frequent)
    return ConfusionMatrix(
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        classes=[matrix.classes[k] for k in shown],
        omitted=len(matrix.classes) - len(shown),
        rows=[
            ConfusionRow(
                predicted=matrix.classes[predicted[g]],
                share=float(shares[g]),
                effective_labels=float(matrix.labels[g]),
                classes=entries[i * len(shown) : (i + 1) * len(shown)],
            )
            for i, g in enumerate(rows)
        ],
        mistakes=[
            FrequentMistake(
                predicted=matrix.classes[predicted[g]],
                true=matrix.classes[k],
                probability=probability,
                frequency=probability.mean * float(shares[g]),
            )
            for g, k, probability in zip(*frequent, mistakes, strict=True)
        ],
    )


def _grouping(snapshot: ModelSnapshot, name: str) -> GroupingSnapshot:
    if name not in snapshot.groupings:
        raise NotKnown("the model has no such grouping, or no traffic yet")
    return snapshot.groupings[name]


def _found(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> tuple[GroupingSnapshot, int]:
    grouping = _grouping(snapshot, grouping_name)
    if group_name not in grouping.groups:
        raise NotKnown("the grouping has no such group, or it has had no traffic")
    return grouping, grouping.groups.index(group_name)


def _entries(
    snapshot: ModelSnapshot, confusion: Confusion, groups: Indices, classes: Indices
) -> list[Interval]:
    settings = snapshot.settings
    found = confusion.entries(groups, classes, mass=settings.interval, kind=settings.interval_kind)
    return [Interval.of(found, i) for i in range(len(groups))]


def _point(time: float, there: PastGrouping, index: int) -> TimelinePoint:
    return TimelinePoint(
        time=time,
        accuracy=Interval.of(there.accuracy, index),
        ece=Interval.of(there.ece, index),
        labels=int(there.labels[index]),
    )


def _sort_values(
    grouping: GroupingSnapshot, drift: GroupingDrift | None, sort: SortKey
) -> tuple[npt.NDArray[np.generic], Order]:
    """What groups are sorted by, and which end is alarming."""
    beliefs = grouping.beliefs
    cost = grouping.cost
    columns: dict[SortKey, tuple[npt.NDArray[np.generic], Order]] = {
        "evidence": (_evidence(grouping), "desc"),
        "accuracy": (grouping.accuracy_mean, "asc"),
        "group": (np.array([name.casefold() for name in grouping.groups]), "asc"),
        "share": (beliefs.shares, "desc"),
        "labels": (beliefs.labels_counted, "desc"),
        "ece": (grouping.ece_mean, "desc"),
        "gap": (beliefs.scores - grouping.accuracy_mean, "desc"),
        "cost": (cost.mean if cost else np.zeros(len(grouping.groups)), "desc"),
        "drift": (np.zeros(len(grouping.groups)) if drift is None else drift.suspicion, "desc"),
        "uncertainty": (grouping.accuracy_upper - grouping.accuracy_lower, "desc"),
    }
    return columns[sort]


def _evidence(grouping: GroupingSnapshot) -> Floats:
    """Evidence that a group is bad: the probability of its being below the threshold, then its accuracy."""
    below = np.zeros(len(grouping.groups)) if grouping.accuracy_below is None else grouping.accuracy_below
    worse: Floats = np.round(below, 2) - grouping.accuracy_mean * 1e-3
    return worse
