"""Marks of event time: how many predictions a shard had counted when a slot of time began (pure).

The event time of a prediction is the arrival time of its record, which is never before that of an earlier
record of its partition. So a shard counts its slots of event time one after the other, whenever it reads
them, and the counts at the beginning of a slot never change later. Marks are numerous where traffic is recent
or begins, and rarer in between, so that a reference and recent traffic are exact and marks are few.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats
from service.domain.traffic_counts import TrafficCounts

SLOTS_PER_WINDOW = 8
"""Slots in a window of drift, which so is up to an eighth longer than configured."""

_FINE = 10
"""Boundaries less than so many slots from the newest one, or from the beginning, are all kept; of those
beyond, half as many while the distance doubles."""

_BEFORE_BEGINNING = 1_000
"""The beginning has one of so many predictions of a reference before it: misdated ones do not begin it."""


@dataclass(frozen=True, order=True)
class Mark:
    """Between which times a shard had counted how many predictions.

    Attributes:
        since: end of the slot of the last prediction that is counted; minus infinity if there is none.
        until: beginning of the slot of the next prediction; infinite if there is none yet.
        predictions: how many are counted.
    """

    since: float
    until: float
    predictions: int

    def field(self) -> str:
        """Field of the hash that has the counts."""
        return f"{self.since!r}|{self.until!r}|{self.predictions}"

    @classmethod
    def parse(cls, field: str) -> Mark | None:
        """A mark from a field of the hash; None if it is unknown: a newer version may have written it."""
        try:
            since, until, predictions = field.split("|")
            return cls(float(since), float(until), int(predictions))
        except ValueError:
            return None


def open_mark(newest: float, predictions: int) -> Mark:
    """The mark of a shard's present counts, whose newest prediction arrived at this time."""
    return Mark(math.nextafter(newest, math.inf) if predictions else -math.inf, math.inf, predictions)


