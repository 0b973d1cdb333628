"""What is drawn of a group is an even sample of its traffic, also when its pool runs dry."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from service.domain.arrays import Ints, UInt64s
from service.domain.grouping_pool import EMPTY_SKETCH, GroupingPool, Sketch, merged_order
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24

SIZES = {"often": 12, "seldom": 6, "rare": 3}
"""Items of a group of each kind in a batch."""

BATCHES = 3
KEYS, REPLICAS = 40, 100
"""Draws of 4,000 groups of each kind: of each key, as many groups as a pool is quickly updated with.

Groups of one key are as independent as those of two keys are: noise is a keyed hash of the item.
"""

RUNS = KEYS * REPLICAS
DECAY = 0.2
LAG = 1.0
"""Time between two batches, so that a later item weighs e^0.2 times as much."""

ROOM = 1_000_000


def pool_key(number: int) -> PoolKey:
    return PoolKey(number.to_bytes(16, "little"), "m")


@lru_cache
def batch_items(batch: int, replicas: int) -> tuple[list[tuple[str, int]], list[str], UInt64s]:
    """Kind and number of every item of a batch, its group's name, and its id's hash."""
    items = [(kind, n) for _ in range(replicas) for kind, size in SIZES.items() for n in range(size)]
    groups = [f"{kind}{r}" for r in range(replicas) for kind, size in SIZES.items() for _ in range(size)]
    ids = [f"{group}.{batch}.{n}".encode() for group, (_, n) in zip(groups, items, strict=True)]
    return items, groups, siphash24(ids, bytes(16))


def drawn(
    *, depth: int, shards: int, draws_a_batch: int, key: PoolKey, replicas: int
) -> list[tuple[str, int, int]]:
    """Kind of group, batch and number of every item that is drawn of any of the groups."""
    pools = [GroupingPool(depth, ROOM) for _ in range(shards)]
    sketches: list[dict[str, Sketch]] = [{} for _ in pools]
    where: dict[int, tuple[str, int, int]] = {}
    found = []
    for batch in range(BATCHES):
        items, groups, ids = batch_items(batch, replicas)
        times = np.full(len(items), batch * LAG)
        hashes = key.item_hashes(ids, times, times)
        priorities = DECAY * times + key.noise("region:", hashes)
        where |= {item: (kind, batch, n) for item, (kind, n) in zip(hashes.tolist(), items, strict=True)}
        for shard, pool in enumerate(pools):
            own = np.arange(shard, len(items), shards)
            rows = np.array([pool.row(groups[i]) for i in own.tolist()])
            pool.offer(rows, priorities[own], hashes[own])
        waiting = list(dict.fromkeys(groups))
        for _ in range(draws_a_batch):
            for known, pool in zip(sketches, pools, strict=True):
                known |= dict(pool.changed())
                pool.mark_flushed()
            orders = [
                merged_order([known.get(group, EMPTY_SKETCH) for known in sketches]) for group in waiting
            ]
            waiting = [group for group, order in zip(waiting, orders, strict=True) if order]
            for group, (_, item, shard) in zip(waiting, [order[0] for order in orders if order], strict=True):
                assert pools[shard].take(group, item)
                found.append(where[item])
    return found


@pytest.mark.parametrize(
    ("depth", "shards", "draws_a_batch"),
    [(16, 1, 2), (2, 1, 4), (1, 2, 3), (3, 3, 4)],
    ids=["deep", "dry", "dry in two shards", "dry in three shards"],
)
def test_items_of_a_group_that_came_together_are_drawn_equally_often(
    depth: int, shards: int, draws_a_batch: int
) -> None:
    counts: dict[tuple[str, int], Ints] = {
        (kind, batch): np.zeros(size, np.int64) for kind, size in SIZES.items() for batch in range(BATCHES)
    }
    for key in map(pool_key, range(KEYS)):
        for kind, batch, number in drawn(
            depth=depth, shards=shards, draws_a_batch=draws_a_batch, key=key, replicas=REPLICAS
        ):
            counts[kind, batch][number] += 1
    for (kind, batch), found in counts.items():
        # Draws of one group exclude each other, which makes the statistic a little smaller than chi-square.
        # Of nine tables and four settings, one in 10,000 is no chance.
        assert stats.chisquare(found).pvalue > 1e-4, (kind, batch, found)


def test_the_first_draw_is_weighted_by_recency() -> None:
    found: Ints = np.zeros(BATCHES, np.int64)
    size = 5
    rows = np.repeat(np.arange(REPLICAS), size)
    for key in map(pool_key, range(KEYS)):
        pool = GroupingPool(1, ROOM)
        for replica in range(REPLICAS):
            pool.row(f"{replica}")
        batch_of: dict[int, int] = {}
        for batch in range(BATCHES):
            ids = siphash24([f"{batch}.{n}".encode() for n in range(len(rows))], bytes(16))
            times = np.full(len(rows), batch * LAG)
            hashes = key.item_hashes(ids, times, times)
            pool.offer(rows, DECAY * times + key.noise("all:", hashes), hashes)
            batch_of |= dict.fromkeys(hashes.tolist(), batch)
        for sketch in pool.sketches().values():
            found[batch_of[int(sketch.hashes[0])]] += 1
    assert found.sum() == RUNS
    weights = np.exp(DECAY * LAG * np.arange(BATCHES))
    assert stats.chisquare(found, RUNS * weights / weights.sum()).pvalue > 1e-4


def test_a_group_that_has_run_dry_waits_for_what_is_higher_than_all_that_was_dropped() -> None:
    found = drawn(depth=1, shards=1, draws_a_batch=9, key=pool_key(3), replicas=1)
    assert sum(kind == "often" and batch == 0 for kind, batch, _ in found) == 1
