"""Arrival times follow the order of the log, whatever times producers give their records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.prediction_times import FUTURE_SECONDS, arrival_times

NOW = 1_800_000_000.0
YEAR = 365 * 86_400.0


@dataclass(frozen=True)
class Stamped:
    """A record of which only the timestamp matters."""

    timestamp: int


def records(*times: float | None) -> list[Stamped]:
    return [Stamped(-1 if time is None else round(1_000 * time)) for time in times]


@pytest.mark.parametrize(
    ("times", "arrived"),
    [
        ([NOW - 9, NOW - 7, NOW - 7, NOW - 2], [NOW - 9, NOW - 7, NOW - 7, NOW - 2]),
        ([NOW - 9, NOW - YEAR, NOW - 8], [NOW - 9, NOW - 9, NOW - 8]),
        ([NOW - 9, NOW + YEAR, NOW - 8], [NOW - 9, NOW - 9, NOW - 8]),
        ([NOW - 9, None, NOW - 8], [NOW - 9, NOW - 9, NOW - 8]),
        ([None, NOW + YEAR, NOW - 8, None], [NOW, NOW, NOW - 8, NOW - 8]),
        ([NOW + FUTURE_SECONDS, NOW], [NOW + FUTURE_SECONDS] * 2),
        ([NOW + FUTURE_SECONDS + 1, NOW], [NOW, NOW]),
        ([0.0], [0.0]),
    ],
    ids=["in order", "past", "future", "no time", "first ones", "a little ahead", "too far ahead", "epoch"],
)
def test_a_record_arrives_with_the_newest_record_up_to_it(times: list[float], arrived: list[float]) -> None:
    found, _ = arrival_times(records(*times), now=NOW, newest=-np.inf)
    assert found.tolist() == arrived


moments = st.one_of(
    st.none(), st.integers(0, 100).map(lambda n: NOW - n), st.sampled_from([NOW - YEAR, NOW + YEAR])
)


@given(st.lists(moments, min_size=1, max_size=30), st.integers(1, 30))
def test_arrival_times_do_not_depend_on_where_batches_end(times: list[float | None], size: int) -> None:
    stamped = records(*times)
    whole, end = arrival_times(stamped, now=NOW, newest=-np.inf)
    newest, parts = -np.inf, []
    for first in range(0, len(stamped), size):
        part, newest = arrival_times(stamped[first : first + size], now=NOW, newest=newest)
        parts += part.tolist()
    assert parts == whole.tolist()
    assert newest == end


@given(st.lists(moments, min_size=1, max_size=30), st.lists(st.booleans(), min_size=30, max_size=30))
def test_a_record_that_is_dated_back_changes_no_arrival_time(
    times: list[float | None], is_dated_back: list[bool]
) -> None:
    shown = [NOW - 200, *times]
    spoilt = shown[:1] + [
        NOW - 1e6 if back else time for time, back in zip(times, is_dated_back[: len(times)], strict=True)
    ]
    honest, _ = arrival_times(records(*shown), now=NOW, newest=-np.inf)
    found, _ = arrival_times(records(*spoilt), now=NOW, newest=-np.inf)
    assert (found <= honest).all()
    assert (found >= NOW - 200).all()
