"""Groups that violate a threshold: the document, made from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from service.config.model import AlertSettings
from service.domain.arrays import Flags, Floats
from service.domain.groupings import ALL
from service.monitoring.anytime_tests import EvidenceKind
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import Kind
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Interval, Seconds, Verdict
from service.serving.documents.evidence import is_confirmed
from service.statistics.estimate import Estimate

MOST_FINDINGS = 50

_CLAIMS: dict[Kind, str] = {
    "accuracy_low": "Accuracy on {} is below",
    "miscalibrated": "The calibration error on {} is above",
}
_EVIDENCE: dict[Kind, tuple[EvidenceKind, str]] = {
    "accuracy_low": ("below_threshold", " Evidence confirms it."),
    "miscalibrated": ("miscalibrated", " Evidence confirms that its scores are miscalibrated."),
}


class Finding(Document):
    """A group that violates a threshold: with enough labels, and at least with `confidence`."""

    kind: Kind
    grouping: str
    group: str
    probability: float = Field(description="posterior probability that the threshold is violated")
    share: float = Field(description="the group's share of the traffic")
    labels: int = Field(description="labels of the group")
    value: Interval = Field(description="accuracy, or expected calibration error")
    threshold: float
    since: Seconds = Field(
        description="since when it has been violated without a break, within the history that is kept"
    )
    since_or_earlier: bool = Field(description="whether the violation may have begun before `since`")
    confirmed: bool = Field(description="whether anytime-valid evidence confirms it")
    sentence: str = Field(description="the same in words")


@dataclass(frozen=True)
class _Threshold:
    """One threshold of a grouping, and which of its groups violate it; arrays are [G]."""

    kind: Kind
    limit: float
    crossed: Flags
    probability: Floats
    measured: Estimate


def findings(snapshot: ModelSnapshot) -> list[Finding]:
    """Findings about all traffic first, then the most probable ones, then those of the largest groups."""
    crossings = []
    for name, grouping in snapshot.groupings.items():
        for threshold in _thresholds(grouping, snapshot.settings.alerts):
            for group in np.flatnonzero(threshold.crossed).tolist():
                probability = float(threshold.probability[group])
                order = (name != ALL, -round(probability, 3), -float(grouping.beliefs.shares[group]))
                crossings.append((order, name, threshold.kind, group, threshold))
    gravest = sorted(crossings, key=lambda crossing: crossing[:4])[:MOST_FINDINGS]
    return [_finding(snapshot, name, group, threshold) for _, name, _, group, threshold in gravest]


def finding_count(grouping: GroupingSnapshot) -> int:
    """Number of violated thresholds of a grouping's groups."""
    return int(grouping.low.sum() + grouping.miscalibrated.sum())


def verdict(grouping: GroupingSnapshot, group: int) -> Verdict:
    """Whether a group meets the accuracy threshold."""
    if grouping.accuracy_below is None:
        return "none"
    if grouping.low[group]:
        return "fails"
    return "meets" if grouping.meets[group] else "open"


def _thresholds(grouping: GroupingSnapshot, alerts: AlertSettings) -> Iterator[_Threshold]:
    if alerts.min_accuracy is not None and grouping.accuracy_below is not None:
        yield _Threshold(
            "accuracy_low",
            alerts.min_accuracy,
            grouping.low,
            grouping.accuracy_below,
            grouping.accuracy,
        )
    if alerts.max_ece is not None and grouping.ece_above is not None:
        yield _Threshold(
            "miscalibrated",
            alerts.max_ece,
            grouping.miscalibrated,
            grouping.ece_above,
            grouping.ece,
        )


def _finding(snapshot: ModelSnapshot, name: str, group: int, threshold: _Threshold) -> Finding:
    grouping = snapshot.groupings[name]
    group_name, value = grouping.groups[group], Interval.at_index(threshold.measured, group)
    probability = float(threshold.probability[group])
    begun = snapshot.since[threshold.kind, name, group_name]
    claim = _CLAIMS[threshold.kind].format(words.place(name, group_name))
    evidence, confirmation = _EVIDENCE[threshold.kind]
    confirmed = is_confirmed(grouping, evidence, group)
    return Finding(
        kind=threshold.kind,
        grouping=name,
        group=group_name,
        probability=probability,
        share=float(grouping.beliefs.shares[group]),
        labels=int(grouping.beliefs.labels_counted[group]),
        value=value,
        threshold=threshold.limit,
        since=begun.time,
        since_or_earlier=begun.or_earlier,
        confirmed=confirmed,
        sentence=f"{claim} {100 * threshold.limit:g}% with a probability of "
        f"{words.probability(probability)}: the estimate is {words.percent_interval(value)}."
        f"{confirmation if confirmed else ''}",
    )
