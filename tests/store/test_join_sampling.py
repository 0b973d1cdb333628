"""With more predictions than may wait, exactly an even sample of each cohort counts."""

from __future__ import annotations

import numpy as np
import pytest
from join_site import BEGIN, CENSUS, CLOSED_AT, DAY, HOUR, JoinSite, digests, sampled_at
from store_site import record

from service.domain.pending_joins import JoinColumns, PendingJoins
from service.store.connection import Connection
from service.store.records import ABSENT

MOST = 100
LAST_DAY = BEGIN + HOUR + 10 * DAY
Names = list[str]


@pytest.fixture
def site(connection: Connection) -> JoinSite:
    return JoinSite(connection, join_items=MOST)


def names(begin: int, count: int) -> Names:
    return [str(number) for number in range(begin, begin + count)]


def predict(site: JoinSite, items: Names, *, at: float = BEGIN + 60, partition: int = 0) -> None:
    """A few at a time, as they come where nothing has piled up."""
    for begin in range(0, len(items), 20):
        site.predict(items[begin : begin + 20], at=at, partition=partition)


def emitted(site: JoinSite, *, hour: int = 0) -> set[str]:
    begin = BEGIN + hour * HOUR
    found = [e.fact.item_id for e in site.entries() if begin <= e.fact.requested_at < begin + HOUR]
    assert len(found) == len(set(found))
    return set(found)


def test_the_sample_is_exactly_the_items_of_the_highest_level(site: JoinSite) -> None:
    items = names(0, 1_000)
    predict(site, items)
    level = site.cohort().level
    assert level >= 3
    site.close(LAST_DAY)
    assert emitted(site) == sampled_at(items, level)


def test_no_more_items_wait_than_may_once_the_others_are_thinned_out(site: JoinSite) -> None:
    predict(site, names(0, 1_000))
    site.close(CLOSED_AT)
    assert MOST / 4 < site.summary().items <= MOST
    assert len(site.lists()) == site.waiting() == site.summary().items == site.cohort().items


def test_items_of_two_partitions_are_one_even_sample(site: JoinSite) -> None:
    items = names(0, 1_000)
    for begin in range(0, 1_000, 100):
        predict(site, items[begin : begin + 50], partition=0)
        predict(site, items[begin + 50 : begin + 100], partition=1)
    level = site.cohort().level
    site.close(LAST_DAY)
    assert emitted(site) == sampled_at(items, level)


def test_when_the_level_rises_earlier_cohorts_are_thinned_out_evenly_too(site: JoinSite) -> None:
    first, second = names(0, 90), names(1_000, 300)
    predict(site, first)
    assert site.cohort().level == 0
    predict(site, second, at=BEGIN + HOUR + 60)
    levels = [cohort.level for cohort in site.summary().cohorts]
    assert levels[0] == levels[1] >= 2
    site.close(LAST_DAY + HOUR)
    assert emitted(site) == sampled_at(first, levels[0])
    assert emitted(site, hour=1) == sampled_at(second, levels[1])


def test_a_closed_cohort_keeps_its_level(site: JoinSite) -> None:
    first = names(0, 40)
    predict(site, first)
    site.label_all([(item, "cat") for item in first])
    site.close(CLOSED_AT)
    predict(site, names(1_000, 300), at=CLOSED_AT + 60)
    assert (site.cohort().level, emitted(site)) == (0, set(first))


def test_late_predictions_that_an_owner_chose_by_a_higher_level_are_an_even_sample(site: JoinSite) -> None:
    first, late = names(0, 20), names(2_000, 20)
    predict(site, first[:10], partition=0)
    predict(site, first[10:], partition=1)
    site.label_all([(item, "cat") for item in first])
    site.close(CLOSED_AT)
    predict(site, names(1_000, 300), at=CLOSED_AT + 60)
    level = site.summary().level
    site.flush(1, at=CLOSED_AT + 120)
    site.predict(late, at=BEGIN + 120, partition=1)
    assert (site.cohort().state, site.cohort().level) == ("r", level)
    site.close(LAST_DAY)
    assert emitted(site) == set(first) | sampled_at(late, level)


