"""Marks of event time: which are made and kept, and what a timeline of them knows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.traffic_marks import (
    SLOTS_PER_WINDOW,
    Mark,
    ShardMarks,
    Slots,
    Timeline,
    kept_marks,
    open_mark,
)

SLOTS = Slots(3.0)
ENOUGH = 50


def made(arrivals: Sequence[float], *, batch: int | None = None, enough: int = ENOUGH) -> tuple[Mark, ...]:
    """The marks of a shard that has counted these, ascending, its present counts as the last one."""
    marks = ShardMarks(SLOTS, enough=enough)
    for begin in range(0, len(arrivals), batch or len(arrivals) or 1):
        of_batch = arrivals[begin : begin + (batch or len(arrivals))]
        marks.added |= dict.fromkeys(  # type: ignore[arg-type] - the counts do not matter here
            mark for _, mark in marks.advance(np.array(of_batch), begin)
        )
    return (*sorted(marks.added), open_mark(marks.newest, len(arrivals)))


def test_a_mark_has_what_arrived_before_every_time_between_two_slots_with_traffic() -> None:
    assert made([1.0, 2.0, 10.0, 10.0, 12.5])[:-1] == (
        Mark(-math.inf, 0.0, 0),
        Mark(3.0, 9.0, 2),
        Mark(12.0, 12.0, 4),
    )


def test_a_batch_within_one_slot_makes_no_mark() -> None:
    marks = ShardMarks(SLOTS, enough=ENOUGH)
    assert [at for at, _ in marks.advance(np.array([3.1, 3.2]), 0)] == [0]
    assert marks.advance(np.array([4.0, 5.9]), 2) == []


def test_an_arrival_before_the_newest_one_counts_with_it() -> None:
    assert made([10.0, 1.0, 2.0])[:-1] == (Mark(-math.inf, 9.0, 0),)


def test_a_mark_comes_back_from_its_field() -> None:
    for mark in (Mark(-math.inf, 1 / 3, 0), Mark(1.5, 7.25, 2**40)):
        assert Mark.parse(mark.field()) == mark
    assert Mark.parse("recent|0.0|1.0") is None
    assert Mark.parse("1.0|2.0|3|of a newer version") is None


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 60))
def test_a_timeline_counts_what_arrived_before_a_time_or_does_not_know(steps: list[int], batch: int) -> None:
    arrivals = np.cumsum(steps, dtype=np.float64).tolist()
    timeline = Timeline({0: made(arrivals, batch=batch)})
    latest = SLOTS.number(arrivals[-1]) if arrivals else 0
    for number in range(-1, latest + 2):
        time = SLOTS.begin(number)
        counted = timeline.predictions_at(time)
        assert counted in {None, sum(arrival < time for arrival in arrivals)}
        if number >= latest - SLOTS_PER_WINDOW - 1:
            assert counted is not None


@given(st.lists(st.integers(0, 100), min_size=1, max_size=80), st.integers(1, 80))
def test_the_marks_that_are_kept_do_not_depend_on_batches(steps: list[int], batch: int) -> None:
    arrivals = np.cumsum(steps, dtype=np.float64).tolist()
    assert made(arrivals, batch=batch) == made(arrivals)


@pytest.mark.parametrize(("slots", "most"), [(56, 40), (8 * 365 * 3, 110)], ids=["a week", "three years"])
def test_marks_are_few_however_long_traffic_lasts(slots: int, most: int) -> None:
    one_a_slot = np.arange(slots) * SLOTS.seconds
    for enough in (ENOUGH, 10**6):
        assert len(made(one_a_slot.tolist(), batch=10, enough=enough)) <= most


def test_the_first_slots_and_the_last_ones_are_all_kept() -> None:
    timeline = Timeline({0: made((np.arange(500) * SLOTS.seconds).tolist())})
    for number in [*range(10), *range(490, 500)]:
        assert timeline.predictions_at(SLOTS.begin(number)) == number


def test_a_pinned_time_is_kept_and_goes_with_its_pin() -> None:
    marks = [Mark(time, time, at) for at, time in enumerate(np.arange(500) * SLOTS.seconds)]
    pin = SLOTS.begin(251)
    assert not _has(kept_marks(marks, SLOTS, newest=1_500.0, enough=ENOUGH, pins=()), pin)
    assert _has(kept_marks(marks, SLOTS, newest=1_500.0, enough=ENOUGH, pins=(pin,)), pin)


def _has(marks: Sequence[Mark], time: float) -> bool:
    return any(mark.since <= time <= mark.until for mark in marks)


def test_traffic_begins_with_the_first_prediction_of_any_partition() -> None:
    timeline = Timeline({0: made([30.0, 31.0]), 1: made([13.0]), 2: made([])})
    assert timeline.begins(ENOUGH) == 12.0
    assert Timeline({2: made([])}).begins(ENOUGH) == math.inf
    assert Timeline({}).begins(ENOUGH) == math.inf


def test_a_single_misdated_prediction_does_not_begin_traffic() -> None:
    # One of a thousand predictions of a reference may be misdated.
    timeline = Timeline({0: made([0.0, *(9_000.0 + np.arange(40))]), 1: made([8_000.0, 8_000.0])})
    assert timeline.begins(1_000) == 7_998.0
    assert timeline.begins(999) == 0.0


def test_what_was_counted_before_there_were_marks_has_no_time() -> None:
    marks = ShardMarks(SLOTS, enough=ENOUGH, newest=100.0)
    (at, mark) = marks.advance(np.array([101.0, 103.0]), 7)[0]
    assert (at, mark) == (1, Mark(102.0, 102.0, 8))
    timeline = Timeline({0: (mark, open_mark(103.0, 9))})
    assert timeline.begins(ENOUGH) == 102.0
    assert timeline.predictions_at(99.0) is None
