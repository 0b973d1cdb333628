"""An unrequested label joins the prediction of its item, and becomes an outcome when its cohort closes."""

from __future__ import annotations

import itertools

import pytest
from join_site import BEGIN, CLOSED_AT, DAY, HOUR, SAMPLED, UNKNOWN, JoinSite, iso, sampled_at
from store_site import HASH_KEY, Site, message, record

from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.store.connection import Connection
from service.store.records import ABSENT, Fact

LAST_DAY = BEGIN + HOUR + 10 * DAY  # when the cohort of BEGIN has waited `join_days`


@pytest.fixture
def site(connection: Connection) -> JoinSite:
    return JoinSite(connection)


def test_a_label_becomes_an_outcome_with_its_prediction_when_the_cohort_closes(site: JoinSite) -> None:
    site.predict(["a"], at=BEGIN + 60, score=0.7, attributes={"camera": "dock"}, time=iso(BEGIN + 50))
    assert site.label("a", "dog", at=BEGIN + 90, annotator="ana") == "joined"
    assert site.close() == 1
    (entry,) = site.entries()
    assert entry.assessment == ""
    assert entry.of == entry.position
    assert entry.fact == Fact("", "a", "all", "all", "cat", 0.7, {"camera": "dock"}, BEGIN + 50, BEGIN + 60)
    assert (entry.label.true_class, entry.label.time, entry.label.annotator) == ("dog", BEGIN + 90, "ana")


def test_nothing_is_an_outcome_before_the_cohort_closes(site: JoinSite) -> None:
    site.predict("ab")
    site.label_all([("a", "cat"), ("b", "cat")])
    assert site.close(CLOSED_AT - 1) == 0
    assert site.entries() == []


def test_a_census_waits_until_enough_items_have_a_label(connection: Connection) -> None:
    site = JoinSite(connection, {"items": "census", "complete_share": 0.75})
    site.predict("abcd")
    site.label_all([("a", "cat"), ("b", "dog")])
    assert site.close(CLOSED_AT + DAY) == 0
    site.label("c")
    assert site.close(CLOSED_AT + DAY) == 4
    assert site.outcomes() == {"a": "cat", "b": "dog", "c": "cat", "d": ABSENT}


def test_an_item_that_has_no_label_in_time_is_an_outcome_that_says_so(site: JoinSite) -> None:
    site.predict("ab")
    site.label("a")
    assert site.close(LAST_DAY - 1) == 0
    assert site.close(LAST_DAY) == 2
    assert site.outcomes() == {"a": "cat", "b": ABSENT}


def test_a_configured_wait_closes_a_cohort_earlier(connection: Connection) -> None:
    site = JoinSite(connection, {"items": "unknown", "wait_days": 2})
    site.predict("ab")
    site.label_all([("a", "cat"), ("b", "cat")])
    assert site.close(BEGIN + HOUR + 2 * DAY - 1) == 0
    assert site.close(BEGIN + HOUR + 2 * DAY) == 2


def test_a_wait_of_minutes_loses_nothing_before_the_cohort_may_close(connection: Connection) -> None:
    site = JoinSite(connection, UNKNOWN, join_days=0.01)
    site.predict("a")
    site.label("a")
    assert site.close(BEGIN + 1.9 * HOUR) == 0
    assert site.close(CLOSED_AT) == 1
    assert site.waiting() == 0


def test_self_selected_labels_wait_though_every_item_has_one(connection: Connection) -> None:
    site = JoinSite(connection, UNKNOWN)
    site.predict("a")
    site.label("a")
    assert site.close(LAST_DAY - 1) == 0


def test_an_incomplete_cohort_holds_up_later_ones(site: JoinSite) -> None:
    for number, item in enumerate("abc"):
        site.predict(item, at=BEGIN + number * HOUR)
    site.label_all([("c", "cat"), ("a", "cat")], at=BEGIN + 3 * HOUR)
    # Else hours whose errors are labelled late would count after those without errors.
    assert site.close(BEGIN + 4 * HOUR) == 1
    site.label("b", at=BEGIN + 5 * HOUR)
    assert site.close(BEGIN + 5 * HOUR) == 2
    assert [entry.fact.item_id for entry in site.entries()] == ["a", "b", "c"]


def test_a_cohort_that_late_predictions_open_again_holds_up_none(site: JoinSite) -> None:
    site.predict("a", at=BEGIN)
    site.label("a", at=BEGIN + 60)
    assert site.close(BEGIN + 2 * HOUR) == 1
    site.predict("late", at=BEGIN + 60)
    site.predict("b", at=BEGIN + 2 * HOUR)
    site.label("b", at=BEGIN + 3 * HOUR)
    assert site.close(BEGIN + 4 * HOUR) == 1
    assert [entry.fact.item_id for entry in site.entries()] == ["a", "b"]


