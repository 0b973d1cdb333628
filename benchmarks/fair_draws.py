"""Whether the items drawn of a group are a fair sample of its traffic, whichever policy names the groups.

A small model has three groups of different sizes. Their items come in batches, and labels are requested
between the batches or after the last one. Pools, keyed noise and the order of draws are the service's; so are
policies and beliefs, with random labels. Pools are deep, or so small that they run dry, in one shard or in
several.

- Items of a group that came together must be drawn equally often. Their counts are compared by chi-square.
- After the last batch, the next item of a group must be one of each batch with a probability in proportion to
  the items that are left of it and to their recency. Counts are compared with the sum of these, given all
  earlier draws.

    python -m benchmarks.fair_draws --draws 100000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from service.domain.arrays import Flags, Indices, UInt64s
from service.domain.grouping_pool import EMPTY_SKETCH, GroupingPool, Sketch, merged_order
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.replay.tables import Cell, Table, print_tables
from service.statistics.beliefs import AccuracyBeliefs, Outcomes
from service.statistics.laplace import Cells
from service.statistics.policies import NONE, POLICIES, Situation
from service.statistics.questions import Question
from service.statistics.tasks import IdentifyByAccuracy

SIZES = {"often": 12, "seldom": 6, "rare": 3}
"""Items of a group of each kind in a batch."""

ACCURACY = (0.9, 0.8, 0.7)
"""Of each kind."""

BATCHES = 3
REPLICAS = 100
"""Models of one key, as a pool is quickly updated with so many groups.

