"""Groups of which a threshold is known to be crossed: with enough labels, and with confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from service.cells import ALL
from service.grouping_snapshot import GroupingSnapshot
from service.report.documents import Finding, Interval
from service.report.words import percent, place, probability
from service.snapshot import ModelSnapshot
from service.timeline import Moment

Kind = Literal["accuracy_low", "miscalibrated"]


@dataclass(frozen=True)
class Since:
    """When something was first believed without a break.

    Attributes:
        time: seconds since the epoch.
        or_earlier: whether memory does not reach further back.
    """

    time: float
    or_earlier: bool


def _crossed(grouping: GroupingSnapshot) -> list[tuple[Kind, npt.NDArray[np.bool_]]]:
    return [("accuracy_low", grouping.low), ("miscalibrated", grouping.miscalibrated)]


def findings(snapshot: ModelSnapshot) -> list[Finding]:
    """All findings of a model: those about all traffic first, then the likeliest, then the largest."""
    told = [
        _finding(snapshot, name, grouping, kind, group)
        for name, grouping in snapshot.groupings.items()
        for kind, crossed in _crossed(grouping)
        for group in np.flatnonzero(crossed).tolist()
    ]
    return sorted(told, key=lambda one: (one.grouping != ALL, -round(one.probability, 3), -one.share))


def finding_count(grouping: GroupingSnapshot) -> int:
    """Groups of a grouping of which a threshold is crossed."""
    return int((grouping.low | grouping.miscalibrated).sum())


def since(past: Sequence[Moment], kind: Kind, grouping: str, group: str) -> Since | None:
    """When a finding was first believed without a break up to now; None where that is not remembered.

    Args:
        past: moments, oldest first.
        kind: of the finding.
        grouping: its name.
        group: its name.
    """
    begun: Since | None = None
    for moment in reversed(past):
        there = moment.groupings.get(grouping)
        index = None if there is None else there.index.get(group)
        if there is None or index is None:
            break
        crossed = there.low if kind == "accuracy_low" else there.miscalibrated
        if not crossed[index]:
            return None if begun is None else Since(begun.time, or_earlier=False)
        begun = Since(moment.time, or_earlier=True)
    return begun


def _finding(
    snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, kind: Kind, group: int
) -> Finding:
    alerts, low = snapshot.settings.alerts, kind == "accuracy_low"
    column, threshold = (
        (grouping.accuracy_below, alerts.min_accuracy) if low else (grouping.ece_above, alerts.max_ece)
    )
    if column is None or threshold is None:
        raise ValueError(f"{kind} has no threshold")
    ends = (
        (grouping.accuracy_lower, grouping.accuracy_mean, grouping.accuracy_upper)
        if low
        else (grouping.ece_lower, grouping.ece_mean, grouping.ece_upper)
    )
    lower, mean, upper = (float(values[group]) for values in ends)
    believed, there = float(column[group]), place(name, grouping.groups[group])
    begun = since(snapshot.past, kind, name, grouping.groups[group])
    interval = f"{percent(mean)} [{percent(lower)}, {percent(upper)}]"
    told = (
        f"Accuracy on {there} is below {percent(threshold)} with a probability of {probability(believed)}"
        if low
        else f"The calibration error on {there} is above {percent(threshold)} with a probability of "
        f"{probability(believed)}"
    )
    return Finding(
        kind=kind,
        grouping=name,
        group=grouping.groups[group],
        probability=believed,
        share=float(grouping.beliefs.shares[group]),
        value=Interval(lower=lower, mean=mean, upper=upper),
        threshold=threshold,
        since=begun.time if begun else snapshot.taken_at,
        since_or_earlier=begun.or_earlier if begun else not snapshot.past,
        sentence=f"{told}: it is believed to be {interval}.",
    )
