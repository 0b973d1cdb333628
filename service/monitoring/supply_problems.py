"""What is wrong with what a model's estimates live on: labels, draws, times, attribute values (pure).

Conditions are those of alert rules; those over time are in `count_trends.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.monitoring.history import Since
from service.monitoring.problem import Problem

if TYPE_CHECKING:
    from service.monitoring.snapshot import ModelSnapshot

FOLDED_SHARE = 0.05
"""Share of traffic in `__other__` above which values of an attribute are folded too often."""

_HOUR, _DAY = 3_600.0, 86_400.0


def supply_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    """Problems of labels, draws, times and attribute values."""
    yield from _label_problems(snapshot)
    yield from _traffic_problems(snapshot)


def _label_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    trends = snapshot.trends
    yield from _vendor_problems(snapshot)
    if _labels_are_missed(snapshot):
        yield _labels_stale(snapshot)
    for assessment, count in trends.unanswered.items():
        if assessment in snapshot.assessments:
            yield Problem(
                kind="requests_unanswered",
                severity="warning",
                alerts=("CredenceRequestsUnanswered",),
                subject=assessment,
                amount=count,
            )
    if snapshot.unanswered.is_problem:
        yield Problem(
            kind="answers_missing",
            severity="warning",
            alerts=("CredenceAnswersMissing",),
            amount=snapshot.unanswered.worst_case_share,
            share=snapshot.unanswered.share,
        )
    for assessment, state in snapshot.assessments.items():
        if state.budget.is_exhausted:
            yield Problem(
                kind="budget_exhausted",
                severity="warning",
                alerts=("CredenceBudgetExhausted",),
                subject=assessment,
                amount=state.settings.budget.labels,
                at=state.budget.renews_at,
            )
    for assessment, count in trends.short.items():
        if assessment in snapshot.assessments:
            yield Problem(
                kind="pool_exhausted",
                severity="info",
                alerts=("CredencePoolExhausted",),
                subject=assessment,
                amount=count,
            )


def _vendor_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    alerts = snapshot.settings.alerts
    for each in () if snapshot.labelling is None else snapshot.labelling.vendors:
        if (each.below or 0.0) >= alerts.confidence and each.labels >= alerts.min_labels:
            yield Problem(
                kind="vendor_unreliable",
                severity="warning",
                alerts=("CredenceVendorReliabilityLow",),
                subject=each.vendor,
                probability=each.below,
                labels=float(each.labels),
                value=(each.lower, each.mean, each.upper),
                limit=alerts.min_reliability,
                amount=each.unreliable,
            )


def _traffic_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    for direction, share in snapshot.trends.clipped.items():
        yield Problem(
            kind="times_clipped",
            severity="warning",
            alerts=("CredencePredictionTimesClipped",),
            subject=direction,
            amount=share,
        )
    for name, attribute in snapshot.attributes.items():
        if attribute.other_share > FOLDED_SHARE:
            yield Problem(
                kind="values_folded",
                severity="warning",
                alerts=("CredenceAttributeValuesFolded",),
                subject=name,
                amount=attribute.other_share,
                limit=float(attribute.limit),
            )


def _labels_are_missed(snapshot: ModelSnapshot) -> bool:
    """Whether people were asked for a day, and no label has come in it."""
    now, last, trends = snapshot.taken_at, snapshot.last_label_at, snapshot.trends
    if last is not None and now - last < _DAY:
        return False
    oldest = _oldest_request_at(snapshot)
    if oldest is not None and now - oldest > _DAY:
        return True
    asked, before = trends.asked_at, trends.asked_a_day_ago
    if asked is None or before is None or now - asked > _DAY / 2:
        return False
    return last is None or before - last >= _HOUR


def _labels_stale(snapshot: ModelSnapshot) -> Problem:
    last, oldest = snapshot.last_label_at, _oldest_request_at(snapshot)
    known = [time for time in (oldest, snapshot.trends.asked_a_day_ago) if time is not None]
    return Problem(
        kind="labels_stale",
        severity="warning",
        alerts=("CredenceLabelsStale",),
        amount=len(snapshot.requests),
        at=last,
        since=Since(min(known), or_earlier=oldest is None),
    )


def _oldest_request_at(snapshot: ModelSnapshot) -> float | None:
    times = (one.oldest_request_at for one in snapshot.assessments.values())
    return min((time for time in times if time is not None), default=None)
