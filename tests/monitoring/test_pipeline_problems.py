"""The state of the pipeline and its problems, from reports of consumers; pure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from pipelines import NOW, REFUSED, consumer, intake, state

from service.domain.times import duration
from service.monitoring.pipeline import PipelineState, Role
from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.pipeline_problems import pipeline_line, pipeline_problems
from service.serving.documents.pipeline import pipeline_health
from service.store.consumer_health import ROUNDS, ConsumerHealth
from service.store.lease import Leader
from service.store.recent_reports import Loss, LossKind, VendorCalls
from service.store.resets import RedisReset


def problem(at: PipelineState, now: float = NOW) -> PipelineProblem:
    """The only problem."""
    (only,) = pipeline_problems(at, now)
    return only


def test_a_healthy_pipeline_has_no_problem_and_one_line() -> None:
    assert pipeline_problems(state(), NOW) == []
    assert pipeline_line(state(), NOW) == (
        "predictions: 1 consumer, 0 records behind; labels: 1 consumer, 0 records behind; "
        "leader a:8401 for 2 h; estimates 4 s old"
    )


def test_a_paused_consumer_says_where_why_and_what_to_do() -> None:
    paused = consumer("predictions", state="paused", state_since=NOW - 180, refused=(REFUSED,))
    found = problem(state(paused))
    assert (found.key, found.severity) == ("consumer_paused:predictions", "critical")
    assert found.alert == "CredenceConsumerPaused"
    assert found.since == NOW - 180
    assert found.sentence == (
        "The consumer of predictions at a:8401 paused 3 min ago, because too many messages are bad: "
        "invalid_field 500. Example: predictions, partition 2, offset 17: predicted_class: "
        "expected a string, got an integer. It discards nothing more. Fix the producer or the "
        "configuration, then restart the consumer."
    )


def test_a_consumer_is_silent_after_a_minute_and_no_problem_while_others_read_its_partitions() -> None:
    at = state(consumer("labels"), consumer("labels", "b:8401", written_at=NOW - 61, partitions=(1,)))
    assert [one.member for one in at.role("labels").silent] == ["b:8401"]
    found = problem(at)
    assert (found.key, found.severity) == ("consumer_silent:labels", "info")
    assert "b:8401 (61 s ago)" in found.sentence


def test_partitions_that_nobody_reads_are_a_problem_once_the_group_has_settled() -> None:
    there = consumer("labels", partitions=(0,))
    gone = consumer("labels", "b:8401", written_at=NOW - 90, partitions=(1,))
    found = problem(state(there, gone))
    assert (found.key, found.severity) == ("partitions_unassigned:labels", "critical")
    assert found.alert == "CredenceTopicUnread"
    assert found.sentence.startswith("Nobody reads 1 partitions of labels: 1. Silent consumers of labels")
    rebalanced = replace(there, assigned_at=NOW - 5)
    assert problem(state(rebalanced, gone)).severity == "info"


@pytest.mark.parametrize("role", ["predictions", "labels"])
def test_a_role_without_any_consumer_is_missing(role: Role) -> None:
    other = "labels" if role == "predictions" else "predictions"
    at = PipelineState(NOW, [consumer(other)], Leader("a:8401", None), None)
    found = problem(at)
    assert (found.key, found.severity) == (f"consumer_missing:{role}", "critical")
    assert found.alert == "CredenceTopicUnread"
    assert f"`credence consume {role}`" in found.sentence
    assert at.role(role).is_missing
    assert (at.role(role).is_unread, at.role(other).is_unread) == (True, False)


def test_a_lone_consumer_that_starts_again_and_again_is_a_problem_each_time() -> None:
    new = {"state": "starting", "state_since": NOW - 1, "assigned_at": NOW - 1, "partitions": ()}
    starting = consumer("labels", partition_count=0, **new)
    assert state(starting).role("labels").is_unread
    assert (problem(state(starting)).key, problem(state(starting)).severity) == (
        "consumer_starting:labels",
        "warning",
    )
    assert pipeline_problems(state(starting, consumer("labels", "b:8401")), NOW) == []


def test_a_role_whose_consumers_are_all_silent_is_missing_since_the_last_report() -> None:
    found = problem(state(consumer("labels", written_at=NOW - 600)))
    assert (found.key, found.since) == ("consumer_missing:labels", NOW - 600)
    assert "The last report is 10 min old." in found.sentence


def test_a_consumer_may_lag_for_five_minutes() -> None:
    assert pipeline_problems(state(consumer("labels", lag_records=9, lag_seconds=299.0)), NOW) == []
    late = consumer("labels", lag_records=90_000, lag_seconds=1_200.0)
    found = problem(state(late, consumer("labels", "b:8401", lag_records=10, lag_seconds=1.0)))
    assert (found.alert, found.severity) == ("CredenceConsumerLagging", "warning")
    assert found.sentence == (
        "Consumers of labels are 90,010 records behind; the last processed record is 20 min old."
    )


@pytest.mark.parametrize(
    ("name", "severity", "alert"),
    [
        ("waiting", "warning", "CredenceDependencyDown"),
        ("refused", "warning", "CredenceDependencyDown"),
        ("starting", "warning", None),
        ("unreadable", "critical", "CredenceDependencyDown"),
    ],
)
def test_a_consumer_that_does_not_read_says_why(name: str, severity: str, alert: str | None) -> None:
    cause = "kafka is unavailable (KafkaConnectionError)"
    found = problem(state(consumer("labels", state=name, cause=cause, state_since=NOW - 31)))
    assert (found.key, found.severity, found.alert) == (f"consumer_{name}:labels", severity, alert)
    assert found.sentence.endswith(f", since 31 s ago: {cause}.")


def test_a_short_wait_is_no_problem() -> None:
    assert pipeline_problems(state(consumer("labels", state="waiting", state_since=NOW - 9)), NOW) == []


def test_refused_messages_of_two_consumers_add_up_and_one_is_the_example() -> None:
    few = intake("predictions", 1_000, replace(REFUSED, count=3, offset=1))
    at = state(intake=[few, intake("predictions", 1_000, REFUSED, process="b2")])
    (found,) = at.role("predictions").refused
    assert (found.count, found.offset) == (503, 17)
    assert problem(at).sentence.startswith(
        "503 of 2,000 messages of predictions were refused in the last hour"
    )


@pytest.mark.parametrize(
    ("recent", "messages", "severity"),
    [(9, 9, "info"), (10, 999, "warning"), (10, 1_000, "info"), (0, 1_000, None)],
)
def test_refused_messages_are_a_warning_from_the_alerts_thresholds_on(
    recent: int, messages: int, severity: str | None
) -> None:
    refused = (replace(REFUSED, count=recent),) if recent else ()
    at = state(intake=[intake("labels", messages, *refused)])
    assert [one.severity for one in pipeline_problems(at, NOW)] == ([] if severity is None else [severity])


def test_a_reset_says_what_was_lost() -> None:
    lost = RedisReset(
        NOW - 600, "emptied", 1_500, 0, {"credence.labels": 1_510, "credence.predictions": 9_000}
    )
    found = problem(state(reset=lost))
    assert (found.alert, found.severity, found.since) == ("CredenceRedisReset", "critical", NOW - 600)
    assert found.sentence == (
        "Redis was emptied or replaced 10 min ago. It held 1,500 labels before, 0 after. Records processed "
        "before: 1,510 of credence.labels, 9,000 of credence.predictions. Estimates use only what Redis "
        "holds now. Restore a backup of Redis, or accept the loss with `credence reset acknowledge`."
    )


def test_a_pipeline_without_a_leader_has_a_problem() -> None:
    assert problem(state(leader=None)).alert == "CredenceNoLeader"


def rounds(state: str, *, since: float = NOW - 60, at: float = NOW - 5) -> ConsumerHealth:
    """The report of a process that may lead."""
    cause = "kafka refuses: topic requests does not exist"
    return ConsumerHealth(ROUNDS, "a:8401", state, since, at, NOW - 900, cause=cause)


def test_rounds_that_fail_are_a_problem_that_says_why() -> None:
    found = problem(state(rounds("refused")))
    assert (found.key, found.severity, found.alert) == (
        "rounds_refused",
        "warning",
        "CredenceDependencyDown",
    )
    assert found.sentence == (
        "The rounds of the process at a:8401 fail, and it requests no labels, since 60 s ago: "
        "kafka refuses: topic requests does not exist."
    )


@pytest.mark.parametrize(
    "report",
    [rounds("running"), rounds("waiting", since=NOW - 9), rounds("waiting", at=NOW - 90)],
    ids=["succeed", "a short outage", "of a process that has ended"],
)
def test_other_reports_of_rounds_are_no_problem_and_no_consumer(report: ConsumerHealth) -> None:
    assert pipeline_problems(state(report), NOW) == []
    assert [one.role for one in pipeline_health(state(report), NOW).consumers] == ["predictions", "labels"]


def test_old_estimates_are_a_problem_of_their_model_and_not_of_the_pipeline_too() -> None:
    assert pipeline_problems(state(estimates_at=NOW - 301), NOW) == []
    assert pipeline_line(state(estimates_at=NOW - 301), NOW).endswith("estimates 5 min old")


def lost(kind: LossKind, *, partition: int = 0, records: int = 0, at: float = NOW - 600) -> Loss:
    return Loss("labels", kind, "credence.labels", partition, records, at)


def test_records_that_retention_deleted_are_a_problem_that_says_how_many_and_what_to_do() -> None:
    losses = [lost("deleted", records=1_200), lost("deleted", partition=3, records=34, at=NOW - 60)]
    found = problem(state(losses=losses))
    assert (found.key, found.alert, found.severity) == (
        "records_lost:labels",
        "CredenceRecordsLost",
        "warning",
    )
    assert found.since == NOW - 600
    assert found.sentence.startswith(
        "1,234 records of credence.labels were deleted before Credence read them (partitions 0, 3, 60 s ago)"
    )


def test_a_log_that_is_another_one_is_a_problem_for_every_kind_of_break() -> None:
    found = pipeline_problems(state(losses=[lost("recreated"), lost("truncated")]), NOW)
    assert [(one.key, one.alert, one.severity) for one in found] == [
        ("log_recreated:labels", "CredenceLogBroken", "warning"),
        ("log_truncated:labels", "CredenceLogBroken", "warning"),
    ]
    assert "deleted and created again" in found[0].sentence
    assert "lost its end" in found[1].sentence


@pytest.mark.parametrize(
    ("calls", "failed", "is_problem"), [(20, 2, True), (40, 2, False), (1, 1, False), (2, 2, True)]
)
def test_calls_of_a_vendor_fail_from_the_alerts_thresholds_on(
    calls: int, failed: int, is_problem: bool
) -> None:
    halves = [
        VendorCalls("acme", "a", calls - 1, failed - 1, NOW - 60),
        VendorCalls("acme", "b", 1, 1, NOW),
        VendorCalls("bolt", "a", 100, 0, NOW),
    ]
    found = [one.key for one in pipeline_problems(state(vendor_calls=halves), NOW)]
    assert found == (["vendor_api_failing:acme"] if is_problem else [])


def test_while_redis_does_not_answer_consumers_are_judged_by_when_it_did() -> None:
    found = problem(state(estimates_at=None), NOW + 100)
    assert (found.key, found.alert) == ("redis_unreachable", "CredenceDependencyDown")
    assert "Redis has not answered for 100 s" in found.sentence


def test_the_most_severe_problem_comes_first() -> None:
    at = state(consumer("labels", state="paused"), leader=None, reset=RedisReset(NOW, "rolled_back", 9, 8))
    assert [one.severity for one in pipeline_problems(at, NOW)] == ["critical", "critical", "warning"]


def test_clocks_that_differ_make_no_consumer_silent_and_no_time_negative() -> None:
    ahead = consumer("labels", written_at=NOW + 500, state_since=NOW + 400, state="waiting")
    assert pipeline_problems(state(ahead), NOW) == []
    assert duration(-5) == "0 s"


def test_the_document_has_every_consumer_with_its_silence() -> None:
    at = state(consumer("labels"), consumer("labels", "b:8401", written_at=NOW - 90))
    found = pipeline_health(at, NOW)
    silent = {(one.role, one.member): one.silent for one in found.consumers}
    assert silent == {
        ("predictions", "a:8401"): False,
        ("labels", "a:8401"): False,
        ("labels", "b:8401"): True,
    }
    assert found.leader is not None
    assert found.leader.name == "a:8401"
