"""Counts of traffic by one time, and what came between two times."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.cells import MISSING, OTHER, CellBounds, CellSpace
from service.domain.groupings import ByAttribute, ByClass
from service.domain.traffic import Traffic
from service.domain.traffic_counts import WHOLE, TableCounts, TrafficCounts, merge_counts
from service.domain.traffic_tables import tables

SPACE = CellSpace(
    classes=("cat", "dog"),
    score_edges=(0.5,),
    groupings={
        "region": ByAttribute("region", "region"),
        "class": ByClass("class"),
    },
    bounds=CellBounds(attribute_values=2),
)


def table(**counts: int) -> TableCounts:
    """A table of one column; `other` is `OTHER`."""
    names = tuple(OTHER if name == "other" else name for name in counts)
    return TableCounts("bins", names, np.array(list(counts.values()), np.int64).reshape(-1, 1))


def since(now: TableCounts, mark: TableCounts) -> dict[str, int]:
    found = now.since(mark)
    return dict(zip(found.names, found.counts[:, 0].tolist(), strict=True))


class Stream:
    """Traffic that comes a batch at a time."""

    def __init__(self) -> None:
        self.traffic = Traffic(tables(SPACE))

    def count(self, **batch: int) -> TrafficCounts:
        """So many predictions of every region, of dogs with low scores."""
        names, weights = list(batch), np.array(list(batch.values()), np.float64)
        of_regions = self.traffic.tables["region"]
        of_regions.place(names, weights)
        for name, count in batch.items():
            row = of_regions.rows.get(name, of_regions.rows.get(OTHER, -1))
            of_regions.blocks["bins"].add(
                np.full(count, row), np.zeros(count, np.intp), np.ones(count), np.ones(count)
            )
            of_regions.blocks["classes"].counts[row, 1] += count
        self.traffic.tables[""].blocks["class_bins"].counts[0, 2] += sum(batch.values())
        return TrafficCounts.of(self.traffic)


def test_counts_come_back_as_they_were_stored() -> None:
    counts = Stream().count(north=3, süd=2**40 - 2**40 + 5)
    again = TrafficCounts.unpack(counts.pack())
    assert set(again.tables) == {WHOLE, ("region", "bins"), ("region", "classes")}
    for key, stored in again.tables.items():
        assert (stored.meaning, stored.names) == (counts.tables[key].meaning, counts.tables[key].names)
        np.testing.assert_array_equal(stored.counts, counts.tables[key].counts)


def test_an_attribute_without_traffic_comes_back_without_rows() -> None:
    counts = TrafficCounts.of(Traffic(tables(SPACE)))
    stored = TrafficCounts.unpack(counts.pack()).tables["region", "classes"]
    assert (stored.names, stored.counts.shape) == ((), (0, 2))


def test_counts_stay_as_they_were_while_traffic_goes_on() -> None:
    stream = Stream()
    before = stream.count(north=3)
    stream.count(north=3)
    assert before.tables["region", "bins"].counts.tolist() == [[3, 0]]
    assert before.predictions == 3


def test_rows_are_found_by_name_and_a_new_one_counts_from_nothing() -> None:
    assert since(table(south=4, north=7, east=2), table(north=5, south=4)) == {
        "south": 0,
        "north": 2,
        "east": 2,
    }


def test_what_a_value_had_before_it_lost_its_row_is_not_recent_traffic_of_others() -> None:
    assert since(table(other=30, north=7), table(north=5, south=20)) == {OTHER: 10, "north": 2}


def test_a_value_that_lost_its_row_and_got_it_back_counts_from_there() -> None:
    assert since(table(other=30, north=7, south=4), table(north=5, south=20)) == {
        OTHER: 10,
        "north": 2,
        "south": 4,
    }


def test_a_row_that_was_lost_in_one_of_several_partitions_counts_on() -> None:
    mark = TableCounts("bins", ("north", OTHER), np.array([[1_000, 3], [0, 0]]))
    # One partition had 20 and 3 of these, and gave its row away.
    now = TableCounts("bins", ("north", OTHER), np.array([[1_080, 0], [20, 3]]))
    assert now.since(mark).counts.tolist() == [[80, 0], [20, 0]]


def test_no_count_is_negative() -> None:
    assert since(table(other=7, south=15), table(other=5, south=20)) == {OTHER: 0, "south": 0}


def test_rows_that_may_miss_much_of_their_traffic_are_partial() -> None:
    stream = Stream()
    stream.count(a=100, b=10)
    stream.count(c=500)
    counts = stream.count(d=100)
    (bins,) = [table for key, table in counts.tables.items() if key == ("region", "bins")]
    again = TrafficCounts.unpack(counts.pack()).tables["region", "bins"]
    partial = {
        name for name, is_partial in zip(bins.names, bins.is_partial.tolist(), strict=True) if is_partial
    }
    assert partial == {"d"}
    assert again.is_partial.tolist() == bins.is_partial.tolist()
    assert not counts.whole.is_partial.any()


@pytest.mark.parametrize("seed", range(20))
def test_no_prediction_is_recent_twice_however_values_come_and_go(seed: int) -> None:
    rng, stream = np.random.default_rng(seed), Stream()
    marks, came = [stream.count(a=1)], [0]
    for _ in range(30):
        chosen = rng.choice(list("abcdef"), size=rng.integers(1, 4), replace=False)
        batch = {str(name): int(rng.integers(1, 50)) for name in chosen}
        marks.append(stream.count(**batch))
        came.append(sum(batch.values()))
    for begin, mark in enumerate(marks):
        recent = marks[-1].since(mark)
        for key in ("region", "bins"), ("region", "classes"), WHOLE:
            assert recent.tables[key].counts.sum() == sum(came[begin + 1 :])
            assert (recent.tables[key].counts >= 0).all()


def test_missing_values_keep_their_row() -> None:
    mark = TableCounts("bins", (MISSING, "north"), np.array([[9], [5]]))
    now = TableCounts("bins", (MISSING, "south", OTHER), np.array([[10], [3], [5]]))
    assert now.since(mark).counts.tolist() == [[1], [3], [0]]


def begun_anew(stream: Stream) -> None:
    """The grouping by region goes, and comes back: its tables begin anew, that of all traffic goes on."""
    whole = stream.traffic.tables[""]
    stream.traffic = Traffic(tables(SPACE))
    stream.traffic.tables[""] = whole


@pytest.mark.parametrize("later", [0.1, 0.49, 0.6, 2])
def test_a_table_that_began_again_since_the_mark_counts_from_there(later: float) -> None:
    stream = Stream()
    mark = stream.count(north=1_000, south=9_000)
    begun_anew(stream)
    # Less than all, as predictions come while there is no such table.
    stream.count(north=1, south=1)
    begun_anew(stream)
    recent = stream.count(north=int(1_040 * later), south=int(9_000 * later)).since(mark)
    bins = recent.tables["region", "bins"]
    counts = dict(zip(bins.names, bins.counts.sum(axis=1).tolist(), strict=True))
    assert counts == {"north": int(1_040 * later), "south": int(9_000 * later)}
    assert recent.predictions == sum(counts.values()) + 2


def test_a_table_that_began_again_did_not_go_on() -> None:
    stream = Stream()
    mark = stream.count(north=3)
    assert mark.continuing_until(stream.count(north=5)).tables.keys() == mark.tables.keys()
    begun_anew(stream)
    assert mark.continuing_until(stream.count(north=50)).tables.keys() == {WHOLE}


def test_counts_of_shards_add_up_by_name() -> None:
    north, south = Stream().count(north=3, both=1), Stream().count(both=5, south=2)
    merged = merge_counts([north, south])
    bins = merged.tables["region", "bins"]
    counts = dict(zip(bins.names, bins.counts[:, 0].tolist(), strict=True))
    assert counts == {"north": 3, "both": 6, "south": 2}
    assert merged.predictions == 11
    assert merge_counts([north]).tables["region", "bins"] is north.tables["region", "bins"]


def test_a_table_whose_columns_mean_something_else_in_one_shard_is_not_merged() -> None:
    one, other = ({WHOLE: table(a=1), ("region", "bins"): table(a=1)} for _ in range(2))
    other["region", "bins"] = TableCounts("other bins", ("a",), np.array([[1]]))
    assert merge_counts([TrafficCounts(one), TrafficCounts(other)]).tables.keys() == {WHOLE}


def test_a_value_may_have_missed_traffic_in_every_shard_that_gave_rows_away() -> None:
    plain = TableCounts("bins", ("a", "b"), np.array([[60], [940]]))
    churned = TableCounts(
        "bins", ("b", "c", OTHER), np.array([[900], [20], [500]]), np.array([0.0, 0.5, 0.0])
    )
    merged = merge_counts([TrafficCounts({WHOLE: each}) for each in (plain, churned)]).whole
    missed = dict(zip(merged.names, merged.missed.tolist(), strict=True))
    # In the second shard, a may have missed as much as c: as many as it has since.
    assert missed == pytest.approx({"a": 20 / 80, "b": 0.0, "c": 20 / 40, OTHER: 0.0})
