"""References and recent traffic are of event time, whenever consumers read and rounds look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.config.model import DriftSettings
from service.domain.cells import OTHER
from service.domain.traffic_counts import WHOLE, TableCounts, TableKey, TrafficCounts, merge_counts
from service.domain.traffic_marks import SLOTS_PER_WINDOW, Mark, ShardMarks, Timeline, open_mark
from service.monitoring.traffic_windows import (
    ComparedTraffic,
    TrafficHistory,
    TrafficWindows,
    compared_traffic,
    traffic_history,
    traffic_windows,
)
from service.store.references import ReferenceWindow

HOUR = 3_600.0
DAY = 24 * HOUR
BEGAN = 75_000 * DAY
"""A boundary of slots of every window of these tests."""

SETTINGS = DriftSettings(window_hours=24, reference_predictions=2_500)
SLOT = 3 * HOUR
RATE = 100
REGION: TableKey = ("region", "bins")


def whole(*counts: int) -> TableCounts:
    """The table of all traffic."""
    return TableCounts("whole", ("",), np.array([counts], np.int64))


def regions(counts: dict[str, list[int]], meaning: str = "bins") -> TableCounts:
    """The table of an attribute by score bin."""
    return TableCounts(meaning, tuple(counts), np.array(list(counts.values())).reshape(len(counts), -1))


@dataclass
class Partition:
    """A partition's log, of arrivals and columns, and its shard: in a consumer's memory, and as stored."""

    drift: DriftSettings = SETTINGS
    log: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.read = self.stored_to = 0
        self.stored: dict[Mark, TrafficCounts] = {}
        self.tables: dict[TableKey, TableCounts] = {}  # beside that of all traffic
        self.restart(())

    def restart(self, pins: Sequence[float]) -> None:
        """A consumer starts with what is stored; what the one before did not store is read again."""
        self.read = self.stored_to
        self.marks = ShardMarks(
            self.drift.slots,
            enough=self.drift.reference_predictions,
            stored=self.stored,
            newest=self.newest,
            pins=pins,
        )

    def take(self, count: int) -> None:
        """Count a batch."""
        batch = self.log[self.read : self.read + count]
        if batch:
            for end, mark in self.marks.advance(np.array([at for at, _ in batch]), self.read):
                self.marks.added[mark] = self.counts(self.read + end)
            self.read += len(batch)

    def flush(self, pins: Sequence[float] = ()) -> None:
        """Store what was counted, and learn the pins."""
        for mark in self.marks.removed:
            del self.stored[mark]
        self.stored |= self.marks.added
        self.marks.mark_flushed()
        self.marks.pins = pins
        self.stored_to = self.read

    def counts(self, until: int) -> TrafficCounts:
        """Predictions by column of the first records."""
        columns = np.bincount([column for _, column in self.log[:until]], minlength=2)
        return TrafficCounts({WHOLE: whole(*columns.tolist()), **self.tables})

    @property
    def newest(self) -> float:
        return self.log[self.stored_to - 1][0] if self.stored_to else -math.inf


class Model:
    """A model whose consumers and leader do what a test chooses."""

    def __init__(self, drift: DriftSettings = SETTINGS, *, partitions: int = 1) -> None:
        self.drift = drift
        self.partitions = [Partition(drift) for _ in range(partitions)]
        self.window: ReferenceWindow | None = None
        self.now = BEGAN
        self.pins: tuple[float, ...] = ()

    def come(self, hours: float, *, rate: int = RATE, column: int | None = None, partition: int = 0) -> None:
        """Records arrive evenly, in two columns alike or in one; nobody reads them."""
        log, count = self.partitions[partition].log, round(hours * rate)
        log += [
            (self.now + hours * HOUR * n / count, n % 2 if column is None else column) for n in range(count)
        ]

    def wait(self, hours: float) -> None:
        self.now += hours * HOUR

    def take_all(self) -> None:
        for partition in self.partitions:
            partition.take(len(partition.log))
            partition.flush(self.pins)

    def run(self, hours: int) -> Model:
        """Records are read as they arrive, and a leader looks every hour."""
        for _ in range(hours):
            self.come(1)
            self.wait(1)
            self.take_all()
            self.look()
        return self

    def look(self) -> TrafficWindows | None:
        windows = traffic_windows(self.timeline, self.window, self.drift, now=self.now)
        if windows is not None:
            self.pins = tuple(windows.pins)
        return windows

    @property
    def timeline(self) -> Timeline:
        return Timeline(
            {
                number: (*sorted(each.stored), open_mark(each.newest, each.stored_to))
                for number, each in enumerate(self.partitions)
            }
        )

    @property
    def counts(self) -> TrafficCounts:
        return merge_counts([each.counts(each.stored_to) for each in self.partitions])

    def counts_at(self, windows: TrafficWindows) -> dict[float, TrafficCounts]:
        found = {}
        for time in windows.times:
            marks = self.timeline.marks_at(time)
            assert marks is not None
            found[time] = merge_counts(
                [
                    each.stored.get(marks[number], each.counts(each.stored_to))
                    for number, each in enumerate(self.partitions)
                ]
            )
        return found

    def compared(self) -> ComparedTraffic | None:
        windows = self.look()
        if windows is None:
            return None
        return compared_traffic(windows, self.counts_at(windows), self.counts, now=self.now)

    def history(self) -> TrafficHistory | None:
        windows = self.look()
        assert windows is not None
        return traffic_history(windows.epochs, self.counts_at(windows), self.counts)

    def exact(self, since: float, until: float = math.inf) -> list[int]:
        """Stored predictions that arrived between two times, by column."""
        columns = [
            column
            for each in self.partitions
            for at, column in each.log[: each.stored_to]
            if since <= at < until
        ]
        return np.bincount(columns, minlength=2).tolist()

    def assert_exact(self, compared: ComparedTraffic) -> None:
        reference, recent = compared.reference, compared.recent
        assert columns_of(reference.counts) == self.exact(reference.since, reference.until)
        assert columns_of(recent.counts) == self.exact(recent.since)
        assert reference.until <= recent.since


def columns_of(counts: TrafficCounts) -> list[int]:
    return counts.whole.counts[0].tolist()


def found(compared: ComparedTraffic | None) -> ComparedTraffic:
    assert compared is not None
    return compared


@pytest.fixture
def model() -> Model:
    return Model()


def test_nothing_is_compared_before_the_first_predictions_are_there(model: Model) -> None:
    assert model.compared() is None
    assert model.run(24).compared() is None


def test_the_first_predictions_are_the_reference(model: Model) -> None:
    reference = found(model.run(200).compared()).reference
    assert (reference.since, reference.until) == (BEGAN, BEGAN + 27 * HOUR)
    assert reference.predictions == 27 * RATE


def test_a_reference_of_many_predictions_is_a_window_long_as_nights_are_not_days() -> None:
    model = Model(DriftSettings(window_hours=24, reference_predictions=500))
    assert found(model.run(100).compared()).reference.until == BEGAN + 24 * HOUR


def test_recent_is_the_window_and_an_eighth_of_it_at_the_most(model: Model) -> None:
    model.run(60)
    for _ in range(30):
        recent = found(model.run(1).compared()).recent
        length = model.now - recent.since
        assert 24 * HOUR <= length <= 24 * HOUR * (1 + 1 / SLOTS_PER_WINDOW)
        assert recent.predictions == RATE * length / HOUR


def test_nothing_of_the_reference_is_recent(model: Model) -> None:
    compared = found(model.run(30).compared())
    assert compared.recent.since == compared.reference.until
    assert compared.reference.predictions + compared.recent.predictions == 30 * RATE


def test_the_lengths_of_both_are_known(model: Model) -> None:
    compared = found(model.run(50).compared())
    for stretch in (compared.reference, compared.recent):
        assert stretch.timed_counts.predictions / stretch.timed_seconds == pytest.approx(RATE / HOUR)


def backlog(model: Model, partition: int = 0) -> None:
    """Three days of records, healthy for the first half and degraded in the second, that nobody reads."""
    model.come(36, column=0, partition=partition)
    model.wait(36)
    model.come(36, column=1, partition=partition)
    model.wait(36)


def test_a_backlog_that_is_read_in_one_round_is_reference_and_recent_by_its_own_time() -> None:
    model = Model(DriftSettings(window_hours=24, reference_predictions=2_000))
    backlog(model)
    model.take_all()
    compared = found(model.compared())
    assert (compared.reference.since, compared.reference.until) == (BEGAN, BEGAN + 24 * HOUR)
    assert columns_of(compared.reference.counts) == [24 * RATE, 0]
    assert columns_of(compared.recent.counts) == [0, 24 * RATE]


def test_a_backlog_of_one_partition_is_not_recent_while_another_one_is_current() -> None:
    model = Model(DriftSettings(window_hours=24, reference_predictions=500), partitions=2)
    start = model.now
    for partition in (0, 1):
        model.now = start
        backlog(model, partition)
    first, second = model.partitions
    first.take(len(first.log))
    first.flush()
    for _ in range(12):
        second.take(300)
        second.flush()
        compared = found(model.compared())
        model.assert_exact(compared)
        assert compared.reference.until == BEGAN + 24 * HOUR
        behind = second.newest < compared.recent.since
        assert compared.recent.predictions == 24 * RATE + (
            0 if behind else model.exact(compared.recent.since)[1] - 24 * RATE
        )
    model.take_all()
    assert columns_of(found(model.compared()).recent.counts) == [0, 2 * 24 * RATE]


def test_traffic_older_than_the_window_is_not_recent(model: Model) -> None:
    model.run(60)
    model.wait(90)
    assert found(model.compared()).recent.predictions == 0
    assert found(model.run(3).compared()).recent.predictions == 3 * RATE


def test_a_partition_that_is_added_counts_from_its_first_record(model: Model) -> None:
    model.run(60)
    model.partitions.append(Partition(model.drift))
    model.come(2, partition=1)
    compared = found(model.run(2).compared())
    model.assert_exact(compared)
    assert compared.recent.predictions == RATE * (model.now - compared.recent.since) / HOUR + 2 * RATE


def test_a_model_with_rare_batches_has_a_reference() -> None:
    model = Model(DriftSettings(window_hours=24, reference_predictions=150))
    for _ in range(4):
        model.come(0.5, rate=200)
        model.wait(7 * 24)
        model.take_all()
    compared = found(model.compared())
    assert compared.reference.predictions == 200
    assert compared.recent.predictions == 0


def test_a_window_that_is_set_takes_the_place_of_the_first_predictions(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(model.now - 12 * HOUR, model.now, model.now)
    for hours in (1, 20, 500):
        compared = found(model.run(hours).compared())
        model.assert_exact(compared)
        assert (compared.reference.since, compared.reference.until) == (BEGAN + 90 * HOUR, BEGAN + 99 * HOUR)


def test_a_window_without_a_beginning_holds_all_until_its_end(model: Model) -> None:
    model.run(99)
    model.window = ReferenceWindow(-math.inf, model.now, model.now)
    assert found(model.run(2).compared()).reference.predictions == 99 * RATE


def test_a_window_that_has_not_ended_is_no_reference_yet(model: Model) -> None:
    model.run(99)
    model.window = ReferenceWindow(model.now + 3 * HOUR, model.now + 9 * HOUR, model.now)
    assert model.run(8).compared() is None
    assert found(model.run(1).compared()).reference.predictions == 6 * RATE


def test_a_window_shorter_than_a_slot_is_the_slot_around_it(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(BEGAN + 91 * HOUR, BEGAN + 92 * HOUR, model.now)
    reference = found(model.compared()).reference
    assert (reference.since, reference.until) == (BEGAN + 90 * HOUR, BEGAN + 93 * HOUR)


def test_a_window_that_begins_before_all_traffic_begins_with_it(model: Model) -> None:
    model.run(100)
    model.window = ReferenceWindow(BEGAN - 100 * DAY, model.now - 7 * HOUR, model.now)
    reference = found(model.run(1).compared()).reference
    assert (reference.since, reference.until) == (BEGAN, BEGAN + 93 * HOUR)


@pytest.mark.parametrize("length", [24 * HOUR, math.inf])
def test_a_window_that_was_over_before_all_traffic_gives_way_to_the_first_predictions(
    model: Model, length: float
) -> None:
    until = BEGAN - 100 * HOUR
    model.window = ReferenceWindow(until - length, until, until)
    assert found(model.run(50).compared()).reference.until == BEGAN + 27 * HOUR


def test_a_window_that_is_cleared_gives_way_to_the_first_predictions_however_long_ago_they_were(
    model: Model,
) -> None:
    model.run(100)
    model.window = ReferenceWindow(-math.inf, model.now, model.now)
    model.run(1_000)
    model.window = None
    compared = found(model.run(2).compared())
    assert compared.reference.until == BEGAN + 27 * HOUR
    model.assert_exact(compared)


def test_a_window_of_drift_that_is_changed_keeps_the_reference_nearly_as_it_is(model: Model) -> None:
    model.run(500)
    model.drift = DriftSettings(window_hours=25, reference_predictions=2_500)
    for partition in model.partitions:
        partition.drift = model.drift
        partition.restart(model.pins)
    for hours in (1, 100):
        compared = found(model.run(hours).compared())
        model.assert_exact(compared)
        assert compared.reference.until <= BEGAN + 30 * HOUR
    assert 25 * HOUR <= model.now - compared.recent.since <= 25 * HOUR * (1 + 1 / SLOTS_PER_WINDOW)


def test_a_table_that_is_younger_than_the_reference_is_not_in_it(model: Model) -> None:
    model.run(50)
    model.partitions[0].tables[REGION] = regions({"north": [7, 0]})
    compared = found(model.run(1).compared())
    assert set(compared.reference.counts.tables) == {WHOLE}
    assert set(compared.recent.counts.tables) == {WHOLE, REGION}


def test_a_table_whose_columns_mean_something_else_now_is_not_in_the_reference(model: Model) -> None:
    model.partitions[0].tables[REGION] = regions({"north": [7, 0]})
    model.run(50)
    model.partitions[0].tables[REGION] = regions({"north": [7, 0]}, meaning="other members vote")
    assert set(found(model.run(1).compared()).reference.counts.tables) == {WHOLE}


def test_a_value_that_lost_its_row_leaves_the_reference(model: Model) -> None:
    model.partitions[0].tables[REGION] = regions({OTHER: [0, 0], "north": [50, 50]})
    model.run(50)
    model.partitions[0].tables[REGION] = regions({OTHER: [5_000, 5_000], "south": [1, 1]})
    assert model.run(1).compared() is not None


def test_epochs_are_older_than_recent_traffic_and_their_counts_exact(model: Model) -> None:
    model.run(24)
    assert model.history() is None
    model.run(500)
    history = model.history()
    assert history is not None
    assert model.now - 27 * HOUR <= history.begins[0] <= model.now - 24 * HOUR
    assert 5 <= len(history.begins) <= 15
    ends = [math.inf, *history.begins.tolist()]
    for part, since, until in zip(history.parts, history.begins.tolist(), ends, strict=False):
        assert columns_of(part) == model.exact(since, until)


def test_an_epoch_begins_with_its_first_moment() -> None:
    history = TrafficHistory(np.array([30.0, 10.0, -np.inf]), ())
    assert history.epoch(np.array([99.0, 30.0, 29.0, 0.0])).tolist() == [0, 0, 1, 2]


GAPS = st.lists(st.sampled_from([0.1, 0.3, 1, 2.5, 40]), max_size=60)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "flush", "crash", "look"]), st.integers(0, 2), st.integers(1, 40)
    ),
    max_size=40,
)


def filled(model: Model, gaps: list[list[float]], *, is_set: bool) -> Model:
    """The model with logs whose records have these gaps, in hours, and perhaps a window that is set."""
    for partition, of in zip(model.partitions, gaps, strict=True):
        partition.log = [(BEGAN + at * HOUR, n % 2) for n, at in enumerate(np.cumsum(of))]
        model.now = max([model.now, *(at + 1 for at, _ in partition.log)])
    if is_set:
        model.window = ReferenceWindow(BEGAN + 4 * HOUR, BEGAN + 20 * HOUR, model.now)
    return model


def act(model: Model, step: str, partition: Partition, count: int) -> None:
    """What happens next: to the consumer of a partition, or in a round."""
    match step:
        case "take":
            partition.take(count)
        case "flush":
            partition.flush(model.pins)
        case "crash":
            partition.restart(model.pins)
        case _ if (compared := model.compared()) is not None:
            model.assert_exact(compared)


@settings(max_examples=200, deadline=None)
@given(st.lists(GAPS, min_size=1, max_size=3), STEPS, st.integers(1, 30), st.booleans())
def test_however_batches_flushes_crashes_and_rounds_fall_counts_are_exact_by_event_time(
    gaps: list[list[float]], steps: list[tuple[str, int, int]], enough: int, is_set: bool
) -> None:
    drift = DriftSettings(window_hours=24, reference_predictions=enough)
    model, at_once = (filled(Model(drift, partitions=len(gaps)), gaps, is_set=is_set) for _ in range(2))
    for step, number, count in steps:
        act(model, step, model.partitions[number % len(gaps)], count)
    model.take_all()
    at_once.take_all()
    seen, expected = model.compared(), at_once.compared()
    assert (seen is None) == (expected is None)
    if seen is not None and expected is not None:
        model.assert_exact(seen)
        assert seen.reference.until == expected.reference.until
        assert seen.recent.since == expected.recent.since
        wanted = drift.slots.begin(drift.slots.number(model.now) - SLOTS_PER_WINDOW)
        assert seen.recent.since == max(seen.reference.until, wanted)


@given(st.lists(GAPS, min_size=1, max_size=3), st.integers(1, 30))
def test_the_reference_ends_with_the_first_slot_after_a_window_by_which_it_has_enough(
    gaps: list[list[float]], enough: int
) -> None:
    drift = DriftSettings(window_hours=24, reference_predictions=enough)
    model = filled(Model(drift, partitions=len(gaps)), gaps, is_set=False)
    model.take_all()
    begins = min((each.log[0][0] for each in model.partitions if each.log), default=model.now)
    first = drift.slots.number(begins)
    # All boundaries near the beginning are kept, and fewer later ones.
    ends = [drift.slots.begin(first + more) for more in (SLOTS_PER_WINDOW, SLOTS_PER_WINDOW + 1)]
    soonest = [end for end in ends if end <= model.now and sum(model.exact(begins, end)) >= enough]
    if soonest:
        assert found(model.compared()).reference.until == soonest[0]
