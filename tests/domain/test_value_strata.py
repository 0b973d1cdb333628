"""Strata of an attribute's values: what is counted of them, and the pools of their items."""

from __future__ import annotations

import numpy as np
from test_shard import KEY, add, hashes_of

from service.domain.cells import OTHER, CellBounds, CellSpace, Selections
from service.domain.grouping_pool import GroupingPool
from service.domain.groupings import ByAttribute, ByStratum, Everything
from service.domain.pool import Pools
from service.domain.pool_key import PoolKey
from service.domain.shard import Shard
from service.domain.traffic import Traffic
from service.domain.traffic_marks import ShardMarks, Slots
from service.domain.traffic_tables import tables
from service.domain.value_strata import ValueStrata

POOL = "strata:"
SPACE = CellSpace(
    ("a", "b"),
    (0.5,),
    {
        "all": Everything("all"),
        "region": ByAttribute("region", "region"),
        "strata": ByStratum("strata", "region", positive="b"),
    },
    bounds=CellBounds(attribute_values=2),
    selections=Selections("b", frozenset({"region"})),
)


def strata_shard() -> Shard:
    return Shard(
        SPACE,
        next_offset=0,
        traffic=Traffic(tables(SPACE)),
        pools=Pools({POOL: GroupingPool(100, 1_000)}),
        pool_groupings={POOL: "strata"},
        noise=PoolKey(KEY, "m").noise,
        decay=0.0,
        draw_decay=0.0,
        marks=ShardMarks(Slots(3_600.0), enough=1_000),
    )


def test_what_is_counted_of_a_value_is_split_by_prediction_and_score() -> None:
    strata = ValueStrata.of_grouping(SPACE, "strata")
    assert strata.strata == [
        "not selected [0,0.5)",
        "not selected [0.5,1]",
        "selected [0,0.5)",
        "selected [0.5,1]",
    ]
    assert strata.selected.tolist() == [False, False, True, True]
    split = strata.split(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert split.tolist() == [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 4.0]]


def test_a_name_of_a_stratum_says_the_value_whatever_is_in_it() -> None:
    strata, by = ValueStrata.of_grouping(SPACE, "strata"), SPACE.groupings["strata"]
    for value in ("north", "a: b", OTHER, ""):
        for stratum in range(4):
            assert by.value_of(strata.name(value, stratum)) == value


def test_pooled_items_are_in_the_stratum_of_their_value_prediction_and_score() -> None:
    shard = strata_shard()
    items = [(number, number % 2, 1_700_000_000.0) for number in range(40)]
    add(shard, items)
    sketches = shard.pools.groupings[POOL].sketches()
    assert sum(len(sketch.hashes) for sketch in sketches.values()) == 40
    for name, sketch in sketches.items():
        stratum, value = name.split(": ")
        expected = {
            hash_
            for (number, region, _), hash_ in zip(items, hashes_of(items).tolist(), strict=True)
            if str(region) == value and (number % 10 >= 5) == ("[0.5" in stratum)
        }
        assert set(sketch.hashes.tolist()) <= expected


def test_items_of_strata_of_a_displaced_value_are_in_those_of_other_values_and_can_be_drawn() -> None:
    shard = strata_shard()
    first = [(number, 0, 1_700_000_000.0) for number in range(4)]
    add(shard, first)
    before = dict(shard.pools.groupings[POOL].sketches())
    add(shard, [(number, 1 + number % 2, 1_700_000_000.0) for number in range(100, 200)])
    after = shard.pools.groupings[POOL].sketches()
    assert not any(name.endswith(": 0") for name in after)
    for name, sketch in before.items():
        (item,) = sketch.hashes.tolist()[:1]
        shard.pools.take(POOL, name, item)
        other = name.removesuffix("0") + OTHER
        assert item in after[other].hashes.tolist()
        assert item not in shard.pools.groupings[POOL].sketches()[other].hashes.tolist()
