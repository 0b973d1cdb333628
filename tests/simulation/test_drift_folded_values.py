"""Attributes with more values than have rows: rare ones take turns, and that is no drift."""

from __future__ import annotations

import numpy as np
import pytest

from service.config.model import DriftSettings
from service.domain.cells import OTHER, CellBounds, CellSpace
from service.domain.groupings import ByAttribute, ByClass, Everything
from service.domain.traffic import Traffic, merge_traffic
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_tables import tables
from service.monitoring.drift_mixes import GroupedTraffic
from service.statistics.drift import mix_drift

ROWS, PARTITIONS = 50, 3
BATCH, DAY = 200, 24
DECAY = np.log(2) / (7 * DAY)
SPACE = CellSpace(
    classes=("cat", "dog"),
    score_edges=(0.5,),
    groupings={
        "all": Everything("all"),
        "class": ByClass("class"),
        "customer": ByAttribute("customer", "customer"),
    },
    bounds=CellBounds(attribute_values=ROWS),
)
NAMES = np.array([f"c{number:04d}" for number in range(4_000)])
FEW_LARGE = np.r_[np.full(5, 0.1), np.full(3_995, 0.5 / 3_995)]
"""Five customers have half of the traffic; all the others, far more than there are rows, take turns."""

ALIKE = np.full(60, 1 / 60)
"""A few more customers than there are rows, all with the same traffic."""

LONG_TAIL = 1 / np.arange(1, 401)
LONG_TAIL /= LONG_TAIL.sum()
"""Half of the traffic is that of eighteen customers."""


class Customers:
    """Traffic of many customers in several partitions, an hour at a time."""

    def __init__(self, seed: int, shares: np.ndarray) -> None:
        self.shares = shares
        self._rng = np.random.default_rng(seed)
        self._partitions = [Traffic(tables(SPACE)) for _ in range(PARTITIONS)]
        self._hour = 0

    def hours(self, count: int) -> TrafficCounts:
        for _ in range(count):
            for partition in self._partitions:
                partition.move_landmark(float(self._hour), DECAY)
                self._count(partition, self._rng.choice(len(self.shares), size=BATCH, p=self.shares))
            self._hour += 1
        return TrafficCounts.of(merge_traffic(self._partitions, tables(SPACE), decay=DECAY))

    def _count(self, partition: Traffic, customers: np.ndarray) -> None:
        bins, classes = (self._rng.integers(2, size=BATCH) for _ in range(2))
        values, codes, sizes = np.unique(customers, return_inverse=True, return_counts=True)
        table, weights = partition.tables["customer"], np.ones(BATCH)
        names = NAMES[values].tolist()
        table.place(names, sizes.astype(np.float64))
        rows = np.array([table.rows.get(name, table.rows.get(OTHER, -1)) for name in names], np.intp)
        table.blocks["bins"].add(rows[codes], bins, weights, weights)
        table.blocks["classes"].add(rows[codes], classes, weights, weights)
        partition.whole.add(np.zeros(BATCH, np.intp), classes * 2 + bins, weights, weights)


def drifted(then: TrafficCounts, lately: TrafficCounts) -> dict[tuple[str, str], list[str]]:
    """Groups that have drifted, by grouping and mix."""
    found = {}
    names = {
        "all": ["all"],
        "class": list(SPACE.classes),
        "customer": sorted(lately.tables["customer", "bins"].names),
    }
    comparisons = 4 * sum(map(len, names.values()))
    for grouping, groups in names.items():
        for mix in GroupedTraffic(SPACE, SPACE.groupings[grouping], groups).mixes(then, lately):
            estimated = mix_drift(mix.reference, mix.recent, comparisons=comparisons)
            which = np.flatnonzero(estimated.excess > DriftSettings().max_distance)
            found[grouping, mix.name] = [groups[g] for g in which]
    return found


@pytest.mark.parametrize("shares", [FEW_LARGE, ALIKE, LONG_TAIL], ids=["few large", "alike", "long tail"])
def test_customers_that_take_turns_in_the_rows_never_drift(shares: np.ndarray) -> None:
    stream = Customers(3, shares)
    begun = stream.hours(DAY)
    reference = stream.hours(DAY)
    marks = [reference]
    for _ in range(10 * DAY):
        marks.append(stream.hours(1))
        if len(marks) > DAY:
            estimated = drifted(reference.since(begun), marks[-1].since(marks[-1 - DAY]))
            assert ("all", "attribute:customer") in estimated
            assert not any(estimated.values()), estimated
    assert marks[-1].tables["customer", "bins"].names != reference.tables["customer", "bins"].names


@pytest.mark.parametrize("shares", [FEW_LARGE, ALIKE, LONG_TAIL], ids=["few large", "alike", "long tail"])
def test_the_recent_traffic_of_all_customers_is_what_came(shares: np.ndarray) -> None:
    stream = Customers(7, shares)
    mark = stream.hours(10 * DAY)
    lately = stream.hours(DAY).since(mark)
    came = DAY * BATCH * PARTITIONS
    assert lately.predictions == came
    for columns in ("bins", "classes"):
        # A row that one partition has given away counts from nothing in all of them.
        assert came <= lately.tables["customer", columns].counts.sum() <= 1.05 * came


def test_a_large_customer_that_left_long_ago_is_not_in_the_recent_traffic_of_others() -> None:
    stream = Customers(8, FEW_LARGE)
    stream.hours(10 * DAY)
    stream.shares = np.r_[np.zeros(5), np.full(3_995, 1 / 3_995)]
    while True:
        mark = stream.hours(DAY)
        lately = stream.hours(DAY).since(mark)
        gone = {*mark.tables["customer", "bins"].names} - {*lately.tables["customer", "bins"].names}
        if gone & set(NAMES[:5]):
            break
    assert lately.tables["customer", "bins"].counts.sum() <= 1.05 * DAY * BATCH * PARTITIONS


def test_a_new_customer_with_much_traffic_drifts_at_once() -> None:
    stream = Customers(5, FEW_LARGE)
    begun = stream.hours(DAY)
    reference = stream.hours(DAY)
    healthy = stream.hours(DAY)
    stream.shares = 0.6 * FEW_LARGE
    stream.shares[-1] += 0.4
    estimated = drifted(reference.since(begun), stream.hours(DAY).since(healthy))
    assert estimated["all", "attribute:customer"] == ["all"]
    assert estimated["customer", "score"] == []
