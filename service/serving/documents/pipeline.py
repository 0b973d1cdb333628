"""The health of the pipeline: the document, made from its state."""

from __future__ import annotations

from pydantic import Field

from service.monitoring.pipeline import ROLES, PipelineState, Role, RoleState
from service.monitoring.pipeline_problems import pipeline_line, pipeline_problems, reset_sentence
from service.monitoring.problem import Severity
from service.serving.documents.base import Document, Seconds
from service.store.consumer_health import ConsumerHealth
from service.store.resets import ResetKind


class PipelineIssue(Document):
    """One problem of the pipeline."""

    key: str = Field(description="stable identifier of the problem")
    severity: Severity
    alert: str | None = Field(description="the alert that fires if the problem lasts; null if there is none")
    since: Seconds | None = Field(description="when it began; null if unknown")
    sentence: str = Field(description="what is wrong, how bad it is, and what to do")


class PipelineLine(Document):
    """The health of the pipeline in short."""

    sentence: str = Field(description="the health of the pipeline in one line")
    problems: list[PipelineIssue] = Field(description="the most severe first; empty if there are none")


class RefusedReason(Document):
    """Messages that were refused for one reason, and an example without message content."""

    reason: str
    count: int = Field(description="in the last hour")
    last_at: Seconds
    topic: str = Field(description="of the example")
    partition: int = Field(description="of the example")
    offset: int = Field(description="of the example")
    index: int | None = Field(description="position in the array; null for a single message")
    field: str = Field(description="the invalid field; empty if it is not a single field")
    detail: str = Field(description="why, in words")


class ConsumerState(Document):
    """One consumer, by its last report."""

    role: str
    member: str = Field(description="host and port of its metrics")
    state: str = Field(description="state, as in `/readyz`")
    silent: bool = Field(description="whether its last report is over 60 s old")
    cause: str = Field(description="why it waits or is paused; empty while it runs")
    state_since: Seconds
    started_at: Seconds
    written_at: Seconds = Field(description="when it last reported")
    partitions: list[int]
    lag_records: int = Field(description="records of its partitions that are not processed")
    lag_seconds: Seconds = Field(description="age of the last processed record while others wait")


class RoleHealth(Document):
    """The consumers of one topic together; silent ones do not count."""

    role: Role
    consumers: int
    lag_records: int
    lag_seconds: Seconds = Field(description="lag of the partition that lags most, in seconds")
    messages: int = Field(description="processed in the last hour, refused ones included")
    refused: list[RefusedReason] = Field(description="in the last hour, the most frequent reason first")
    unassigned: list[int] = Field(description="partitions that no consumer reads")


class LeaderState(Document):
    """The process that requests labels."""

    name: str = Field(description="host and port of its metrics")
    since: Seconds | None


class ResetState(Document):
    """Data that Redis lost; shown until `credence reset acknowledge`."""

    since: Seconds = Field(description="when the loss was detected")
    kind: ResetKind
    labels_before: int | None = Field(description="null if unknown")
    labels_now: int | None = Field(description="when it was detected; null if unknown")
    records: dict[str, int] = Field(description="of each topic, processed before the loss")
    sentence: str


class PipelineHealth(PipelineLine):
    """Consumers, leader, age of estimates, and data that Redis lost."""

    now: Seconds
    read_at: Seconds = Field(description="when the health was read from Redis")
    estimates_at: Seconds | None = Field(
        description="when the oldest estimates of any model were computed; null before the first round"
    )
    roles: list[RoleHealth]
    consumers: list[ConsumerState]
    leader: LeaderState | None = Field(description="null if no process requests labels")
    reset: ResetState | None = Field(description="null if Redis lost nothing")


def pipeline_in_short(state: PipelineState, now: float) -> PipelineLine:
    """A line, and the problems."""
    problems = [PipelineIssue.of(problem) for problem in pipeline_problems(state, now)]
    return PipelineLine(sentence=pipeline_line(state, now), problems=problems)


def pipeline_health(state: PipelineState, now: float) -> PipelineHealth:
    """Everything about the pipeline, in numbers and in sentences."""
    roles = [state.role(role) for role in ROLES]
    reset = state.reset
    return PipelineHealth(
        now=now,
        read_at=state.read_at,
        estimates_at=state.estimates_at,
        **dict(pipeline_in_short(state, now)),
        roles=[_role(role) for role in roles],
        consumers=[
            _consumer(one, silent=silent)
            for role in roles
            for silent, consumers in ((False, role.reporting), (True, role.silent))
            for one in consumers
        ],
        leader=None if state.leader is None else LeaderState.of(state.leader),
        reset=None if reset is None else ResetState.of(reset, sentence=reset_sentence(reset, now)),
    )


def _role(role: RoleState) -> RoleHealth:
    return RoleHealth.of(
        role,
        consumers=len(role.reporting),
        refused=[RefusedReason.of(one) for one in role.refused],
    )


def _consumer(health: ConsumerHealth, *, silent: bool) -> ConsumerState:
    return ConsumerState.of(health, silent=silent)
