"""What is wrong with the pipeline, in sentences, with the alert that reports each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.domain.times import duration
from service.monitoring.loss_problems import listed, loss_problems, vendor_problems
from service.monitoring.pipeline import ROLES, PipelineState, RoleState
from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.problem import SEVERITIES, Severity
from service.store.consumer_health import ConsumerHealth
from service.store.recent_reports import RefusedMessages
from service.store.resets import RedisReset

LAGGING_SECONDS = 300.0
REFUSED_SHARE = 0.01
REFUSED_MESSAGES = 10
"""The thresholds of CredenceConsumerLagging and CredenceDeadLetters."""

_UNREAD_SECONDS = 30.0
"""After so long without an answer of Redis the state is out of date; rounds read it every few seconds."""

_WAITING_SECONDS = 30.0
"""How long a consumer may wait for Kafka, start, or take over partitions, before that is a problem."""

_MOST_REASONS = 3


def pipeline_problems(state: PipelineState | None, now: float) -> list[PipelineProblem]:
    """All problems of the pipeline, the most severe first; empty if none is known."""
    if state is None:
        return []
    problems = [*_of_redis(state, now)]
    for role in ROLES:
        problems += _of_role(state.role(role), now)
    problems += [
        *_of_leader(state, now),
        *loss_problems(state.losses, now),
        *vendor_problems(state.vendor_calls),
    ]
    return sorted(problems, key=lambda problem: SEVERITIES.index(problem.severity))


def pipeline_line(state: PipelineState, now: float) -> str:
    """The health of the pipeline in one line."""
    parts = [_role_line(state.role(role)) for role in ROLES]
    leader = state.leader
    if leader is None:
        parts.append("no leader")
    else:
        since = "" if leader.since is None else f" for {duration(now - leader.since)}"
        parts.append(f"leader {leader.name or 'unnamed'}{since}")
    if state.estimates_at is not None:
        parts.append(f"estimates {duration(now - state.estimates_at)} old")
    return "; ".join(parts)


def _role_line(role: RoleState) -> str:
    count = len(role.reporting)
    text = f"{role.role}: {_consumers(count)}"
    if count:
        text += f", {role.lag_records:,} records behind"
    for state in ("paused", "unreadable", "waiting", "refused", "starting"):
        if stopped := len(role.in_state(state)):
            text += f", {stopped} {state}"
    if refused := sum(one.count for one in role.refused):
        text += f", {refused:,} of {role.messages:,} messages refused in the last hour"
    return text


def _consumers(count: int) -> str:
    return "no consumer" if not count else "1 consumer" if count == 1 else f"{count} consumers"


def _of_redis(state: PipelineState, now: float) -> Iterator[PipelineProblem]:
    if state.reset is not None:
        sentence = reset_sentence(state.reset, now)
        yield PipelineProblem("redis_reset", "critical", "CredenceRedisReset", state.reset.since, sentence)
    unread = now - state.read_at
    if unread > _UNREAD_SECONDS:
        sentence = (
            f"Redis has not answered for {duration(unread)}. What is shown of the pipeline is that old."
        )
        yield PipelineProblem(
            "redis_unreachable", "warning", "CredenceDependencyDown", state.read_at, sentence
        )


def reset_sentence(reset: RedisReset, now: float) -> str:
    """What Redis lost, and what to do."""
    what = "Redis was emptied or replaced" if reset.kind == "emptied" else "Redis returned to an older state"
    sentences = [f"{what} {duration(now - reset.since)} ago."]
    if reset.labels_before is not None:
        after = "" if reset.labels_now is None else f", {reset.labels_now:,} after"
        sentences.append(f"It held {reset.labels_before:,} labels before{after}.")
    if reset.records:
        read = ", ".join(f"{count:,} of {topic}" for topic, count in reset.records.items())
        sentences.append(f"Records processed before: {read}.")
    sentences.append(
        "Estimates use only what Redis holds now. Restore a backup of Redis, or accept the loss with "
        "`credence reset acknowledge`."
    )
    return " ".join(sentences)


def _of_role(role: RoleState, now: float) -> Iterator[PipelineProblem]:
    name = role.role
    if role.is_missing:
        yield _missing(role, now)
        return
    for one in role.in_state("paused"):
        yield PipelineProblem(
            f"consumer_paused:{name}",
            "critical",
            "CredenceConsumerPaused",
            one.state_since,
            f"The consumer of {name} at {one.member} paused {duration(now - one.state_since)} ago, because "
            f"too many messages are bad: {_reasons(one.refused)} It discards nothing more. Fix the producer "
            "or the configuration, then restart the consumer.",
        )
    for one in role.in_state("unreadable"):
        yield _stopped(one, "critical", "cannot read a record", now)
    for one in role.in_state("waiting", "refused", "starting"):
        # One that starts again and again never starts for long.
        reads_nothing = one.state == "starting" and role.is_unread
        if reads_nothing or now - one.state_since > _WAITING_SECONDS:
            yield _stopped(one, "warning", "reads nothing", now)
    settled = all(now - one.assigned_at > _WAITING_SECONDS for one in role.reporting)
    if role.unassigned and settled:
        yield PipelineProblem(
            f"partitions_unassigned:{name}",
            "critical",
            "CredenceTopicUnread",
            None,
            f"Nobody reads {len(role.unassigned)} partitions of {name}: {listed(role.unassigned)}. "
            f"{_silent(role, now)}Start more consumers, or look at the log of the ones that run.",
        )
    elif role.silent:
        yield PipelineProblem(
            f"consumer_silent:{name}",
            "info",
            "CredenceReplicaDown",
            max(one.written_at for one in role.silent),
            f"{_silent(role, now)}Other consumers read its partitions.",
        )
    if role.lag_seconds > LAGGING_SECONDS:
        yield PipelineProblem(
            f"consumer_lagging:{name}",
            "warning",
            "CredenceConsumerLagging",
            None,
            f"Consumers of {name} are {role.lag_records:,} records behind; the last processed record is "
            f"{duration(role.lag_seconds)} old.",
        )
    yield from _of_refused(role)


def _missing(role: RoleState, now: float) -> PipelineProblem:
    since = max((one.written_at for one in role.silent), default=None)
    last = "" if since is None else f" The last report is {duration(now - since)} old."
    return PipelineProblem(
        f"consumer_missing:{role.role}",
        "critical",
        "CredenceTopicUnread",
        since,
        f"No consumer reads {role.role}.{last} Start `credence consume {role.role}` or `credence run`. If it "
        "runs, look at its log: a consumer that cannot reach Kafka or Redis does not report.",
    )


def _stopped(one: ConsumerHealth, severity: Severity, what: str, now: float) -> PipelineProblem:
    cause = f": {one.cause}" if one.cause else f" ({one.state})"
    return PipelineProblem(
        f"consumer_{one.state}:{one.role}",
        severity,
        None if one.state == "starting" else "CredenceDependencyDown",
        one.state_since,
        f"The consumer of {one.role} at {one.member} {what}, since {duration(now - one.state_since)} ago"
        f"{cause}.",
    )


def _of_refused(role: RoleState) -> Iterator[PipelineProblem]:
    count = sum(one.count for one in role.refused)
    if not count:
        return
    many = any(
        one.count >= REFUSED_MESSAGES and one.count > REFUSED_SHARE * role.messages for one in role.refused
    )
    yield PipelineProblem(
        f"messages_refused:{role.role}",
        "warning" if many else "info",
        "CredenceDeadLetters" if many else None,
        None,
        f"{count:,} of {role.messages:,} messages of {role.role} were refused in the last hour: "
        f"{_reasons(role.refused)} List them with `credence dead-letters list`.",
    )


def _reasons(refused: Sequence[RefusedMessages]) -> str:
    """Counts of the most frequent reasons, and an example of the first."""
    if not refused:
        return "the reasons are in its log."
    first = refused[0]
    counts = ", ".join(f"{one.reason} {one.count:,}" for one in refused[:_MOST_REASONS])
    place = f"{first.topic}, partition {first.partition}, offset {first.offset}"
    element = "" if first.index is None else f", element {first.index}"
    return f"{counts}. Example: {place}{element}: {first.detail}."


def _silent(role: RoleState, now: float) -> str:
    each = [f"{one.member} ({duration(now - one.written_at)} ago)" for one in role.silent]
    return f"Silent consumers of {role.role}, with their last report: {', '.join(each)}. " if each else ""


def _of_leader(state: PipelineState, now: float) -> Iterator[PipelineProblem]:
    for one in state.failed_rounds:
        if now - one.state_since > _WAITING_SECONDS:
            yield PipelineProblem(
                f"rounds_{one.state}",
                "warning",
                "CredenceDependencyDown",
                one.state_since,
                f"The rounds of the process at {one.member} fail, and it requests no labels, since "
                f"{duration(now - one.state_since)} ago: {one.cause}.",
            )
    if state.leader is None:
        yield PipelineProblem(
            "no_leader",
            "warning",
            "CredenceNoLeader",
            None,
            "No process holds the leader's lease, so no labels are requested. Start `credence schedule` or "
            "`credence run`.",
        )
