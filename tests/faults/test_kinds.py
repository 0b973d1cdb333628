"""Every kind of fault, tried for certain: alone, at a known moment, in a deployment at work.

What must hold afterwards is in `checking.py`: every count, sum, pooled item, request, budget and outcome.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from findings import Findings
from kinds import KINDS, WIRE_FAULTS
from layout import CONSUMERS, RESIDENTS, SCHEDULERS, VISITOR
from stand import Stand
from trial import Fault

Endure = Callable[..., Findings]

AT_SECONDS = 0.7


def fault(kind: str, target: str, for_seconds: float | None = None) -> Fault:
    longest = KINDS[kind].seconds[1]
    return KINDS[kind].fault(
        target=target, at_seconds=AT_SECONDS, for_seconds=longest if for_seconds is None else for_seconds
    )


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumer_that_is_killed_has_lost_nothing_when_it_is_back(name: str, endure: Endure) -> None:
    endure([fault("consumer killed", name)], seed=1)


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumer_that_slept_through_its_session_spoils_nothing_when_it_wakes(
    name: str, endure: Endure
) -> None:
    endure([fault("consumer stopped past its session", name)], seed=2)


def test_both_consumers_of_predictions_may_be_killed_at_once(endure: Endure) -> None:
    endure([fault("consumer killed", name) for name in CONSUMERS[:2]], seed=3)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_that_is_killed_requests_nothing_twice(name: str, endure: Endure) -> None:
    endure([fault("scheduler killed", name)], seed=4)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_leader_that_slept_through_its_lease_requests_nothing_twice(name: str, endure: Endure) -> None:
    endure([fault("scheduler stopped past its lease", name)], seed=5)


def test_partitions_change_hands_when_a_consumer_joins_and_leaves(endure: Endure) -> None:
    endure([fault("consumer joins and leaves", VISITOR)], seed=6)


@pytest.mark.parametrize("state", WIRE_FAULTS)
@pytest.mark.parametrize("server", ["Redis", "Kafka"])
def test_a_wire_that_fails_loses_nothing(server: str, state: str, endure: Endure) -> None:
    kind = f"wire to {server} {state.replace('_', ' ')}"
    names = [RESIDENTS[0], RESIDENTS[2], RESIDENTS[3]]
    endure([fault(kind, name) for name in names], seed=7)


def test_a_redis_that_is_killed_has_lost_nothing_when_it_is_back(endure: Endure) -> None:
    endure([fault("Redis killed", "redis")], seed=8)


def test_a_redis_that_does_not_answer_is_waited_for(endure: Endure) -> None:
    endure([fault("Redis stopped past its clients' patience", "redis")], seed=9)


def test_what_redis_has_no_memory_for_is_taken_in_later(endure: Endure) -> None:
    endure([fault("Redis out of memory", "redis")], seed=10)


def test_what_redis_has_no_disk_for_is_taken_in_later(endure: Endure) -> None:
    endure([fault("Redis's disk full", "redis")], seed=11)


def test_a_redis_set_back_by_an_old_append_only_file_catches_up(endure: Endure) -> None:
    endure([fault("Redis set back by an old AOF", "redis")], seed=12)


def test_a_redis_set_back_by_an_old_snapshot_catches_up(endure: Endure) -> None:
    endure([fault("Redis set back by an old RDB", "redis")], seed=13)


def test_a_redis_that_is_emptied_is_filled_again(endure: Endure) -> None:
    endure([fault("Redis emptied", "redis")], seed=14)


def test_a_broker_that_is_killed_has_lost_nothing_when_it_is_back(endure: Endure) -> None:
    endure([fault("broker killed", "broker-1")], seed=15)


def test_a_broker_that_does_not_answer_is_waited_for(endure: Endure) -> None:
    endure([fault("broker stopped", "broker-1")], seed=16)


@pytest.mark.parametrize("state", ["stopped", "silent"])
def test_a_schema_registry_that_is_unavailable_is_waited_for(state: str, endure: Endure) -> None:
    endure([fault(f"schema registry {state}", "registry")], seed=20)


@pytest.mark.parametrize("state", ["stopped", "silent"])
def test_a_consumer_that_has_no_schema_yet_waits_for_the_registry(state: str, endure: Endure) -> None:
    faults = [fault(f"schema registry {state}", "registry"), fault("consumer killed", CONSUMERS[0], 0.2)]
    endure(faults, seed=21)


@pytest.mark.parametrize("name", ["all", CONSUMERS[0], SCHEDULERS[0]])
def test_a_clock_that_was_ahead_changes_no_count(name: str, endure: Endure) -> None:
    endure([fault("clock half an hour ahead, then right again", name)], seed=17)


@pytest.mark.parametrize("name", ["all", CONSUMERS[0], SCHEDULERS[0]])
def test_a_clock_that_is_set_back_changes_no_count(name: str, endure: Endure) -> None:
    endure([fault("clock four minutes behind, for good", name)], seed=18)


def test_a_deployment_that_nothing_disturbs_passes_all_checks(endure: Endure) -> None:
    def has_seen_enough(stand: Stand) -> bool:
        return sum(stand.ends("predictions").values()) > 600 and sum(stand.ends("labels").values()) > 60

    findings = endure([], seed=19, until=has_seen_enough)
    assert findings.predictions > 500
    assert findings.outcomes > 10