def test_labels_in_any_order_leave_the_one_with_the_latest_time(connection: Connection) -> None:
    labels = [("cat", 10), ("dog", 30), (None, 20)]
    for number, order in enumerate(itertools.permutations(labels)):
        site = JoinSite(Connection(connection.client, f"{connection.prefix}-{number}"))
        site.predict("a")
        for true_class, seconds in order:
            kind = "answer" if true_class else "retraction"
            site.label("a", true_class, time=BEGIN + seconds, at=BEGIN + 100, kind=kind)
        site.close()
        assert site.outcomes() == {"a": "dog"}, order


def test_of_two_labels_of_one_time_the_same_one_counts_in_both_orders(connection: Connection) -> None:
    found = []
    for number, order in enumerate((("cat", "dog"), ("dog", "cat"))):
        site = JoinSite(Connection(connection.client, f"{connection.prefix}-{number}"))
        site.predict("a")
        for true_class in order:
            site.label("a", true_class, time=BEGIN + 30)
        site.close()
        found.append(site.outcomes()["a"])
    assert found[0] == found[1]


def test_a_retraction_of_the_same_time_takes_the_label_back(site: JoinSite) -> None:
    site.predict("a")
    assert site.label("a", time=BEGIN + 90) == "joined"
    assert site.label("a", None, kind="retraction", time=BEGIN + 90) == "joined"
    assert site.cohort().labels == 0
    site.close(LAST_DAY)
    assert site.outcomes() == {"a": ABSENT}


def test_a_label_that_comes_twice_changes_nothing(site: JoinSite) -> None:
    site.predict("a")
    assert site.label_all([("a", "cat"), ("a", "cat")]) == ["joined", "unchanged"]
    assert (site.cohort().items, site.cohort().labels) == (1, 1)
    assert site.close() == 1


def test_a_label_that_comes_before_its_prediction_joins_it(site: JoinSite) -> None:
    assert site.label("a", "dog", at=BEGIN + 10) == "early"
    site.predict("a", at=BEGIN + 60)
    assert (site.cohort().items, site.cohort().labels) == (1, 1)
    site.close()
    assert site.outcomes() == {"a": "dog"}


def test_an_early_label_that_is_corrected_joins_as_corrected(site: JoinSite) -> None:
    site.label("a", "dog", at=BEGIN + 10)
    assert site.label("a", "cat", at=BEGIN + 20, kind="correction") == "early"
    site.predict("a", at=BEGIN + 60)
    site.close()
    assert site.outcomes() == {"a": "cat"}


def test_of_labels_without_predictions_the_oldest_go_and_are_counted(connection: Connection) -> None:
    site = JoinSite(connection, join_items=100)
    site.label_all([(number, "cat") for number in range(25)])
    assert site.results == {"early": 25, "no_prediction": 15}
    assert site.waiting() == 10
    site.predict(range(25))
    assert site.cohort().labels == 10


def test_the_newest_prediction_before_the_label_counts(site: JoinSite) -> None:
    site.predict("a", at=BEGIN + 60, score=0.6)
    site.predict("a", at=BEGIN + 70, score=0.7)
    site.label("a", time=BEGIN + 80)
    site.predict("a", at=BEGIN + 90, score=0.9)
    site.close()
    (entry,) = site.entries()
    assert (entry.fact.score, entry.fact.requested_at) == (0.7, BEGIN + 70)


def test_a_prediction_that_arrived_before_does_not_replace_a_newer_one(site: JoinSite) -> None:
    site.predict("a", at=BEGIN + 70, score=0.7)
    site.predict("a", at=BEGIN + 60, score=0.6, partition=1)
    site.label("a")
    site.close()
    assert [entry.fact.score for entry in site.entries()] == [0.7]


def test_an_item_that_is_predicted_in_two_hours_is_one_outcome_in_the_first_cohort(site: JoinSite) -> None:
    site.predict("a", at=BEGIN + 60, score=0.6)
    site.predict("a", at=BEGIN + 60 + HOUR, score=0.7)
    site.label("a", at=BEGIN + 2 * HOUR)
    assert site.close(CLOSED_AT) == 1
    assert site.close(LAST_DAY + DAY) == 0
    assert [entry.fact.score for entry in site.entries()] == [0.7]


def test_two_predictions_of_one_flush_are_told_apart_by_the_label(site: JoinSite) -> None:
    site.label("a", time=BEGIN + 65, at=BEGIN + 65)
    site.predict("a", at=BEGIN + 60, score=0.6, flush=False)
    site.predict("a", at=BEGIN + 70, score=0.7)
    site.close()
    assert [entry.fact.score for entry in site.entries()] == [0.6]