Groups of one key are as independent as those of two keys are: noise is a keyed hash of the item.
"""

DECAY = 0.2
LAG = 1.0
"""Time between two batches, so that a later item weighs e^0.2 times as much."""

ROOM = 1_000_000

Pool = tuple[int, int, int]
"""Depth of the pools, shards, and labels of a model for every batch."""

POOLS: dict[str, Pool] = {
    "deep": (16, 1, 6),
    "dry": (2, 1, 12),
    "dry in two shards": (1, 2, 9),
    "dry in three shards": (3, 3, 12),
}


IN_TURN = "in_turn"
"""Names all groups in turn, which is no policy."""


class Draw(NamedTuple):
    """An item that was drawn."""

    kind: int
    replica: int
    batch: int
    number: int


class _Namer:
    """Names the groups that are asked next in every model: all in turn, or those of a policy."""

    def __init__(self, policy: str | None, rng: np.random.Generator) -> None:
        kinds = len(SIZES)
        sizes = np.array(list(SIZES.values()), np.float64)
        shares = sizes / sizes.sum()
        self._policy, self._rng = None if policy is None else POLICIES[policy](), rng
        self._weights = np.tile(shares, (REPLICAS, 1))
        self._beliefs = AccuracyBeliefs.fixed(np.full(kinds, 8.0), np.full(kinds, 2.0), REPLICAS)
        cells = Cells(np.ones((kinds, 1)), np.full((kinds, 1), 0.8), shares)
        # Else several plays would be one, which is Thompson sampling.
        self._task = IdentifyByAccuracy(Question(cells, top_m=2 if policy == "multiple_play" else 1))

    def named(self, turn: int, available: Flags) -> Indices:
        """Kinds of the groups of the next labels of every model, NONE where there is none [R, m]."""
        if self._policy is None:
            kind = turn % len(SIZES)
            return np.where(available[:, [kind]], kind, NONE)
        situation = Situation(self._beliefs, self._weights, available)
        chosen = self._policy.choose(self._task, situation, self._rng)
        for column in chosen.T:
            runs = np.flatnonzero(column != NONE)
            correct = self._rng.random(len(runs)) < np.array(ACCURACY)[column[runs]]
            every = np.arange(len(runs))
            self._beliefs.observe(runs, column[runs], Outcomes(correct.astype(np.float64), every, every))
        return chosen


@lru_cache
def _batch_items(batch: int) -> tuple[list[tuple[int, int]], list[str], UInt64s]:
    """Kind and number of every item of a batch, its group's name, and its id's hash."""
    sizes = list(enumerate(SIZES.values()))
    items = [(kind, n) for _ in range(REPLICAS) for kind, size in sizes for n in range(size)]
    groups = [_group(kind, r) for r in range(REPLICAS) for kind, size in sizes for _ in range(size)]
    ids = [f"{group}.{batch}.{n}".encode() for group, (_, n) in zip(groups, items, strict=True)]
    return items, groups, siphash24(ids, bytes(16))


class _Shards:
    """Pools of all groups in every shard, and what they would give next.

    Args:
        depth: of the pools.
        count: of shards.
        key: of their noise.
    """

    def __init__(self, depth: int, count: int, key: PoolKey) -> None:
        self._key = key
        self._pools = [GroupingPool(depth, ROOM) for _ in range(count)]
        self._sketches: list[dict[str, Sketch]] = [{} for _ in self._pools]
        self._where: dict[int, tuple[int, int]] = {}
        self._orders: dict[str, list[tuple[float, int, int]]] = {}

    def offer(self, batch: int) -> None:
        """Take in a batch of items, evenly over the shards."""
        items, groups, ids = _batch_items(batch)
        times = np.full(len(items), batch * LAG)
        hashes = self._key.item_hashes(ids, times, times)
        priorities = DECAY * times + self._key.noise("region:", hashes)
        self._where |= {item: (batch, n) for item, (_, n) in zip(hashes.tolist(), items, strict=True)}
        for shard, pool in enumerate(self._pools):
            own = np.arange(shard, len(items), len(self._pools))
            rows = np.array([pool.row(groups[i]) for i in own.tolist()])
            pool.offer(rows, priorities[own], hashes[own])

    def available(self) -> Flags:
        """Which groups have an item to label, after a flush [R, kinds]."""
        changed: set[str] = set()
        for sketches, pool in zip(self._sketches, self._pools, strict=True):
            new = dict(pool.changed())
            pool.mark_flushed()
            sketches.update(new)
            changed |= new.keys()
        for group in changed:
            self._orders[group] = merged_order([known.get(group, EMPTY_SKETCH) for known in self._sketches])
        replicas, kinds = range(REPLICAS), range(len(SIZES))
        return np.array([[bool(self._orders[_group(kind, r)]) for kind in kinds] for r in replicas])

    def take(self, kind: int, replica: int) -> Draw:
        """Draw the next item of a group.

        Raises:
            ValueError: the pool does not have it.
        """
        group = _group(kind, replica)
        _, item, shard = self._orders[group][0]
        if not self._pools[shard].take(group, item):
            raise ValueError("an item of the pool cannot be drawn")
        return Draw(kind, replica, *self._where[item])


def _group(kind: int, replica: int) -> str:
    return f"{kind}.{replica}"


def draws(pool: Pool, *, key: int, policy: str | None = None, at_end: bool = False) -> Iterator[Draw]:
    """What is drawn of the groups of `REPLICAS` models.

    Args:
        pool: depth of the pools, shards, and labels of a model for every batch.
        key: number of the pools' key, and seed of the policy.
        policy: that names groups; None for all in turn.
        at_end: whether labels are requested after the last batch alone.
    """
    depth, count, labels = pool
    shards = _Shards(depth, count, PoolKey(key.to_bytes(16, "little"), "m"))
    namer = _Namer(policy, np.random.default_rng(key))
    for batch in range(BATCHES):
        shards.offer(batch)
        if at_end and batch < BATCHES - 1:
            continue
        for turn in range(labels):
            named = namer.named(turn, shards.available())
            for replica, kind in zip(*_cells(named), strict=True):
                yield shards.take(kind, replica)


def _cells(named: Indices) -> tuple[list[int], list[int]]:
    """Replica and kind of every group that is named."""
    replicas, columns = np.nonzero(named != NONE)
    return replicas.tolist(), named[replicas, columns].tolist()


class Tally:
    """Counts of what was drawn, and what they vary by if draws are fair."""

    def __init__(self) -> None:
        self.draws = np.zeros(len(SIZES), np.int64)
        self._counts = {
            (kind, batch): np.zeros(size)
            for kind, size in enumerate(SIZES.values())
            for batch in range(BATCHES)
        }
        self._spread = dict.fromkeys(self._counts, 0.0)
        self._excess = np.zeros((len(SIZES), BATCHES))
        self._variance = np.zeros((len(SIZES), BATCHES, BATCHES))

    def add(self, found: list[Draw], *, at_end: bool) -> None:
        """Take in the draws of one key."""
        sizes = np.array(list(SIZES.values()))
        drawn = np.zeros((len(SIZES), REPLICAS, BATCHES))
        recency = np.exp(DECAY * LAG * np.arange(BATCHES))
        for kind, replica, batch, number in found:
            self.draws[kind] += 1
            self._counts[kind, batch][number] += 1
            if at_end:
                left = (sizes[kind] - drawn[kind, replica]) * recency
                expected = left / left.sum()
                self._excess[kind] -= expected
                self._excess[kind, batch] += 1
                self._variance[kind] += np.diag(expected) - np.outer(expected, expected)
            drawn[kind, replica, batch] += 1
        for kind, batch in self._counts:
            size, each = sizes[kind], drawn[kind, :, batch]
            # Expected square distance from their mean of the items of one run, given how many are drawn.
            self._spread[kind, batch] += float((each - each**2 / size).sum()) / (size - 1)

    def evenness(self) -> float:
        """p-value of the counts of items that came together."""
        found = [
            (((counts - counts.mean()) ** 2).sum() / self._spread[table], len(counts) - 1)
            for table, counts in self._counts.items()
            if self._spread[table] > 0
        ]
        return float(stats.chi2.sf(*np.sum(found, axis=0)))

    def recency(self) -> float:
        """p-value of the counts of batches."""
        found = 0.0
        for excess, variance in zip(self._excess, self._variance, strict=True):
            found += float(excess[1:] @ np.linalg.solve(variance[1:, 1:], excess[1:]))
        return float(stats.chi2.sf(found, len(SIZES) * (BATCHES - 1)))


def tally(
    pool: Pool, wanted: int, *, policy: str | None = None, at_end: bool = False, first_key: int = 0
) -> Tally:
    """Draws of one key after the other, until there are so many of every group."""
    found, key = Tally(), first_key
    while found.draws.min() < wanted:
        found.add(list(draws(pool, key=key, policy=policy, at_end=at_end)), at_end=at_end)
        key += 1
    return found


def _table(wanted: int, policies: list[str], first_key: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    # Where pools of one or two items run dry, everything in them is drawn, whoever names the groups.
    some = ("deep", "dry in three shards")
    for policy, name in ((p, n) for p in policies for n in (POOLS if p == IN_TURN else some)):
        named = None if policy == IN_TURN else policy
        between = tally(POOLS[name], wanted, policy=named, first_key=first_key)
        after = tally(POOLS[name], wanted, policy=named, at_end=True, first_key=first_key)
        cells = (int(between.draws.min()), between.evenness(), int(after.draws.min()))
        rows.append((f"{policy}, {name}", (*cells, after.evenness(), after.recency())))
    return Table(
        f"p-values of draws of a small stream: at least {wanted:,} of every group",
        "policy, pools",
        (
            *("draws between batches", "items equally often"),
            *("draws after the last batch", "items equally often", "batches by recency"),
        ),
        rows,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100_000, help="of every group (default: 100000)")
    names = [IN_TURN, *POLICIES]
    parser.add_argument("--policies", nargs="+", default=names, choices=names, help="(default: all)")
    parser.add_argument(
        "--first-key", type=int, default=0, help="number of the pools' first key (default: 0)"
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    table = _table(options.draws, options.policies, options.first_key)
    print_tables([table], as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