def test_labels_of_items_that_are_not_in_the_sample_are_counted(site: JoinSite) -> None:
    items = names(0, 1_000)
    predict(site, items)
    site.close(CLOSED_AT)
    kept = sampled_at(items, site.cohort().level)
    results = site.label_all([(item, "cat") for item in items])
    assert results.count("joined") == len(kept)
    assert results.count("not_sampled") == 1_000 - len(sampled_at(items, site.summary().level))
    assert site.cohort().labels == site.cohort().items == len(kept)


def test_a_census_is_complete_by_its_sample_alone(site: JoinSite) -> None:
    items = names(0, 1_000)
    predict(site, items)
    site.close(CLOSED_AT)
    kept = sampled_at(items, site.cohort().level)
    site.label_all([(item, "cat") for item in kept])
    assert site.close(CLOSED_AT) == len(kept)
    assert site.outcomes() == dict.fromkeys(kept, "cat")


def test_the_level_falls_with_the_next_cohort_when_there_is_room(site: JoinSite) -> None:
    items = names(0, 1_000)
    predict(site, items)
    before = site.summary().level
    site.close(LAST_DAY)
    predict(site, names(1_000, 20), at=LAST_DAY + 60)
    assert site.summary().level == before - 1


def test_while_an_owner_still_uses_a_higher_level_its_cohort_has_it(site: JoinSite) -> None:
    predict(site, names(0, 1_000))
    before = site.summary().level
    site.close(LAST_DAY)
    items = names(1_000, 200)
    predict(site, items[:100], at=LAST_DAY + 60)
    predict(site, items[100:], at=LAST_DAY + 60)
    assert site.cohort(LAST_DAY).level == before
    site.close(LAST_DAY + 11 * DAY)
    found = {e.fact.item_id for e in site.entries() if e.fact.requested_at > LAST_DAY}
    assert found == sampled_at(items, before)


def test_a_cohort_that_an_owner_left_out_of_its_sample_wholly_has_its_level(site: JoinSite) -> None:
    predict(site, names(0, 1_000))
    site.close(LAST_DAY)
    level = site.summary().level
    (missed,) = [name for name in names(1_000, 100) if name not in sampled_at([name], 1)][:1]
    site.predict([missed], at=LAST_DAY + 60)
    assert site.cohort(LAST_DAY).level == level
    assert site.cohort(LAST_DAY).items == 0


def flood(site: JoinSite) -> Names:
    """More than twice what may wait, while nobody thins out what waits from earlier hours."""
    for hour in range(10):
        site.predict(names(1_000 * hour, 10), at=BEGIN + hour * HOUR)
    late = names(100_000, 400)
    batch = [
        *(
            record(
                offset,
                {"model": "m", "item_id": item, "predicted_class": "cat", "score": 0.75},
                timestamp=int((BEGIN + 10 * HOUR) * 1000),
                partition=9,
            )
            for offset, item in enumerate(late)
        ),
    ]
    for begin in range(0, len(batch), 40):
        site.take_in(
            batch[: begin + 40], 9, now=BEGIN + 10 * HOUR
        )  # each consumer knows nothing of the hours
    return late


def test_a_cohort_beyond_the_hard_bound_is_dropped_as_a_whole_and_counted(site: JoinSite) -> None:
    late = flood(site)
    assert site.cohort(BEGIN + 10 * HOUR).state == "x"
    assert site.summary().dropped == 1
    assert site.summary().items <= 1.5 * MOST
    site.close(BEGIN + 11 * HOUR)
    assert site.cohort(BEGIN + 10 * HOUR).items == 0
    site.predict(late, at=BEGIN + 10 * HOUR + 60)
    assert site.cohort(BEGIN + 10 * HOUR).items == 0
    site.close(BEGIN + 11 * HOUR + 10 * DAY)
    assert emitted(site, hour=10) == set()
    assert (site.summary().items, site.waiting(), site.lists()) == (0, 0, [])