OWN = {"predicted_class": "dog", "score": 0.8, "attributes": {"camera": "dock"}, "time": iso(BEGIN + 30)}


def test_a_label_that_carries_its_prediction_needs_no_other(site: JoinSite) -> None:
    assert site.label("a", "cat", prediction=OWN) == "joined"
    site.close()
    (entry,) = site.entries()
    assert entry.fact == Fact("", "a", "all", "all", "dog", 0.8, {"camera": "dock"}, BEGIN + 30, BEGIN + 30)
    assert entry.label.true_class == "cat"


def test_the_prediction_of_the_topic_goes_before_the_one_that_the_label_carries(site: JoinSite) -> None:
    site.predict("a", score=0.7)
    assert site.label("a", prediction=OWN) == "joined"
    site.close()
    assert [entry.fact.score for entry in site.entries()] == [0.7]


def test_a_label_that_carries_a_prediction_of_long_ago_is_too_late(site: JoinSite) -> None:
    assert site.label("a", prediction=OWN, at=LAST_DAY + HOUR) == "too_late"
    assert site.waiting() == 0


def test_labels_that_carry_predictions_of_a_closed_hour_are_outcomes_all_the_same(site: JoinSite) -> None:
    site.label("a", prediction=OWN)
    assert site.close() == 1
    site.label("b", prediction=OWN, at=CLOSED_AT)
    assert site.close() == 1
    assert site.outcomes() == {"a": "cat", "b": "cat"}


@pytest.fixture
def closed(site: JoinSite) -> JoinSite:
    """The cohort is closed: `a` has a label, `b` has none."""
    site.predict([*range(198), "a", "b"])
    site.label_all([(item, "cat") for item in [*range(198), "a"]])
    assert site.close() == 200
    return site


def revisions(site: JoinSite) -> list[tuple[str, str]]:
    by_position = {entry.position: entry for entry in site.entries()}
    found = [entry for entry in site.entries() if entry.of != entry.position]
    assert all(by_position[entry.of].fact == entry.fact for entry in found)
    return [(entry.fact.item_id, entry.label.true_class or entry.label.unanswered) for entry in found]


def test_the_first_label_after_the_close_revises_the_outcome(closed: JoinSite) -> None:
    assert closed.label("b", "dog", at=CLOSED_AT + 1) == "revised"
    assert revisions(closed) == [("b", "dog")]


def test_a_correction_after_the_close_revises_the_outcome(closed: JoinSite) -> None:
    assert closed.label("a", "dog", at=CLOSED_AT + 1, kind="correction") == "revised"
    assert closed.label("a", "cat", at=CLOSED_AT + 2, kind="correction") == "revised"
    assert revisions(closed) == [("a", "dog"), ("a", "cat")]


def test_a_retraction_after_the_close_leaves_the_item_without_a_label(closed: JoinSite) -> None:
    assert closed.label("a", None, at=CLOSED_AT + 1, kind="retraction") == "revised"
    assert closed.label("b", None, at=CLOSED_AT + 1, kind="retraction") == "unchanged"
    assert revisions(closed) == [("a", ABSENT)]


def test_the_same_class_again_after_the_close_is_no_revision(closed: JoinSite) -> None:
    assert closed.label("a", "cat", at=CLOSED_AT + DAY) == "unchanged"
    assert revisions(closed) == []


def test_an_older_label_after_the_close_is_no_revision(closed: JoinSite) -> None:
    assert closed.label("a", "dog", time=BEGIN + 30, at=CLOSED_AT + 1) == "unchanged"
    assert revisions(closed) == []


def test_a_label_after_its_outcome_was_trimmed_is_too_late(closed: JoinSite) -> None:
    closed.connection.client.xtrim(closed.keys("m").outcomes, maxlen=0, approximate=False)
    assert closed.label("b", at=CLOSED_AT + 1) == "too_late"
    assert closed.entries() == []


def test_a_prediction_after_the_close_changes_nothing(closed: JoinSite) -> None:
    closed.predict("b", at=CLOSED_AT + 60, score=0.9)
    closed.label("b", "dog", at=CLOSED_AT + 120)
    assert [entry.fact.score for entry in closed.entries() if entry.fact.item_id == "b"] == [0.75, 0.75]


