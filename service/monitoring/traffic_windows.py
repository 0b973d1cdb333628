"""Between which times traffic is compared, by the marks of its shards, and what it was then (pure).

All times are event times: when records arrived in the topic, whenever a consumer reads them. The reference is
the traffic of a window that somebody set, or else the first predictions. Recent is what arrived in the last
window of drift, but never what belongs to the reference. Both begin and end where slots of event time begin
(`service/domain/traffic_marks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.config.model import DriftSettings
from service.domain.arrays import Floats, Indices
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_marks import SLOTS_PER_WINDOW, Slots, Timeline
from service.store.marked_traffic import MarkedCounts
from service.store.references import ReferenceWindow

_FINE_EPOCHS = 4
"""Of epochs about half as many begin while the age of traffic doubles."""


@dataclass(frozen=True)
class Stretch:
    """Traffic of a stretch of event time."""

    # predictions by table; a table that began within the stretch has those since it began
    counts: TrafficCounts
    since: float  # seconds since the epoch; minus infinity from the beginning
    until: float  # the same; exclusive
    # from when on it is known how many predictions arrived by what time; later than `since` where that is
    # the beginning
    timed_since: float
    timed_counts: TrafficCounts  # those that arrived since then, of the tables that were there by then

    @property
    def predictions(self) -> int:
        """How many there are."""
        return self.counts.predictions

    @property
    def timed_seconds(self) -> float:
        """How long the timed ones took."""
        return self.until - self.timed_since


@dataclass(frozen=True)
class ComparedTraffic:
    """A reference, and what is compared with it."""

    reference: Stretch  # whose end is before recent traffic begins; of the tables that there were by its end
    recent: Stretch


@dataclass(frozen=True)
class TrafficWindows:
    """Between which times traffic is compared; all are seconds since the epoch.

    Attributes:
        begins: when traffic begins, or from when on its time is known.
        reference: beginning and end of the reference, minus infinity from the beginning; None while there
            is none.
        recent_since: when recent traffic begins.
        epochs: when epochs of traffic that is not recent begin, newest first.
        pins: beginnings and ends of references.
        predictions_by_time: predictions by some times, ascending.
    """

    begins: float
    reference: tuple[float, float] | None
    recent_since: float
    epochs: tuple[float, ...]
    pins: frozenset[float]
    predictions_by_time: tuple[tuple[float, int], ...]

    @property
    def times(self) -> list[float]:
        """Times whose counts are needed."""
        compared = () if self.reference is None else (*self.reference, self.begins, self.recent_since)
        return sorted(filter(math.isfinite, {*compared, *self.epochs}))


def traffic_windows(
    timeline: Timeline, window: ReferenceWindow | None, settings: DriftSettings, *, now: float
) -> TrafficWindows | None:
    """Between which times traffic is compared at `now`; None while there is no traffic."""
    slots, enough = settings.slots, settings.reference_predictions
    latest, begins = slots.number(now), timeline.begins(enough)
    if not begins < now:
        return None
    first = math.floor(round(begins / slots.seconds, 6))
    begins = _first_known(timeline, map(slots.begin, range(first, latest + 1)))
    if math.isinf(begins):
        return None
    first = slots.boundary(begins)
    earliest = _first_predictions(timeline, slots, first, latest, enough)
    chosen = None
    # One that was over before times are known cannot be known, as from before the layout changed.
    if window is not None and window.until > begins:
        since = window.since if math.isinf(window.since) else max(window.since, begins)
        chosen = _window_ends(timeline, slots, since, window.until, latest)
        reference = chosen
    else:
        reference = earliest
    back = list(map(slots.begin, slots.backward(latest, first)))
    by_time = [(time, timeline.predictions_at(time)) for time in reversed(back)]
    old = slots.backward(latest, first, fine=_FINE_EPOCHS)
    return TrafficWindows(
        begins=begins,
        reference=reference,
        recent_since=_recent_since(timeline, slots, -math.inf if reference is None else reference[1], now),
        epochs=tuple(
            slots.begin(at)
            for at in old
            if first < at <= latest - SLOTS_PER_WINDOW
            and timeline.predictions_at(slots.begin(at)) is not None
        ),
        pins=frozenset(
            filter(math.isfinite, {begins, *(end for ends in (earliest, chosen) if ends for end in ends)})
        ),
        predictions_by_time=tuple((time, count) for time, count in by_time if count is not None),
    )


def _first_known(timeline: Timeline, times: Iterable[float]) -> float:
    """The first of some times at which the counts of all shards are known; infinite if there is none."""
    return next((time for time in times if timeline.predictions_at(time) is not None), math.inf)


def _first_predictions(
    timeline: Timeline, slots: Slots, first: int, latest: int, enough: int
) -> tuple[float, float] | None:
    """Beginning and end of the first predictions: so many, of a window, as nights are not days."""
    begins, soonest = slots.begin(first), slots.begin(first + SLOTS_PER_WINDOW)
    # Those of slots of another length stay an end after the window was changed.
    others = (time for time in timeline.boundaries() if time != slots.begin(slots.boundary(time)))
    times = {*map(slots.begin, slots.forward(first, latest)), *others}
    before = timeline.predictions_at(begins) or 0
    for time in sorted(time for time in times if time >= soonest):
        counted = timeline.predictions_at(time)
        if counted is not None and counted - before >= enough:
            return begins, time
    return None


def _window_ends(
    timeline: Timeline, slots: Slots, since: float, until: float, latest: int
) -> tuple[float, float] | None:
    """Beginning and end of the slots within a window that was set, or around one that is shorter than those.

    None while they are not over.
    """
    if slots.begin(latest) < slots.begin(slots.number(until)):
        return None
    around = {slots.number(end) + more for end in (since, until) if math.isfinite(end) for more in (0, 1)}
    times = sorted(
        time for time in {*timeline.boundaries(), *map(slots.begin, around)} if time <= slots.begin(latest)
    )
    known = partial(_first_known, timeline)
    ends = (
        since if math.isinf(since) else known(time for time in times if time >= since),
        known(time for time in reversed(times) if time <= until),
    )
    if not ends[0] < ends[1] < math.inf:
        ends = (
            since if math.isinf(since) else known(time for time in reversed(times) if time <= since),
            known(time for time in times if time >= until),
        )
    return ends if ends[0] < ends[1] < math.inf else None


def _recent_since(timeline: Timeline, slots: Slots, ended: float, now: float) -> float:
    """When recent traffic begins: a window ago, or at the end of the reference where that is later."""
    wanted = slots.begin(slots.number(now) - SLOTS_PER_WINDOW)
    if ended >= wanted:
        return ended
    if timeline.predictions_at(wanted) is not None:
        return wanted
    # The boundaries are of another length of slots, as the window was changed.
    times = [time for time in timeline.boundaries() if ended < time <= now]
    known = partial(_first_known, timeline)
    older, later = known(t for t in reversed(times) if t <= wanted), known(t for t in times if t > wanted)
    return next((time for time in (older, later) if math.isfinite(time)), ended)


def compared_traffic(
    windows: TrafficWindows, marked: MarkedCounts, counts: TrafficCounts, *, now: float
) -> ComparedTraffic | None:
    """The reference and recent traffic, by counts at the times of windows; None without a reference."""
    if windows.reference is None:
        return None
    since, until = windows.reference
    timed = max(since, min(windows.begins, until))
    if not {until, windows.recent_since, timed, *filter(math.isfinite, [since])} <= marked.keys():
        return None
    ended, before = marked[until].shared_with(counts), marked[windows.recent_since]
    recent = counts.since(before)
    return ComparedTraffic(
        reference=Stretch(
            ended if math.isinf(since) else ended.since(marked[since]),
            since,
            until,
            timed_since=timed,
            timed_counts=ended.since(marked[timed]).shared_with(marked[timed].continuing_until(ended)),
        ),
        recent=Stretch(
            recent,
            windows.recent_since,
            now,
            timed_since=windows.recent_since,
            timed_counts=recent.shared_with(before.continuing_until(counts)),
        ),
    )


@dataclass(frozen=True)
class TrafficHistory:
    """Traffic by epochs, newest first."""

    begins: Floats  # when every epoch began, seconds since the epoch; minus infinity of the last [E]
    parts: tuple[TrafficCounts, ...]  # what arrived in every epoch, in the tables that tell score bins apart

    def epoch(self, times: Floats) -> Indices:
        """Epoch of every time [n]."""
        return np.asarray(len(self.begins) - np.searchsorted(self.begins[::-1], times, "right"), np.intp)


def traffic_history(
    epochs: Iterable[float], marked: MarkedCounts, counts: TrafficCounts
) -> TrafficHistory | None:
    """Traffic by epochs, from when they begin, newest first; None while all traffic is recent.

    The newest epoch is what is recent; older ones grow with their age, as marks of traffic that is not recent
    become rarer.
    """
    latest, begins, parts = counts.by_bin(), [], []
    for time in epochs:
        if time not in marked:
            continue
        mark = marked[time].by_bin()
        part = latest.since(mark)
        if part.predictions:
            begins.append(time)
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
