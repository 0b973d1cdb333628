"""Marks of traffic: how much there was of it in every cell by some earlier times.

Counts of traffic only ever grow, so what came between two marks is their difference. A field of the hash
tells what a mark is for, of which reference it is (0 of none), and when it was made; its value is the
compressed array of counts. A field never changes its value, so who has read it once need not read it again.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from service.errors import FenceRefused
from service.value_table import Ints
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys

Purpose = Literal["beginning", "first", "since", "until", "recent"]
"""What a mark is for: the first traffic ever; the end of the first predictions, which are the reference;
beginning and end of a reference that was set; and those that go after a while, to know what is recent."""

_FASTEST = 1
"""Compression that takes a millisecond for 20,000 cells, of which most are empty."""


@dataclass(frozen=True, order=True)
class MarkName:
    """Which mark it is.

    Attributes:
        purpose: what it is for.
        at: when the traffic was read, seconds since the epoch.
        set_at: when the reference was set that it is of; 0 of none.
    """

    purpose: Purpose
    at: float
    set_at: float = 0.0

    def field(self) -> str:
        """As it stands in the hash."""
        return f"{self.purpose}|{self.set_at!r}|{self.at!r}"

    @classmethod
    def parse(cls, field: str) -> MarkName | None:
        """From a field of the hash; None of one that a newer version may have written."""
        purpose, *times = field.split("|")
        known = {name: name for name in get_args(Purpose)}
        if purpose not in known or len(times) != 2:  # noqa: PLR2004 - of the reference, and of the mark
            return None
        set_at, at = map(float, times)
        return cls(known[purpose], at, set_at)


Marks = Mapping[MarkName, Ints]
"""Predictions ever seen by every mark, per cell; there may be more cells by now."""


class MarkStore:
    """The marks of one model, as one process knows them.

    Args:
        connection: to Redis.
        keys: of the model.
    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self._keys = keys
        self._known: dict[MarkName, Ints] = {}

    def marks(self) -> Marks:
        """All marks that are kept.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        client, key = self._connection.client, self._keys.marks
        with unavailable_when_away():
            names = [name for field in client.hkeys(key) if (name := MarkName.parse(field.decode()))]
            new = [name for name in names if name not in self._known]
            values = client.hmget(key, [name.field() for name in new]) if new else []
        self._known = {name: self._known[name] for name in names if name in self._known} | {
            name: _unpacked(value) for name, value in zip(new, values, strict=True) if value is not None
        }
        return self._known

    def keep(self, marks: Marks, *, going: Collection[MarkName], epoch: int) -> None:
        """Keep further marks, and let some go.

        Args:
            marks: those that come.
            going: names of those that go.
            epoch: the leader's.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now. Keeping the same again is harmless.
        """
        arguments: list[str | bytes | int | float] = [epoch, len(going), *(name.field() for name in going)]
        for name, counts in marks.items():
            arguments += [name.field(), zlib.compress(counts.astype("<i8").tobytes(), _FASTEST)]
        if self._connection.run("keep_marks", [self._keys.fence, self._keys.marks], arguments) == b"fenced":
            raise FenceRefused("a newer leader has taken over; this one marks no traffic")


def _unpacked(value: bytes) -> Ints:
    return np.frombuffer(zlib.decompress(value), "<i8").astype(np.int64)
