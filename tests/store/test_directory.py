"""The directory of combinations: one numbering for all partitions, which no owner trusts blindly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from store_site import (
    NOW,
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

from service.cells import OTHER
from service.embedded import EmbeddedRedis
from service.errors import FlushRefused, Unavailable
from service.store.connection import Connection

MODELS = {
    "m": {"classes": ["cat", "dog"], "groupings": {"region": {"by": "attribute", "attribute": "region"}}}
}
FOLDED = (OTHER,)


def registered(site: Site) -> list[str]:
    texts: list[bytes] = site.connection.client.lrange(site.keys("m").combinations, 0, -1)
    return [text.decode() for text in texts]


def records(regions: str, first: int = 0) -> list[Record]:
    """One record for every letter, in the region of that name."""
    return [
        record(first + i, message(f"{region}{first + i}", attributes={"region": region}))
        for i, region in enumerate(regions)
    ]


def assert_as_undisturbed(site: Site, topic: dict[int, Sequence[Record]]) -> None:
    clean = Site(Connection(site.connection.client, f"{site.connection.prefix}.clean"), MODELS)
    Owner(clean, topic).finish()
    assert_same_facts(site.facts("m"), clean.facts("m"))


def test_number_0_is_the_folded_combination(connection: Connection) -> None:
    site = Site(connection, MODELS)
    directory = site.directory("m")
    directory.load(limit=9)
    assert directory.directory.combinations == [FOLDED]
    assert registered(site) == ['["__other__"]']


def test_every_process_numbers_combinations_alike(connection: Connection) -> None:
    site = Site(connection, MODELS)
    first, second = site.directory("m"), site.directory("m")
    first.load(limit=9)
    second.load(limit=9)
    assert first.register(("north",), limit=9)
    assert second.register(("south",), limit=9)
    assert second.directory.number(("south",)) is None, "nothing is added before it is folded again"
    assert second.register(("south",), limit=9)
    assert first.register(("west",), limit=9)
    assert first.register(("west",), limit=9)
    assert first.directory.combinations == [FOLDED, ("north",), ("south",), ("west",)]
    assert second.directory.combinations == first.directory.combinations[:3]


def test_a_full_directory_does_not_grow(connection: Connection) -> None:
    site = Site(connection, MODELS)
    directory = site.directory("m")
    directory.load(limit=2)
    assert directory.register(("north",), limit=2)
    assert directory.register(("south",), limit=2)
    assert directory.directory.combinations == [FOLDED, ("north",)]
    assert len(registered(site)) == 2


def test_a_registration_whose_reply_was_lost_is_learnt_and_not_made_again(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    site = Site(connection, MODELS)
    with wired(redis_server, connection) as (wire, far):
        directory = site.directory("m", far)
        directory.load(limit=9)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            directory.register(("north",), limit=9)
        wire.become("whole")
        assert directory.register(("north",), limit=9)
    assert directory.directory.number(("north",)) == 1
    assert len(registered(site)) == 2


def test_a_directory_that_cannot_be_loaded_stays_as_it_was(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    site = Site(connection, MODELS)
    with wired(redis_server, connection) as (wire, far):
        directory = site.directory("m", far)
        directory.load(limit=9)
        directory.register(("north",), limit=9)
        wire.become("cut")
        with pytest.raises(Unavailable):
            directory.load(limit=9)
    assert directory.directory.combinations == [FOLDED, ("north",)]


@pytest.mark.parametrize("others", [(), ("north",), ("south",), ("west", "south"), ("east", "dusk", "north")])
def test_nothing_is_registered_in_a_redis_that_has_forgotten(
    connection: Connection, others: tuple[str, ...]
) -> None:
    site = Site(connection, MODELS)
    knows_more = site.directory("m")
    knows_more.load(limit=9)
    for region in ("north", "west"):
        knows_more.register((region,), limit=9)
    restore(connection, {})
    newcomer = site.directory("m")
    newcomer.load(limit=9)
    for region in others:
        newcomer.register((region,), limit=9)
    before = registered(site)
    assert not knows_more.register(("south",), limit=9)
    assert registered(site) == before


def test_partitions_of_one_process_and_of_another_share_the_directory(connection: Connection) -> None:
    topic = {0: records("abcabd"), 1: records("bceaf"), 2: records("gacb")}
    site = Site(connection, MODELS)
    one, other = Owner(site, topic), Owner(site, topic)
    for count in range(6):
        one.take(0, 1)
        other.take(2, 1)
        one.take(1, 1)
        if count == 2:
            assert one.flush(0)
            assert other.flush(2)
    for owner, partition in [(one, 0), (one, 1), (other, 2)]:
        assert owner.flush(partition)
    assert len(registered(site)) == len(set(registered(site))) == 8
    assert_as_undisturbed(site, topic)


def test_an_owner_whose_combinations_are_lost_is_refused(connection: Connection) -> None:
    topic = {0: records("ab")}
    site = Site(connection, MODELS)
    owner = Owner(site, topic)
    owner.own(0)
    backup = save(connection)
    owner.take(0, 2)
    restore(connection, backup)
    with pytest.raises(FlushRefused):
        owner.step.flush(0, NOW)
    assert registered(site) == ['["__other__"]']


def test_an_owner_whose_combinations_have_other_numbers_now_is_refused(connection: Connection) -> None:
    topic = {0: records("ab"), 1: records("ba")}
    site = Site(connection, MODELS)
    owner, other = Owner(site, topic), Owner(site, topic)
    owner.own(0)
    backup = save(connection)
    owner.take(0, 2)
    restore(connection, backup)
    other.take(1, 2)
    assert other.flush(1)
    with pytest.raises(FlushRefused):
        owner.step.flush(0, NOW)


def test_what_one_partition_has_confirmed_does_not_vouch_for_another(connection: Connection) -> None:
    topic = {0: records("a"), 1: records("a")}
    site = Site(connection, MODELS)
    owner = Owner(site, topic)
    owner.own(0)
    owner.own(1)
    backup = save(connection)
    owner.take(0, 1)
    owner.take(1, 1)
    assert owner.flush(0)
    restore(connection, backup)
    assert not owner.flush(1)


def test_partitions_beside_one_that_finds_the_directory_changed_are_loaded_again_too(
    connection: Connection,
) -> None:
    topic = {0: records("ab"), 1: records("abc"), 2: records("b")}
    site = Site(connection, MODELS)
    owner, other = Owner(site, topic), Owner(site, topic)
    for partition in (0, 1):
        owner.own(partition)
    backup = save(connection)
    owner.take(0, 2)
    owner.take(1, 2)
    restore(connection, backup)
    other.take(2, 1)
    assert other.flush(2)
    assert not owner.flush(0)
    assert not owner.flush(1)
    owner.finish()
    assert_as_undisturbed(site, topic)


def test_a_new_combination_in_an_emptied_redis_leads_to_reading_again(connection: Connection) -> None:
    topic = {0: records("abc")}
    site = Site(connection, MODELS)
    owner = Owner(site, topic)
    owner.take(0, 2)
    assert owner.flush(0)
    restore(connection, {})
    owner.take(0, 1)
    assert not owner.flush(0)
    owner.finish()
    assert_as_undisturbed(site, topic)
