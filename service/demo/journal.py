"""What the demo's processes did, as JSON lines in the temporary folder, and what that says of the whole run.

The producer and the labeller each append to their own file. The parent reads along, and so knows the truth
and the times to compare Credence's numbers with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec
import numpy as np

from service.demo.world import CAMERAS, CLASSES
from service.domain.arrays import Flags, Floats, Indices

PRODUCER_FILE = "producer.jsonl"
LABELLER_FILE = "labeller.jsonl"

PRODUCER_READY, LABELLER_READY, STREAMING, DEGRADED, REPAIRED = (
    "producer ready",
    "labeller ready",
    "streaming",
    "degraded",
    "repaired",
)


class Mark(msgspec.Struct, frozen=True, tag="mark"):
    """A moment in the life of a process: one of the names above, in seconds since the epoch."""

    name: str
    time: float


class PredictionsSent(msgspec.Struct, frozen=True, tag="produced"):
    """Predictions that were sent together, as columns."""

    time: float  # when they were predicted, seconds since the epoch
    cameras: list[str]  # which camera took the image
    predicted: list[str]  # class by name
    scores: list[float]  # probability of the predicted class
    correct: list[bool]  # whether the prediction is true


class TransactionsSent(msgspec.Struct, frozen=True, tag="transactions"):
    """Transactions of the demo of a rare class that were sent together."""

    time: float  # when they were scored, seconds since the epoch
    count: int
    frauds: int  # how many of them are fraud


class RequestReceived(msgspec.Struct, frozen=True, tag="asked"):
    """A label request that has arrived."""

    time: float
    request_id: str
    attempt: int


class LabelSent(msgspec.Struct, frozen=True, tag="answered"):
    """A label that was sent."""

    time: float
    kind: str
    is_first: bool  # whether it is the first answer to its request, which Credence should count
    model: str = ""
    item_id: str = ""
    true_class: str | None = None  # as the label has it


class LabelGiven(msgspec.Struct, frozen=True, tag="given"):
    """A label of the person in front of the demo, beside the truth."""

    time: float  # when it was read, seconds since the epoch
    request_id: str
    kind: str
    true_class: str | None  # as the label has it
    truth: str
    camera: str  # which took the image


Entry = Mark | PredictionsSent | TransactionsSent | RequestReceived | LabelSent | LabelGiven

_decode = msgspec.json.Decoder(Entry).decode
_encode = msgspec.json.Encoder().encode


class Journal:
    """Appends entries to one file; every entry is whole on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, entry: Entry) -> None:
        """Append one entry."""
        self._file.write(_encode(entry) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


class JournalReader:
    """Reads along with a journal that another process writes; the file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def new_entries(self) -> list[Entry]:
        """Entries since the last call; an incomplete line waits for the next one."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return [_decode(line) for line in whole.splitlines()]


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
    def of(cls, batch: PredictionsSent) -> Stream:
        """The stream of one batch."""
        return cls(
            times=np.full(len(batch.scores), batch.time),
            cameras=np.array([CAMERAS.index(name) for name in batch.cameras], dtype=np.intp),
            predicted=np.array([CLASSES.index(name) for name in batch.predicted], dtype=np.intp),
            scores=np.array(batch.scores, dtype=np.float64),
            correct=np.array(batch.correct, dtype=np.bool_),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Stream]) -> Stream:
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
        self.marks: dict[str, float] = {}  # by name, when a process came there
        self.first_request_at: float | None = None
        self.answer_times: list[float] = []  # of the first answer to each request, ascending
        self.given: list[LabelGiven] = []  # by the person in front of the demo
        self._parts: list[Stream] = []

    @property
    def stream(self) -> Stream:
        """All predictions so far."""
        self._parts = [Stream.concatenate(self._parts or [Stream.of(PredictionsSent(0.0, [], [], [], []))])]
        return self._parts[0]

    @property
    def streaming_at(self) -> float | None:
        """When the stream began."""
        return self.marks.get(STREAMING)

    @property
    def degraded_at(self) -> float | None:
        """When the camera degraded."""
        return self.marks.get(DEGRADED)

    @property
    def repaired_at(self) -> float | None:
        """When the camera was repaired."""
        return self.marks.get(REPAIRED)

    @property
    def changes(self) -> tuple[float, ...]:
        """When the world changed, ascending."""
        return tuple(time for time in (self.degraded_at, self.repaired_at) if time is not None)

    def add(self, entries: Iterable[Entry]) -> None:
        """Take in new entries of a journal."""
        for entry in entries:
            match entry:
                case PredictionsSent():
                    self._parts.append(Stream.of(entry))
                case RequestReceived():
                    self.first_request_at = self.first_request_at or entry.time
                case LabelSent(is_first=True):
                    self.answer_times.append(entry.time)
                case LabelGiven():
                    self.given.append(entry)
                case Mark():
                    self.marks[entry.name] = entry.time


def label_delays(sent: Sequence[float], readings: Sequence[tuple[float, int]]) -> list[float]:
    """Seconds from sending each label to the first reading of the metrics that counts it.

    Labels were sent at ascending times, in seconds since the epoch. A reading has its time, and the number of
    labels that the metrics counted.
    """
    delays: list[float] = []
    for moment, count in readings:
        delays += [moment - sent[k] for k in range(len(delays), min(count, len(sent)))]
    return delays
