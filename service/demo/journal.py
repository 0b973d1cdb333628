"""What the demo's processes did, as JSON lines in the temporary folder.

The producer and the labeller each append to their own file; the parent reads along, and so knows the truth
and the times to compare Credence's numbers with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec

PRODUCER_FILE = "producer.jsonl"
LABELLER_FILE = "labeller.jsonl"

READY, STREAMING, DEGRADED = "ready", "streaming", "degraded"


class Mark(msgspec.Struct, frozen=True, tag="mark"):
    """A moment in the life of a process: one of the names above, in seconds since the epoch."""

    name: str
    time: float


class Produced(msgspec.Struct, frozen=True, tag="produced"):
    """Predictions that were sent together, as columns."""

    time: float  # when they were predicted, seconds since the epoch
    cameras: list[str]  # which camera took the image
    predicted: list[str]  # class by name
    scores: list[float]  # probability of the predicted class
    correct: list[bool]  # whether the prediction is true


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """A label request that has arrived."""

    time: float
    request_id: str
    attempt: int


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """A label that was sent."""

    time: float
    kind: str
    is_first: bool  # whether it is the first answer to its request, which Credence should count


Entry = Mark | Produced | Asked | Answered

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
