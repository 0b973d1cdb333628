"""When records arrived, by their times and their places in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from service.domain.arrays import Floats

FUTURE_SECONDS = 300.0
"""A record's time may be so far ahead of the consumer's clock, and a prediction's of its record's."""


def arrival_times(records: Sequence[Any], *, now: float, newest: float) -> tuple[Floats, float]:
    """Arrival time of every record of a batch [n], and the time of the newest record up to its end.

    A record arrived at its own time, but not before an earlier record of its partition. A producer may choose
    the time of a record, but not its place in the log. So a record that is dated back counts like those
    around it. A record that has no time, or one in the future, arrived with the newest record before it.

    Args:
        records: of one partition, in order.
        now: seconds since the epoch.
        newest: time of the newest record before the batch; minus infinity if there is none.
    """
    times = np.array([record.timestamp for record in records], dtype=np.int64) / 1000
    # The timestamp of a record without a time is negative.
    is_usable = (times >= 0) & (times <= now + FUTURE_SECONDS)
    arrived: Floats = np.maximum.accumulate(np.append(newest, np.where(is_usable, times, -np.inf)))
    return np.where(np.isfinite(arrived[1:]), arrived[1:], now), float(arrived[-1])
