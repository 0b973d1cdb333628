"""A group's pool is its items of highest priority, whatever the order, parts and shards that they come in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.domain.cells import CellSpace
from service.domain.grouping_pool import EMPTY_SKETCH, GroupingPool, Sketch, merged_order
from service.domain.groupings import Everything
from service.domain.pool import Pools
from service.domain.pool_key import PoolKey, gumbel_noise, pool_ids
from service.domain.siphash import siphash24

KEY = bytes(range(16))
GROUPS = ["a", "b", "c"]

items = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from(GROUPS), st.floats(-5, 5, allow_nan=False)),
    max_size=60,
    unique_by=lambda item: item[0],
)
batches = st.lists(items, max_size=5).map(
    lambda parts: [[(100 * part + n, g, p) for n, g, p in batch] for part, batch in enumerate(parts)]
)


def offer(pool: GroupingPool, batch: list[tuple[int, str, float]]) -> tuple[Counter[int], Counter[int]]:
    rows = np.array([pool.row(group) for _, group, _ in batch], np.intp)
    hashes = np.array([number for number, _, _ in batch], np.uint64)
    moves = pool.offer(rows, np.array([priority for *_, priority in batch]), hashes)
    return Counter(hashes[moves.entered].tolist()), Counter(moves.left.tolist())


def best(stream: list[tuple[int, str, float]], group: str) -> list[float]:
    """Priorities of a group's items, descending."""
    return sorted((priority for _, of, priority in stream if of == group), reverse=True)


@given(batches, st.integers(1, 6))
def test_a_group_keeps_its_items_of_highest_priority(parts: list[Any], wanted: int) -> None:
    pool = GroupingPool(wanted, 1_000)
    for batch in parts:
        offer(pool, batch)
    stream = [item for batch in parts for item in batch]
    for group, sketch in pool.sketches().items():
        assert sketch.priorities.tolist() == best(stream, group)[:wanted]
        assert (sketch.bound == -np.inf) == (len(best(stream, group)) < wanted)


@given(batches, st.integers(1, 6), st.integers(1, 20))
def test_moves_add_up_to_what_is_kept(parts: list[Any], wanted: int, capacity: int) -> None:
    pool, held = GroupingPool(wanted, capacity), Counter[int]()
    for batch in parts:
        entered, left = offer(pool, batch)
        held += entered
        held -= left
    kept = [item for sketch in pool.sketches().values() for item in sketch.hashes.tolist()]
    assert held == Counter(kept)


@given(batches, st.integers(1, 8), st.integers(1, 10))
def test_all_groups_together_stay_within_the_capacity_and_each_has_one_item(
    parts: list[Any], wanted: int, capacity: int
) -> None:
    pool = GroupingPool(wanted, capacity)
    for batch in parts:
        offer(pool, batch)
    sketches = pool.sketches()
    assert sum(len(sketch.hashes) for sketch in sketches.values()) <= max(capacity, len(sketches))
    assert all(len(sketch.hashes) for sketch in sketches.values())


@given(batches, st.integers(1, 6), st.data())
def test_what_lies_above_the_bounds_of_all_shards_is_the_order_of_the_whole(
    parts: list[Any], wanted: int, data: st.DataObject
) -> None:
    stream = [item for batch in parts for item in batch]
    owners = data.draw(st.lists(st.integers(0, 2), min_size=len(stream), max_size=len(stream)))
    shards = [GroupingPool(wanted, 1_000) for _ in range(3)]
    for owner, pool in enumerate(shards):
        offer(pool, [item for item, of in zip(stream, owners, strict=True) if of == owner])
    for group in GROUPS:
        order = merged_order([pool.sketches().get(group, EMPTY_SKETCH) for pool in shards])
        found = [priority for priority, _, _ in order]
        assert found == best(stream, group)[: len(found)]
        assert len(found) >= min(wanted, len(best(stream, group)))


