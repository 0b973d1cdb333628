"""Traffic by event time: from the log of a topic through consumers and Redis to what is compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from store_site import NOW, Owner, Record, Site, message, record, restore, save

from service.domain.errors import FenceRefused
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_marks import Mark
from service.monitoring.drift import ModelDrift
from service.store.connection import Connection
from service.store.drift_facts import DriftStore
from service.store.references import ReferenceStore, ReferenceWindow

HOUR = 3_600.0
SLOT = 3 * HOUR
MODEL = {
    "classes": ["cat", "dog"],
    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
    "drift": {"window_hours": 24, "reference_predictions": 100},
}
BACKLOG_HOURS = 72
RATE = 10
START = NOW - BACKLOG_HOURS * HOUR


def at(hour: float) -> int:
    """Milliseconds of an hour of the backlog."""
    return int((START + hour * HOUR) * 1_000)


def degrading(hours: Sequence[int]) -> list[Record]:
    """So many predictions an hour, whose scores fall in the second half of the backlog."""
    return [
        record(
            number,
            message(number, score=0.95 if hour < BACKLOG_HOURS / 2 else 0.55, attributes={"region": "north"}),
            timestamp=at(hour + n / RATE),
        )
        for number, (hour, n) in enumerate((hour, n) for hour in hours for n in range(RATE))
    ]


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, {"m": MODEL})


def drift_of(site: Site) -> ModelDrift | None:
    """What a leader that has just started finds; it pins what the reference needs."""
    monitor = site.monitor("m")
    drift = monitor.refresh(NOW).drift
    monitor.ask(epoch=1, now=NOW)
    return drift


def found(site: Site) -> ModelDrift:
    drift = drift_of(site)
    assert drift is not None
    return drift


def described(site: Site) -> dict[int, dict[Mark, tuple[tuple[str, ...], list[list[int]]]]]:
    """The marks of every partition, with what is counted in the table of regions."""
    keys, client = site.keys("m"), site.connection.client
    marks: dict[int, dict[Mark, tuple[tuple[str, ...], list[list[int]]]]] = {}
    for partition in site.reader("m").traffic().partitions:
        marks[partition] = {}
        for name, value in client.hgetall(keys.marks(partition)).items():
            table, mark = TrafficCounts.unpack(value).tables["region", "bins"], Mark.parse(name.decode())
            assert mark is not None
            marks[partition][mark] = table.names, table.counts.tolist()
    return marks


def test_a_backlog_that_is_read_in_one_round_is_reference_and_recent_by_its_own_time(site: Site) -> None:
    site.take_in(degrading(range(BACKLOG_HOURS)))
    drift = found(site)
    assert drift.reference_since <= START
    assert START + 24 * HOUR <= drift.reference_until + SLOT <= START + 30 * HOUR
    assert drift.groupings["all"].reference[0].nonzero()[0].tolist() == [9]
    assert drift.groupings["all"].recent[0].nonzero()[0].tolist() == [5]
    assert drift.groupings["region"].drifted.tolist() == [True]


def test_a_backlog_of_one_partition_is_not_recent_while_another_one_is_current(site: Site) -> None:
    records = degrading(range(BACKLOG_HOURS))
    site.take_in(records, partition=0)
    current = found(site).recent_predictions
    owner = Owner(site, {1: records})
    for _ in range(3):
        owner.take(1, 150)
        owner.flush(1)
        assert found(site).recent_predictions == current
    owner.finish()
    assert found(site).recent_predictions == 2 * current
    assert found(site).groupings["region"].drifted.tolist() == [True]


def test_a_consumer_that_is_killed_between_flushes_leaves_the_marks_of_one_that_was_not(
    connection: Connection,
) -> None:
    records = degrading(range(BACKLOG_HOURS))
    killed = Site(connection, {"m": MODEL})
    steady = Site(Connection(connection.client, f"{connection.prefix}-steady"), {"m": MODEL})
    owner = Owner(killed, {0: records})
    for round_number in range(20):
        owner.take(0, 37)
        if round_number % 3 == 1:
            owner.flush(0)
        if round_number % 4 == 3:
            owner.restart()
    owner.finish()
    steady.take_in(records)
    assert described(killed) == described(steady)
    assert found(killed).recent_predictions == found(steady).recent_predictions


def test_a_restored_redis_counts_again_to_the_same_marks(site: Site) -> None:
    records = degrading(range(BACKLOG_HOURS))
    site.take_in(records[:300])
    saved = save(site.connection)
    site.take_in(records)
    expected = described(site)
    restore(site.connection, saved)
    site.take_in(records)
    assert described(site) == expected


def test_two_owners_of_a_partition_make_each_mark_once(site: Site) -> None:
    records = degrading(range(BACKLOG_HOURS))
    zombie, heir = (Owner(site, {0: records}) for _ in range(2))
    zombie.take(0, 200)
    heir.take(0, 500)
    assert heir.flush(0)
    assert not zombie.flush(0)
    zombie.finish()
    counted = [mark.predictions for mark in sorted(described(site)[0])]
    assert counted == [RATE * hours for hours in counted_hours(site)]


def counted_hours(site: Site) -> list[int]:
    """Hours of the backlog until every mark."""
    return [max(0, round((mark.until - START) / HOUR)) for mark in sorted(described(site)[0])]


def test_a_model_without_traffic_has_neither_marks_nor_a_reference(site: Site) -> None:
    assert drift_of(site) is None
    site.take_in([record(0, b"not json")])
    assert drift_of(site) is None
    assert described(site) == {0: {}}


def test_a_reference_that_is_set_stays_however_old_it_gets(site: Site) -> None:
    owner = Owner(site, {0: degrading(range(800))})
    owner.take(0, BACKLOG_HOURS * RATE)
    owner.flush(0)
    ReferenceStore(site.connection, site.keys("m")).set(
        ReferenceWindow(START + 30 * HOUR, START + 60 * HOUR, NOW)
    )
    before = found(site)
    hours = (before.reference_until - before.reference_since) / HOUR
    assert before.reference_predictions == RATE * hours
    assert 24 <= hours <= 30
    # The consumer learns what the leader pinned.
    owner.flush(0)
    owner.finish()
    after = found(site)
    assert (after.reference_since, after.reference_until) == (before.reference_since, before.reference_until)
    assert after.reference_predictions == before.reference_predictions


def test_other_score_bins_begin_marks_again(connection: Connection) -> None:
    records = degrading(range(BACKLOG_HOURS))
    Site(connection, {"m": MODEL}).take_in(records[:400])
    changed = Site(connection, {"m": MODEL | {"score_bins": 4}})
    assert drift_of(changed) is None
    changed.take_in(records)
    marks = sorted(described(changed)[0])
    assert marks[0].until >= START + 39 * HOUR
    assert all(mark.predictions < 400 for mark in marks)


def test_a_mark_of_a_newer_version_is_left_alone(site: Site) -> None:
    site.take_in(degrading(range(BACKLOG_HOURS)))
    expected = found(site).recent_predictions
    site.connection.client.hset(site.keys("m").marks(0), "of|another|kind|0", b"")
    assert found(site).recent_predictions == expected


def test_a_reader_reads_a_mark_once(site: Site) -> None:
    site.take_in(degrading(range(BACKLOG_HOURS)))
    reader = site.reader("m")
    facts, marked = reader.marked_traffic()
    times = marked.timeline.boundaries()[-3:]
    counts = reader.counts_at(marked, times)
    assert [counts[time].predictions for time in times] == [marked.timeline.predictions_at(t) for t in times]
    site.connection.client.delete(site.keys("m").marks(0))
    assert reader.counts_at(marked, times) == counts
    assert site.reader("m").counts_at(marked, times) == {}
    assert facts.traffic.predictions == BACKLOG_HOURS * RATE


def test_a_leader_of_the_past_pins_nothing(site: Site) -> None:
    store = DriftStore(site.connection, site.keys("m"))
    store.keep(epoch=5, pins=[1.5, 0.5])
    with pytest.raises(FenceRefused):
        store.keep(epoch=4, pins=[])
    assert site.reader("m").drift() == (None, (0.5, 1.5))
