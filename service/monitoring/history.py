"""Estimates over time: a bounded memory of snapshots, which can be computed again after a restart.

Estimates are functions of the facts, so those of an earlier time can be computed from the labels that
were there then. Traffic is kept as it is now; groups are weighed by today's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Ints
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics.estimate import Estimate

Fault = tuple[
    str, ...
]  # what is wrong, with which group of which grouping, and what else tells it from others
POINTS = 96  # moments that are remembered
_RECALLED = ("accuracy_low", "miscalibrated")  # kinds of fault that moments know of


@dataclass(frozen=True)
class PastGrouping:
    """Estimates of the prominent groups; arrays are [groups]."""

    index: Mapping[str, int]
    accuracy: Estimate
    ece: Estimate
    low: Flags
    miscalibrated: Flags
    labels: Ints


@dataclass(frozen=True)
class Moment:
    """Estimates of all groupings at one time."""

    time: float
    groupings: Mapping[str, PastGrouping]


def moment(
    time: float, groupings: Mapping[str, GroupingSnapshot], names: Mapping[str, Collection[str]]
) -> Moment:
    """Estimates of one time that are remembered: of groups of these names, by grouping."""
    past = {name: _past(grouping, names[name]) for name, grouping in groupings.items() if name in names}
    return Moment(time, past)


def _past(grouping: GroupingSnapshot, names: Collection[str]) -> PastGrouping:
    position = {name: g for g, name in enumerate(grouping.groups)}
    kept = [name for name in sorted(names) if name in position]
    chosen = np.array([position[name] for name in kept], dtype=np.intp)
    return PastGrouping(
        index={name: i for i, name in enumerate(kept)},
        accuracy=grouping.accuracy.part(chosen),
        ece=grouping.ece.part(chosen),
        low=grouping.low[chosen],
        miscalibrated=grouping.miscalibrated[chosen],
        labels=grouping.beliefs.labels_counted[chosen],
    )


@dataclass(frozen=True)
class Since:
    """When something was first known without a break."""

    time: float  # seconds since the epoch
    or_earlier: bool  # whether memory does not reach further back


def faults_since(
    faults: Iterable[Fault],
    *,
    before: Mapping[Fault, Since] | None,
    past: Sequence[Moment],
    now: float,
) -> dict[Fault, Since]:
    """Since when each of the faults of now has been seen, without a break.

    A look that did not see it ends what is remembered. Else the last look is asked, and, as a process that
    has just started recalls earlier moments only bit by bit, these; they know of violated thresholds.
    """
    found: dict[Fault, Since] = {}
    for fault in faults:
        last = None if before is None else before.get(fault)
        if before is not None and last is None:
            found[fault] = Since(now, or_earlier=False)
            continue
        recalled = _recalled(past, fault)
        first = min([now, *(one.time for one in (last, recalled) if one is not None)])
        known = recalled is not None and not recalled.or_earlier
        found[fault] = Since(first, or_earlier=not known and (last is None or last.or_earlier))
    return found


def _recalled(past: Sequence[Moment], fault: Fault) -> Since | None:
    """Since when the latest moments without a break knew a fault; None where there is none of the group."""
    kind, name, group = fault[:3]
    if kind not in _RECALLED:
        return None
    begun: Since | None = None
    for one in reversed(past):
        past_grouping = one.groupings.get(name)
        if past_grouping is None or group not in past_grouping.index:
            break
        flags = past_grouping.low if kind == "accuracy_low" else past_grouping.miscalibrated
        if not flags[past_grouping.index[group]]:
            return Since(np.inf if begun is None else begun.time, or_earlier=False)
        begun = Since(one.time, or_earlier=True)
    return begun


class Timeline:
    """Remembers moments on a grid of times, for so long."""

    def __init__(self, span_seconds: float) -> None:
        self._step = span_seconds / POINTS
        self._moments: dict[int, Moment] = {}

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All that is remembered, oldest first."""
        return tuple(self._moments[number] for number in sorted(self._moments))

    @property
    def latest(self) -> Moment | None:
        """The latest moment that is remembered."""
        return self._moments[max(self._moments)] if self._moments else None

    def lacks(self, time: float) -> bool:
        """Whether no moment of this time's step is remembered."""
        return int(time // self._step) not in self._moments

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
