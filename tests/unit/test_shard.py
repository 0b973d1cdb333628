"""Traffic adds up and the pool is a fair sample, in whatever order and parts predictions come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from service.pool import GroupingPool, Pools
from service.pool_key import PoolKey
from service.shard import Candidates, Shard, Traffic, merge_traffic
from service.siphash import siphash24

KEY = bytes(range(16))
CELLS = 3
POOL = "cell:"
START = 1_700_000_000.0


def empty_shard(*, decay: float = 1e-5, slots: int = 2) -> Shard:
    return Shard(
        next_offset=0,
        traffic=Traffic.empty(CELLS),
        pools=Pools({POOL: GroupingPool(slots, 1_000)}),
        noise=PoolKey(KEY, "m").noise,
        decay=decay,
    )


def hashes_of(items: list[tuple[int, int, float]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    ids = siphash24([f"item-{number}".encode() for number, _, _ in items], KEY)
    return PoolKey(KEY, "m").item_hashes(ids, np.array([time for *_, time in items]))


def add(shard: Shard, items: list[tuple[int, int, float]]) -> None:
    """Add (item number, cell, time) with a score that the number decides."""
    cells = np.array([cell for _, cell, _ in items], dtype=np.intp)
    shard.add(
        Candidates(
            cells=cells,
            classes=np.zeros(len(items), dtype=np.intp),
            scores=np.array([(number % 10) / 10 for number, _, _ in items]),
            times=np.array([time for _, _, time in items]),
            item_hashes=hashes_of(items),
            groups={POOL: (["0", "1", "2"], cells)},
            record=lambda row: str(items[row][0]).encode(),
        ),
        CELLS,
    )


def pooled(shard: Shard) -> list[set[int]]:
    """Hashes of the pooled items of every cell."""
    sketches = shard.pools.groupings[POOL].sketches()
    return [set(sketches[name].hashes.tolist()) if name in sketches else set() for name in "012"]


streams = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, CELLS - 1), st.floats(START, START + 1e6)),
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
    assert piecewise.traffic.counts.tolist() == once.traffic.counts.tolist()
    same_landmark = piecewise.traffic.rescaled(once.traffic.landmark, 1e-5)
    # Rounding of sums in another order, and of one multiplication.
    np.testing.assert_allclose(same_landmark.weights, once.traffic.weights, rtol=1e-9)
    np.testing.assert_allclose(same_landmark.score_sums, once.traffic.score_sums, rtol=1e-9)
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
    merged = merge_traffic([part.traffic for part in parts], 1e-5, CELLS)
    assert merged.counts.tolist() == whole.traffic.counts.tolist()
    expected = whole.traffic.rescaled(merged.landmark, 1e-5)
    np.testing.assert_allclose(merged.weights, expected.weights, rtol=1e-9)


def test_years_of_traffic_with_a_short_half_life_stay_finite_and_in_proportion() -> None:
    decay = math.log(2) / 3600
    shard = empty_shard(decay=decay)
    for day in range(1_000):
        add(shard, [(2 * day, 0, START + day * 86_400), (2 * day + 1, 1, START + day * 86_400 - 3_600)])
    assert np.isfinite(shard.traffic.weights).all()
    assert shard.traffic.weights[0] / shard.traffic.weights[1] == pytest.approx(2.0, rel=1e-9)


def test_a_late_prediction_weighs_what_it_would_have_weighed_in_time() -> None:
    late, in_time = empty_shard(), empty_shard()
    add(late, [(1, 0, START + 1e5)])
    add(late, [(2, 0, START)])
    add(in_time, [(2, 0, START), (1, 0, START + 1e5)])
    same = late.traffic.rescaled(in_time.traffic.landmark, 1e-5)
    np.testing.assert_allclose(same.weights, in_time.traffic.weights, rtol=1e-12)


def test_a_prediction_that_comes_twice_is_pooled_once() -> None:
    shard = empty_shard()
    add(shard, [(1, 0, START)])
    add(shard, [(1, 0, START)])
    assert len(pooled(shard)[0]) == 1


def test_an_item_that_is_predicted_at_two_times_is_pooled_for_each() -> None:
    shard = empty_shard()
    add(shard, [(1, 0, START), (1, 0, START + 5)])
    assert len(pooled(shard)[0]) == 2


def test_class_probabilities_are_summed_per_predicted_class() -> None:
    shard = empty_shard(decay=0.0)
    probabilities = np.array([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]])
    shard.add(
        Candidates(
            cells=np.zeros(4, dtype=np.intp),
            classes=np.array([0, 0, 1, 1]),
            scores=np.full(4, 0.5),
            times=np.full(4, START),
            item_hashes=siphash24([b"a", b"b", b"c", b"d"], KEY),
            groups={},
            record=lambda _: b"",
            probabilities=(np.array([0, 1, 2]), probabilities),
        ),
        CELLS,
    )
    np.testing.assert_allclose(shard.probability_sums[0], [1.3, 0.7])
    np.testing.assert_allclose(shard.probability_sums[1], [0.1, 0.9])


def test_without_decay_every_item_of_a_cell_is_pooled_equally_often() -> None:
    kept = np.zeros(20)
    for run in range(3_000):
        shard = empty_shard(decay=0.0)
        items = [(run * 20 + i, 0, START + i) for i in range(20)]
        add(shard, items)
        kept += [item in pooled(shard)[0] for item in hashes_of(items).tolist()]
    # Items of one run exclude each other, which makes the statistic a little smaller than chi-square.
    assert kept.sum() == 6_000
    assert stats.chisquare(kept).pvalue > 1e-3


def test_with_decay_the_first_pooled_item_is_drawn_in_proportion_to_its_weight() -> None:
    decay = math.log(2) / 10
    kept = np.zeros(5)
    for run in range(4_000):
        shard = empty_shard(decay=decay, slots=1)
        items = [(run * 5 + i, 0, START + 10 * i) for i in range(5)]
        add(shard, items)
        kept += [item in pooled(shard)[0] for item in hashes_of(items).tolist()]
    expected = 2.0 ** np.arange(5)
    assert stats.chisquare(kept, 4_000 * expected / expected.sum()).pvalue > 1e-3


@settings(max_examples=30)
@given(st.integers(1, 5_000))
def test_a_group_never_outgrows_its_pool(count: int) -> None:
    shard = empty_shard(slots=4)
    add(shard, [(i, i % CELLS, START + i) for i in range(count)])
    assert all(len(items) <= 4 for items in pooled(shard))
