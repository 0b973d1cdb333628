"""The interface between the consumer loop and what processes its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Step(Protocol):
    """Processes the records of one topic; offsets are those of one partition."""

    topic_kind: str

    def assign(self, partition: int, default_offset: int) -> int:
        """Load a partition's stored state; the offset to read from."""

    def revoke(self, partition: int) -> None:
        """Drop a partition's state."""

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Process a batch completely, or fail without any effect."""

    def advance(self, partition: int, position: int) -> None:
        """Note that all records before a position were processed, or can no longer come."""

    def flush(self, partition: int, now: float) -> int:
        """Store the partition's state; the offset up to which it is stored. `now` is in monotonic seconds."""
