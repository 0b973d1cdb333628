"""Traffic by epochs, from marks of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from service.domain.traffic_counts import WHOLE, TableCounts, TrafficCounts
from service.monitoring.checkpoint_schedule import GROWTH, superfluous, traffic_history
from service.store.traffic_checkpoints import MarkName

HOUR = 3_600.0


def counted(predictions: int) -> TrafficCounts:
    return TrafficCounts({WHOLE: TableCounts("", ("",), np.array([[predictions]]))})


def test_epochs_are_what_came_between_marks_that_are_old_enough() -> None:
    marks = {MarkName("recent", at * HOUR): counted(int(10 * at)) for at in (1, 10, 30, 95)}
    history = traffic_history(marks, counted(1_000), window_seconds=24 * HOUR, now=100 * HOUR)
    assert history is not None
    assert history.begins.tolist() == [30 * HOUR, 10 * HOUR, 1 * HOUR, -np.inf]
    assert [part.predictions for part in history.parts] == [700, 200, 90, 10]
    assert history.epoch(np.array([99, 30, 29, 0]) * HOUR).tolist() == [0, 0, 1, 3]


def test_there_is_no_history_while_all_traffic_is_recent_or_shards_were_filled_again() -> None:
    marks = {MarkName("beginning", 90 * HOUR): counted(5)}
    assert traffic_history(marks, counted(9), window_seconds=24 * HOUR, now=100 * HOUR) is None
    marks = {MarkName("beginning", 0.0): counted(50)}
    assert traffic_history(marks, counted(9), window_seconds=24 * HOUR, now=100 * HOUR) is None


def test_epochs_have_the_tables_by_score_bin_alone() -> None:
    tables = {
        key: TableCounts("", ("",), np.array([[9]])) for key in (WHOLE, ("a", "bins"), ("a", "classes"))
    }
    counts = TrafficCounts(tables)
    mark = {MarkName("recent", 0.0): counted(5)}
    history = traffic_history(mark, counts, window_seconds=24 * HOUR, now=100 * HOUR)
    assert history is not None
    assert history.parts[0].tables.keys() == {WHOLE, ("a", "bins")}


def test_no_prediction_is_of_two_epochs_where_a_clock_was_ahead() -> None:
    counts = {10 * HOUR: 20, 20 * HOUR: 90, 40 * HOUR: 30, 50 * HOUR: 100}
    marks = {MarkName("recent", at): counted(count) for at, count in counts.items()}
    history = traffic_history(marks, counted(110), window_seconds=24 * HOUR, now=100 * HOUR)
    assert history is not None
    assert history.begins.tolist() == [50 * HOUR, 40 * HOUR, 10 * HOUR, -np.inf]
    assert [part.predictions for part in history.parts] == [10, 70, 10, 20]


def test_kept_marks_are_few_and_no_gap_is_long() -> None:
    kept: list[float] = []
    for now in np.arange(0, 2_000, 3.0):
        kept.append(now)
        old = [time for time in kept if time <= now - 24]
        kept = [time for time in kept if time not in superfluous(old, now=now)]
    ages = sorted(now - time for time in kept)
    assert len(ages) < 40
    assert all(b <= 3 * GROWTH * a for a, b in pairwise(ages[8:]))
