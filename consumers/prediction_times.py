"""The two times of a prediction: when its record arrived, and when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consumers.formats.event_headers import event_time
from consumers.formats.parts import Part
from service.domain.arrays import Flags, Floats

FUTURE_SECONDS = 300.0
"""How far a record's time may be ahead of the consumer's clock, and a prediction's time of its record's."""


def arrival_times(records: Sequence[Any], *, now: float, newest: float) -> tuple[Floats, float]:
    """Arrival time of every record of a batch [n], and the time of the newest record up to its end.

    A record arrives at its own time, but not before an earlier record of its partition: a producer may choose
    the time of a record, but not its place in the log. So a backdated record counts like those around it. A
    record without a time, or with one in the future, arrives with the newest record before it.

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


class PredictionTimes(NamedTuple):
    """When predictions count as made [n].

    Attributes:
        times: seconds since the epoch.
        too_late: whether the prediction claims a time too far in the future.
        too_early: whether it claims a time too far in the past.
    """

    times: Floats
    too_late: Flags
    too_early: Flags


def prediction_times(
    records: Sequence[Any], decoded: Part, now: float, *, lateness_seconds: float
) -> PredictionTimes:
    """When every prediction counts as made: the time it claims, within bounds, else its record's time.

    A time in the far future counts as the record's time, one in the far past as the bound: a label counts at
    the time of its prediction, so a producer must not choose it freely. Draws do not depend on it.
    """
    stamps = np.array([record.timestamp for record in records], dtype=np.int64)
    # The timestamp of a record without a time is negative.
    record_times = np.where(stamps < 0, now, np.minimum(stamps / 1000, now + FUTURE_SECONDS))
    header_times: Floats = np.full(len(records), np.nan)
    for place in [place for place, record in enumerate(records) if record.headers]:
        if (claimed := event_time(records[place].headers)) is not None:
            header_times[place] = claimed
    places = np.asarray(decoded.places, dtype=np.intp)
    claims = decoded.times
    claims = np.where(np.isnan(claims), header_times[places], claims)
    of_record = record_times[places]
    earliest = of_record - lateness_seconds
    too_late, too_early = claims > of_record + FUTURE_SECONDS, claims < earliest
    bounded = np.where(np.isnan(claims) | too_late, of_record, np.where(too_early, earliest, claims))
    return PredictionTimes(bounded, too_late, too_early)
