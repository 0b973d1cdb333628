"""What really happened in the demo: the truth and the times to compare Credence's numbers with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from service.demo.journal import DEGRADED, READY, STREAMING, Answered, Asked, Entry, Mark, Produced
from service.demo.world import CAMERAS, CLASSES
from service.domain.arrays import Flags, Floats, Indices


@dataclass(frozen=True)
class Stream:
    """All predictions so far, as columns [n], in the order of time."""

    times: Floats  # seconds since the epoch
    cameras: Indices  # index of the camera
    predicted: Indices  # index of the predicted class
    scores: Floats  # probability of the predicted class
    correct: Flags  # whether the prediction is true

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, batch: Produced) -> Stream:
        """The stream of one batch."""
        return cls(
            times=np.full(len(batch.scores), batch.time),
            cameras=np.array([CAMERAS.index(name) for name in batch.cameras], dtype=np.intp),
            predicted=np.array([CLASSES.index(name) for name in batch.predicted], dtype=np.intp),
            scores=np.array(batch.scores, dtype=np.float64),
            correct=np.array(batch.correct, dtype=np.bool_),
        )

    @classmethod
    def joined(cls, parts: Sequence[Stream]) -> Stream:
        """Several streams, one behind the other."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def before(self, time: float | None) -> Stream:
        """The predictions from before a time, in seconds since the epoch; all of them without one."""
        if time is None:
            return self
        end = int(np.searchsorted(self.times, time))
        return Stream(**{name: column[:end] for name, column in vars(self).items()})

    def members(self, grouping: str, group: str) -> Flags | None:
        """Which predictions are in a group, or None for a grouping that the demo does not follow."""
        if grouping == "all":
            return np.ones(len(self), dtype=np.bool_)
        if grouping == "camera" and group in CAMERAS:
            return np.asarray(self.cameras == CAMERAS.index(group))
        if grouping == "class" and group in CLASSES:
            return np.asarray(self.predicted == CLASSES.index(group))
        return None

    def accuracy(self, grouping: str, group: str, *, since: float | None) -> float | None:
        """True accuracy of a group now; None where it has no prediction yet.

        Predictions count from `since` on, in seconds since the epoch, when the world last changed; None if it
        never did.
        """
        members = self.members(grouping, group)
        if members is None:
            return None
        chosen = members if since is None else members & (self.times >= since)
        return float(self.correct[chosen].mean()) if chosen.any() else None


class History:
    """Gathers the journals of the producer and the labeller; times are in seconds since the epoch."""

    def __init__(self) -> None:
        self.is_ready: dict[str, bool] = {}  # by the name of a process's journal
        self.streaming_at: float | None = None
        self.degraded_at: float | None = None
        self.first_request_at: float | None = None
        self.answer_times: list[float] = []  # of the first answer to each request, ascending
        self._parts: list[Stream] = []

    @property
    def stream(self) -> Stream:
        """All predictions so far."""
        self._parts = [Stream.joined(self._parts or [Stream.of(Produced(0.0, [], [], [], []))])]
        return self._parts[0]

    def add(self, journal: str, entries: Iterable[Entry]) -> None:
        """Take in new entries of a journal."""
        for entry in entries:
            match entry:
                case Produced():
                    self._parts.append(Stream.of(entry))
                case Asked():
                    self.first_request_at = self.first_request_at or entry.time
                case Answered(is_first=True):
                    self.answer_times.append(entry.time)
                case Mark():
                    self._mark(journal, entry)

    def _mark(self, journal: str, mark: Mark) -> None:
        if mark.name == READY:
            self.is_ready[journal] = True
        elif mark.name == STREAMING:
            self.streaming_at = mark.time
        elif mark.name == DEGRADED:
            self.degraded_at = mark.time


def label_delays(sent: Sequence[float], seen: Sequence[tuple[float, int]]) -> list[float]:
    """Seconds from sending each label to the first look at the metrics that counts it.

    Args:
        sent: when each label was sent, seconds since the epoch, ascending.
        seen: looks at the metrics: when, and how many labels they counted.
    """
    delays: list[float] = []
    for moment, count in seen:
        delays += [moment - sent[k] for k in range(len(delays), min(count, len(sent)))]
    return delays
