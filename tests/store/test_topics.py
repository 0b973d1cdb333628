"""Stored offsets are of one topic; another one of its name does not inherit them."""

from __future__ import annotations

import pytest
from store_site import NOW, Site, message, record

from service.domain.errors import FlushRefused
from service.store.connection import Connection
from service.store.topics import TopicProgress

MODELS = {
    "m": {"classes": ["cat", "dog", "owl"]},
    "n": {"classes": ["cat", "dog"]},
}
FIRST, SECOND = "a-topic-id", "another-topic-id"


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS)


@pytest.fixture
def shards(site: Site) -> TopicProgress:
    return progress(site)


def progress(site: Site) -> TopicProgress:
    return TopicProgress(
        site.connection, lambda partition: [site.keys(name).shard(partition) for name in MODELS]
    )


def batch(first: int, count: int) -> list[object]:
    return [record(first + i, message(f"{first}-{i}")) for i in range(count)]


def counted(site: Site) -> int:
    return site.reader("m").traffic().traffic.predictions


def test_the_first_topic_that_is_seen_is_adopted_before_and_after_anything_is_stored(
    site: Site, shards: TopicProgress
) -> None:
    assert shards.bind_topic(0, FIRST, 0) is None
    site.take_in(batch(0, 10))
    assert shards.bind_topic(0, FIRST, 0) is None
    assert site.facts("m").offsets == {0: 10}


def test_offsets_from_before_topics_had_ids_are_kept(site: Site, shards: TopicProgress) -> None:
    site.take_in(batch(0, 10))
    assert shards.bind_topic(0, FIRST, 0) is None
    assert site.prediction_step().assign(0, 0) == 10


@pytest.mark.parametrize("first_offset", [0, 3])
def test_another_topic_is_read_from_its_beginning_and_adds_to_what_was_counted(
    site: Site, shards: TopicProgress, first_offset: int
) -> None:
    shards.bind_topic(0, FIRST, 0)
    site.take_in(batch(0, 10))
    assert shards.bind_topic(0, SECOND, first_offset) == 10
    assert shards.bind_topic(0, SECOND, first_offset) is None
    step = site.prediction_step()
    assert step.assign(0, 0) == first_offset
    step.process(0, batch(first_offset, 4), NOW)
    step.flush(0, NOW)
    assert counted(site) == 14
    assert site.facts("m").offsets == {0: first_offset + 4}


def test_an_owner_from_before_the_other_topic_is_refused(site: Site, shards: TopicProgress) -> None:
    shards.bind_topic(0, FIRST, 0)
    site.take_in(batch(0, 10))
    zombie = site.prediction_step()
    zombie.assign(0, 0)
    zombie.process(0, batch(10, 5), NOW)
    shards.bind_topic(0, SECOND, 0)
    with pytest.raises(FlushRefused):
        zombie.flush(0, NOW)
    assert counted(site) == 10


def test_a_rewound_partition_is_read_again_from_there(site: Site, shards: TopicProgress) -> None:
    site.take_in(batch(0, 10))
    shards.rewind(0, 7)
    shards.rewind(0, 9)
    step = site.prediction_step()
    assert step.assign(0, 0) == 7
    step.process(0, batch(7, 2), NOW)
    step.flush(0, NOW)
    assert counted(site) == 12


def test_a_partition_that_has_nothing_stored_is_not_rewound(site: Site, shards: TopicProgress) -> None:
    shards.rewind(0, 7)
    assert site.prediction_step().assign(0, 3) == 3


def test_labels_offsets_give_way_too(site: Site) -> None:
    labels = TopicProgress(site.connection, lambda partition: [site.keys("m").labels(partition)])
    labels.bind_topic(0, FIRST, 0)
    site.labels("m").store_offset(0, 10, batches=0)
    assert labels.bind_topic(0, SECOND, 2) == 10
    assert site.labels("m").progress(0) == (2, 0)


def test_partitions_beyond_those_that_were_there_at_first_were_added_later(shards: TopicProgress) -> None:
    assert [shards.added_later(partition, 4) for partition in range(4)] == [False] * 4
    assert [shards.added_later(partition, 6) for partition in range(6)] == [False] * 4 + [True] * 2
