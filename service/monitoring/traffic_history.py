"""Traffic of a model by epochs, from marks of it (pure).

The newest epoch is what is recent (`DriftSettings.window_hours`); older ones grow with their age, as marks of
traffic that is not recent become rarer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.domain.arrays import Floats, Indices
from service.domain.traffic_counts import TrafficCounts
from service.store.traffic_checkpoints import Marks

GROWTH = 1.5
"""Of marks older than recent traffic, the next older one is hardly more than so many times as old."""


@dataclass(frozen=True)
class TrafficHistory:
    """Traffic by epochs, newest first.

    Attributes:
        begins: when every epoch began, seconds since the epoch; minus infinity of the last [E].
        parts: what came in every epoch, in the tables that tell score bins apart.
    """

    begins: Floats
    parts: tuple[TrafficCounts, ...]

    def epoch(self, times: Floats) -> Indices:
        """Epoch of every time [n]."""
        return np.asarray(len(self.begins) - np.searchsorted(self.begins[::-1], times, "right"), np.intp)


def traffic_history(
    marks: Marks, counts: TrafficCounts, *, window_seconds: float, now: float
) -> TrafficHistory | None:
    """Traffic by epochs; None while no mark is as old as recent traffic goes back.

    Args:
        marks: those that there are.
        counts: predictions ever seen, by table.
        window_seconds: how far back traffic is recent.
        now: when the traffic was read, seconds since the epoch.
    """
    old = sorted((name for name in marks if name.at <= now - window_seconds), key=lambda name: -name.at)
    if not old or any(marks[name].is_ahead(counts) for name in old):
        return None
    latest, begins, parts = counts.by_bin(), [], []
    for name in old:
        mark = marks[name].by_bin()
        if mark.is_ahead(latest):  # a clock was ahead, or behind, when one of both was made
            continue
        part = latest.since(mark)
        if part.predictions:
            begins.append(name.at)
            parts.append(part)
            latest = mark
    if not parts:
        return None
    if latest.predictions:
        begins.append(-np.inf)
        parts.append(latest)
    else:
        begins[-1] = -np.inf
    return TrafficHistory(np.array(begins), tuple(parts))


def superfluous(times: Iterable[float], *, now: float) -> list[float]:
    """Times of marks that are not needed, as newer and older ones are near enough.

    Args:
        times: of marks of traffic that is not recent, in any order.
        now: seconds since the epoch.
    """
    ages = sorted(now - time for time in times)
    going: list[float] = []
    kept = ages[0] if ages else 0.0
    for age, older in pairwise(ages[1:]):
        if older <= GROWTH * kept:
            going.append(now - age)
        else:
            kept = age
    return going
