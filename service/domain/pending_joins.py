"""Predictions that are to wait for an unrequested label, until the next flush of their shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, UInt64s

HOUR_SECONDS = 3_600.0
"""Predictions that arrive in the same hour are a cohort."""

WAITING_BYTES, CLOSED_BYTES = 250, 110
"""Memory of Redis per item with three attributes, while it waits for a label and after its cohort closed."""

FLUSHED_ITEMS = 3_000
"""A shard with so many pending predictions is flushed early: Redis does nothing else meanwhile."""

_DIGEST_BITS = 64


def in_sample(digests: UInt64s, level: int) -> Flags:
    """Whether items are in the sample of a level: an even one of 1 in 2^level [n]."""
    return digests < np.uint64(1 << (_DIGEST_BITS - level)) if level else np.ones(len(digests), np.bool_)


@dataclass(frozen=True)
class JoinColumns:
    """What a batch of predictions needs to be joined with labels.

    Attributes:
        digests: of their items [n], from `PoolKey.join_digests`.
        fact: encodes the `Fact` of one row; called only for rows in the sample.
        since: what arrived before waits for no label any more; seconds since the epoch.
    """

    digests: UInt64s
    fact: Callable[[int], bytes]
    since: float = -np.inf


class PendingJoin(NamedTuple):
    """One prediction; `hour` and `arrival` in hours and in seconds since the epoch."""

    digest: int
    hour: int
    arrival: float
    fact: bytes


@dataclass
class PendingJoins:
    """The sampled predictions of one shard since its last flush.

    Attributes:
        most: how many may be pending; with more the level rises.
        level: of the sample.
        hours: hours in which predictions arrived, sampled or not, with the highest level in use for each.
        items: in the order of their arrival; of an item there may be several.
        thin: hours that have items which are not in the sample any more.
    """

    most: int
    level: int = 0
    hours: dict[int, int] = field(default_factory=dict)
    items: list[PendingJoin] = field(default_factory=list)
    thin: list[int] = field(default_factory=list)

    def offer(self, columns: JoinColumns, arrivals: Floats) -> None:
        """Add those of a batch's predictions [n] that are in the sample."""
        hours = np.floor_divide(arrivals, HOUR_SECONDS).astype(np.int64)
        is_recent = arrivals >= columns.since
        for hour in np.unique(hours[is_recent]).tolist():
            self.hours[hour] = max(self.level, self.hours.get(hour, 0))
        self.items += [
            PendingJoin(int(columns.digests[row]), int(hours[row]), float(arrivals[row]), columns.fact(row))
            for row in np.flatnonzero(is_recent & in_sample(columns.digests, self.level)).tolist()
        ]
        while len(self.items) > self.most:
            self.level += 1
            kept = in_sample(np.array([item.digest for item in self.items], np.uint64), self.level)
            self.items = [self.items[at] for at in np.flatnonzero(kept).tolist()]
            self.hours = dict.fromkeys(self.hours, self.level)

    @property
    def is_full(self) -> bool:
        """Whether so many are pending that they should be flushed at once."""
        return len(self.items) >= FLUSHED_ITEMS

    @property
    def hours_to_flush(self) -> dict[int, int]:
        """Hours with the highest level in use for each; -1 for those that are only thinned out."""
        return dict.fromkeys(self.thin, -1) | self.hours

    def mark_flushed(self, level: int, thin: list[int]) -> None:
        """Forget what is stored; `level` is the one in force, and `thin` are hours to thin out next."""
        self.items.clear()
        self.hours.clear()
        self.level, self.thin = level, thin
