"""Thresholds of groups as arrays (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.config.alerts import AlertSettings, Measure
from service.domain.arrays import Floats
from service.domain.groupings import Grouping


def group_thresholds(alerts: AlertSettings, measure: Measure, by: Grouping, groups: Sequence[str]) -> Floats:
    """The threshold of every group of a grouping, as of `AlertSettings.threshold`; NaN without one [G]."""
    usual = alerts.threshold(measure, by)
    own = {group: alerts.threshold(measure, by, group) for group in alerts.named_groups(by.name)}
    return np.array([own.get(group, usual) for group in groups], np.float64)