def test_other_cohorts_of_a_flood_remain_even(site: JoinSite) -> None:
    flood(site)
    levels = {cohort.hour - int(BEGIN // HOUR): cohort.level for cohort in site.summary().cohorts}
    site.close(BEGIN + 11 * HOUR + 10 * DAY)
    for hour in range(10):
        assert emitted(site, hour=hour) == sampled_at(names(1_000 * hour, 10), levels[hour])


def test_a_backlog_of_many_hours_drops_nothing(site: JoinSite) -> None:
    everything = {}
    for hour in range(30):
        everything[hour] = names(1_000 * hour, 60)
        predict(site, everything[hour], at=BEGIN + hour * HOUR)
    assert site.summary().dropped == 0
    levels = {cohort.hour - int(BEGIN // HOUR): cohort.level for cohort in site.summary().cohorts}
    site.close(BEGIN + 40 * HOUR + 10 * DAY)
    for hour, items in everything.items():
        assert emitted(site, hour=hour) == sampled_at(items, levels[hour])
    assert set(site.outcomes().values()) == {ABSENT}


def test_thinning_goes_on_in_the_next_round(site: JoinSite) -> None:
    flood(site)
    before = site.summary().items
    site.close(CLOSED_AT, most=1)
    assert site.summary().items < before


def test_the_shares_of_labels_do_not_suffer_from_thinning(connection: Connection) -> None:
    site = JoinSite(connection, CENSUS, join_items=MOST)
    items = names(0, 90)
    predict(site, items)
    site.label_all([(item, "cat") for item in items])
    predict(site, names(1_000, 600), at=BEGIN + HOUR + 60)
    site.close(BEGIN + 90 * 60, most=100_000)
    assert site.cohort().labels == site.cohort().items == len(sampled_at(items, site.cohort().level))


def offer(pending: PendingJoins, items: Names, at: float = BEGIN) -> None:
    found = np.array([*digests(items).values()], np.uint64)
    pending.offer(JoinColumns(found, lambda row: items[row].encode()), np.full(len(items), at))


def test_what_is_pending_is_bounded_and_stays_even() -> None:
    pending, items = PendingJoins(50), names(0, 2_000)
    for begin in range(0, 2_000, 30):
        offer(pending, items[begin : begin + 30])
    assert 10 < len(pending.items) <= 50
    assert {item.fact.decode() for item in pending.items} == sampled_at(items, pending.level)
    assert pending.hours == {int(BEGIN // HOUR): pending.level}


def test_facts_are_encoded_of_sampled_items_alone() -> None:
    pending, items = PendingJoins(1_000, level=3), names(0, 400)
    encoded = []
    digest = np.array([*digests(items).values()], np.uint64)

    def fact(row: int) -> bytes:
        encoded.append(items[row])
        return b""

    pending.offer(JoinColumns(digest, fact), np.full(400, BEGIN))
    assert set(encoded) == sampled_at(items, 3)


def test_a_level_that_rises_as_a_cohort_begins_is_that_cohorts_too(site: JoinSite) -> None:
    predict(site, names(0, 90))
    site.predict(names(1_000, 40), at=BEGIN + HOUR)
    assert site.summary().level == site.cohort(BEGIN + HOUR).level == 1


@pytest.mark.parametrize("seed", range(6))
def test_however_owners_and_leaders_take_turns_every_cohort_is_an_even_sample(
    seed: int, site: JoinSite
) -> None:
    rng = np.random.default_rng(seed)
    everything: dict[int, Names] = {}
    first = int(BEGIN // HOUR)
    for turn in range(80):
        hour = turn // 10 - int(rng.integers(2)) * (turn > 10)
        items = names(1_000 * turn, int(rng.integers(1, 60)))
        everything.setdefault(first + hour, []).extend(items)
        partition, at = int(rng.integers(3)), BEGIN + hour * HOUR + 60
        # A partition's records arrive in order, or count as of the newest before them.
        site.predict(items, at=at, partition=partition + 3 * (hour % 2))
        if rng.random() < 0.3:
            site.close(BEGIN + hour * HOUR, most=int(rng.integers(1, 600)))
    cohorts = site.summary().cohorts
    site.close(LAST_DAY + 10 * HOUR)
    arrived = {e.fact.item_id: e.fact.requested_at // HOUR for e in site.entries()}
    for cohort in cohorts:
        found = {item for item, hour in arrived.items() if hour == cohort.hour}
        sample = sampled_at(everything[cohort.hour], cohort.level)
        assert found == (sample if cohort.state == "o" else set())
    assert sum(cohort.state == "o" for cohort in cohorts) >= len(cohorts) - 2
    assert max(cohort.level for cohort in cohorts) >= 3
