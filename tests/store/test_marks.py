"""Marks of traffic in Redis."""

from __future__ import annotations

import numpy as np
import pytest
from store_site import NOW, Site

from service.domain.errors import FenceRefused
from service.domain.traffic_counts import WHOLE, TableCounts, TrafficCounts
from service.store.connection import Connection
from service.store.traffic_checkpoints import MarkName, MarkStore

COUNTS = TrafficCounts(
    {
        WHOLE: TableCounts("whole", ("",), np.array([[3, 0, 2**60]])),
        ("region", "bins"): TableCounts("bins", ("north", "süd"), np.array([[3, 0], [1, 2**60]])),
    }
)
FEWER = TrafficCounts({WHOLE: TableCounts("whole", ("",), np.array([[3]]))})
FIRST = MarkName("first", NOW + 0.123456789)
RECENT = MarkName("recent", NOW)
UNTIL = MarkName("until", NOW, set_at=NOW + 1)


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, {"m": {"classes": ["cat", "dog"]}})


def store(site: Site) -> MarkStore:
    return MarkStore(site.connection, site.keys("m"))


def described(counts: TrafficCounts) -> dict[tuple[str, str], tuple[str, tuple[str, ...], list[list[int]]]]:
    return {key: (one.meaning, one.names, one.counts.tolist()) for key, one in counts.tables.items()}


def test_there_are_no_marks_at_first(site: Site) -> None:
    assert site.reader("m").marks() == {}


def test_marks_are_read_as_they_were_made(site: Site) -> None:
    store(site).keep({FIRST: COUNTS, UNTIL: FEWER}, going=(), epoch=1)
    marks = site.reader("m").marks()
    assert {name: described(mark) for name, mark in marks.items()} == {
        FIRST: described(COUNTS),
        UNTIL: described(FEWER),
    }


def test_a_reader_that_knows_some_marks_follows_those_that_come_and_go(site: Site) -> None:
    reader = site.reader("m")
    store(site).keep({FIRST: COUNTS, RECENT: COUNTS}, going=(), epoch=1)
    reader.marks()
    store(site).keep({UNTIL: COUNTS}, going=[RECENT], epoch=1)
    assert set(reader.marks()) == {FIRST, UNTIL}


def test_marks_may_be_kept_again(site: Site) -> None:
    for _ in range(2):
        store(site).keep({FIRST: COUNTS}, going=[RECENT], epoch=1)
    assert set(site.reader("m").marks()) == {FIRST}


def test_a_leader_of_the_past_marks_nothing(site: Site) -> None:
    store(site).keep({FIRST: COUNTS}, going=(), epoch=5)
    with pytest.raises(FenceRefused):
        store(site).keep({RECENT: COUNTS}, going=[FIRST], epoch=4)
    assert set(site.reader("m").marks()) == {FIRST}


def test_what_a_newer_version_marks_is_left_alone(site: Site) -> None:
    site.connection.client.hset(site.keys("m").marks, mapping={"hourly|0.0|1.0": b"", "recent|1.0": b""})
    assert site.reader("m").marks() == {}
