"""What is drawn of a group is an even sample of its traffic, also when its pool runs dry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.domain.arrays import Ints
from service.domain.grouping_pool import GroupingPool
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.domain.sketch import EMPTY_SKETCH, merged_order

GROUPS = ("often", "seldom", "rare")
SIZES = (12, 6, 3)
"""Items of each group in a batch."""

BATCHES = 3
RUNS = 4_000
DECAY = 0.2
LAG = 1.0
"""Time between two batches, so that a later item weighs e^0.2 times as much."""


def drawn(*, depth: int, shards: int, draws_a_batch: int, run: int) -> list[tuple[str, int, int]]:
    """Group, batch and number of every item that is drawn, in order; each run has a key of its own."""
    key = PoolKey(run.to_bytes(16, "little"), "m")
    pools = [GroupingPool(depth, 10_000) for _ in range(shards)]
    where: dict[int, tuple[str, int, int]] = {}
    found = []
    for batch in range(BATCHES):
        names = [(group, n) for group, size in zip(GROUPS, SIZES, strict=True) for n in range(size)]
        times = np.full(len(names), batch * LAG)
        ids = siphash24([f"{group}{batch}.{n}".encode() for group, n in names], bytes(16))
        hashes = key.item_hashes(ids, times, times)
        priorities = DECAY * times + key.noise("region:", hashes)
        where |= {int(h): (group, batch, n) for h, (group, n) in zip(hashes, names, strict=True)}
        for shard, pool in enumerate(pools):
            own = np.arange(shard, len(names), shards)
            rows = np.array([pool.row(names[i][0]) for i in own.tolist()])
            pool.offer(rows, priorities[own], hashes[own])
        for group in GROUPS:
            for _ in range(draws_a_batch):
                order = merged_order([pool.sketches().get(group, EMPTY_SKETCH) for pool in pools])
                if not order:
                    break
                _, item, shard = order[0]
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
        (group, batch): np.zeros(size, np.int64)
        for group, size in zip(GROUPS, SIZES, strict=True)
        for batch in range(BATCHES)
    }
    for run in range(RUNS):
        for group, batch, number in drawn(depth=depth, shards=shards, draws_a_batch=draws_a_batch, run=run):
            counts[group, batch][number] += 1
    for (group, batch), found in counts.items():
        # Draws of one run exclude each other, which makes the statistic a little smaller than chi-square. Of
        # nine tables and four settings, one in 10,000 is no chance.
        assert stats.chisquare(found).pvalue > 1e-4, (group, batch, found)


def test_the_first_draw_is_weighted_by_recency() -> None:
    found: Ints = np.zeros(BATCHES, np.int64)
    for run in range(RUNS):
        key = PoolKey(run.to_bytes(16, "little"), "m")
        pool = GroupingPool(1, 10_000)
        for batch in range(BATCHES):
            ids = siphash24([f"{batch}.{n}".encode() for n in range(5)], bytes(16))
            times = np.full(5, batch * LAG)
            hashes = key.item_hashes(ids, times, times)
            pool.offer(
                np.zeros(5, np.intp) + pool.row("g"), DECAY * times + key.noise("all:", hashes), hashes
            )
            batch_of = dict.fromkeys(hashes.tolist(), batch)
            if int(pool.sketches()["g"].hashes[0]) in batch_of:
                latest = batch
        found[latest] += 1
    weights = np.exp(DECAY * LAG * np.arange(BATCHES))
    assert stats.chisquare(found, RUNS * weights / weights.sum()).pvalue > 1e-4


def test_a_group_that_has_run_dry_waits_for_what_is_higher_than_all_that_was_dropped() -> None:
    found = drawn(depth=1, shards=1, draws_a_batch=9, run=3)
    assert sum(group == "often" and batch == 0 for group, batch, _ in found) == 1