@dataclass(frozen=True)
class Slots:
    """Event time in slots of the same length; all boundaries are multiples of it."""

    seconds: float

    def number(self, time: float) -> int:
        """The slot that a time is in."""
        return math.floor(time / self.seconds)

    def boundary(self, time: float) -> int:
        """The slot that begins at a boundary, or the nearest one."""
        return round(time / self.seconds)

    def begin(self, number: int) -> float:
        """When a slot begins."""
        return number * self.seconds

    def forward(self, first: int, last: int) -> Iterator[int]:
        """The slots whose beginnings are kept after a beginning, ascending."""
        at = first
        while at <= last:
            yield at
            step = _step(at + 1 - first)
            at = (at // step + 1) * step

    def backward(self, last: int, first: int, *, fine: int = _FINE) -> Iterator[int]:
        """The slots whose beginnings are kept before the newest one, descending; fewer if less `fine`."""
        at = last
        while at >= first:
            yield at
            step = _step(last - at + 1, fine)
            at = (at - 1) // step * step


def _step(distance: int, fine: int = _FINE) -> int:
    """Of boundaries at this distance, in slots, the multiples of this number are kept."""
    return 1 if distance < fine else 1 << ((distance * 2 // fine).bit_length() - 1)


def _begun(marks: Sequence[Mark], enough: int) -> Mark:
    """The mark at the beginning of a shard's traffic."""
    few = marks[0].predictions + enough // _BEFORE_BEGINNING
    return max(mark for mark in marks if mark.predictions <= few)


def kept_marks(
    marks: Sequence[Mark], slots: Slots, *, newest: float, enough: int, pins: Collection[float]
) -> list[Mark]:
    """The marks of one shard that are kept, ascending: a number that grows with the logarithm of its age.

    Args:
        marks: ascending.
        slots: of event time.
        newest: arrival of the newest prediction, seconds since the epoch.
        enough: predictions of a reference; after so many, and a window, the beginning is over.
        pins: times whose counts are needed in any case.
    """
    if not marks:
        return []
    last, begin, is_beginning = slots.number(newest), _begun(marks, enough), True
    first = slots.boundary(begin.until) if math.isfinite(begin.until) else last
    kept = []
    for mark in marks:
        high = slots.boundary(mark.until)
        low = min(high, slots.boundary(mark.since)) if math.isfinite(mark.since) else high
        steps = [
            _step(max(0, last - high)),
            *([_step(max(0, low - first))] if is_beginning and high >= first else ()),
        ]
        is_kept = mark is marks[0] or any(high // step * step >= low for step in steps)
        if is_kept or any(mark.since <= pin <= mark.until for pin in pins):
            kept.append(mark)
        if high - first >= SLOTS_PER_WINDOW and mark.predictions - begin.predictions >= enough:
            is_beginning = False
    return kept


class ShardMarks:
    """The marks of a shard in its owner's memory.

    Args:
        slots: of event time.
        enough: predictions of a reference.
        stored: the marks in Redis.
        newest: arrival of the newest prediction, seconds since the epoch; minus infinity before the first.
        removed: marks in Redis that are to go.

    Attributes:
        added: counts of the marks that are not in Redis yet.
        pins: times whose counts are needed in any case.
    """

    def __init__(
        self,
        slots: Slots,
        *,
        enough: int,
        stored: Collection[Mark] = (),
        newest: float = -math.inf,
        pins: Collection[float] = (),
        removed: Collection[Mark] = (),
    ) -> None:
        self.added: dict[Mark, TrafficCounts] = {}
        self.removed = set(removed)
        self.pins = pins
        self.newest = newest
        self._slots = slots
        self._enough = enough
        self._marks = sorted(stored)

    def advance(self, arrivals: Floats, predictions: int) -> list[tuple[int, Mark]]:
        """Note a batch that is about to be counted [n]; after how many of it which marks are to be made.

        Args:
            arrivals: of its predictions, in order, seconds since the epoch [n].
            predictions: that the shard has counted.
        """
        newest = max(self.newest, float(arrivals.max()))
        if math.isfinite(self.newest) and self._slots.number(newest) == self._slots.number(self.newest):
            self.newest = newest
            return []
        numbers = np.maximum.accumulate(np.append(self.newest, arrivals)) / self._slots.seconds
        begun = np.floor(numbers)
        before, after = begun[:-1], begun[1:]
        made = {
            Mark(
                self._slots.begin(int(before[at]) + 1) if np.isfinite(before[at]) else -math.inf,
                self._slots.begin(int(after[at])),
                predictions + at,
            ): at
            for at in np.flatnonzero(after > before).tolist()
        }
        self.newest = newest
        every = [*self._marks, *made]
        kept = kept_marks(every, self._slots, newest=newest, enough=self._enough, pins=self.pins)
        for mark in set(every).difference(kept, made):
            if self.added.pop(mark, None) is None:
                self.removed.add(mark)
        self._marks = kept
        return [(made[mark], mark) for mark in kept if mark in made]

    def mark_flushed(self) -> None:
        """Note that Redis has the marks."""
        self.added.clear()
        self.removed.clear()


@dataclass(frozen=True)
class Timeline:
    """When the predictions of a model arrived, by the marks of its shards.

    Attributes:
        shards: marks of every partition, ascending; the last one is of its present counts.
    """

    shards: Mapping[int, tuple[Mark, ...]]

    def marks_at(self, time: float) -> dict[int, Mark] | None:
        """The mark of every partition that has the counts at a time; None if some partition has none."""
        found = {}
        for partition, marks in self.shards.items():
            mark = marks[bisect_left(marks, time, key=lambda mark: mark.until)]
            if mark.since > time:
                return None
            found[partition] = mark
        return found

    def predictions_at(self, time: float) -> int | None:
        """How many predictions arrived before a time; None where that is not known."""
        marks = self.marks_at(time)
        return None if marks is None else sum(mark.predictions for mark in marks.values())

    def boundaries(self) -> list[float]:
        """The times at which marks of some partition begin or end, ascending."""
        past = (mark for marks in self.shards.values() for mark in marks[:-1])
        return sorted({time for mark in past for time in (mark.since, mark.until) if math.isfinite(time)})

    def begins(self, enough: int) -> float:
        """When traffic begins, or from when on its time is known; infinite if there is none.

        `enough` are the predictions of a reference.
        """
        begun = [_begun(marks, enough).until for marks in self.shards.values() if not marks[0].predictions]
        begun = [time for time in begun if math.isfinite(time)]
        known_from = [marks[0].since for marks in self.shards.values() if marks[0].predictions]
        return max([*known_from, *([min(begun)] if begun else [])], default=math.inf)
