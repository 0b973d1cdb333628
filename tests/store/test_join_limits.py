"""Labels that nobody requested cannot count twice, drop predictions of others, or block Redis for long."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import Mock

import pytest
from join_site import BEGIN, CLOSED_AT, DAY, HOUR, JoinSite, iso
from store_site import record

from consumers.loop import ConsumerLoop
from service.domain.pending_joins import FLUSHED_ITEMS
from service.store import cohorts
from service.store.connection import Connection

LAST_DAY = BEGIN + HOUR + 10 * DAY  # when the cohort of BEGIN has waited `join_days`
FLOOD = range(2, 200)  # hours before BEGIN


@pytest.fixture
def site(connection: Connection) -> JoinSite:
    return JoinSite(connection, join_items=400)


def own(at: float, **fields: Any) -> dict[str, Any]:
    return {"predicted_class": "cat", "score": 0.9, "time": iso(at), **fields}


def predict(site: JoinSite, items: range, *, at: float = BEGIN + 60) -> None:
    for begin in range(items.start, items.stop, 20):
        site.predict(range(begin, min(begin + 20, items.stop)), at=at)


def fill(site: JoinSite, at: float) -> None:
    """Predictions of many earlier hours, a few at a time, until as many wait as may."""
    for hour in FLOOD:
        site.predict([f"t{hour}-{n}" for n in range(20)], at=at - hour * HOUR, partition=hour)
        if site.summary().items >= 600:
            return


def test_a_label_that_is_sent_again_after_an_early_removal_does_not_count_again(
    connection: Connection,
) -> None:
    site = JoinSite(connection, join_items=100)

    def send(hour: int, at: float) -> list[str]:
        items = [(f"{hour}-{n}", "cat") for n in range(60)]
        begin = BEGIN + hour * HOUR
        return site.label_all(items, at=at, time=begin + 120, prediction=own(begin + 60))

    for hour in range(3):
        send(hour, BEGIN + hour * HOUR + 130)
        site.close(CLOSED_AT + hour * HOUR)
    for _ in range(2):
        site.close(CLOSED_AT + 3 * HOUR)
    assert set(send(0, BEGIN + DAY)) == {"too_late"}
    for _ in range(2):
        site.close(BEGIN + DAY)
    assert max(Counter(entry.fact.item_id for entry in site.entries()).values()) == 1


def test_a_leader_whose_clock_is_ahead_lets_nothing_count_again(site: JoinSite) -> None:
    site.label("a", at=BEGIN + 90, prediction=own(BEGIN + 60))
    site.close()
    site.close(LAST_DAY)
    assert site.label("a", at=LAST_DAY - 1, time=BEGIN + 80, prediction=own(BEGIN + 60)) == "too_late"
    site.close(LAST_DAY + 1)
    assert len(site.entries()) == 1


def test_predictions_of_an_hour_that_was_removed_do_not_wait(site: JoinSite) -> None:
    site.predict("a")
    site.close(LAST_DAY)
    site.predict("b", at=BEGIN + 120, partition=1)
    assert (site.waiting(), site.summary().cohorts) == (0, ())


def test_predictions_that_arrive_when_nobody_waits_for_their_labels_do_not_wait(site: JoinSite) -> None:
    message = {"model": "m", "item_id": "a", "predicted_class": "cat", "score": 0.7, "time": iso(BEGIN)}
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, [record(0, message, timestamp=int(BEGIN * 1000))], BEGIN + 10 * DAY + 1)
    step.process(0, [record(1, message | {"item_id": "b"}, timestamp=int(BEGIN * 1000))], BEGIN + 9 * DAY)
    step.flush(0, BEGIN)
    assert (site.waiting(), site.cohort().items) == (1, 1)


def test_one_flush_thins_out_as_much_as_comes_and_not_that_per_hour(connection: Connection) -> None:
    site = JoinSite(connection, join_items=3_000)
    for hour in range(20):
        site.predict(range(1_000 * hour, 1_000 * hour + 149), at=BEGIN + hour * HOUR)
    site.predict(range(50_000, 50_050), at=BEGIN + 20 * HOUR)
    before = sum(cohort.thin for cohort in site.summary().cohorts)
    site.predict(range(60_000, 60_010), at=BEGIN + 20 * HOUR)
    assert before - sum(cohort.thin for cohort in site.summary().cohorts) <= 2 * 10 + 100


def test_a_shard_with_many_pending_predictions_asks_to_be_flushed(site: JoinSite) -> None:
    site = JoinSite(site.connection, join_items=100_000)
    site.predict(range(FLUSHED_ITEMS - 1), flush=False)
    assert not site._predictions.is_full
    site.predict("a", flush=False)
    assert site._predictions.is_full
    site.flush(0, at=BEGIN + 90)
    assert not site._predictions.is_full


def test_a_consumer_flushes_early_if_its_step_asks_for_it() -> None:
    step = Mock(is_full=False)
    parts = dict.fromkeys(
        ("progress", "reporter", "watch", "metrics", "clock", "stopping", "outages"), Mock()
    )
    loop = ConsumerLoop(
        Mock(), "predictions", step, start="earliest", flush_seconds=60, flush_records=10, **parts
    )
    assert not loop._is_flush_due()
    step.is_full = True
    assert loop._is_flush_due()


def test_many_labels_are_one_batch_in_parts(site: JoinSite, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = Connection.run

    def count(self: Any, script: str, keys: Any, arguments: Any) -> Any:
        calls.append(script)
        return run(self, script, keys, arguments)

    monkeypatch.setattr(Connection, "run", count)
    site.predict("a")
    results = site.label_all([*((f"unknown-{n}", "cat") for n in range(4_000)), ("a", "cat")])
    assert calls.count("join_labels") == 3
    assert (len(results), results.count("joined")) == (4_000 + 1 + results.count("no_prediction"), 1)


def test_labels_that_carry_predictions_keep_to_the_room_for_them(connection: Connection) -> None:
    site = JoinSite(connection, join_items=1_000)
    for begin in range(0, 4_000, 250):
        items = [(number, "cat") for number in range(begin, begin + 250)]
        site.label_all(items, at=BEGIN + 5 * HOUR, prediction=own(BEGIN + 60))
    assert (site.summary().dropped, site.results["dropped"]) == (0, 0)
    assert site.summary().items <= 1_000 + site.cohort().thin


def test_labels_that_carry_predictions_drop_nobody_elses(connection: Connection) -> None:
    site = JoinSite(connection, join_items=1_000)
    for hour in FLOOD:
        items = [(f"{hour}-{n}", "cat") for n in range(20)]
        site.label_all(items, at=BEGIN, prediction=own(BEGIN - hour * HOUR))
    assert site.results["dropped"] > 0
    assert site.summary().items <= 1_250
    site.predict(range(30), at=BEGIN + 70)
    assert (site.summary().dropped, site.cohort().state) == (0, "o")


def test_a_cohort_that_is_being_closed_is_not_dropped(
    site: JoinSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(site, range(390))
    site.label_all([(n, "cat") for n in range(390)])
    monkeypatch.setattr(cohorts, "_DIGESTS_PER_STEP", 100)
    site.close(CLOSED_AT, most=100)
    fill(site, BEGIN)
    site.predict([f"late{n}" for n in range(40)], at=BEGIN + 600, partition=1)
    assert site.cohort().state == "c"
    site.close(CLOSED_AT + 120)
    assert {str(n) for n in range(390)} <= set(site.outcomes())


def test_a_cohort_that_has_counted_is_not_dropped(site: JoinSite) -> None:
    predict(site, range(90))
    site.label_all([(n, "cat") for n in range(90)])
    site.close()
    site.predict("z", at=BEGIN + 90, partition=1)
    fill(site, BEGIN)
    site.predict([f"late{n}" for n in range(40)], at=BEGIN + 600, partition=1)
    assert site.cohort().state == "r"
    assert site.label(0, "dog", at=CLOSED_AT + 1) == "revised"


def test_a_cohort_that_is_dropped_as_its_close_begins_does_not_count(site: JoinSite) -> None:
    predict(site, range(90))
    site.label_all([(n, "cat") for n in range(90)])
    seen = site.summary()
    site.connection.client.hset(site.keys("m").cohorts, str(int(BEGIN // HOUR)), "x 0 90 90 0")
    assert site.cohorts.advance(seen, epoch=1, now=CLOSED_AT) == 0
    assert (site.cohort().state, site.entries()) == ("x", [])


@pytest.mark.parametrize("later", [CLOSED_AT, BEGIN + 12 * DAY])
def test_a_cohort_that_another_leader_has_closed_or_removed_meanwhile_counts_once(
    site: JoinSite, later: float
) -> None:
    predict(site, range(90))
    site.label_all([(n, "cat") for n in range(90)])
    seen = site.summary()
    assert site.close() == 90
    site.close(later, epoch=2)
    assert site.cohorts.advance(seen, epoch=2, now=later) == 0
    assert (len(site.entries()), site.summary().items) == (90, 0)


def test_a_label_of_a_prediction_that_was_removed_joins_no_later_one(site: JoinSite) -> None:
    site.predict("a")
    site.label("a", "dog", time=BEGIN + 120)
    site.close()
    site.close(LAST_DAY)
    assert site.label("a", "dog", at=BEGIN + 30 * DAY, time=BEGIN + 120) == "too_late"
    site.predict("a", at=BEGIN + 30 * DAY + 60)
    assert site.cohort(BEGIN + 30 * DAY).labels == 0


def test_a_label_from_before_an_early_removal_joins_no_later_prediction(connection: Connection) -> None:
    site = JoinSite(connection, join_items=100)
    site.label("waits", "dog", time=BEGIN + 60)
    for hour in range(4):
        items, at = range(1_000 * hour, 1_000 * hour + 60), BEGIN + hour * HOUR
        predict(site, items, at=at + 60)
        site.label_all([(item, "dog") for item in items], at=at + 120)
        site.close(CLOSED_AT + hour * HOUR)
    for _ in range(3):
        site.close(BEGIN + 7 * HOUR)
    assert site.label("0", "dog", at=BEGIN + 8 * HOUR, time=BEGIN + 120) == "too_late"
    site.predict(["0", "waits"], at=BEGIN + 9 * HOUR)
    assert site.cohort(BEGIN + 9 * HOUR).labels == 0


def test_old_rows_of_a_table_displace_no_early_label(connection: Connection) -> None:
    site = JoinSite(connection, join_items=100)
    site.label("a", at=BEGIN + 60)
    rows = [(f"old{n}", "cat") for n in range(50)]
    assert set(site.label_all(rows, at=BEGIN + 70, time=BEGIN - 300 * DAY)) == {"too_late"}
    site.predict("a", at=BEGIN + 80)
    assert site.cohort().labels == 1


def test_one_round_takes_few_steps_of_many_small_cohorts(site: JoinSite) -> None:
    for hour in range(30):
        site.predict([f"{hour}"], at=BEGIN + hour * HOUR)
    assert site.close(LAST_DAY + 30 * HOUR, most=200) <= 10
    assert site.close(LAST_DAY + 30 * HOUR, most=2_000) >= 20


def test_the_time_of_a_label_is_not_in_the_future_though_its_record_is(site: JoinSite) -> None:
    site.predict("a")
    step = site.label_step()
    step.assign(0, 0)
    far = {"model": "m", "item_id": "a", "true_class": "dog", "time": "9999-01-01T00:00:00Z"}
    step.process(0, [record(0, far, timestamp=int(300e12))], BEGIN + 100)
    assert site.label("a", "cat", at=BEGIN + HOUR, kind="correction") == "joined"


def test_the_prediction_of_the_topic_replaces_one_that_a_label_carried_before(site: JoinSite) -> None:
    site.label("a", at=BEGIN + 60, time=BEGIN + 60, prediction=own(BEGIN + 50, predicted_class="dog"))
    site.predict("a", at=BEGIN + 100, score=0.7)
    site.close()
    assert [(e.fact.predicted_class, e.fact.score) for e in site.entries()] == [("cat", 0.7)]
