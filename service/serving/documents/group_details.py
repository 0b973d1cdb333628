"""One group in detail, its reliability and its history: the documents, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.monitoring.history import moment
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Interval, Seconds
from service.serving.documents.groups import find_group
from service.statistics.estimate import Estimate


class ReliabilityBin(Document):
    """One score bin."""

    lower_edge: float
    upper_edge: float
    share: float = Field(description="of the group's traffic")
    score_mean: float
    accuracy: Interval


class Reliability(Document):
    """Accuracy by score bin: the reliability diagram."""

    model: str
    taken_at: Seconds
    grouping: str
    group: str
    ece: Interval
    bins: list[ReliabilityBin] = Field(description="score bins with traffic")


class TimelinePoint(Document):
    """The estimates at one time."""

    time: Seconds
    accuracy: Interval
    ece: Interval
    labels: int


class Timeline(Document):
    """The history of a group's estimates, each by the labels of its time.

    In large groupings only groups with metrics of their own have a history; others have the current estimate.
    """

    model: str
    grouping: str
    group: str
    points: list[TimelinePoint] = Field(description="oldest first")


def reliability(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> Reliability:
    """How accurate a group is where the model says so much.

    Raises:
        NotKnown: there is no such group, or it has had no traffic.
    """
    grouping, group = find_group(snapshot, grouping_name, group_name)
    beliefs, edges = grouping.beliefs, (0.0, *snapshot.settings.score_edges, 1.0)
    bin_count = len(edges) - 1
    bins = beliefs.bins.part(np.arange(group * bin_count, (group + 1) * bin_count))
    lower, upper = bins.interval(snapshot.settings.interval)
    accuracy = Estimate(lower, bins.mean(), upper)
    return Reliability.of(
        snapshot,
        grouping=grouping_name,
        group=group_name,
        ece=Interval.at_index(grouping.ece, group),
        bins=[
            ReliabilityBin(
                lower_edge=edges[b],
                upper_edge=edges[b + 1],
                share=float(beliefs.cells.shares[group, b]),
                score_mean=float(beliefs.cells.scores[group, b]),
                accuracy=Interval.at_index(accuracy, b),
            )
            for b in range(bin_count)
            if beliefs.cells.shares[group, b] > 0
        ],
    )


def timeline(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> Timeline:
    """The history of a group's estimates, up to now.

    Raises:
        NotKnown: there is no such group, or it has had no traffic.
    """
    grouping, _ = find_group(snapshot, grouping_name, group_name)
    now = moment(snapshot.taken_at, {grouping_name: grouping}, {grouping_name: [group_name]})
    points = [
        TimelinePoint(
            time=each.time,
            accuracy=Interval.at_index(past.accuracy, i),
            ece=Interval.at_index(past.ece, i),
            labels=int(past.labels[i]),
        )
        for each in (*snapshot.past, now)
        if (past := each.groupings.get(grouping_name)) and (i := past.index.get(group_name)) is not None
    ]
    return Timeline(model=snapshot.model, grouping=grouping_name, group=group_name, points=points)