@given(batches, items, st.integers(1, 6), st.data())
def test_after_draws_nothing_enters_that_is_lower_than_what_was_dropped(
    parts: list[Any], later: list[Any], wanted: int, data: st.DataObject
) -> None:
    pool, drawn = GroupingPool(wanted, 1_000), set()
    for batch in parts:
        offer(pool, batch)
        for group, sketch in pool.sketches().items():
            for item in sketch.hashes[: data.draw(st.integers(0, len(sketch.hashes)))].tolist():
                assert pool.take(group, item)
                drawn.add(item)
    offer(pool, [(10_000 + number, group, priority) for number, group, priority in later])
    stream = [item for batch in parts for item in batch]
    stream += [(10_000 + number, group, priority) for number, group, priority in later]
    for group, sketch in pool.sketches().items():
        above = {n for n, of, p in stream if of == group and p > sketch.bound and n not in drawn}
        assert above <= set(sketch.hashes.tolist())
        assert (sketch.priorities >= sketch.bound).all()


@given(batches, items, st.integers(1, 6), st.sets(st.sampled_from(GROUPS[:2]), min_size=1))
def test_groups_that_are_folded_at_once_are_in_order_with_the_group_that_takes_them(
    parts: list[Any], later: list[Any], wanted: int, folded: set[str]
) -> None:
    pool, held = GroupingPool(wanted, 1_000), Counter[int]()
    for batch in parts:
        entered, left = offer(pool, batch)
        held = held + entered - left
    held.subtract(pool.fold(sorted(folded), "c").tolist())
    entered, left = offer(pool, later_ones := [(10_000 + n, "c", p) for n, _, p in later])
    held = held + entered - left
    stream = [item for batch in parts for item in batch]
    union = best([(n, "c" if of in folded else of, p) for n, of, p in stream] + later_ones, "c")
    order = [priority for priority, _, _ in merged_order([pool.sketches().get("c", EMPTY_SKETCH)])]
    assert order == union[: len(order)]
    assert len(order) >= min(wanted, len(union))
    assert not folded & pool.sketches().keys()
    assert held == Counter(item for s in pool.sketches().values() for item in s.hashes.tolist())


def test_an_item_that_two_shards_hold_is_drawn_once() -> None:
    twice = Sketch(-np.inf, np.array([2.0, 1.0]), np.array([7, 8], np.uint64))
    assert merged_order([twice, twice]) == [(2.0, 7, 0), (1.0, 8, 0)]


def test_a_group_of_which_a_shard_has_dropped_items_ends_at_its_bound() -> None:
    full = Sketch(3.0, np.array([5.0, 3.0]), np.array([1, 2], np.uint64))
    deep = Sketch(-np.inf, np.array([4.0, 2.0]), np.array([3, 4], np.uint64))
    assert [item for _, item, _ in merged_order([full, deep])] == [1, 3, 2]


@given(
    st.floats(allow_nan=False), st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 2**64 - 1)), max_size=9)
)
def test_a_sketch_is_decoded_as_it_was_encoded(bound: float, entries: list[tuple[float, int]]) -> None:
    sketch = Sketch(
        bound, np.array([p for p, _ in entries], np.float64), np.array([h for _, h in entries], np.uint64)
    )
    decoded = Sketch.decode(sketch.encode())
    assert decoded.bound == bound
    assert decoded.priorities.tolist() == sketch.priorities.tolist()
    assert decoded.hashes.tolist() == sketch.hashes.tolist()


def both(wanted: int = 1) -> Pools:
    return Pools({"one": GroupingPool(wanted, 100), "two": GroupingPool(wanted, 100)})


def put(pools: Pools, pool_id: str, item: int, priority: float) -> None:
    pool = pools.groupings[pool_id]
    pools.offer(
        pool_id,
        rows=np.array([pool.row("g")]),
        priorities=np.array([priority]),
        hashes=np.array([item], np.uint64),
        record=lambda _: str(item).encode(),
    )


def test_an_item_of_two_groupings_is_stored_once() -> None:
    pools = both()
    put(pools, "one", 7, 1.0)
    put(pools, "two", 7, 1.0)
    assert pools.added == {7: b"7"}
    assert pools.holders.keys() == {7}


def test_an_item_goes_when_no_grouping_holds_it() -> None:
    pools = both()
    put(pools, "one", 7, 1.0)
    put(pools, "two", 7, 1.0)
    pools.mark_flushed()
    put(pools, "one", 8, 2.0)
    assert pools.removed == set()
    pools.take("two", "g", 7)
    assert pools.removed == {7}
    assert pools.holders.keys() == {8}


