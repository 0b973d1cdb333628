"""Marks of traffic: which are made and kept, and what is compared by them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.drift_settings import DriftSettings
from service.marking import MARKS_PER_WINDOW, ComparedTraffic, compared_traffic, due_marks
from service.shard import Ints
from service.store.marks import MarkName, Purpose
from service.store.references import ReferenceWindow

HOUR = 3_600.0
BEGAN = 1_800_000_000.0
SETTINGS = DriftSettings(window_hours=24, reference_predictions=2_500)
RATE = 100
NEAR = SETTINGS.window_seconds / MARKS_PER_WINDOW / 2
"""No time within the window is farther from a mark."""


class Model:
    """A model whose traffic comes steadily, in two cells alike, and whose marks a leader keeps every hour."""

    def __init__(self, settings: DriftSettings = SETTINGS) -> None:
        self.settings = settings
        self.marks: dict[MarkName, Ints] = {}
        self.window: ReferenceWindow | None = None
        self.now = BEGAN
        self.counts = np.array([RATE // 2, RATE // 2])

    def look(self) -> None:
        due = due_marks(self.marks, self.counts, self.window, self.settings, now=self.now)
        self.marks = {name: mark for name, mark in self.marks.items() if name not in due.going}
        self.marks |= due.coming

    def run(self, hours: int) -> Model:
        for _ in range(hours):
            self.look()
            self.now += HOUR
            self.counts = self.counts + RATE // 2
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
    assert compared.reference.since == -math.inf
    assert compared.reference.until == BEGAN + 24 * HOUR


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
    assert compared.reference.predictions + compared.recent.predictions == model.counts.sum()


def test_the_lengths_of_both_are_known_from_the_first_mark_on(model: Model) -> None:
    compared = model.run(50).compared()
    assert compared is not None
    for stretch in (compared.reference, compared.recent):
        assert stretch.timed_counts.sum() / stretch.timed_seconds == pytest.approx(RATE / HOUR)


def test_a_window_that_is_made_longer_is_as_long_as_marks_tell_at_first(model: Model) -> None:
    model.run(500)
    model.settings = DriftSettings(window_hours=168, reference_predictions=1_000)
    compared = model.run(1).compared()
    assert compared is not None
    assert model.now - compared.recent.since <= 30 * HOUR
    compared = model.run(300).compared()
    assert compared is not None
    assert 168 * HOUR <= model.now - compared.recent.since <= 168 * HOUR * (1 + 1 / MARKS_PER_WINDOW)


def test_marks_are_bounded_whatever_the_time(model: Model) -> None:
    for _ in range(100):
        model.run(5)
        assert len(model.named("recent")) <= MARKS_PER_WINDOW + 2
    assert len(model.marks) <= MARKS_PER_WINDOW + 4


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
    assert compared.reference.since == pytest.approx(model.now - 25 * HOUR, abs=2 * NEAR)
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


def test_cells_that_came_later_had_no_traffic_before(model: Model) -> None:
    model.run(30)
    model.counts = np.array([*model.counts, 7])
    compared = model.compared()
    assert compared is not None
    assert (compared.reference.counts[2], compared.recent.counts[2]) == (0, 7)


def test_counts_that_fell_make_all_marks_void_and_the_reference_begins_anew(model: Model) -> None:
    model.run(50)
    model.counts = np.array([10, 4_000])
    assert model.compared() is None
    model.look()
    assert not model.marks
    compared = model.run(2).compared()
    assert compared is not None
    assert compared.reference.until == BEGAN + 50 * HOUR


def test_fewer_cells_make_all_marks_void(model: Model) -> None:
    model.run(50)
    model.counts = np.array([10_000])
    model.look()
    assert not model.marks


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
    model.counts = np.zeros(2, np.int64)
    model.look()
    assert not model.marks


def test_what_was_counted_before_the_first_mark_has_no_known_length() -> None:
    model = Model(DriftSettings(reference_predictions=1))
    compared = model.run(5).compared()
    assert compared is not None
    assert compared.reference.timed_seconds == 0
