"""Which marks of traffic are due, and what traffic there was when, by those that there are (pure).

The reference is the traffic of a window of time that somebody set, as near as marks tell it, or else the
first predictions. Recent is what came since the newest mark that is as old as the window of drift, but never
what belongs to the reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.config.model import DriftSettings
from service.domain.arrays import Floats, Indices
from service.domain.traffic_counts import TrafficCounts
from service.store.references import ReferenceWindow
from service.store.traffic_checkpoints import MarkName, Marks, Purpose

MARKS_PER_WINDOW = 8  # so the window is up to an eighth longer than configured


GROWTH = 1.5
"""Of marks older than recent traffic, the next older one is hardly more than so many times as old."""


@dataclass(frozen=True)
class Stretch:
    """Traffic of a stretch of time."""

    # predictions by table; a table that began within the stretch has those since it began
    counts: TrafficCounts
    since: float  # seconds since the epoch; minus infinity from the beginning
    until: float  # the same; exclusive
    # from when on it is known how many predictions came by what time; later than `since` where counting
    # began before the first mark
    timed_since: float
    timed_counts: TrafficCounts  # those that came since then, of the tables that were there by then

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
class DueMarks:
    """What is to change in the marks."""

    added: Mapping[MarkName, TrafficCounts]
    removed: tuple[MarkName, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def due_marks(
    marks: Marks,
    counts: TrafficCounts,
    window: ReferenceWindow | None,
    settings: DriftSettings,
    *,
    now: float,
) -> DueMarks:
    """Which marks are to be made of the traffic, and which are to go.

    If some mark counts more than there is now, shards were filled again. Then no difference means anything,
    so all marks go. `counts` are of traffic that was read at `now`.
    """
    if any(mark.is_ahead(counts) for mark in marks.values()):
        return DueMarks({}, tuple(marks))
    if not counts.predictions:
        return DueMarks({}, ())
    window = _known(window, marks, now)
    added: dict[MarkName, TrafficCounts] = {}
    # Those of the future were made by a clock that was ahead.
    recent = sorted(name for name in marks if name.purpose == "recent" and name.at <= now)
    if not _named(marks, "beginning"):
        added[MarkName("beginning", now)] = counts
    if not _named(marks, "first") and _enough(marks, counts, settings, now):
        added[MarkName("first", now)] = counts
    if not recent or recent[-1].at <= now - settings.window_seconds / MARKS_PER_WINDOW:
        added[MarkName("recent", now)] = counts
    if window is not None:
        counts_by_time = {name.at: marks[name] for name in recent} | {now: counts}
        added |= _of_window(window, marks, counts_by_time, now)
    old = [name for name in recent if name.at <= now - settings.window_seconds]
    too_near = superfluous((name.at for name in old), now=now)
    kept = {*(name for name in recent if name.at not in too_near), *_of_reference(marks, window)}
    return DueMarks(added, tuple(name for name in marks if name not in kept))


def _enough(marks: Marks, counts: TrafficCounts, settings: DriftSettings, now: float) -> bool:
    """Whether the first predictions are a reference: so many, of a window, as nights are not days.

    Those that were there when traffic was first marked came before, nobody knows how long.
    """
    if counts.predictions < settings.reference_predictions:
        return False
    begun = min(_named(marks, "beginning"), default=None)
    came_before = counts if begun is None else marks[begun]
    late = begun is not None and begun.at <= now - settings.window_seconds
    return late or bool(came_before.predictions >= settings.reference_predictions)


def _of_reference(marks: Marks, window: ReferenceWindow | None) -> list[MarkName]:
    """Marks that stay as long as the reference; the first predictions stay one to go back to."""
    set_at = None if window is None else window.set_at
    return [
        name
        for name in marks
        if name.purpose in ("beginning", "first")
        or (name.purpose in ("since", "until") and name.set_at == set_at)
    ]


def _of_window(
    window: ReferenceWindow, marks: Marks, counts_by_time: Mapping[float, TrafficCounts], now: float
) -> dict[MarkName, TrafficCounts]:
    """The ends of a window that was set, once they are past: each the nearest mark that there is."""
    found: dict[MarkName, TrafficCounts] = {}
    begun = next((n.at for n in _named(marks, "since") if n.set_at == window.set_at), None)
    if math.isinf(window.since):
        begun = -math.inf
    elif begun is None and now >= window.since:
        begun = min(counts_by_time, key=lambda at: abs(at - window.since))
        found[MarkName("since", begun, window.set_at)] = counts_by_time[begun]
    ended = any(name.set_at == window.set_at for name in _named(marks, "until"))
    later = [at for at in counts_by_time if begun is not None and at > begun]
    if not ended and now >= window.until and later:
        end = min(later, key=lambda at: abs(at - window.until))
        found[MarkName("until", end, window.set_at)] = counts_by_time[end]
    return found


def compared_traffic(
    marks: Marks,
    counts: TrafficCounts,
    window: ReferenceWindow | None,
    settings: DriftSettings,
    *,
    now: float,
) -> ComparedTraffic | None:
    """The reference and recent traffic, by the marks that there are; None while there is no reference."""
    if any(mark.is_ahead(counts) for mark in marks.values()):
        return None
    window = _known(window, marks, now)
    set_at = 0.0 if window is None else window.set_at
    beginning = min(_named(marks, "beginning"), default=None)
    begin = next((name for name in _named(marks, "since") if name.set_at == set_at), None)
    ends = _named(marks, "first" if window is None else "until")
    end = min((name for name in ends if name.set_at == set_at), default=None)
    if end is None:
        return None
    wanted = now - settings.window_seconds
    # The end of the reference, where that is nearer. There is no older mark once the window is made longer.
    later = [n for n in _named(marks, "recent") if n.at <= now and _after(n, end, marks, now)]
    old = [n for n in later if n.at <= wanted]
    base = max(old) if old else min([end, *sorted(later)[:1]], key=lambda n: abs(n.at - wanted))
    recent_counts = counts.since(marks[base])
    ended = marks[end].shared_with(counts)
    timed = begin or (beginning if beginning is not None and beginning.at <= end.at else end)
    return ComparedTraffic(
        reference=Stretch(
            ended if begin is None else ended.since(marks[begin]),
            -math.inf if begin is None else begin.at,
            end.at,
            timed_since=timed.at,
            timed_counts=ended.since(marks[timed]).shared_with(marks[timed].continuing_until(ended)),
        ),
        recent=Stretch(
            recent_counts,
            min(base.at, now),
            now,
            timed_since=base.at,
            timed_counts=recent_counts.shared_with(marks[base].continuing_until(counts)),
        ),
    )


def _known(window: ReferenceWindow | None, marks: Marks, now: float) -> ReferenceWindow | None:
    """The window that was set; None of one that was over before the first mark: its traffic is unknown.

    Such is one from before the layout changed, or from before shards were filled again: the first predictions
    are the reference then, not what came between two looks.
    """
    beginning = min((name.at for name in _named(marks, "beginning")), default=now)
    return None if window is not None and window.until < beginning else window


def _named(marks: Marks, purpose: Purpose) -> list[MarkName]:
    return [name for name in marks if name.purpose == purpose]


def _after(name: MarkName, end: MarkName, marks: Marks, now: float) -> bool:
    """Whether a mark was made after another one: by what it knows of, where a clock was ahead then."""
    return name.at > end.at if end.at <= now else marks[name].predictions > marks[end].predictions


@dataclass(frozen=True)
class TrafficHistory:
    """Traffic by epochs, newest first."""

    begins: Floats  # when every epoch began, seconds since the epoch; minus infinity of the last [E]
    parts: tuple[TrafficCounts, ...]  # what came in every epoch, in the tables that tell score bins apart

    def epoch(self, times: Floats) -> Indices:
        """Epoch of every time [n]."""
        return np.asarray(len(self.begins) - np.searchsorted(self.begins[::-1], times, "right"), np.intp)


def traffic_history(
    marks: Marks, counts: TrafficCounts, *, window_seconds: float, now: float
) -> TrafficHistory | None:
    """Traffic by epochs; None while no mark is as old as recent traffic goes back, `window_seconds`.

    The newest epoch is what is recent; older ones grow with their age, as marks of traffic that is not recent
    become rarer.
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
    """Times of marks of traffic that is not recent which newer and older ones are near enough to."""
    ages = sorted(now - time for time in times)
    found: list[float] = []
    kept = ages[0] if ages else 0.0
    for age, older in pairwise(ages[1:]):
        if older <= GROWTH * kept:
            found.append(now - age)
        else:
            kept = age
    return found
