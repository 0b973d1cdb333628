"""What really happened in the demo: the truth and the times that Credence's numbers are held against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from service.demo.journal import DEGRADED, READY, STREAMING, Answered, Asked, Entry, Mark, Produced
from service.demo.world import CAMERAS, CLASSES
from service.domain.arrays import Flags, Floats, Indices


@dataclass(frozen=True)
class Stream:
    """All predictions so far, as columns [n], in the order of time.

    Attributes:
        times: seconds since the epoch.
        cameras: index of the camera.
        predicted: index of the predicted class.
        scores: probability of the predicted class.
        correct: whether the prediction is true.
    """

    times: Floats
    cameras: Indices
    predicted: Indices
    scores: Floats
    correct: Flags

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
        return cls(
            times=np.concatenate([part.times for part in parts]),
            cameras=np.concatenate([part.cameras for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
            correct=np.concatenate([part.correct for part in parts]),
        )

    def before(self, time: float | None) -> Stream:
        """The predictions from before a time, in seconds since the epoch; all of them without one."""
        if time is None:
            return self
        end = int(np.searchsorted(self.times, time))
        return Stream(
            times=self.times[:end],
            cameras=self.cameras[:end],
            predicted=self.predicted[:end],
            scores=self.scores[:end],
            correct=self.correct[:end],
        )

    def members(self, grouping: str, group: str) -> Flags | None:
        """Which predictions are in a group, or None for a grouping that the demo does not follow."""
        if grouping == "all":
            return np.ones(len(self), dtype=np.bool_)
        if grouping == "camera" and group in CAMERAS:
            return _equal(self.cameras, CAMERAS.index(group))
        if grouping == "class" and group in CLASSES:
            return _equal(self.predicted, CLASSES.index(group))
        return None

    def accuracy(self, grouping: str, group: str, *, since: float | None) -> float | None:
        """The truth: how accurate a group's predictions are now, and stay if nothing changes further.

        Args:
            grouping: name.
            group: name.
            since: when the world last changed, seconds since the epoch; None if it never did. Predictions
                from then on are like those that come next.

        Returns:
            None where the group has no such prediction yet.
        """
        members = self.members(grouping, group)
        if members is None:
            return None
        chosen = members if since is None else members & (self.times >= since)
        return float(self.correct[chosen].mean()) if chosen.any() else None


def _equal(codes: Indices, code: int) -> Flags:
    same: Flags = codes == code
    return same


class History:
    """Gathers the journals of the producer and the labeller.

    Attributes:
        is_ready: whether the process of a journal has said so, by the journal's name.
        streaming_at: when the stream began, seconds since the epoch.
        degraded_at: when the camera got worse, seconds since the epoch.
        first_request_at: when the first label request arrived, seconds since the epoch.
        requests: ids of all label requests that arrived.
        answer_times: when each request was first answered, seconds since the epoch, ascending.
        labels_sent: labels of all kinds, repeated ones among them, by kind.
    """

    def __init__(self) -> None:
        self.is_ready: dict[str, bool] = {}
        self.streaming_at: float | None = None
        self.degraded_at: float | None = None
        self.first_request_at: float | None = None
        self.requests: set[str] = set()
        self.answer_times: list[float] = []
        self.labels_sent: dict[str, int] = {}
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
                    self.requests.add(entry.request_id)
                    self.first_request_at = self.first_request_at or entry.time
                case Answered():
                    self.labels_sent[entry.kind] = self.labels_sent.get(entry.kind, 0) + 1
                    if entry.is_first:
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
    """From each label's being sent to the first look at the metrics that counts it, in seconds.

    Args:
        sent: when each label was sent, seconds since the epoch, ascending.
        seen: looks at the metrics: when, and how many labels they counted.
    """
    delays: list[float] = []
    for moment, count in seen:
        delays += [moment - sent[k] for k in range(len(delays), min(count, len(sent)))]
    return delays
