"""Estimates of a week ago, which alerts compare those of now with (pure).

They are computed from the labels that were there then, so every process has the same, one that has just
started too. Traffic is as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.monitoring.grouping_snapshot import GroupingSnapshot

_WEEK = 7 * 86_400.0
_STEP = 900.0  # the alert waits as long


@dataclass(frozen=True)
class WeekAgo:
    """Lower ends of the intervals of accuracy, about a week ago, of groups that had enough labels."""

    time: float  # seconds since the epoch
    lower: Mapping[str, Mapping[str, float]]  # by grouping and group


def time_a_week_ago(now: float) -> float:
    """The time whose estimates those of now are compared with; it moves in steps."""
    return (now - _WEEK) // _STEP * _STEP


def week_ago(time: float, groupings: Mapping[str, GroupingSnapshot]) -> WeekAgo:
    """What is needed of the estimates of that time."""
    return WeekAgo(
        time,
        {
            name: {
                grouping.groups[g]: float(grouping.accuracy.lower[g]) for g in np.flatnonzero(grouping.enough)
            }
            for name, grouping in groupings.items()
        },
    )
