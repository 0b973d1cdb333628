"""Traffic adds up and the pool is a fair sample, in whatever order and parts predictions come."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from service.domain.cells import OTHER, CellBounds, CellSpace
from service.domain.grouping_pool import GroupingPool
from service.domain.groupings import ByAttribute, ByClass, Everything
from service.domain.pool import Pools
from service.domain.pool_key import PoolKey
from service.domain.shard import Candidates, Shard
from service.domain.siphash import siphash24
from service.domain.traffic import Traffic, merge_traffic
from service.domain.traffic_marks import ShardMarks, Slots
from service.domain.traffic_tables import tables
from service.domain.value_book import ValueBook

KEY = bytes(range(16))
GROUPS = 3
POOL = "region:"
START = 1_700_000_000.0
GENERATIONS = count()
SPACE = CellSpace(
    ("a", "b"),
    (0.5,),
    {
        "all": Everything("all"),
        "class": ByClass("class"),
        "region": ByAttribute("region", "region"),
    },
)


def empty_shard(
    *, decay: float = 1e-5, draw_decay: float | None = None, slots: int = 2, space: CellSpace = SPACE
) -> Shard:
    return Shard(
        space,
        next_offset=0,
        traffic=Traffic(tables(space)),
        pools=Pools({POOL: GroupingPool(slots, 1_000)}),
        pool_groupings={POOL: "region"},
        noise=PoolKey(KEY, "m").noise,
        decay=decay,
        draw_decay=decay if draw_decay is None else draw_decay,
        marks=ShardMarks(Slots(3_600.0), enough=1_000),
    )


def hashes_of(items: list[tuple[int, int, float]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    ids = siphash24([f"item-{number}".encode() for number, _, _ in items], KEY)
    times = np.array([time for *_, time in items])
    return PoolKey(KEY, "m").item_hashes(ids, times, times)


def add(shard: Shard, items: list[tuple[int, int, float]], *, claimed: float | None = None) -> None:
    """Add (item number, region, arrival) with a score and a predicted class that the number decides.

    Args:
        shard: to add to.
        items: what is added.
        claimed: when all of them were predicted; as they arrived, if absent.
    """
    numbers = np.array([number for number, _, _ in items], np.intp)
    book = ValueBook(lambda _, value: str(value), 1)
    book.generation = next(GENERATIONS)
    scores = numbers % 10 / 10
    shard.add(
        Candidates(
            # Each batch comes with numbers of its own.
            book=book,
            values=book.values(np.array(book.add([[str(region) for _, region, _ in items]]), np.intp)),
            classes=numbers % 2,
            bins=SPACE.bins(scores),
            scores=scores,
            times=np.array([time if claimed is None else claimed for _, _, time in items]),
            arrivals=np.array([time for _, _, time in items]),
            item_hashes=hashes_of(items),
            record=lambda row: str(items[row][0]).encode(),
        )
    )


def sums_of(traffic: Traffic) -> dict[tuple[str, ...], list[list[float]]]:
    """Counts, weights and score sums of every row of every table, weights at the landmark `START`."""
    factor = math.exp(1e-5 * (traffic.landmark - START))
    return {
        (attribute, columns, name): [
            *block.part(row).counts.tolist(),
            *(block.part(row).weights * factor).tolist(),
            *(block.part(row).score_sums * factor).tolist(),
        ]
        for attribute, table in traffic.tables.items()
        for columns in table.specs
        for block in [table.block(columns)]
        for row, name in enumerate(table.names)
    }


def assert_same_sums(found: Traffic, expected: Traffic) -> None:
    """Equal up to the rounding of sums in another order, and of one multiplication."""
    left, right = sums_of(found), sums_of(expected)
    assert left.keys() == right.keys()
    for name, values in right.items():
        np.testing.assert_allclose(left[name], values, rtol=1e-9, err_msg=str(name))


def pooled(shard: Shard) -> list[set[int]]:
    """Hashes of the pooled items of every cell."""
    sketches = shard.pools.groupings[POOL].sketches()
    return [set(sketches[name].hashes.tolist()) if name in sketches else set() for name in "012"]


streams = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, GROUPS - 1), st.floats(START, START + 1e6)),
    min_size=1,
    max_size=40,
    unique_by=lambda item: item[0],
)


@given(streams, st.randoms(use_true_random=False), st.integers(1, 10))
def test_order_and_batches_do_not_matter(
    stream: list[tuple[int, int, float]], chance: object, size: int
) -> None:
    once, piecewise = empty_shard(), empty_shard()
    add(once, stream)
    shuffled = list(stream)
    chance.shuffle(shuffled)
    for first in range(0, len(shuffled), size):
        add(piecewise, shuffled[first : first + size])
    assert_same_sums(piecewise.traffic, once.traffic)
    assert pooled(piecewise) == pooled(once)


@given(streams, st.integers(0, 2**32))
def test_shards_of_a_stream_merge_to_the_shard_of_the_whole(
    stream: list[tuple[int, int, float]], seed: int
) -> None:
    whole, parts = empty_shard(), [empty_shard(), empty_shard()]
    add(whole, stream)
    owner = np.random.default_rng(seed).integers(0, 2, len(stream))
    for index, part in enumerate(parts):
        add(part, [item for item, which in zip(stream, owner, strict=True) if which == index])
    merged = merge_traffic([part.traffic for part in parts], tables(SPACE), decay=1e-5)
    assert_same_sums(merged, whole.traffic)


def test_years_of_traffic_with_a_short_half_life_stay_finite_and_in_proportion() -> None:
    decay = math.log(2) / 3600
    shard = empty_shard(decay=decay)
    for day in range(1_000):
        add(shard, [(2 * day, 0, START + day * 86_400), (2 * day + 1, 1, START + day * 86_400 - 3_600)])
    first, second = shard.traffic.tables["region"].block("bins").weights.sum(axis=1)
    assert np.isfinite(shard.traffic.whole.weights).all()
    assert first / second == pytest.approx(2.0, rel=1e-9)


def test_a_late_prediction_weighs_what_it_would_have_weighed_in_time() -> None:
    late, in_time = empty_shard(), empty_shard()
    add(late, [(1, 0, START + 1e5)])
    add(late, [(2, 0, START)])
    add(in_time, [(2, 0, START), (1, 0, START + 1e5)])
    assert_same_sums(late.traffic, in_time.traffic)


def test_a_prediction_that_comes_twice_is_pooled_once() -> None:
    shard = empty_shard()
    add(shard, [(1, 0, START)])
    add(shard, [(1, 0, START)])
    assert len(pooled(shard)[0]) == 1


def test_a_prediction_that_comes_twice_is_pooled_where_it_came_first_however_batches_end() -> None:
    once, piecewise = empty_shard(), empty_shard()
    twice = [(1, 0, START), (1, 1, START)]
    add(once, twice)
    for item in twice:
        add(piecewise, [item])
    assert [len(items) for items in pooled(once)] == [1, 0, 0]
    assert pooled(piecewise) == pooled(once)


def test_an_item_that_is_predicted_at_two_times_is_pooled_for_each() -> None:
    shard = empty_shard()
    add(shard, [(1, 0, START), (1, 0, START + 5)])
    assert len(pooled(shard)[0]) == 2


@pytest.mark.parametrize("gap", [0.0, 7_200.0], ids=["one slot", "several slots"])
def test_class_probabilities_are_summed_per_predicted_class(gap: float) -> None:
    shard = empty_shard(decay=0.0)
    probabilities = np.array([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]])
    book = ValueBook(lambda _, value: str(value), 1)
    shard.add(
        Candidates(
            book=book,
            values=book.values(np.array(book.add([["0"] * 4]))),
            classes=np.array([0, 0, 1, 1]),
            bins=np.ones(4, dtype=np.intp),
            scores=np.full(4, 0.5),
            times=np.full(4, START),
            arrivals=START + gap * np.arange(4),
            item_hashes=siphash24([b"a", b"b", b"c", b"d"], KEY),
            record=lambda _: b"",
            probabilities=(np.array([0, 1, 2]), probabilities),
        )
    )
    np.testing.assert_allclose(shard.probability_sums[0], [1.3, 0.7])
    np.testing.assert_allclose(shard.probability_sums[1], [0.1, 0.9])


AT_ONCE = 100
MANY_GROUPS = CellSpace(
    SPACE.classes,
    (0.5,),
    {"region": ByAttribute("region", "region")},
    CellBounds(attribute_values=AT_ONCE + 2),
)
"""Room for so many groups, and two reserved values: each group of a shard is a trial of its own."""


def kept_by_place(
    trials: int,
    items_of_trial: int,
    *,
    gap: float,
    slots: int,
    claimed: float | None = None,
    **decays: float,
) -> np.ndarray:
    """How often the items of groups are pooled, by their place in the group's stream.

    Args:
        trials: groups, a multiple of `AT_ONCE`.
        items_of_trial: items of each.
        gap: seconds between them.
        slots: items of a group that are pooled.
        claimed: when all items were predicted; as they arrived, if absent.
        decays: of the shards.
    """
    kept = np.zeros(items_of_trial)
    for first in range(0, trials, AT_ONCE):
        shard = empty_shard(space=MANY_GROUPS, slots=slots, **decays)
        items = [
            ((first + group) * items_of_trial + i, group, START + gap * i)
            for group in range(AT_ONCE)
            for i in range(items_of_trial)
        ]
        add(shard, items, claimed=claimed)
        sketches = shard.pools.groupings[POOL].sketches().values()
        pooled_hashes = np.concatenate([sketch.hashes for sketch in sketches])
        kept += np.isin(hashes_of(items), pooled_hashes).reshape(AT_ONCE, items_of_trial).sum(axis=0)
    return kept


def test_without_decay_every_item_of_a_cell_is_pooled_equally_often() -> None:
    kept = kept_by_place(3_000, 20, gap=1, slots=2, decay=0.0)
    # Items of one group exclude each other, which makes the statistic a little smaller than chi-square.
    assert kept.sum() == 6_000
    assert stats.chisquare(kept).pvalue > 1e-3


def test_with_decay_the_first_pooled_item_is_drawn_in_proportion_to_its_weight() -> None:
    kept = kept_by_place(4_000, 5, gap=10, slots=1, decay=math.log(2) / 10)
    expected = 2.0 ** np.arange(5)
    assert stats.chisquare(kept, 4_000 * expected / expected.sum()).pvalue > 1e-3


def test_draws_follow_the_arrival_and_a_half_life_of_their_own() -> None:
    long_ago = START - 1e6
    decays = {"decay": 1.0, "draw_decay": math.log(2) / 10}
    kept = kept_by_place(4_000, 5, gap=10, slots=1, claimed=long_ago, **decays)
    expected = 2.0 ** np.arange(5)
    assert stats.chisquare(kept, 4_000 * expected / expected.sum()).pvalue > 1e-3
    shard = empty_shard(**decays)
    add(shard, [(0, 0, START)], claimed=long_ago)
    assert shard.traffic.landmark == long_ago


@settings(max_examples=30)
@given(st.integers(1, 5_000))
def test_a_group_never_outgrows_its_pool(count: int) -> None:
    shard = empty_shard(slots=4)
    add(shard, [(i, i % GROUPS, START + i) for i in range(count)])
    assert all(len(items) <= 4 for items in pooled(shard))


NARROW = CellSpace(SPACE.classes, SPACE.score_edges, SPACE.groupings, CellBounds(attribute_values=2))


def test_an_attribute_with_too_many_values_leaves_all_other_groups_exact() -> None:
    shard = empty_shard(decay=0.0, space=NARROW)
    add(shard, [(i, i, START) for i in range(50)])
    assert shard.traffic.tables["region"].block("bins").counts.sum() == 50
    whole = shard.traffic.whole.counts.reshape(2, 2)
    assert whole.tolist() == [[15, 10], [10, 15]]


def test_a_large_value_that_comes_late_displaces_a_small_early_one() -> None:
    shard = empty_shard(decay=0.0, space=NARROW)
    add(shard, [(1, 1, START), *((i, 2, START) for i in range(2, 30))])
    add(shard, [(100 + i, 3, START) for i in range(100)])
    table = shard.traffic.tables["region"]
    counts = dict(zip(table.names, table.block("bins").counts.sum(axis=1).tolist(), strict=True))
    assert counts == {"2": 28, "3": 100, OTHER: 1}
    assert table.missed[table.rows["3"]] == 1


def test_pooled_items_of_a_displaced_value_are_in_the_pool_of_other_values() -> None:
    shard = empty_shard(decay=0.0, slots=50, space=NARROW)
    first = [(1, 1, START), (2, 1, START), *((i, 2, START) for i in range(3, 30))]
    add(shard, first)
    add(shard, [(100 + i, 3, START) for i in range(40)])
    sketches = shard.pools.groupings[POOL].sketches()
    assert sketches.keys() == {"2", "3", OTHER}
    assert set(sketches[OTHER].hashes.tolist()) == set(hashes_of(first[:2]).tolist())
    assert shard.pools.deleted == {(POOL, "1")}
    assert set(shard.pools.holders) == {item for s in sketches.values() for item in s.hashes.tolist()}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 30)), min_size=1, max_size=60),
    st.integers(1, 6),
    st.integers(1, 5),
)
def test_a_value_has_at_most_what_it_missed_in_other_values_and_frequent_ones_have_rows(
    stream: list[tuple[int, int]], bound: int, size: int
) -> None:
    space = CellSpace(SPACE.classes, SPACE.score_edges, SPACE.groupings, CellBounds(attribute_values=bound))
    shard = empty_shard(decay=0.0, space=space)
    items = [region for region, count in stream for _ in range(count)]
    for begin in range(0, len(items), 10 * size):
        part = items[begin : begin + 10 * size]
        add(shard, [(begin + i, region, START) for i, region in enumerate(part)])
    table = shard.traffic.tables["region"]
    counts = dict(zip(table.names, table.block("bins").counts.sum(axis=1).tolist(), strict=True))
    assert sum(counts.values()) == len(items)
    for region in set(items):
        true = items.count(region)
        if str(region) in table.rows:
            assert counts[str(region)] <= true <= counts[str(region)] + table.missed[table.rows[str(region)]]
        else:
            assert true <= len(items) / bound


def test_a_value_that_lost_its_row_has_missed_its_traffic_where_it_gets_a_row_under_a_higher_bound() -> None:
    shard = empty_shard(decay=0.0, space=NARROW)
    add(shard, [(1, 1, START), *((i, 2, START) for i in range(2, 30))])
    add(shard, [(100 + i, 3, START) for i in range(100)])
    before, wide = shard.traffic.tables["region"], empty_shard(decay=0.0)
    table = wide.traffic.tables["region"]
    table.restore(before.names, before.missed[: len(before)])
    add(wide, [(200, 1, START)])
    assert table.missed[table.rows["1"]] == 1


def test_a_value_that_is_too_long_makes_no_other_value_miss_traffic() -> None:
    parts = [empty_shard(decay=0.0) for _ in range(2)]
    for number, part in enumerate(parts):
        part.traffic.tables["region"].restore([OTHER], np.zeros(1))
        add(part, [(number, number, START)])
    merged = merge_traffic([part.traffic for part in parts], tables(SPACE), decay=0.0).tables["region"]
    assert merged.rows.keys() == {"0", "1", OTHER}
    assert not merged.missed.any()
