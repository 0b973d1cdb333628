"""Which groups of a large grouping matter most: they have metrics and a history of their own (pure)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.drift import ModelDrift
from service.monitoring.grouping_snapshot import GroupingSnapshot

OTHER = "other"  # stands for all groups of a grouping that are not prominent

_LOYALTY = 4
"""A group that was prominent before is preferred by a quarter of the places, so that series do not flap."""


def prominent_groups(
    name: str, grouping: GroupingSnapshot, drift: ModelDrift | None, *, limit: int, before: Collection[str]
) -> Indices:
    """Prominent groups, ascending [chosen].

    Those that alert come first, then, in turn, the least accurate and those with the widest intervals for
    their traffic. A group that is named `OTHER` never is prominent where there are more than the limit.
    Groups that were prominent `before` are preferred.
    """
    if len(grouping.groups) <= limit:
        return np.arange(len(grouping.groups))
    alerts = grouping.low | grouping.miscalibrated
    if grouping.evidence is not None:
        alerts = alerts | grouping.evidence.alarming
    if drift is not None and name in drift.groupings:
        alerts = alerts | drift.groupings[name].drifted
    width = grouping.accuracy.upper - grouping.accuracy.lower
    return first_places(
        grouping.groups,
        mean=grouping.accuracy.mean,
        uncertainty=grouping.beliefs.shares * width,
        alerts=alerts,
        limit=limit,
        before=before,
    )


def first_places(
    names: list[str], *, mean: Floats, uncertainty: Floats, alerts: Flags, limit: int, before: Collection[str]
) -> Indices:
    """Groups that come first, ascending [limit]; fewer where one of them is named `OTHER`.

    By their mean accuracy, the width of its interval times their share of traffic, and whether an alert would
    name them [G].
    """
    worst, unknown = _ranks(mean), _ranks(-uncertainty)
    place = np.minimum(2 * worst, 2 * unknown + 1)
    kept = set(before)
    place -= np.array([name in kept for name in names]) * (limit / _LOYALTY)
    nameless = np.array([name == OTHER for name in names])
    order = np.lexsort((place, ~alerts, nameless))
    return np.sort(order[: min(limit, len(names) - int(nameless.sum()))])


def _ranks(values: Floats) -> Floats:
    # scipy.stats has a function for this, but takes half as long to import as all of the monitor.
    return np.argsort(np.argsort(values, kind="stable")).astype(np.float64)
