"""What was believed as time went by: a bounded memory of snapshots, and how to remember after a restart.

Beliefs are functions of the facts, so those of an earlier time can be computed anew from the labels that
were there then. Traffic is kept as it is now; groups are weighed by today's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.believing import believed_groupings
from service.cells import CellSpace
from service.grouping_snapshot import GroupingSnapshot
from service.ledger import OutcomeLedger
from service.model_settings import ModelSettings
from service.store.facts import TrafficFacts

Floats = npt.NDArray[np.float64]

POINTS = 96
"""Moments that are remembered."""


@dataclass(frozen=True)
class PastGrouping:
    """What was believed of the groups told one by one; arrays are [told]."""

    index: Mapping[str, int]
    accuracy: tuple[Floats, Floats, Floats]
    """Lower ends, means, upper ends."""
    ece: tuple[Floats, Floats, Floats]
    low: npt.NDArray[np.bool_]
    miscalibrated: npt.NDArray[np.bool_]
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moment:
    """What was believed at one time of all groupings."""

    time: float
    groupings: Mapping[str, PastGrouping]


def moment(time: float, groupings: Mapping[str, GroupingSnapshot]) -> Moment:
    """What is to be remembered of snapshots."""
    return Moment(time, {name: _past(grouping) for name, grouping in groupings.items()})


def past_moment(
    *,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    ledger: OutcomeLedger,
    before: Mapping[str, GroupingSnapshot],
    at: float,
) -> Moment:
    """What was believed at an earlier time, by the labels that were there then.

    Args:
        settings: of the model.
        space: its cells.
        traffic: its traffic now.
        ledger: its outcomes.
        before: snapshots, whose groups told one by one are those remembered.
        at: seconds since the epoch.
    """
    told = {name: told_names(grouping) for name, grouping in before.items()}
    groupings = believed_groupings(
        settings=settings,
        space=space,
        traffic=traffic,
        ledger=ledger,
        metric_groups=max((len(names) for names in told.values()), default=1),
        at=at,
        told_before=told,
    )
    return moment(at, groupings)


def told_names(grouping: GroupingSnapshot) -> set[str]:
    """Names of the groups told one by one."""
    return {grouping.groups[g] for g in grouping.told}


def _past(grouping: GroupingSnapshot) -> PastGrouping:
    told = grouping.told
    return PastGrouping(
        index={grouping.groups[g]: i for i, g in enumerate(told)},
        accuracy=(grouping.accuracy_lower[told], grouping.accuracy_mean[told], grouping.accuracy_upper[told]),
        ece=(grouping.ece_lower[told], grouping.ece_mean[told], grouping.ece_upper[told]),
        low=grouping.low[told],
        miscalibrated=grouping.miscalibrated[told],
        labels=grouping.beliefs.labels_counted[told],
    )


class Timeline:
    """Remembers moments on a grid of times.

    Args:
        span_seconds: how far back.
    """

    def __init__(self, span_seconds: float) -> None:
        self._span = span_seconds
        self._step = span_seconds / POINTS
        self._moments: dict[int, Moment] = {}

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All that is remembered, oldest first."""
        return tuple(self._moments[number] for number in sorted(self._moments))

    def remember(self, remembered: Moment) -> None:
        """Keep a moment, the first one of its step, and forget what is too old."""
        number = int(remembered.time // self._step)
        self._moments.setdefault(number, remembered)
        oldest = max(self._moments) - POINTS
        self._moments = {n: kept for n, kept in self._moments.items() if n > oldest}

    def missing(self, *, now: float, first_label_at: float | None) -> float | None:
        """The latest time that is not remembered but had labels; None when nothing is missing."""
        if first_label_at is None:
            return None
        current = int(now // self._step)
        earliest = max(current - POINTS + 1, int(first_label_at // self._step) + 1)
        for number in range(current, earliest - 1, -1):
            if number not in self._moments:
                return number * self._step
        return None
