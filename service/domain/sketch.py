"""The sketch of one group's pool: a bottom-k sample of its items, which merges exactly with others.

Cohen and Kaplan, "Summarizing data using bottom-k sketches" (PODC 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Floats, UInt64s

_ENTRY = np.dtype([("priority", "<f8"), ("hash", "<u8")])
HEADER_BYTES = 8
"""Length of the bound, before the entries of an encoded sketch."""


class Sketch(NamedTuple):
    """The pool of one group.

    Attributes:
        bound: an item below this priority may have been dropped; minus infinity if none was.
        priorities: of the items, descending [k].
        hashes: of the items [k].
    """

    bound: float
    priorities: Floats
    hashes: UInt64s

    def encode(self) -> bytes:
        """The bound (8 bytes), then 16 bytes an item: priority and hash, little-endian."""
        entries = np.empty(len(self.hashes), _ENTRY)
        entries["priority"], entries["hash"] = self.priorities, self.hashes
        return np.array(self.bound, "<f8").tobytes() + entries.tobytes()

    @classmethod
    def decode(cls, encoded: bytes) -> Sketch:
        """A sketch from its encoding."""
        entries = np.frombuffer(encoded, _ENTRY, offset=HEADER_BYTES)
        bound = float(np.frombuffer(encoded, "<f8", count=1)[0])
        return cls(bound, entries["priority"].astype(np.float64), entries["hash"].astype(np.uint64))


EMPTY_SKETCH = Sketch(-np.inf, np.zeros(0), np.zeros(0, np.uint64))


def merged_order(sketches: Sequence[Sketch]) -> list[tuple[float, int, int]]:
    """Items of one group in the order in which they are drawn, down to the highest bound of any sketch.

    Args:
        sketches: of the group, one per shard.

    Returns:
        Priority, hash and index of the sketch of every item, the highest priority first; an item in several
        sketches comes once.
    """
    bound = max((sketch.bound for sketch in sketches), default=-np.inf)
    found = [
        (priority, item, shard)
        for shard, sketch in enumerate(sketches)
        for priority, item in zip(sketch.priorities.tolist(), sketch.hashes.tolist(), strict=True)
        if priority >= bound
    ]
    found.sort(key=lambda entry: (-entry[0], entry[2]))
    return list({item: entry for entry in reversed(found) for item in [entry[1]]}.values())[::-1]
