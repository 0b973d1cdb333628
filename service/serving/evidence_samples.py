"""Evidence about the groups of a grouping as samples of metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from service.domain.arrays import Floats
from service.monitoring.anytime_tests import KINDS
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.prominence import OTHER
from service.serving.metric_selection import ShownGroups

Sample = tuple[str, tuple[str, ...], float]
"""Name of the metric, labels behind those of the grouping, value."""

_LN_10 = math.log(10)


def evidence_samples(grouping: GroupingSnapshot, shown: ShownGroups) -> Iterator[Sample]:
    """Of the groups shown, and of the others together the highest; none of what has no evidence."""
    evidence = grouping.evidence
    if evidence is None:
        return
    changed_at = np.full(len(grouping.groups), np.nan)
    for group, change in evidence.changes.items():
        changed_at[group] = change.at
    for name, values in {
        "credence_group_evidence_labels": evidence.known.labels,
        "credence_group_evidence_reference_labels": evidence.known.reference_labels,
        "credence_group_accuracy_confidence_sequence_lower_ratio": evidence.known.lower,
        "credence_group_accuracy_confidence_sequence_upper_ratio": evidence.known.upper,
        "credence_group_confirmed_change_timestamp_seconds": changed_at,
    }.items():
        yield from _of_groups(name, shown.names, values[shown.members])
    for kind in KINDS:
        log_e = evidence.log_e[kind] / _LN_10
        confirmed = np.where(np.isnan(log_e), np.nan, evidence.confirmed[kind])
        for name, values in {
            "credence_group_evidence_log10": log_e,
            "credence_group_evidence_confirmed": confirmed,
        }.items():
            yield from _of_groups(name, shown.names, values[shown.members], kind)
            if shown.other is not None:
                yield from _highest(name, values[shown.other.members], kind)


def _of_groups(name: str, groups: Sequence[str], values: Floats, *kind: str) -> Iterator[Sample]:
    for group, value in zip(groups, values.tolist(), strict=True):
        if math.isfinite(value):
            yield name, (group, *kind), value


def _highest(name: str, values: Floats, *kind: str) -> Iterator[Sample]:
    known = values[np.isfinite(values)]
    if known.size:
        yield name, (OTHER, *kind), float(known.max())
