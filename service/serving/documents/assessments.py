"""Assessments, what they ask and what they have found: the documents, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.domain.assessments import Task
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Interval, Seconds, finite_or_none
from service.serving.documents.error_rates import ErrorRateState, error_rate_state
from service.serving.documents.questions import chooser, question

_MOST_RANKED = 20
_MOST_NEXT = 10


class BudgetState(Document):
    """The label budget of an assessment."""

    labels: int = Field(description="allowed in one period")
    remaining: int = Field(description="left in this period")
    renews_at: Seconds | None = Field(description="when the next period begins; null: never")
    available: int = Field(description="that may be requested now, for any group")
    reserve: int = Field(description="left in this period that only suspected groups may get")
    seconds_per_label: float | None = Field(
        description="mean time between two labels until the budget renews; null if no label is due"
    )
    sentence: str = Field(description="the same in words")


class RankedGroup(Document):
    """One group of an identification."""

    group: str
    probability: float = Field(description="posterior probability that it is among the top m")
    rank: Interval = Field(description="1 is the most extreme")


class Comparison(Document):
    """Two groups compared."""

    first: str
    second: str
    region: float = Field(
        description="region of practical equivalence: a smaller difference in accuracy counts as none"
    )
    below: float = Field(description="probability that the first is less accurate by more than the region")
    within: float = Field(description="probability that they differ by at most the region")
    above: float = Field(description="probability that the first is more accurate by more than the region")


class MemberState(Document):
    """One member of an ensemble; the first one is the ensemble itself."""

    member: str
    precision: Interval = Field(description="share of predicted positives that are positive")
    share: float = Field(description="of the traffic that it predicts as positive")
    labels: float = Field(description="effective number of labels of such items")
    missed: float | None = Field(description="probability that the target is missed; null without a target")


class ChallengeGroup(Document):
    """A challenger compared with the model, in one group or over all traffic."""

    group: str
    overall: bool = Field(description="whether this is all traffic rather than a group")
    share: float = Field(description="of the traffic with a prediction of the challenger")
    disagreement: float = Field(description="share of it on which the two disagree")
    labels: float = Field(description="effective number of labels of disagreements")
    difference: Interval = Field(description="accuracy of the challenger minus that of the model")
    better: float = Field(description="probability that the challenger is better by more than the margin")
    worse: float = Field(description="probability that it is worse by more than the margin")
    evidence_better: float = Field(
        description="e-value for `better`: by chance it ever reaches 20 with a probability of at most 5%"
    )
    evidence_worse: float = Field(description="e-value for `worse`")


class NextGroup(Document):
    """A group that the next label request may go to."""

    group: str
    probability: float = Field(description="that the next label request goes to it")
    in_flight: int = Field(description="open requests for it")
    labels: int = Field(description="labels in the group so far")
    why: str = Field(description="the reason in words")


class AssessmentState(Document):
    """The state of one assessment."""

    name: str
    task: Task
    metric: str
    grouping: str = Field(description="grouping by which labels are requested")
    policy: str = Field(
        description="policy that chooses what is labelled next; `planned` for an ensemble or a challenge"
    )
    question: str = Field(description="the question in words")
    found: str = Field(description="the result in words; empty if there is none yet")
    budget: BudgetState
    open_requests: int
    max_in_flight: int
    oldest_request_at: Seconds | None
    events: dict[str, int] = Field(description="number of events of its requests, by event")
    ranking: list[RankedGroup] = Field(description="for identification: the most probable groups, at most 20")
    comparison: Comparison | None
    members: list[MemberState] = Field(description="for an ensemble, itself first")
    challenge: list[ChallengeGroup] = Field(
        description="for a challenge: all traffic, then groups by probability of a difference, at most 20"
    )
    error_rates: ErrorRateState | None = Field(description="for error rates; null without traffic")
    next: list[NextGroup] = Field(description="the most probable groups, at most 10")


def assessment_state(snapshot: ModelSnapshot, name: str) -> AssessmentState:
    """What one assessment asks, what is in flight, and what it has found."""
    state = snapshot.assessments[name]
    settings, grouping = state.settings, snapshot.groupings.get(state.grouping)
    ensemble, challenge = snapshot.ensembles.get(name), snapshot.challenges.get(name)
    error_rates = snapshot.error_rates.get(name)
    return AssessmentState.of(
        state,
        name=name,
        task=settings.task,
        metric=settings.metric,
        policy=chooser(settings),
        question=question(settings),
        found=words.found(snapshot, name),
        budget=BudgetState.of(
            state.budget,
            labels=settings.budget.labels,
            seconds_per_label=finite_or_none(state.budget.seconds_per_label(snapshot.taken_at)),
            sentence=words.budget_sentence(state.budget, settings.budget.labels, snapshot.taken_at),
        ),
        max_in_flight=settings.max_in_flight,
        ranking=_ranking(state),
        comparison=state.compared and Comparison.of(state.compared),
        members=[] if ensemble is None else _members(ensemble),
        challenge=[] if challenge is None else _challenge(challenge),
        error_rates=None if error_rates is None else error_rate_state(error_rates),
        next=[] if grouping is None else _next(state, grouping),
    )


def _members(ensemble: EnsembleSnapshot) -> list[MemberState]:
    missed = ensemble.missed
    return [
        MemberState.at_index(
            ensemble,
            m,
            member=name,
            precision=Interval.at_index(ensemble.beliefs, m),
            share=ensemble.shares[m].item(),
            missed=None if missed is None else finite_or_none(missed[m]),
        )
        for m, name in enumerate(ensemble.members)
    ]


def _challenge(there: ChallengeSnapshot) -> list[ChallengeGroup]:
    surest = np.argsort(-np.maximum(there.better, there.worse)[1:], kind="stable")[:_MOST_RANKED] + 1
    return [
        ChallengeGroup.at_index(
            there,
            g,
            group=there.groups[g],
            overall=g == 0,
            share=there.shares[g].item(),
            difference=Interval.at_index(there.difference, g),
        )
        for g in [0, *surest.tolist()]
    ]


def _ranking(state: AssessmentSnapshot) -> list[RankedGroup]:
    if state.extreme is None or state.ranks is None:
        return []
    ranks = state.ranks
    return [
        RankedGroup(
            group=state.groups[g],
            probability=float(state.extreme[g]),
            rank=Interval.at_index(ranks, int(g)),
        )
        for g in np.lexsort((ranks.mean, -state.extreme))[:_MOST_RANKED]
    ]


def _next(state: AssessmentSnapshot, grouping: GroupingSnapshot) -> list[NextGroup]:
    if state.next is None:
        return []
    return [
        NextGroup(
            group=state.groups[g],
            probability=float(state.next[g]),
            in_flight=int(state.in_flight[g]),
            labels=int(grouping.beliefs.labels_counted[g]),
            why=words.why_next(state, grouping, int(g)),
        )
        for g in np.argsort(-state.next, kind="stable")[:_MOST_NEXT]
        if state.next[g] > 0
    ]
