"""What snapshots tell of drift, as Prometheus samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from service.domain.arrays import Floats
from service.monitoring.drift import GroupingDrift
from service.monitoring.prominence import OTHER
from service.monitoring.snapshot import ModelSnapshot
from service.serving.metric_selection import ShownGroups

Row = tuple[str, tuple[str, ...], float]
"""A metric's name, values of its labels, and its value."""


def drift_rows(snapshot: ModelSnapshot, shown: Mapping[str, ShownGroups]) -> Iterator[Row]:
    """All samples of one model; what is not known has none.

    Args:
        snapshot: of the model.
        shown: which groups have samples of their own, by grouping.
    """
    at, drift = (snapshot.model,), snapshot.drift
    yield "credence_drift_max_distance_ratio", at, snapshot.settings.drift.max_distance
    if drift is None:
        return
    yield "credence_drift_reference_predictions", at, drift.reference_predictions
    yield "credence_drift_recent_predictions", at, drift.recent_predictions
    yield "credence_drift_reference_end_timestamp_seconds", at, drift.reference_until
    for name, told in drift.groupings.items():
        yield from _grouping_rows((snapshot.model, name), shown[name], told)


def _grouping_rows(at: tuple[str, str], shown: ShownGroups, drift: GroupingDrift) -> Iterator[Row]:
    names, rest = shown.names, None if shown.other is None else shown.other.members
    yield "credence_grouping_groups_drifted", at, int(drift.drifted.sum())
    for metric, values in {
        "credence_group_drift_score": drift.suspicion,
        "credence_group_drifted": drift.drifted.astype(np.float64),
    }.items():
        yield from _told(metric, at, names, values[shown.members])
        if rest is not None:
            yield metric, (*at, OTHER), float(values[rest].max())
    for metric, values in {
        "credence_group_ks_statistic": drift.score_difference,
        "credence_group_volume_ratio": drift.volume_ratio,
        "credence_group_expected_accuracy_ratio": drift.expected_accuracy,
        "credence_group_below_expected_probability": drift.below_expected,
    }.items():
        yield from _told(metric, at, names, values[shown.members])
    for mix, told in drift.mixes.items():
        metric = "credence_group_drift_distance"
        yield from _told(metric, at, names, told.distance[shown.members], mix)
        if rest is not None and not np.isnan(told.distance[rest]).all():
            yield metric, (*at, OTHER, mix), float(np.nanmax(told.distance[rest]))


def _told(metric: str, at: tuple[str, str], groups: list[str], values: Floats, *more: str) -> Iterator[Row]:
    for group, value in zip(groups, values.tolist(), strict=True):
        if math.isfinite(value):
            yield metric, (*at, group, *more), value
