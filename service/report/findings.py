"""Groups of which a threshold is known to be crossed: with enough labels, and with confidence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from service.cells import ALL
from service.grouping_snapshot import GroupingSnapshot
from service.report import words
from service.report.documents import Finding, Interval, Verdict
from service.snapshot import ModelSnapshot
from service.timeline import Kind

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
MOST_FINDINGS = 50


def findings(snapshot: ModelSnapshot) -> list[Finding]:
    """What is to be told first: about all traffic, then the likeliest, then the largest groups."""
    gravest: list[tuple[tuple[bool, float, float], str, Kind, int]] = []
    for name, grouping in snapshot.groupings.items():
        for kind, crossed, column in _columns(grouping):
            for group in np.flatnonzero(crossed).tolist():
                order = (name != ALL, -round(float(column[group]), 3), -float(grouping.beliefs.shares[group]))
                gravest.append((order, name, kind, group))
    gravest.sort()
    return [
        _finding(snapshot, name, snapshot.groupings[name], kind, group)
        for _, name, kind, group in gravest[:MOST_FINDINGS]
    ]


def finding_count(grouping: GroupingSnapshot) -> int:
    """Thresholds of a grouping's groups that are known to be crossed."""
    return int(grouping.low.sum() + grouping.miscalibrated.sum())


def _columns(grouping: GroupingSnapshot) -> Iterator[tuple[Kind, Flags, Floats]]:
    """Whether groups cross every threshold that there is, and how likely."""
    if grouping.accuracy_below is not None:
        yield "accuracy_low", grouping.low, grouping.accuracy_below
    if grouping.ece_above is not None:
        yield "miscalibrated", grouping.miscalibrated, grouping.ece_above


def verdict(grouping: GroupingSnapshot, group: int) -> Verdict:
    """Whether a group meets the accuracy threshold, as far as labels tell."""
    if grouping.accuracy_below is None:
        return "none"
    if grouping.low[group]:
        return "fails"
    return "meets" if grouping.meets[group] else "open"


def _finding(
    snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, kind: Kind, group: int
) -> Finding:
    low = kind == "accuracy_low"
    alerts = snapshot.settings.alerts
    threshold = alerts.min_accuracy if low else alerts.max_ece
    column = grouping.accuracy_below if low else grouping.ece_above
    if column is None or threshold is None:
        raise ValueError(f"{kind} has no threshold")
    ends = (
        (grouping.accuracy_lower, grouping.accuracy_mean, grouping.accuracy_upper)
        if low
        else (grouping.ece_lower, grouping.ece_mean, grouping.ece_upper)
    )
    lower, mean, upper = (float(values[group]) for values in ends)
    believed, group_name = float(column[group]), grouping.groups[group]
    claim = (
        f"Accuracy on {words.place(name, group_name)} is below {100 * threshold:g} %"
        if low
        else f"The calibration error on {words.place(name, group_name)} is above {100 * threshold:g} %"
    )
    begun = snapshot.since[kind, name, group_name]
    return Finding(
        kind=kind,
        grouping=name,
        group=group_name,
        probability=believed,
        share=float(grouping.beliefs.shares[group]),
        labels=int(grouping.beliefs.labels_counted[group]),
        value=Interval(lower=lower, mean=mean, upper=upper),
        threshold=threshold,
        since=begun.time,
        since_or_earlier=begun.or_earlier,
        sentence=f"{claim} with a probability of {words.probability(believed)}: it is believed to be "
        f"{words.percent_interval(lower, mean, upper)}.",
    )
