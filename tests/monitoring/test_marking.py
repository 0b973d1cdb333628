"""Marks of traffic: which are made and kept, and what is compared by them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.config.model import DriftSettings
from service.domain.cells import OTHER
from service.domain.traffic_counts import WHOLE, TableCounts, TableKey, TrafficCounts
from service.monitoring.checkpoint_schedule import (
    MARKS_PER_WINDOW,
    ComparedTraffic,
    compared_traffic,
    due_marks,
)
from service.store.references import ReferenceWindow
from service.store.traffic_checkpoints import MarkName, Purpose

HOUR = 3_600.0
BEGAN = 1_800_000_000.0
SETTINGS = DriftSettings(window_hours=24, reference_predictions=2_500)
RATE = 100
NEAR = SETTINGS.window_seconds / MARKS_PER_WINDOW / 2
"""No time within the window is farther from a mark."""


REGION: TableKey = ("region", "bins")


def whole(*counts: int) -> TableCounts:
    """The table of all traffic."""
    return TableCounts("whole", ("",), np.array([counts]))


def regions(counts: dict[str, list[int]], meaning: str = "bins") -> TableCounts:
    """The table of an attribute by score bin."""
    return TableCounts(meaning, tuple(counts), np.array(list(counts.values())).reshape(len(counts), -1))


class Model:
    """A model whose traffic comes steadily, in two columns alike; a leader keeps marks every hour."""

    def __init__(self, settings: DriftSettings = SETTINGS) -> None:
        self.settings = settings
        self.marks: dict[MarkName, TrafficCounts] = {}
        self.window: ReferenceWindow | None = None
        self.now = BEGAN
        self.lag = 0.0
        self.tables = {WHOLE: whole(RATE // 2, RATE // 2)}

    @property
    def counts(self) -> TrafficCounts:
        return TrafficCounts(dict(self.tables))

    def look(self) -> None:
        newest = self.now - self.lag
        due = due_marks(
            self.marks, self.counts, self.window, self.settings, newest_record=newest, now=self.now
        )
        self.marks = {name: mark for name, mark in self.marks.items() if name not in due.removed}
        self.marks |= due.added

    def run(self, hours: int) -> Model:
        for _ in range(hours):
            self.look()
            self.now += HOUR
            for key, table in self.tables.items():
                self.tables[key] = TableCounts(table.meaning, table.names, table.counts + RATE // 2)
        return self

    def compared(self) -> ComparedTraffic | None:
        return compared_traffic(self.marks, self.counts, self.window, self.settings, now=self.now)

    def named(self, purpose: Purpose) -> list[MarkName]:
        return [name for name in self.marks if name.purpose == purpose]


@pytest.fixture
def model() -> Model:
    return Model()


def test_nothing_is_compared_before_the_first_predictions_are_there(model: Model) -> None:
    assert model.run(24).compared() is None


def test_the_first_predictions_are_the_reference(model: Model) -> None:
    compared = model.run(200).compared()
    assert compared is not None
    assert compared.reference.predictions == SETTINGS.reference_predictions
    assert compared.reference.since == BEGAN
    assert compared.reference.until == BEGAN + 25 * HOUR


def test_a_reference_of_many_predictions_is_a_window_long_as_nights_are_not_days(model: Model) -> None:
    model.settings = DriftSettings(window_hours=24, reference_predictions=500)
    compared = model.run(100).compared()
    assert compared is not None
    assert compared.reference.until == BEGAN + 24 * HOUR


def test_recent_is_the_window_and_an_eighth_of_it_at_the_most(model: Model) -> None:
    model.run(60)
    for _ in range(30):
        compared = model.run(1).compared()
        assert compared is not None
        length = model.now - compared.recent.since
        assert 24 * HOUR <= length <= 24 * HOUR * (1 + 1 / MARKS_PER_WINDOW)
        assert compared.recent.predictions == RATE * length / HOUR


def test_nothing_of_the_reference_is_recent(model: Model) -> None:
    compared = model.run(30).compared()
    assert compared is not None
    assert compared.recent.since == compared.reference.until
    assert compared.reference.predictions + compared.recent.predictions == model.counts.predictions - RATE


def test_the_lengths_of_both_are_known_from_the_first_mark_on(model: Model) -> None:
    compared = model.run(50).compared()
    assert compared is not None
    for stretch in (compared.reference, compared.recent):
        assert stretch.timed_counts.predictions / stretch.timed_seconds == pytest.approx(RATE / HOUR)


def test_a_window_that_is_made_longer_is_as_long_as_marks_tell_at_first(model: Model) -> None:
    model.run(500)
    model.settings = DriftSettings(window_hours=168, reference_predictions=1_000)
    compared = model.run(1).compared()
    assert compared is not None
    # Marks of before are kept, the rarer the older.
    assert 168 * HOUR <= model.now - compared.recent.since <= 300 * HOUR
    compared = model.run(300).compared()
    assert compared is not None
    assert 168 * HOUR <= model.now - compared.recent.since <= 168 * HOUR * (1 + 1 / MARKS_PER_WINDOW)


def test_marks_are_bounded_whatever_the_time(model: Model) -> None:
    for _ in range(100):
        model.run(5)
        assert len(model.named("recent")) <= MARKS_PER_WINDOW + 20
    assert len(model.marks) <= MARKS_PER_WINDOW + 22


def test_a_window_that_is_set_takes_the_place_of_the_first_predictions(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(model.now - 12 * HOUR, model.now, model.now)
    compared = model.run(2).compared()
    assert compared is not None
    assert compared.reference.since == pytest.approx(model.window.since, abs=NEAR)
    assert compared.reference.until == model.window.until
    hours = (compared.reference.until - compared.reference.since) / HOUR
    assert compared.reference.predictions == hours * RATE
    assert compared.recent.predictions == 2 * RATE


def test_a_window_without_a_beginning_holds_all_until_its_end(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(-math.inf, model.now, model.now)
    compared = model.run(2).compared()
    assert compared is not None
    assert compared.reference.predictions == 101 * RATE


def test_a_window_that_has_not_ended_is_no_reference_yet(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(model.now + 2 * HOUR, model.now + 5 * HOUR, model.now)
    assert model.run(5).compared() is None
    compared = model.run(2).compared()
    assert compared is not None
    assert compared.reference.predictions == 3 * RATE


def test_a_window_before_all_marks_begins_with_the_oldest(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(BEGAN, model.now - 6 * HOUR, model.now)
    compared = model.run(1).compared()
    assert compared is not None
    assert compared.reference.since == BEGAN
    assert compared.reference.until == pytest.approx(model.window.until, abs=NEAR)


@pytest.mark.parametrize("length", [24 * HOUR, math.inf])
def test_a_window_that_was_over_before_the_first_mark_gives_way_to_the_first_predictions(
    model: Model, length: float
) -> None:
    until = BEGAN - 100 * HOUR
    model.window = ReferenceWindow(until - length, until, until)
    compared = model.run(50).compared()
    assert compared is not None
    assert compared.reference.predictions == SETTINGS.reference_predictions
    assert not model.named("since") + model.named("until")


def test_a_window_that_is_cleared_gives_way_to_the_first_predictions(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(-math.inf, model.now, model.now)
    model.run(2)
    model.window = None
    compared = model.run(2).compared()
    assert compared is not None
    assert compared.reference.predictions == SETTINGS.reference_predictions
    assert not model.named("since") + model.named("until")


def test_another_window_takes_the_place_of_the_one_before(model: Model) -> None:
    model.run(100)
    for _ in range(2):
        model.window = ReferenceWindow(-math.inf, model.now, model.now)
        model.run(2)
    assert [name.set_at for name in model.named("until")] == [model.window.set_at if model.window else 0]


def test_counts_that_fell_make_all_marks_void_and_the_reference_begins_anew(model: Model) -> None:
    model.run(50)
    model.tables[WHOLE] = whole(10, 4_000)
    assert model.compared() is None
    model.look()
    assert not model.marks
    assert model.run(24).compared() is None
    compared = model.run(10).compared()
    assert compared is not None
    assert compared.reference.since == BEGAN + 50 * HOUR


@pytest.mark.parametrize(
    "table", [whole(10_000), TableCounts("other bins", ("",), np.array([[10_000, 10_000]]))]
)
def test_other_classes_or_score_bins_make_all_marks_void(model: Model, table: TableCounts) -> None:
    model.run(50)
    model.tables[WHOLE] = table
    assert model.compared() is None
    model.look()
    assert not model.marks


def test_a_value_that_lost_its_row_makes_no_mark_void(model: Model) -> None:
    model.tables[REGION] = regions({OTHER: [0, 0], "north": [50, 50]})
    model.run(50)
    model.tables[REGION] = regions({OTHER: [5_000, 5_000], "south": [1, 1]})
    assert model.compared() is not None


def test_a_table_that_is_younger_than_the_reference_is_not_in_it(model: Model) -> None:
    model.run(50)
    model.tables[REGION] = regions({"north": [7, 0]})
    compared = model.run(30).compared()
    assert compared is not None
    assert set(compared.reference.counts.tables) == {WHOLE}
    assert set(compared.recent.counts.tables) == {WHOLE, REGION}


def test_a_reference_that_is_set_later_has_the_table_and_how_much_of_it_came_by_time(model: Model) -> None:
    model.run(50)
    model.tables[REGION] = regions({"north": [7, 0]})
    model.run(10)
    model.window = ReferenceWindow(model.now, model.now + 5 * HOUR, model.now)
    compared = model.run(10).compared()
    assert compared is not None
    for counts in (compared.reference.counts, compared.reference.timed_counts):
        assert counts.tables[REGION].counts.tolist() == [[5 * RATE // 2, 5 * RATE // 2]]


def test_of_a_table_that_began_within_the_reference_only_the_mix_is_known(model: Model) -> None:
    model.run(10)
    model.tables[REGION] = regions({"north": [7, 0]})
    compared = model.run(50).compared()
    assert compared is not None
    assert compared.reference.counts.tables[REGION].counts.sum() == 7 + 15 * RATE
    assert REGION not in compared.reference.timed_counts.tables


def test_a_table_whose_columns_mean_something_else_now_is_not_in_the_reference(model: Model) -> None:
    model.tables[REGION] = regions({"north": [7, 0]})
    model.run(50)
    model.tables[REGION] = regions({"north": [7, 0]}, meaning="other members vote")
    compared = model.run(1).compared()
    assert compared is not None
    assert set(compared.reference.counts.tables) == {WHOLE}


def test_marks_of_a_clock_that_was_ahead_go(model: Model) -> None:
    model.run(50)
    model.now -= 20 * HOUR
    model.look()
    assert max(name.at for name in model.named("recent")) <= model.now


def test_a_reference_of_a_clock_that_was_ahead_is_one_whose_time_is_not_known(model: Model) -> None:
    model.run(50)
    model.now = BEGAN - 365 * 24 * HOUR
    for hours in (1, 60):
        compared = model.run(hours).compared()
        assert compared is not None
        assert compared.reference.predictions == SETTINGS.reference_predictions
    assert compared.recent.since <= model.now - 24 * HOUR
    assert compared.recent.predictions == RATE * (model.now - compared.recent.since) / HOUR


def test_without_traffic_nothing_is_marked(model: Model) -> None:
    model.tables[WHOLE] = whole(0, 0)
    model.look()
    assert not model.marks


def test_what_was_counted_before_the_first_mark_is_not_of_the_reference() -> None:
    model = Model()
    model.tables[WHOLE] = whole(500_000, 0)
    assert model.run(24).compared() is None
    compared = model.run(10).compared()
    assert compared is not None
    assert compared.reference.predictions == SETTINGS.reference_predictions
    assert compared.reference.timed_seconds == 25 * HOUR


def test_a_backlog_is_neither_reference_nor_recent(model: Model) -> None:
    # It ends after five looks, with 100 hours read between two of them.
    for hours in (500, 400, 300, 200, 100):
        model.lag = hours * HOUR
        model.tables[WHOLE] = whole((500 - hours) * RATE + RATE, 0)
        model.look()
        model.now += 5
        assert not model.named("beginning")
    model.lag = 0
    began = model.now
    assert model.run(24).compared() is None
    compared = model.run(30).compared()
    assert compared is not None
    assert compared.reference.since == began
    assert compared.reference.predictions == SETTINGS.reference_predictions


def test_a_backlog_after_an_outage_is_not_recent(model: Model) -> None:
    model.run(60)
    before = model.counts.predictions
    model.now += 90 * HOUR
    for hours in (60, 30):
        model.lag = hours * HOUR
        model.tables[WHOLE] = whole(before, before)
        model.look()
        compared = model.compared()
        assert compared is not None
        assert compared.recent.predictions == 0
        model.now += 5
    model.lag = 0
    compared = model.run(3).compared()
    assert compared is not None
    assert compared.recent.predictions == 3 * RATE


def test_a_model_with_rare_batches_has_a_reference() -> None:
    model = Model(DriftSettings(window_hours=24, reference_predictions=150))
    for week in range(4):
        for hour in range(7 * 24):
            model.lag = hour * HOUR
            if not hour:
                model.tables[WHOLE] = whole(100 * week + 100, 0)
            model.look()
            model.now += HOUR
    compared = model.compared()
    assert compared is not None
    assert compared.reference.predictions == 200
    assert compared.recent.predictions == 0
