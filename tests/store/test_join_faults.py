"""Whatever fails, every item that waits for a label becomes one outcome, with its latest label."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from join_site import BEGIN, CLOSED_AT, DAY, HOUR, JoinSite, iso
from redis_cluster import EmbeddedRedisCluster
from store_site import Owner, Record, message, record, restore, save, wired

from service.app.wiring import cohort_store
from service.demo.servers import EmbeddedRedis
from service.domain.errors import FenceRefused, FlushRefused, Unavailable
from service.store.connection import Connection
from service.store.records import ABSENT

LAST_DAY = BEGIN + HOUR + 10 * DAY
Server = EmbeddedRedis | EmbeddedRedisCluster


@pytest.fixture
def site(connection: Connection) -> JoinSite:
    return JoinSite(connection)


def predictions(count: int, *, partition: int = 0, at: float = BEGIN) -> list[Record]:
    """Of items that are named by their partition and number."""
    return [
        record(n, message(f"{partition}-{n}"), timestamp=int((at + n) * 1000), partition=partition)
        for n in range(count)
    ]


def label(offset: int, item: str, true_class: str | None, time: float, *, partition: int = 0) -> Record:
    value = {"model": "m", "item_id": item, "time": iso(time)}
    value |= {"true_class": true_class} if true_class else {"kind": "retraction"}
    return Record(offset, json.dumps(value).encode(), timestamp=int(time * 1000), partition=partition)


def firsts(site: JoinSite) -> Counter[str]:
    """How many outcomes every item has, without their revisions."""
    return Counter(entry.fact.item_id for entry in site.entries() if entry.of == entry.position)


def test_a_flush_whose_reply_was_lost_stores_predictions_once(
    redis_server: Server, connection: Connection, site: JoinSite
) -> None:
    with wired(redis_server, connection) as (wire, far):
        step = site.prediction_step(far)
        step.assign(0, 0)
        step.process(0, predictions(10), BEGIN)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            step.flush(0, BEGIN)
        wire.become("whole")
        step.flush(0, BEGIN)
    assert (site.cohort().items, site.waiting(), len(site.lists())) == (10, 10, 10)


def test_an_owner_that_lost_its_partition_stores_nothing(site: JoinSite) -> None:
    zombie, topic = site.prediction_step(), predictions(10)
    zombie.assign(0, 0)
    zombie.process(0, topic, BEGIN)
    site.take_in(topic[:5])
    with pytest.raises(FlushRefused):
        zombie.flush(0, BEGIN)
    assert site.cohort().items == 5


def test_predictions_that_were_not_flushed_are_read_again_after_a_restart(site: JoinSite) -> None:
    topic = {0: predictions(20)}
    owner = Owner(site, topic)
    owner.take(0, 5)
    owner.flush(0)
    owner.take(0, 5)
    owner.restart()
    owner.finish()
    assert (site.cohort().items, site.waiting(), len(site.lists())) == (20, 20, 20)


def test_labels_whose_reply_was_lost_are_joined_once(
    redis_server: Server, connection: Connection, site: JoinSite
) -> None:
    site.take_in(predictions(3))
    batch = [label(n, f"0-{n}", "cat", BEGIN + 30) for n in range(3)]
    with wired(redis_server, connection) as (wire, far):
        step = site.label_step(far)
        step.assign(0, 0)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            step.process(0, batch, BEGIN + 60)
        wire.become("whole")
        step.process(0, batch, BEGIN + 60)
        with pytest.raises(FlushRefused):
            step.flush(0, BEGIN + 60)
    assert (site.cohort().items, site.cohort().labels) == (3, 3)
    assert site.close() == 3


def test_labels_that_a_second_consumer_reads_again_change_nothing(site: JoinSite) -> None:
    site.take_in(predictions(1))
    answer, correction = label(0, "0-0", "cat", BEGIN + 30), label(1, "0-0", "dog", BEGIN + 40)
    first, second = site.label_step(), site.label_step()
    for step in (first, second):
        step.assign(0, 0)
    first.process(0, [answer, correction], BEGIN + 60)
    second.process(0, [answer], BEGIN + 60)
    site.close()
    second.process(0, [answer, correction], CLOSED_AT)
    assert [(e.fact.item_id, e.label.true_class) for e in site.entries()] == [("0-0", "dog")]


def test_a_former_leader_closes_nothing(site: JoinSite) -> None:
    site.predict("a")
    site.predict("b", at=BEGIN + HOUR)
    site.label("a")
    assert site.close(CLOSED_AT, epoch=2) == 1
    with pytest.raises(FenceRefused):
        site.close(LAST_DAY + HOUR, epoch=1)
    assert site.outcomes() == {"a": "cat"}
    assert site.waiting() == 2


def test_a_new_leader_goes_on_in_the_middle_of_a_cohort(site: JoinSite) -> None:
    site.take_in(predictions(1_200))
    assert site.close(LAST_DAY - 1) == 0
    before = LAST_DAY + 1 - HOUR
    site.label_all([(f"0-{n}", "cat") for n in range(1_200)], at=before)
    assert site.close(CLOSED_AT, epoch=1, most=1) == 500
    assert site.cohort().state == "c"
    assert site.close(CLOSED_AT, epoch=2) == 700
    with pytest.raises(FenceRefused):
        site.close(LAST_DAY, epoch=1)
    assert firsts(site) == Counter({f"0-{n}": 1 for n in range(1_200)})


def test_a_label_that_comes_in_the_middle_of_the_close_counts(site: JoinSite) -> None:
    site.take_in(predictions(1_200))
    site.label_all([(f"0-{n}", "cat") for n in range(1_190)], at=BEGIN + 60)
    site.close(CLOSED_AT, most=1)
    assert site.label("0-1199", "dog", at=CLOSED_AT) == "joined"
    assert site.label("0-0", "dog", at=CLOSED_AT) == "revised"
    site.close(CLOSED_AT)
    assert (site.outcomes()["0-1199"], site.outcomes()["0-0"]) == ("dog", "dog")
    assert set(firsts(site).values()) == {1}


def test_a_prediction_that_comes_in_the_middle_of_the_close_becomes_an_outcome(site: JoinSite) -> None:
    site.take_in(predictions(1_200))
    site.label_all([(f"0-{n}", "cat") for n in range(1_200)], at=BEGIN + 60)
    site.close(CLOSED_AT, most=1)
    site.take_in(predictions(3, partition=1), 1)
    site.close(CLOSED_AT)
    assert len(site.entries()) == 1_203


def test_a_cohort_that_a_late_prediction_opens_as_it_is_removed_stays(site: JoinSite) -> None:
    site.predict("a")
    keys, hour = site.keys("m"), int(BEGIN // HOUR)
    names = [keys.fence, keys.cohorts, keys.waiting, keys.outcomes, keys.cohort(hour), keys.closed(hour)]
    reply = site.connection.run("advance_cohort", names, [1, 100, hour, "remove", 500, 1_000, b""])
    assert reply == [0, 0]
    assert (site.cohort().items, site.waiting()) == (1, 1)


def test_a_close_whose_reply_was_lost_adds_no_outcome_twice(
    redis_server: Server, connection: Connection, site: JoinSite
) -> None:
    site.take_in(predictions(700))
    with wired(redis_server, connection) as (wire, far):
        cohorts = cohort_store(site.settings, far, "m")
        assert cohorts is not None
        assert cohorts.advance(cohorts.summary(), epoch=1, now=CLOSED_AT) == 0
        for _ in range(2):
            wire.become("loses_replies")
            with pytest.raises(Unavailable):
                cohorts.advance(cohorts.summary(), epoch=1, now=LAST_DAY - 1 + 2)
            wire.become("whole")
            cohorts.advance(cohorts.summary(), epoch=1, now=LAST_DAY + 1)
    assert firsts(site) == Counter({f"0-{n}": 1 for n in range(700)})
    assert (site.waiting(), site.lists()) == (0, [])


def test_a_redis_that_was_restored_catches_up(connection: Connection, site: JoinSite) -> None:
    topic, answers = predictions(20), [label(n, f"0-{n}", "cat", BEGIN + 30) for n in range(20)]
    site.take_in(topic[:10])
    labels = site.label_step()
    labels.assign(0, 0)
    labels.process(0, answers[:5], BEGIN + 60)
    saved = save(connection)
    site.take_in(topic)
    labels.process(0, answers[5:], BEGIN + 60)
    site.close()
    restore(connection, saved)
    site.take_in(topic)
    again = site.label_step()
    again.assign(0, 0)
    again.process(0, answers, CLOSED_AT)
    site.close()
    assert firsts(site) == Counter({f"0-{n}": 1 for n in range(20)})
    assert set(site.outcomes().values()) == {"cat"}


def winners(labels: Sequence[Record]) -> dict[str, str]:
    """By item the class with the latest time; times differ."""
    found: dict[str, tuple[str, str]] = {}
    for each in labels:
        value = json.loads(each.value or b"")
        found[value["item_id"]] = max(
            found.get(value["item_id"], ("", "")), (value["time"], value.get("true_class", ABSENT))
        )
    return {item: true_class for item, (_, true_class) in found.items()}


class Chaos:
    """Owners, label consumers and leaders that start, stop, repeat and overlap at random."""

    def __init__(self, site: JoinSite, seed: int) -> None:
        self.site, self.rng = site, np.random.default_rng(seed)
        self.topic = {p: predictions(40, partition=p, at=BEGIN + p * HOUR) for p in range(2)}
        self.items = [f"{p}-{n}" for p in self.topic for n in range(40)]
        self.labels = {p: [self._label(n, p) for n in range(100)] for p in range(2)}
        self._owners = [Owner(site, self.topic), Owner(site, self.topic)]
        self._consumers = [site.label_step(), site.label_step()]
        for step in self._consumers:
            for partition in self.labels:
                step.assign(partition, 0)
        self._epoch, self._now = 1, BEGIN + 3 * HOUR

    def _label(self, number: int, partition: int) -> Record:
        item, true_class = self.rng.choice(self.items), self.rng.choice(["cat", "dog", ""], p=[0.4, 0.4, 0.2])
        time = BEGIN + 60 + 2 * number + partition
        return label(number, str(item), str(true_class) or None, time, partition=partition)

    def act(self) -> None:
        """Something that may happen at any time."""
        rng, partition = self.rng, int(self.rng.integers(2))
        owner = self._owners[int(rng.integers(2))]
        match int(rng.integers(8)):
            case 0 | 1:
                owner.take(partition, int(rng.integers(1, 20)))
            case 2 | 3:
                owner.flush(partition)
            case 4:
                owner.restart()
            case 5 | 6:
                begin = int(rng.integers(100))
                batch = self.labels[partition][begin : begin + int(rng.integers(1, 30))]
                self._consumers[int(rng.integers(2))].process(partition, batch, self._now)
            case _:
                self._epoch += int(rng.integers(2))
                self._now += float(rng.integers(2)) * HOUR
                self.close(self._now, most=int(rng.integers(1, 40)))

    def close(self, now: float, *, most: int = 10_000) -> None:
        self.site.close(now, epoch=self._epoch, most=most)

    def finish(self) -> None:
        """All that is left of both topics, and all labels once more, from behind."""
        self._owners[0].restart()
        self._owners[0].finish()
        for step, direction in zip(self._consumers, (1, -1), strict=True):
            for partition, batch in self.labels.items():
                step.process(partition, batch[::direction], self._now)


@pytest.mark.parametrize("seed", range(12))
def test_in_any_order_with_any_faults_every_item_is_one_outcome_with_its_latest_label(
    seed: int, site: JoinSite
) -> None:
    chaos = Chaos(site, seed)
    for _ in range(150):
        chaos.act()
    chaos.finish()
    chaos.close(LAST_DAY - DAY)
    chaos.finish()
    chaos.close(LAST_DAY + HOUR)
    assert firsts(site) == Counter(chaos.items)
    latest = winners([*chaos.labels[0], *chaos.labels[1]])
    assert site.outcomes() == dict.fromkeys(chaos.items, ABSENT) | latest
    assert (site.waiting(), site.lists(), site.summary().items, site.summary().closed) == (0, [], 0, 0)
