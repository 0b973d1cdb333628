"""Shards: whatever is killed, lost, emptied or restored, every prediction is in the facts exactly once."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_site import (
    HASH_KEY,
    NOW,
    Facts,
    Owner,
    Record,
    Site,
    assert_same_facts,
    message,
    record,
    restore,
    save,
    wired,
)

from service.app.pool_sizing import asked_pools
from service.demo.servers import EmbeddedRedis
from service.domain.cells import OTHER
from service.domain.errors import FlushRefused, Unavailable
from service.domain.pool_key import PoolKey
from service.domain.shard import Candidates, Shard
from service.domain.siphash import siphash24
from service.domain.value_book import ValueBook
from service.monitoring.item_drawer import Drawer
from service.store.connection import Connection
from service.store.records import PoolRecord, decode_pool_record, encode_pool_record
from service.store.shards import ShardStore, pack_hash, pool_field, unpack_hash

CLASSES = ["cat", "dog", "owl"]
REGION = {"by": "attribute", "attribute": "region"}
MODELS = {
    "m": {
        "classes": CLASSES,
        "score_bins": 4,
        "groupings": {"region": REGION},
        "assessments": {
            "ask": {"budget": {"labels": 5}},
            "regions": {"grouping": "region", "budget": {"labels": 5}},
        },
    },
    "n": {
        "classes": CLASSES,
        "score_bins": 2,
        "traffic_half_life_days": None,
        "assessments": {"ask": {"grouping": "score_bin", "budget": {"labels": 5}}},
    },
}
BOUNDS = {"pool_items": 8}
"""Four items of all traffic, and as many of all regions together."""

ONE_POOL = {"m": MODELS["m"] | {"assessments": {"ask": {"budget": {"labels": 5}}}}}
FOUR_ITEMS = {"pool_items": 4}

PARTITIONS = (0, 1)

seeded = settings(
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def stream(partition: int, length: int, *, regions: int = 3) -> list[Record]:
    """Records of two models: some arrays, some late, some bad, some misdated, some items more than once."""
    rng, clock = random.Random(partition), random.Random(f"clock {partition}")

    def one(offset: int) -> dict[str, Any] | bytes:
        if rng.random() < 0.05:
            return b"{"
        fields: dict[str, Any] = {
            "model": rng.choice("mmn"),
            "attributes": {"region": f"r{rng.randrange(regions)}"},
            "time": f"2027-01-1{rng.randrange(1, 5)}T08:00:{offset % 60:02d}Z",
        }
        if rng.random() < 0.3:
            first = rng.randrange(1, 99) / 100
            fields |= {"probabilities": [first, 1 - first, 0.0], "predicted_class": ..., "score": ...}
        else:
            fields |= {"predicted_class": rng.choice(CLASSES), "score": rng.randrange(101) / 100}
        return message(f"{partition}-{rng.randrange(length)}", **fields)

    records = []
    for offset in range(length):
        messages = [one(offset) for _ in range(rng.choice([1, 1, 3]))]
        good = [m for m in messages if isinstance(m, dict)]
        stamps = [NOW - 9_000 + 30 * offset, NOW - 9_000 + 30 * offset, NOW - 1e6, NOW + 1e6, -0.001]
        timestamp = int(1_000 * clock.choice(stamps))
        records.append(record(offset, *(good or [b"{"]), timestamp=timestamp))
    return records


def clone(connection: Connection) -> Connection:
    """The same Redis with a prefix that nobody has used."""
    return Connection(connection.client, f"{connection.prefix}.{secrets.token_hex(4)}")


def undisturbed(connection: Connection, topic: Mapping[int, Sequence[Record]], **options: Any) -> list[Facts]:
    """The facts of a run in which nothing goes wrong."""
    site = Site(clone(connection), MODELS, **options)
    Owner(site, topic).finish()
    return [site.facts(model) for model in MODELS]


def shard_store(site: Site) -> tuple[ShardStore, Shard]:
    store = site.shards("m")
    shard = store.load(0)
    return store, shard


def add(shard: Shard, items: Sequence[str], *, time: float = NOW) -> None:
    """Add items of one region to a shard."""
    times = np.full(len(items), time)
    book = ValueBook(lambda _, value: str(value), 1)
    id_hashes = siphash24([item.encode() for item in items], HASH_KEY)
    shard.add(
        Candidates(
            book=book,
            values=book.values(np.array(book.add([["r0"] * len(items)]))),
            classes=np.zeros(len(items), np.intp),
            bins=np.full(len(items), 2),
            scores=np.full(len(items), 0.5),
            times=times,
            arrivals=times,
            item_hashes=PoolKey(HASH_KEY, "m").item_hashes(id_hashes, times, times),
            record=lambda row: encode_pool_record(PoolRecord(items[row], "cat", 0.5, time, {})),
        )
    )


def pooled(connection: Connection, site: Site) -> dict[str, bytes]:
    """Hashes of the pooled items, as they are stored."""
    items = connection.client.hgetall(site.keys("m").items(0))
    return {decode_pool_record(kept).item_id: item for item, kept in items.items()}


def flush(store: ShardStore, shard: Shard, offset: int) -> int:
    """Flush a shard; returns how many drawn items it has seen."""
    store.flush(0, shard, new_offset=offset)
    return shard.drawn_seen


@pytest.mark.parametrize("stamp", [NOW - 1e6, NOW + 1e6, -0.001], ids=["past", "future", "none"])
def test_an_owner_that_comes_later_knows_when_misdated_records_arrived(
    connection: Connection, stamp: float
) -> None:
    def dated(offset: int, time: float, model: str) -> Record:
        plain = message(offset, model=model, time="2027-01-15T07:00:00Z")
        return record(offset, plain, timestamp=int(1_000 * time))

    topic = {0: [dated(0, NOW - 3_600, "m"), dated(1, stamp, "m"), dated(2, stamp, "n")]}
    expected = undisturbed(connection, topic)
    site = Site(clone(connection), MODELS)
    owner = Owner(site, topic)
    for _ in topic[0]:
        owner.take(0, 1)
        owner.flush(0)
        owner.restart()
    owner.finish()
    for model, facts in zip(MODELS, expected, strict=True):
        assert_same_facts(site.facts(model), facts)


@pytest.mark.parametrize("stamp", [NOW - 1e6, NOW + 1e6])
def test_a_model_that_is_behind_reads_misdated_records_as_all_did(
    connection: Connection, stamp: float
) -> None:
    plain = [message(n, model="n", time="2027-01-15T07:00:00Z") for n in range(4)]
    stamps = [NOW - 7_200, stamp, NOW - 3_600, stamp]
    topic = {0: [record(n, plain[n], timestamp=int(1_000 * time)) for n, time in enumerate(stamps)]}
    expected = undisturbed(connection, topic)
    site = Site(clone(connection), MODELS)
    both = site.prediction_step()
    both.assign(0, 0)
    both.process(0, topic[0][:1], NOW)
    both.flush(0, NOW)
    # The first model goes on alone, for a while.
    alone = site.prediction_step(models=["m"])
    alone.assign(0, 0)
    alone.process(0, topic[0][1:3], NOW)
    alone.flush(0, NOW + 100)
    Owner(site, topic).finish()
    for model, facts in zip(MODELS, expected, strict=True):
        assert_same_facts(site.facts(model), facts)


step_of_life = st.tuples(
    st.sampled_from(["take", "take", "take", "flush", "flush", "kill"]),
    st.sampled_from(PARTITIONS),
    st.integers(1, 9),
)


@seeded
@given(life=st.lists(step_of_life, max_size=30))
def test_kills_at_any_point_leave_every_fact_as_without_them(
    connection: Connection, life: list[tuple[str, int, int]]
) -> None:
    topic = {partition: stream(partition, 40) for partition in PARTITIONS}
    site = Site(clone(connection), MODELS, bounds=BOUNDS)
    owner = Owner(site, topic)
    for what, partition, count in life:
        if what == "take":
            owner.take(partition, count)
        elif what == "flush":
            assert owner.flush(partition)
        else:
            owner.restart()
    owner.finish()
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=BOUNDS), strict=True):
        assert_same_facts(site.facts(model), expected)


@seeded
@given(life=st.lists(step_of_life, max_size=30))
def test_kills_leave_every_sum_as_without_them_where_an_attribute_has_too_many_values(
    connection: Connection, life: list[tuple[str, int, int]]
) -> None:
    # Which values have rows depends on where batches end; what all of them add up to does not.
    bounds = BOUNDS | {"attribute_values": 3}
    topic = {0: stream(0, 40, regions=8)}
    site = Site(clone(connection), MODELS, bounds=bounds)
    owner = Owner(site, topic)
    for what, _, count in life:
        if what == "take":
            owner.take(0, count)
        elif what == "flush":
            assert owner.flush(0)
        else:
            owner.restart()
    owner.finish()
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=bounds), strict=True):
        facts = site.facts(model)
        assert facts.offsets == expected.offsets
        assert summed_over_values(facts) == summed_over_values(expected)
        assert len({value for _, attribute, _, value, _ in facts.counts if attribute}) <= 4


def summed_over_values(facts: Facts) -> Counter[tuple[Any, ...]]:
    """Counts by partition, attribute, columns and column."""
    summed: Counter[tuple[Any, ...]] = Counter()
    for (partition, attribute, columns, _, column), count in facts.counts.items():
        summed[partition, attribute, columns, column] += count
    return summed


@seeded
@given(
    life=st.lists(
        st.tuples(
            st.sampled_from(["take", "take", "take", "flush", "flush", "kill", "save", "restore", "empty"]),
            st.sampled_from([0, 1]),
            st.sampled_from(PARTITIONS),
            st.integers(1, 9),
        ),
        max_size=40,
    )
)
@example(
    life=[
        ("save", 0, 0, 1),
        ("take", 0, 0, 9),
        ("take", 0, 1, 9),
        ("flush", 0, 0, 1),
        ("restore", 0, 0, 1),
        ("flush", 0, 1, 1),
        ("take", 1, 1, 9),
    ]
)
def test_two_owners_at_once_and_a_redis_that_forgets_leave_every_fact_as_without_them(
    connection: Connection, life: list[tuple[str, int, int, int]]
) -> None:
    topic = {partition: stream(partition, 40) for partition in PARTITIONS}
    site = Site(clone(connection), MODELS, bounds=BOUNDS)
    owners = [Owner(site, topic), Owner(site, topic)]
    saved: dict[bytes, bytes] = {}
    for what, who, partition, count in life:
        if what == "take":
            owners[who].take(partition, count)
        elif what == "flush":
            owners[who].flush(partition)
        elif what == "kill":
            owners[who].restart()
        elif what == "save":
            saved = save(site.connection)
        else:
            restore(site.connection, saved if what == "restore" else {})
    for owner in owners:
        owner.finish()
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=BOUNDS), strict=True):
        assert_same_facts(site.facts(model), expected)


def test_a_shard_is_loaded_as_it_was_flushed(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds=BOUNDS)
    owner = Owner(site, {0: stream(0, 60)})
    owner.take(0, 60)
    owner.flush(0)
    kept = owner.step.models["m"].owned[0].shard
    loaded = site.shards("m").load(0)
    assert loaded.is_stored
    assert loaded.drawn_seen == 0
    assert loaded.next_offset == kept.next_offset == 60
    assert loaded.traffic.landmark == kept.traffic.landmark
    for attribute, table in kept.traffic.tables.items():
        again = loaded.traffic.tables[attribute]
        assert again.names == table.names
        for columns in table.specs:
            for found, wanted in zip(
                vars(again.block(columns)).values(), vars(table.block(columns)).values(), strict=True
            ):
                np.testing.assert_array_equal(found, wanted)
    assert loaded.pools.holders == kept.pools.holders
    for pool_id, pool in kept.pools.groupings.items():
        sketches = loaded.pools.groupings[pool_id].sketches()
        assert sketches.keys() == pool.sketches().keys()
        for group, sketch in pool.sketches().items():
            assert sketches[group].encode() == sketch.encode()
    assert loaded.probability_sums.keys() == kept.probability_sums.keys()
    for predicted, sums in kept.probability_sums.items():
        np.testing.assert_array_equal(loaded.probability_sums[predicted], sums)


def test_a_partition_without_a_shard_loads_an_empty_one(connection: Connection) -> None:
    shard = Site(connection, MODELS).shards("m").load(5)
    assert not shard.is_stored
    assert shard.next_offset == shard.drawn_seen == 0
    assert shard.traffic.predictions == 0
    assert not shard.pools.holders


def test_a_flush_writes_the_pages_of_rows_that_changed_and_no_other(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds=BOUNDS)
    owner = Owner(site, {0: [record(i, message(i, attributes={"region": f"r{i}"})) for i in range(201)]})
    owner.take(0, 200)
    owner.flush(0)
    before = connection.client.hgetall(site.keys("m").traffic(0))
    owner.take(0, 1)
    owner.flush(0)
    after = connection.client.hgetall(site.keys("m").traffic(0))
    changed = {field.split(b"\0")[:3:2][0] for field in after if after[field] != before.get(field)}
    pages = sum(after[field] != before.get(field) for field in after)
    assert changed == {b"names", b"rows"}
    # One page of all traffic, of region by bins and of region by names; the last rows of each.
    assert pages == 3 < len(after)


def test_tables_of_groupings_that_are_gone_leave_redis_and_new_ones_begin_beside_the_others(
    connection: Connection,
) -> None:
    def site_by(*attributes: str) -> Site:
        groupings = {name: {"by": "attribute", "attribute": name} for name in attributes}
        return Site(connection, {"m": MODELS["m"] | {"groupings": groupings, "assessments": {}}})

    def counts_by(attributes: str) -> dict[str, int]:
        tables = site_by(*attributes).reader("m").traffic().traffic.tables
        return {name: int(next(iter(t.blocks.values())).counts.sum()) for name, t in tables.items()}

    topic = {0: [record(i, message(i, attributes={"a": "x", "b": "y"})) for i in range(30)]}
    first = Owner(site_by("a"), topic)
    first.take(0, 10)
    first.flush(0)
    second = Owner(site_by("a", "b"), topic)
    second.take(0, 10)
    second.flush(0)
    assert counts_by("ab") == {"": 20, "a": 20, "b": 10}
    third = Owner(site_by("b"), topic)
    third.take(0, 10)
    third.flush(0)
    assert counts_by("b") == {"": 30, "b": 20}
    assert counts_by("ab") == {"": 30, "a": 0, "b": 20}


def test_an_owner_that_was_replaced_is_refused_and_changes_nothing(connection: Connection) -> None:
    topic = {0: stream(0, 40)}
    site = Site(connection, MODELS, bounds=BOUNDS)
    zombie, owner = Owner(site, topic), Owner(site, topic)
    zombie.take(0, 20)
    owner.take(0, 30)
    assert owner.flush(0)
    before = site.facts("m")
    with pytest.raises(FlushRefused):
        zombie.step.flush(0, NOW)
    assert_same_facts(site.facts("m"), before)


def test_two_owners_that_both_begin_a_new_shard_cannot_both_store_it(connection: Connection) -> None:
    site = Site(connection, MODELS)
    store, shard = shard_store(site)
    other_store, other_shard = shard_store(site)
    add(shard, ["a"])
    add(other_shard, ["a"])
    flush(store, shard, 1)
    with pytest.raises(FlushRefused):
        flush(other_store, other_shard, 1)


def test_an_owner_that_was_replaced_is_refused_where_no_prediction_has_come_since(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS, bounds=BOUNDS)
    store, shard = shard_store(site)
    add(shard, ["a", "b"])
    flush(store, shard, 2)
    zombie_store, zombie = shard_store(site)
    owner_store, owner = shard_store(site)
    draw(connection, site, "a")
    assert flush(owner_store, owner, 2) == 1
    assert flush(owner_store, owner, 2) == 1
    before = save(connection)
    with pytest.raises(FlushRefused):
        flush(zombie_store, zombie, 2)
    assert save(connection) == before


def test_a_flush_whose_reply_was_lost_is_recognised_as_done(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    topic = {0: stream(0, 40)}
    site = Site(connection, MODELS, bounds=BOUNDS)
    with wired(redis_server, connection) as (wire, far):
        step = site.prediction_step(far)
        step.assign(0, 0)
        step.process(0, topic[0][:20], NOW)
        step.flush(0, NOW)
        step.process(0, topic[0][20:], NOW)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            step.flush(0, NOW)
        applied = save(connection)
        wire.become("whole")
        assert step.flush(0, NOW) == 40
    assert site.keys("m").shard(0).encode() in applied
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=BOUNDS), strict=True):
        assert_same_facts(site.facts(model), expected)


def test_a_shard_that_moved_on_after_a_lost_reply_still_counts_everything_once(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    topic = {0: stream(0, 40)}
    site = Site(connection, MODELS, bounds=BOUNDS)
    with wired(redis_server, connection) as (wire, far):
        owner = Owner(site, topic)
        owner.step = site.prediction_step(far)
        owner.take(0, 10)
        owner.flush(0)
        owner.take(0, 10)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            owner.flush(0)
        wire.become("whole")
        owner.take(0, 10)
        owner.finish()
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=BOUNDS), strict=True):
        assert_same_facts(site.facts(model), expected)


def test_an_emptied_redis_is_filled_again_by_reading_again(connection: Connection) -> None:
    topic = {partition: stream(partition, 40) for partition in PARTITIONS}
    site = Site(connection, MODELS, bounds=BOUNDS)
    owner = Owner(site, topic)
    owner.take(0, 20)
    owner.flush(0)
    restore(connection, {})
    owner.take(0, 20)
    assert not owner.flush(0)
    assert owner.positions[0] == 0
    owner.finish()
    for model, expected in zip(MODELS, undisturbed(connection, topic, bounds=BOUNDS), strict=True):
        assert_same_facts(site.facts(model), expected)


def test_a_redis_restored_from_an_older_state_is_read_up_from_there(connection: Connection) -> None:
    topic = {0: stream(0, 40)}
    site = Site(connection, MODELS, bounds=BOUNDS)
    owner = Owner(site, topic)
    owner.take(0, 10)
    owner.flush(0)
    backup = save(connection)
    owner.take(0, 20)
    owner.flush(0)
    restore(connection, backup)
    owner.take(0, 1)
    assert not owner.flush(0)
    assert owner.positions[0] == 10


def test_offsets_beyond_two_to_the_53_are_exact(connection: Connection) -> None:
    site = Site(connection, MODELS)
    store, shard = shard_store(site)
    first = 2**62 + 1
    flush(store, shard, first)
    flush(store, shard, first + 1)
    assert store.load(0).next_offset == first + 1
    shard.next_offset = first
    with pytest.raises(FlushRefused):
        flush(store, shard, first + 2)


def draw(connection: Connection, site: Site, item: str) -> None:
    """What issuing a label request for a pooled item does to the pool."""
    item_hash = int.from_bytes(pooled(connection, site)[item], "little")
    field = pool_field(asked_pools(site.settings, "m", site.space("m"))["all"], "all")
    connection.client.rpush(site.keys("m").drawn(0), field + pack_hash(item_hash))


def in_memory(shard: Shard) -> int:
    return len(shard.pools.holders)


def test_drawn_items_leave_the_pool_of_their_owner_and_then_that_of_redis(connection: Connection) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, ["a", "b", "c", "d"])
    flush(store, shard, 4)
    assert len(pooled(connection, site)) == in_memory(shard) == 4
    draw(connection, site, "a")
    draw(connection, site, "c")
    assert flush(store, shard, 5) == 2
    assert in_memory(shard) == 2
    assert flush(store, shard, 6) == 2
    assert pooled(connection, site).keys() == {"b", "d"}


def test_drawn_items_leave_the_pool_of_redis_though_no_prediction_comes(connection: Connection) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, ["a", "b"])
    flush(store, shard, 2)
    draw(connection, site, "a")
    assert flush(store, shard, 2) == 1
    assert flush(store, shard, 2) == 1
    assert pooled(connection, site).keys() == {"b"}
    assert connection.client.llen(site.keys("m").drawn(0)) == 0


def test_a_full_group_that_gave_items_away_takes_none_that_is_lower_than_what_it_dropped(
    connection: Connection,
) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, ["a", "b", "c", "d", "e", "f", "g"])
    flush(store, shard, 7)
    items = pooled(connection, site)
    assert len(items) == 4
    for item in items:
        draw(connection, site, item)
    assert flush(store, shard, 8) == 4
    add(shard, ["old"], time=NOW - 1e8)
    add(shard, ["new"], time=NOW + 1e8)
    assert flush(store, shard, 10) == 4
    assert pooled(connection, site).keys() == {"new"}


def test_a_drawn_item_is_reported_until_the_owner_has_heard_of_it_and_not_again(
    connection: Connection,
) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    drawn = site.keys("m").drawn(0)
    add(shard, ["a", "b", "c"])
    flush(store, shard, 3)
    draw(connection, site, "a")
    assert flush(store, shard, 4) == 1
    draw(connection, site, "b")
    assert connection.client.llen(drawn) == 2
    assert flush(store, shard, 5) == 2
    assert connection.client.llen(drawn) == 1
    draw(connection, site, "c")
    assert flush(store, shard, 6) == 3
    assert in_memory(shard) == 0
    assert flush(store, shard, 7) == 3
    assert connection.client.llen(drawn) == 0


def test_a_drawn_item_that_left_the_pool_meanwhile_frees_no_other(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds={"pool_items": 2})
    store, shard = shard_store(site)
    add(shard, ["old"])
    flush(store, shard, 1)
    draw(connection, site, "old")
    add(shard, ["new"], time=NOW + 1e8)
    assert flush(store, shard, 2) == 1
    assert in_memory(shard) == 1
    assert pooled(connection, site).keys() == {"new"}


def test_an_item_that_was_drawn_for_a_value_is_not_drawn_again_where_the_value_lost_its_row_since(
    connection: Connection,
) -> None:
    regions = {"grouping": "region", "budget": {"labels": 5}}
    site = Site(
        connection, {"m": MODELS["m"] | {"assessments": {"regions": regions}}}, bounds={"attribute_values": 1}
    )
    step, (pool_id,) = site.prediction_step(), site.shards("m").load(0).pools.groupings
    step.assign(0, 0)
    step.process(0, [record(0, message("old", attributes={"region": "r0"}))], NOW)
    step.flush(0, NOW)
    (item,) = map(unpack_hash, pooled(connection, site).values())
    connection.client.rpush(site.keys("m").drawn(0), pool_field(pool_id, "r0") + pack_hash(item))
    step.process(0, [record(1, *(message(i, attributes={"region": "r1"}) for i in range(3)))], NOW)
    step.flush(0, NOW)
    assert Drawer(site.requests("m"), [0], pool_id).draw([OTHER]) == [None]


def test_a_grouping_that_asks_no_more_leaves_no_item(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds=BOUNDS)
    site.take_in(stream(0, 40))
    fields = connection.client.hkeys(site.keys("m").pool(0))
    assert {field.split(b":")[0] for field in fields} == {b"all", b"region"}
    later = Site(connection, {"m": MODELS["m"] | {"assessments": {}}, "n": MODELS["n"]}, bounds=BOUNDS)
    Owner(later, {0: stream(0, 40)}).finish()
    assert not connection.client.exists(later.keys("m").pool(0), later.keys("m").items(0))


def test_an_owner_that_loads_a_shard_has_seen_what_was_drawn_from_it(connection: Connection) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, ["a", "b"])
    flush(store, shard, 2)
    draw(connection, site, "a")
    loaded = store.load(0)
    assert loaded.drawn_seen == 1
    assert in_memory(loaded) == 1


def test_a_flush_after_a_lost_reply_shows_what_was_drawn_meanwhile(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    with wired(redis_server, connection) as (wire, far):
        store = site.shards("m", far)
        shard = store.load(0)
        add(shard, ["a", "b"])
        flush(store, shard, 2)
        add(shard, ["c"])
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            flush(store, shard, 3)
        wire.become("whole")
        draw(connection, site, "c")
        assert flush(store, shard, 3) == 1
    assert in_memory(shard) == 2


def test_a_redis_that_lost_draws_the_owner_has_seen_is_refused(connection: Connection) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, ["a", "b"])
    flush(store, shard, 2)
    backup = save(connection)
    draw(connection, site, "a")
    loaded = store.load(0)
    restore(connection, backup)
    with pytest.raises(FlushRefused):
        flush(store, loaded, 3)


def test_the_pool_holds_the_most_recent_where_traffic_decays(connection: Connection) -> None:
    site = Site(connection, ONE_POOL, bounds=FOUR_ITEMS)
    store, shard = shard_store(site)
    add(shard, [f"old{i}" for i in range(30)], time=NOW - 1e8)
    add(shard, ["p", "q", "r", "s"])
    flush(store, shard, 34)
    assert pooled(connection, site).keys() == {"p", "q", "r", "s"}


def test_all_keys_of_a_model_share_a_hash_tag(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds=BOUNDS)
    Owner(site, {0: stream(0, 40)}).finish()
    for key in connection.client.scan_iter(f"{connection.prefix}:*"):
        assert key.split(b"{")[1].split(b"}")[0] in {b"m", b"n"}


def test_another_half_life_of_draws_begins_pools_and_keeps_traffic(connection: Connection) -> None:
    def site(hours: float | None) -> Site:
        return Site(connection, {"m": ONE_POOL["m"] | {"draw_half_life_hours": hours}})

    def item(offset: int) -> Record:
        return record(offset, message(offset, time="2027-01-15T07:00:00Z"))

    site(24.0).take_in([item(0), item(1)])
    assert pooled(connection, site(24.0)).keys() == {"0", "1"}
    for offset, hours in enumerate((6.0, None), start=2):
        site(hours).take_in([item(offset)])
        assert pooled(connection, site(hours)).keys() == {str(offset)}
        assert len(connection.client.hkeys(site(hours).keys("m").pool(0))) == 1
        assert site(hours).reader("m").traffic().traffic.predictions == offset + 1