def test_an_item_that_came_and_went_between_two_flushes_is_not_stored() -> None:
    pools = both()
    put(pools, "one", 7, 1.0)
    put(pools, "one", 8, 2.0)
    assert pools.added == {8: b"8"}


def test_an_item_that_went_and_came_back_between_two_flushes_stays() -> None:
    pools = both(wanted=2)
    put(pools, "one", 7, 1.0)
    pools.mark_flushed()
    pools.take("one", "g", 7)
    put(pools, "two", 7, 1.0)
    assert pools.removed == set()
    assert pools.added == {7: b"7"}


def test_an_item_is_taken_from_no_group_that_only_an_item_of_another_group_was_offered_to() -> None:
    stored = Sketch(-np.inf, np.array([1.0]), np.array([7], np.uint64))
    pools = Pools({"one": GroupingPool(1, 100, {"first": stored})})
    put(pools, "one", 7, 1.0)
    pools.take("one", "g", 7)
    assert pools.holders.keys() == {7}


def hashes(key: PoolKey, count: int, time: float = 1.8e9) -> Any:
    ids = siphash24([f"item-{i}".encode() for i in range(count)], KEY)
    times = np.full(count, time)
    return key.item_hashes(ids, times, times)


def test_noise_has_the_standard_gumbel_distribution() -> None:
    key = PoolKey(KEY, "m")
    assert stats.kstest(key.noise("region:", hashes(key, 20_000)), stats.gumbel_r.cdf).pvalue > 1e-3


def test_orders_of_groupings_models_times_and_keys_are_independent() -> None:
    key, other = PoolKey(KEY, "m"), PoolKey(KEY, "n")
    mine = key.noise("region:", hashes(key, 20_000))
    others = [
        key.noise("device:", hashes(key, 20_000)),
        other.noise("region:", hashes(other, 20_000)),
        key.noise("region:", hashes(key, 20_000, 1.8e9 + 1)),
        PoolKey(KEY[::-1], "m").noise("region:", hashes(PoolKey(KEY[::-1], "m"), 20_000)),
    ]
    for noise in others:
        # Independent correlations have a standard error of 1 / sqrt(20,000).
        assert abs(stats.spearmanr(mine, noise).statistic) < 5 / np.sqrt(20_000)


def test_a_prediction_that_is_sent_again_has_new_noise() -> None:
    key, times = PoolKey(KEY, "m"), np.full(20_000, 1.8e9)
    ids = siphash24([f"item-{i}".encode() for i in range(20_000)], KEY)
    first, again = (key.noise("region:", key.item_hashes(ids, times, times + late)) for late in (0.0, 0.001))
    assert abs(stats.spearmanr(first, again).statistic) < 5 / np.sqrt(20_000)
    swapped = key.item_hashes(ids, times + 0.001, times)
    assert not np.isin(swapped, key.item_hashes(ids, times, times + 0.001)).any()


def test_a_pool_is_of_one_half_life() -> None:
    space = CellSpace(("a", "b"), (), {"all": Everything("all")})
    found = [pool_ids(space, ["all"], half_life_hours=hours)["all"] for hours in (24.0, 6.0, None)]
    assert len(set(found)) == 3
    assert found[0] == pool_ids(space, ["all"], half_life_hours=24.0)["all"]


def test_the_first_items_drawn_are_weighted_by_recency() -> None:
    """Of two items the later one comes first with probability w / (1 + w), by Gumbel's law."""
    key, decay, lag = PoolKey(KEY, "m"), 0.5, 2.0
    runs = 20_000
    early, late = hashes(key, 2 * runs, 0.0).reshape(2, runs)
    later_first = decay * lag + key.noise("region:", late) > key.noise("region:", early)
    expected = np.exp(decay * lag) / (1 + np.exp(decay * lag))
    assert stats.binomtest(int(later_first.sum()), runs, expected).pvalue > 1e-3


def test_gumbel_noise_is_finite_for_every_hash() -> None:
    assert np.isfinite(gumbel_noise(np.array([0, 2**64 - 1], np.uint64))).all()
