"""Snapshots as the documents of models, assessments and their activity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from service import __version__
from service.config.assessments import PerformanceSettings
from service.config.model import ModelSettings
from service.domain.groupings import ALL, ByAttribute, Everything
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import questions, words
from service.serving.documents.drifts import drift_summary
from service.serving.documents.evidence import changes
from service.serving.documents.findings import finding_count, findings
from service.serving.documents.performances import missed_targets, performance_summaries
from service.serving.documents.schemas import (
    Activity,
    AssessmentState,
    AttributeState,
    BudgetState,
    ChallengeGroup,
    Comparison,
    FlowBin,
    GroupingSummary,
    Interval,
    MemberState,
    ModelState,
    ModelSummary,
    NextGroup,
    Overview,
    RankedGroup,
    RecentLabel,
    RequestState,
    Thresholds,
)
from service.statistics.estimate import Estimate

_MOST_RANKED = 20
_MOST_NEXT = 10
_MOST_REQUESTS = 50


def overview(
    models: Sequence[str], snapshots: Sequence[ModelSnapshot], *, tick_seconds: float, now: float
) -> Overview:
    """All models in a line each.

    Args:
        models: names of all that are configured.
        snapshots: the latest of those that have one.
        tick_seconds: time between two rounds.
        now: seconds since the epoch.
    """
    taken = {snapshot.model: snapshot for snapshot in snapshots}
    return Overview(
        version=__version__,
        now=now,
        tick_seconds=tick_seconds,
        models=[_summary(name, taken.get(name)) for name in models],
    )


def _summary(model: str, snapshot: ModelSnapshot | None) -> ModelSummary:
    return ModelSummary(
        model=model,
        taken_at=snapshot.taken_at if snapshot else None,
        predictions=snapshot.predictions if snapshot else 0,
        outcomes=snapshot.outcomes if snapshot else 0,
        last_label_at=snapshot.last_label_at if snapshot else None,
        accuracy=_overall_accuracy(snapshot) if snapshot else None,
        finding_count=_finding_count(snapshot) if snapshot else 0,
        missed_targets=missed_targets(snapshot) if snapshot else 0,
        watched=snapshot is not None and _is_watched(snapshot.settings),
        labels_remaining=sum(state.budget_remaining for state in snapshot.assessments.values())
        if snapshot
        else 0,
    )


def model_state(snapshot: ModelSnapshot) -> ModelState:
    """Everything of one model but its groups."""
    everything = snapshot.groupings.get(ALL)
    return ModelState(
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        interval=snapshot.settings.interval,
        thresholds=_thresholds(snapshot.settings),
        predictions=snapshot.predictions,
        outcomes=snapshot.outcomes,
        pool_items=snapshot.pool_items,
        pool_item_age_seconds=snapshot.pool_item_age,
        outbox_size=snapshot.outbox_size,
        attributes=[
            AttributeState(attribute=name, values=one.values, limit=one.limit, other_share=one.other_share)
            for name, one in snapshot.attributes.items()
        ],
        last_label_at=snapshot.last_label_at,
        accuracy=_overall_accuracy(snapshot),
        ece=None if everything is None else Interval.of(everything.ece, 0),
        finding_count=_finding_count(snapshot),
        findings=findings(snapshot),
        changes=changes(snapshot),
        groupings=[_grouping_summary(snapshot, name) for name in snapshot.groupings],
        assessments=[
            _assessment_state(name, state, snapshot) for name, state in snapshot.assessments.items()
        ],
        performances=performance_summaries(snapshot),
        drift=drift_summary(snapshot),
        has_confusion=any(grouping.confusion is not None for grouping in snapshot.groupings.values()),
    )


def activity(snapshot: ModelSnapshot) -> Activity:
    """Label requests and labels of late."""
    newest = sorted(snapshot.requests.items(), key=lambda item: -item[1].requested_at)[:_MOST_REQUESTS]
    flow = snapshot.flow
    revealed = {name for name, one in snapshot.settings.assessments.items() if one.reveal_prediction}
    # Of groups by class or score the name is, or narrows, what the model said.
    harmless = {
        name
        for name, state in snapshot.assessments.items()
        if (grouping := snapshot.groupings.get(state.grouping))
        and isinstance(grouping.by, Everything | ByAttribute)
    }
    return Activity(
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        requests=[
            RequestState(
                request_id=request_id,
                assessment=request.assessment,
                group=request.group if request.assessment in revealed | harmless else None,
                requested_at=request.requested_at,
                attempt=request.attempt,
                predicted_class=request.predicted_class if request.assessment in revealed else None,
                score=request.score if request.assessment in revealed else None,
            )
            for request_id, request in newest
        ],
        labels=[
            RecentLabel(
                request_id=entry.fact.request_id,
                item_id=entry.fact.item_id,
                assessment=entry.assessment,
                group=entry.fact.group,
                predicted_class=entry.fact.predicted_class,
                true_class=entry.label.true_class,
                correct=entry.fact.predicted_class == entry.label.true_class,
                score=entry.fact.score,
                given_at=entry.label.time,
                delay_seconds=max(0.0, entry.label.time - entry.fact.requested_at),
            )
            for entry in snapshot.recent
        ],
        flow=[
            FlowBin(begin=begin, end=end, correct=correct, incorrect=incorrect)
            for begin, end, correct, incorrect in zip(
                flow.edges[:-1].tolist(),
                flow.edges[1:].tolist(),
                flow.correct.tolist(),
                flow.incorrect.tolist(),
                strict=True,
            )
        ],
    )


def _finding_count(snapshot: ModelSnapshot) -> int:
    return sum(finding_count(grouping) for grouping in snapshot.groupings.values())


def _is_watched(settings: ModelSettings) -> bool:
    return (
        settings.alerts.min_accuracy is not None
        or settings.alerts.max_ece is not None
        or any(asked.targets.wanted for asked in settings.assessments_of(PerformanceSettings).values())
    )


def _grouping_summary(snapshot: ModelSnapshot, name: str) -> GroupingSummary:
    grouping = snapshot.groupings[name]
    watched = grouping.accuracy_below is not None
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(name)
    return GroupingSummary(
        name=name,
        by=grouping.by.kind,
        groups=len(grouping.groups),
        findings=finding_count(grouping),
        meets=int(grouping.meets.sum()),
        open=int((~grouping.low & ~grouping.meets).sum()) if watched else 0,
        drifted=0 if drift is None else int(drift.drifted.sum()),
    )


def _thresholds(settings: ModelSettings) -> Thresholds:
    alerts = settings.alerts
    return Thresholds(
        min_accuracy=alerts.min_accuracy,
        max_ece=alerts.max_ece,
        confidence=alerts.confidence,
        min_labels=alerts.min_labels,
    )


def _overall_accuracy(snapshot: ModelSnapshot) -> Interval | None:
    everything = snapshot.groupings.get(ALL)
    if everything is None:
        return None
    return Interval.of(everything.accuracy, 0)


def _assessment_state(name: str, state: AssessmentSnapshot, snapshot: ModelSnapshot) -> AssessmentState:
    settings, grouping = state.settings, snapshot.groupings.get(state.grouping)
    ensemble, challenge = snapshot.ensembles.get(name), snapshot.challenges.get(name)
    return AssessmentState(
        name=name,
        task=settings.task,
        metric=settings.metric,
        grouping=state.grouping,
        policy=questions.chooser(settings),
        question=questions.question(settings),
        found=words.found(state, grouping, snapshot.performances.get(name), ensemble, challenge),
        budget=BudgetState(
            labels=settings.budget.labels, remaining=state.budget_remaining, renews_at=state.renews_at
        ),
        open_requests=state.open_requests,
        max_in_flight=settings.max_in_flight,
        oldest_request_at=state.oldest_request_at,
        events=state.events,
        ranking=_ranking(state),
        comparison=None if state.compared is None else Comparison(**asdict(state.compared)),
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
            precision=Interval.of(told, m),
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
            difference=Interval.of(there.difference, g),
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
            rank=Interval.of(ranks, int(g)),
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
