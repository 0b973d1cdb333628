"""Reports of consumers in Redis, one or clustered."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from consumers.health_report import HealthReporter
from service.monitoring.pipeline import read_pipeline
from service.store.connection import Connection
from service.store.consumer_health import FORGOTTEN_SECONDS, ConsumerHealth, HealthStore
from service.store.keys import consumers_key
from service.store.lease import LeaderLease, current_leader
from service.store.resets import ResetStore

NOW = 1_800_000_000.0


def report(role: str = "predictions", member: str = "a:8401", at: float = NOW) -> ConsumerHealth:
    return ConsumerHealth(
        role=role,
        member=member,
        state="running",
        state_since=at,
        written_at=at,
        started_at=at,
        partitions=(0, 3),
    )


def test_the_newest_report_of_every_consumer_is_read_again(connection: Connection) -> None:
    store = HealthStore(connection)
    store.report(report())
    newest = replace(report(at=NOW + 5), state="paused", cause="too many")
    store.report(newest)
    store.report(report(member="b:8401"))
    store.report(report("labels"))
    assert store.consumers(NOW + 6) == [report("labels"), newest, report(member="b:8401")]


def test_a_consumer_that_stops_is_no_longer_shown(connection: Connection) -> None:
    store = HealthStore(connection)
    store.report(report())
    store.report(report("labels"))
    store.remove("predictions", "a:8401")
    assert store.consumers(NOW) == [report("labels")]


def test_a_consumer_is_forgotten_after_a_day_of_silence_and_its_report_removed(
    connection: Connection,
) -> None:
    store = HealthStore(connection)
    store.report(report(at=NOW - FORGOTTEN_SECONDS - 1))
    store.report(report("labels"))
    assert store.consumers(NOW) == [report("labels")]
    assert connection.client.hlen(consumers_key(connection.prefix)) == 2
    store.remove_forgotten(NOW)
    assert connection.client.hlen(consumers_key(connection.prefix)) == 1


def test_a_report_answers_with_the_id_of_the_data_in_redis(connection: Connection) -> None:
    store = HealthStore(connection)
    assert store.report(report()) is None
    identity, _ = ResetStore(connection).identify(NOW, "topic", [0])
    assert store.report(report()) == identity


def test_the_leader_has_a_name_and_a_time_that_a_renewal_does_not_change(connection: Connection) -> None:
    assert current_leader(connection) is None
    times = iter((NOW, NOW + 10, NOW + 20))
    lease = LeaderLease(connection, lease_seconds=60, name="host:8401", clock=lambda: next(times))
    lease.hold()
    lease.hold()
    leader = current_leader(connection)
    assert leader is not None
    assert (leader.name, leader.since) == ("host:8401", NOW)
    lease.release()
    assert current_leader(connection) is None


@pytest.mark.parametrize("consumer_ahead", [-240.0, 0.0, 7_200.0])
def test_a_consumer_whose_clock_is_wrong_is_neither_silent_nor_alive_for_longer(
    connection: Connection, consumer_ahead: float
) -> None:
    HealthReporter(
        HealthStore(connection), role="labels", member="a:8401", clock=lambda: NOW + consumer_ahead
    ).announce()
    state = read_pipeline(connection, now=NOW, estimates_at=NOW)
    (health,) = state.role("labels").reporting
    # Both ask Redis for its time, one after the other.
    assert health.written_at == pytest.approx(NOW, abs=30)
    assert health.state_since == health.started_at == health.assigned_at == health.written_at
    assert dataclasses.replace(state, read_at=NOW + 91).role("labels").is_missing


def test_the_whole_state_is_read_at_once(connection: Connection) -> None:
    HealthStore(connection).report(report())
    found = read_pipeline(connection, now=NOW + 1, estimates_at=NOW)
    assert [one.member for one in found.role("predictions").reporting] == ["a:8401"]
    assert found.role("labels").is_missing
    assert (found.leader, found.reset) == (None, None)


def test_a_report_of_another_version_with_other_fields_is_passed_over(connection: Connection) -> None:
    store = HealthStore(connection)
    store.report(report())
    connection.client.hset(consumers_key(connection.prefix), "labels/b:8401", '{"role": "labels", "new": 1}')
    assert store.consumers(NOW) == [report()]


def everyone_has_read(connection: Connection, *reports: ConsumerHealth) -> bool:
    """Whether all consumers of labels have read everything since `NOW`, by these reports."""
    store = HealthStore(connection)
    for one in reports:
        store.report(one)
    reporter = HealthReporter(store, role="labels", member="a:8401", clock=lambda: NOW + 10)
    return reporter.everyone_has_read(NOW)


def of_labels(member: str = "a:8401", **changes: Any) -> ConsumerHealth:
    plain: dict[str, Any] = {"partitions": (0,), "partition_count": 2, "lag_records": 0}
    return replace(report("labels", member, NOW + 5), **plain | changes)


def test_everything_is_read_once_all_consumers_of_all_partitions_say_so(connection: Connection) -> None:
    others = report(), replace(report("predictions", "b:8401"), lag_records=9)
    assert everyone_has_read(connection, *others, of_labels(), of_labels("b:8401", partitions=(1,)))


@pytest.mark.parametrize(
    "changes",
    [{"lag_records": 1}, {"state": "paused"}, {"written_at": NOW}, {"partitions": ()}],
    ids=["behind", "paused", "reported before", "one partition is nobody's"],
)
def test_a_consumer_that_may_have_more_to_read_is_waited_for(
    connection: Connection, changes: dict[str, Any]
) -> None:
    other = of_labels("b:8401", **{"partitions": (1,)} | changes)
    assert not everyone_has_read(connection, of_labels(), other)


def test_a_consumer_says_that_it_starts_before_it_has_a_loop_and_takes_its_report_along(
    connection: Connection,
) -> None:
    store = HealthStore(connection)
    reporter = HealthReporter(store, role="labels", member="a:8401", clock=lambda: NOW)
    reporter.announce()
    (found,) = store.consumers(NOW)
    assert (found.role, found.member, found.state) == ("labels", "a:8401", "starting")
    reporter.leave()
    assert store.consumers(NOW) == []
