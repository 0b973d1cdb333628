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
from service.serving.documents import questions, words
from service.serving.documents.base import Document, Interval, Seconds
from service.statistics.estimate import Estimate

_MOST_RANKED = 20
_MOST_NEXT = 10


class BudgetState(Document):
    """Labels that an assessment may cost."""

    labels: int = Field(description="allowed in one window")
    remaining: int = Field(description="left in this window")
    renews_at: Seconds | None = Field(description="when the next window begins; never, if null")


class RankedGroup(Document):
    """One group of an identification."""

    group: str
    probability: float = Field(description="that it is among the groups looked for")
    rank: Interval = Field(description="counted from 1 at the end that is looked for")


class Comparison(Document):
    """How two groups compare."""

    first: str
    second: str
    region: float = Field(description="difference of accuracies that does not matter")
    below: float = Field(description="probability that the first is less accurate by more than the region")
    within: float = Field(description="probability that they differ by the region at most")
    above: float = Field(description="probability that the first is more accurate by more than the region")


class MemberState(Document):
    """How one member of an ensemble stands; the first one is the ensemble itself."""

    member: str
    precision: Interval = Field(description="how many of the items that it calls positive are")
    share: float = Field(description="of the traffic, that it calls positive")
    labels: float = Field(description="of such items, as many as they are worth")
    missed: float | None = Field(description="probability that the target is missed; null without one")


class ChallengeGroup(Document):
    """How a challenger compares with the model, in one group or over all traffic."""

    group: str
    overall: bool = Field(description="whether this is all traffic, and no group")
    share: float = Field(description="of the traffic for which the challenger's predictions are known")
    disagreement: float = Field(description="share of it on which the two disagree")
    labels: float = Field(description="of disagreements, as many as they are worth")
    difference: Interval = Field(description="accuracy of the challenger less that of the model")
    better: float = Field(description="probability that the challenger is better by more than the margin")
    worse: float = Field(description="probability that it is worse by more than the margin")
    evidence_better: float = Field(description="e-value of the first: at least 20 is rare by chance, ever")
    evidence_worse: float = Field(description="e-value of the second")


class NextGroup(Document):
    """A group that the policy may ask about next."""

    group: str
    probability: float = Field(description="that it is asked next")
    in_flight: int = Field(description="requests for it that wait for an answer")
    labels: int = Field(description="labels in the group so far")
    why: str = Field(description="the reason in words")


class AssessmentState(Document):
    """How one standing question stands."""

    name: str
    task: Task
    metric: str
    grouping: str = Field(description="the grouping that labels are asked by")
    policy: str = Field(
        description="who chooses what is labelled next; of an ensemble or a challenge `planned`"
    )
    question: str = Field(description="what is asked, in words")
    found: str = Field(description="what has been found, in words; empty where nothing can be said")
    budget: BudgetState
    open_requests: int
    max_in_flight: int
    oldest_request_at: Seconds | None
    events: dict[str, int] = Field(description="how often what happened to its requests")
    ranking: list[RankedGroup] = Field(description="of identification: the likeliest groups, at most 20")
    comparison: Comparison | None
    members: list[MemberState] = Field(description="of an ensemble, itself first")
    challenge: list[ChallengeGroup] = Field(
        description="of a challenge: all traffic first, then the groups that differ most surely, at most 20"
    )
    next: list[NextGroup] = Field(description="the likeliest groups, at most 10")


def assessment_state(snapshot: ModelSnapshot, name: str) -> AssessmentState:
    """What one assessment asks, what is in flight, and what it has found."""
    state = snapshot.assessments[name]
    settings, grouping = state.settings, snapshot.groupings.get(state.grouping)
    ensemble, challenge = snapshot.ensembles.get(name), snapshot.challenges.get(name)
    return AssessmentState.of(
        state,
        name=name,
        task=settings.task,
        metric=settings.metric,
        policy=questions.chooser(settings),
        question=questions.question(settings),
        found=words.found(state, grouping, snapshot.performances.get(name), ensemble, challenge),
        budget=BudgetState(
            labels=settings.budget.labels, remaining=state.budget_remaining, renews_at=state.renews_at
        ),
        max_in_flight=settings.max_in_flight,
        ranking=_ranking(state),
        comparison=state.compared and Comparison.of(state.compared, region=settings.region),
        members=[] if ensemble is None else _members(ensemble),
        challenge=[] if challenge is None else _challenge(challenge),
        next=[] if grouping is None else _next(state, grouping),
    )


def _members(ensemble: EnsembleSnapshot) -> list[MemberState]:
    beliefs, missed = ensemble.beliefs, ensemble.missed
    told = Estimate(beliefs.lower, beliefs.mean, beliefs.upper)
    return [
        MemberState(
            member=name,
            precision=Interval.at(told, m),
            share=float(ensemble.shares[m]),
            labels=float(ensemble.labels[m]),
            missed=None if missed is None or np.isnan(missed[m]) else float(missed[m]),
        )
        for m, name in enumerate(ensemble.members)
    ]


def _challenge(there: ChallengeSnapshot) -> list[ChallengeGroup]:
    surest = np.argsort(-np.maximum(there.better, there.worse)[1:], kind="stable")[:_MOST_RANKED] + 1
    return [
        ChallengeGroup(
            group=there.groups[g],
            overall=g == 0,
            share=float(there.shares[g]),
            disagreement=float(there.disagreement[g]),
            labels=float(there.labels[g]),
            difference=Interval.at(there.difference, g),
            better=float(there.better[g]),
            worse=float(there.worse[g]),
            evidence_better=float(there.evidence_better[g]),
            evidence_worse=float(there.evidence_worse[g]),
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
            rank=Interval.at(ranks, int(g)),
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
