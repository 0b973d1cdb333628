"""Marks of traffic: the counts of every table at earlier times.

The traffic between two marks is their difference (`service/domain/traffic_counts.py`). The name of a hash's
field says what a mark is for, of which reference it is (0 of none), and when it was made; its value has the
compressed counts. A field never changes its value, so a process reads each field once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from service.domain.traffic_counts import TrafficCounts
from service.store.connection import Argument, Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys

Purpose = Literal["beginning", "first", "since", "until", "recent"]
"""What a mark is for: the first traffic ever; the end of the first predictions, which are the reference;
beginning and end of a reference that was set; and those that go after a while, to know what is recent."""


@dataclass(frozen=True, order=True)
class MarkName:
    """Name of a mark.

    Attributes:
        at: when the traffic was read, seconds since the epoch.
        set_at: when its reference was set; 0 without one.
    """

    purpose: Purpose
    at: float
    set_at: float = 0.0

    def field(self) -> str:
        """Field of the hash."""
        return f"{self.purpose}|{self.set_at!r}|{self.at!r}"

    @classmethod
    def parse(cls, field: str) -> MarkName | None:
        """A name from a field of the hash; None if it is unknown: a newer version may have written it."""
        purpose, *times = field.split("|")
        known = {name: name for name in get_args(Purpose)}
        if purpose not in known or len(times) != 2:  # noqa: PLR2004 - of the reference, and of the mark
            return None
        set_at, at = map(float, times)
        return cls(known[purpose], at, set_at)


Marks = Mapping[MarkName, TrafficCounts]
"""Predictions ever seen by every mark; there may be more rows, and other tables, by now."""


class MarkStore(ModelStore):
    """The marks of one model, as one process knows them."""

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._known: dict[MarkName, TrafficCounts] = {}

    def marks(self) -> Marks:
        """All marks that are kept."""
        client, key = self._connection.client, self._keys.marks
        with translate_redis_errors():
            names = [name for field in client.hkeys(key) if (name := MarkName.parse(field.decode()))]
            new = [name for name in names if name not in self._known]
            values = client.hmget(key, [name.field() for name in new]) if new else []
        self._known = {name: self._known[name] for name in names if name in self._known} | {
            name: TrafficCounts.unpack(value)
            for name, value in zip(new, values, strict=True)
            if value is not None
        }
        return self._known

    def keep(self, marks: Marks, *, going: Collection[MarkName], epoch: int) -> None:
        """Keep further marks, and remove those in `going`; `epoch` is the leader's.

        Raises:
            FenceRefused: a newer leader has written.
        """
        arguments: list[Argument] = [epoch, len(going), *(name.field() for name in going)]
        for name, counts in marks.items():
            arguments += [name.field(), counts.pack()]
        self._run_fenced("keep_marks", [self._keys.marks], arguments)