def test_records_go_when_no_label_is_waited_for_any_more(closed: JoinSite) -> None:
    closed.close(LAST_DAY - 1)
    assert closed.label("b", at=LAST_DAY - 1) == "revised"
    closed.close(LAST_DAY)
    assert (closed.waiting(), closed.lists(), closed.summary().cohorts) == (0, [], ())
    assert (closed.summary().items, closed.summary().closed) == (0, 0)
    assert closed.label("b", "dog", at=LAST_DAY + 1) == "early"


def test_of_closed_items_no_more_are_kept_than_may_wait(connection: Connection) -> None:
    site = JoinSite(connection, join_items=100)
    for hour in range(4):
        items = range(50 * hour, 50 * hour + 50)
        site.predict(items, at=BEGIN + hour * HOUR)
        site.label_all([(item, "cat") for item in items], at=BEGIN + hour * HOUR)
        site.close(CLOSED_AT + hour * HOUR)
    assert len(site.entries()) == 200
    site.close(CLOSED_AT + 5 * HOUR)
    assert (site.summary().closed, site.waiting(), len(site.lists())) == (100, 100, 100)
    assert site.label(199, "dog", at=CLOSED_AT + 6 * HOUR) == "revised"


def test_a_late_prediction_of_a_closed_hour_opens_its_cohort_again(closed: JoinSite) -> None:
    closed.predict("z", at=BEGIN + 90, partition=1)
    assert closed.cohort().state == "r"
    assert closed.close(CLOSED_AT + 1) == 0
    closed.label("z", "dog", at=CLOSED_AT + 2)
    assert closed.close(CLOSED_AT + 3) == 1
    assert closed.outcomes()["z"] == "dog"
    assert len(closed.entries()) == 201


def test_of_a_random_sample_labels_are_kept_evenly_by_their_probability(connection: Connection) -> None:
    site = JoinSite(connection, SAMPLED)
    items = [str(number) for number in range(300)]
    site.predict(items)
    site.label_all([(item, "cat") for item in items], probability=0.2)
    positions = PoolKey(HASH_KEY, "m").sample_positions(siphash24([i.encode() for i in items], HASH_KEY))
    kept = {item for item, position in zip(items, positions.tolist(), strict=True) if position < 0.5}
    assert 120 < len(kept) < 180  # 6 standard deviations around 150
    assert site.results == {"joined": len(kept), "not_sampled": 300 - len(kept)}
    site.close(LAST_DAY)
    assert site.outcomes() == dict.fromkeys(kept, "cat")


def test_items_of_a_random_sample_without_a_label_leave_no_outcome(connection: Connection) -> None:
    site = JoinSite(connection, {**SAMPLED, "wait_days": 1})
    site.predict("ab")
    site.label("a", probability=0.1)
    assert site.close(BEGIN + HOUR + DAY) == 1
    assert site.label("b", "dog", probability=0.1, at=BEGIN + 2 * DAY) == "revised"
    assert site.label("b", "dog", probability=0.1, at=BEGIN + 2 * DAY + 1) == "unchanged"
    assert site.label("b", None, kind="retraction", at=BEGIN + 2 * DAY + 2) == "revised"
    assert [(e.fact.item_id, e.label.true_class, e.of == e.position) for e in site.entries()] == [
        ("a", "cat", True),
        ("b", "dog", True),
        ("b", "", False),
    ]


def test_the_hour_of_the_oldest_waiting_prediction_is_known_until_it_is_closed(site: JoinSite) -> None:
    for number, item in enumerate("ab"):
        site.predict(item, at=BEGIN + number * HOUR)
    assert site.summary().oldest == BEGIN
    site.label_all([("a", "cat"), ("b", "cat")])
    site.close(BEGIN + 4 * HOUR)
    assert site.summary().oldest is None


def test_labels_that_find_no_prediction_are_counted_by_reason(site: JoinSite) -> None:
    site.predict("a")
    found = site.label_all([("a", "cat"), ("b", "cat"), ("c", "dog")])
    assert found == ["early", "early", "joined"]
    assert site.label("d", at=BEGIN, time=BEGIN - 11 * DAY) == "too_late"
    assert site.summary().not_joined == {"early": 2, "too_late": 1}


def test_a_model_that_takes_no_such_labels_stores_nothing_for_them(connection: Connection) -> None:
    site = Site(connection, {"m": {"classes": ["cat", "dog"]}})
    site.take_in([record(0, message("a"))])
    assert not connection.client.exists(site.keys("m").cohorts, site.keys("m").waiting)


def test_digests_depend_on_the_model() -> None:
    assert sampled_at(range(8), 0) == {str(number) for number in range(8)}
    hashes = siphash24([b"a"], HASH_KEY)
    assert PoolKey(HASH_KEY, "m").join_digests(hashes) != PoolKey(HASH_KEY, "n").join_digests(hashes)
