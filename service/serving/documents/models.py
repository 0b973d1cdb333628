"""Models, in a line each or one in full: the documents, made from snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from service import __version__
from service.config.assessments import PerformanceSettings
from service.config.model import ModelSettings
from service.domain.groupings import ALL, GroupingKind
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.assessments import AssessmentState, assessment_state
from service.serving.documents.base import Document, Interval, Seconds
from service.serving.documents.drifts import DriftSummary, drift_summary
from service.serving.documents.evidence import GroupChange, changes
from service.serving.documents.findings import Finding, finding_count, findings
from service.serving.documents.performance_documents import PerformanceSummary
from service.serving.documents.performances import missed_targets, performance_summaries


class ModelSummary(Document):
    """One model in a line."""

    model: str
    taken_at: Seconds | None = Field(
        description="when its estimates were computed; null before the first round"
    )
    predictions: int
    outcomes: int
    last_label_at: Seconds | None
    accuracy: Interval | None = Field(description="over all traffic; null without traffic")
    finding_count: int = Field(description="violated thresholds of all groups")
    missed_targets: int = Field(description="missed targets of performance")
    watched: bool = Field(description="whether a threshold, or a target of performance, is configured")
    labels_remaining: int = Field(description="remaining in the budgets of all assessments")


class Overview(Document):
    """All models."""

    version: str = Field(description="of Credence")
    now: Seconds
    tick_seconds: Seconds = Field(description="time between two rounds")
    models: list[ModelSummary]


class Thresholds(Document):
    """Thresholds that estimates are compared with."""

    min_accuracy: float | None = Field(description="alerts.min_accuracy of the configuration")
    max_ece: float | None = Field(description="alerts.max_ece of the configuration")
    confidence: float = Field(description="posterior probability from which a threshold counts as violated")
    min_labels: float = Field(
        description="effective labels that a verdict needs; twice as many for calibration"
    )


class GroupingSummary(Document):
    """One partition of the traffic."""

    name: str
    by: GroupingKind
    has_threshold: bool = Field(
        description="whether min_accuracy applies: not by score or votes, where groups are expected to differ"
    )
    groups: int = Field(description="groups that have had traffic")
    findings: int = Field(description="violated thresholds of its groups")
    meets: int = Field(description="groups that meet min_accuracy")
    open: int = Field(description="groups that are undecided: more labels are needed")
    drifted: int = Field(description="groups whose traffic has drifted from the reference")


class AttributeState(Document):
    """Values of one attribute that groupings use."""

    attribute: str
    values: int = Field(description="that have groups of their own")
    limit: int = Field(description="values with groups of their own, at most (bounds.attribute_values)")
    other_share: float = Field(description="share of the traffic whose value is in `__other__`")


class ModelState(Document):
    """Everything about one model except its groups."""

    model: str
    taken_at: Seconds
    interval: float = Field(description="probability inside credible intervals")
    thresholds: Thresholds
    predictions: int
    outcomes: int
    pool_items: int
    pool_item_age_seconds: Seconds | None = Field(description="median, from a sample; null of an empty pool")
    outbox_size: int = Field(description="label requests that wait to be published")
    attributes: list[AttributeState] = Field(description="the attributes that groupings use")
    last_label_at: Seconds | None
    accuracy: Interval | None = Field(description="over all traffic; null without traffic")
    ece: Interval | None = Field(description="over all traffic; null without traffic")
    finding_count: int = Field(description="violated thresholds of all groups")
    findings: list[Finding] = Field(description="the most important, at most 50")
    changes: list[GroupChange] = Field(description="groups that became less accurate, the latest first")
    groupings: list[GroupingSummary]
    assessments: list[AssessmentState]
    performances: list[PerformanceSummary] = Field(
        description="one for every assessment with `task: performance`"
    )
    drift: DriftSummary
    has_confusion: bool = Field(description="whether the model has a confusion matrix")


def overview(
    models: Sequence[str], snapshots: Sequence[ModelSnapshot], *, tick_seconds: float, now: float
) -> Overview:
    """All configured models in a line each, by the latest snapshots of those that have one."""
    taken = {snapshot.model: snapshot for snapshot in snapshots}
    return Overview(
        version=__version__,
        now=now,
        tick_seconds=tick_seconds,
        models=[_summary(name, taken.get(name)) for name in models],
    )


def _summary(model: str, snapshot: ModelSnapshot | None) -> ModelSummary:
    if snapshot is None:
        return ModelSummary(
            model=model,
            taken_at=None,
            predictions=0,
            outcomes=0,
            last_label_at=None,
            accuracy=None,
            finding_count=0,
            missed_targets=0,
            watched=False,
            labels_remaining=0,
        )
    return ModelSummary.of(
        snapshot,
        accuracy=_overall_accuracy(snapshot),
        finding_count=_finding_count(snapshot),
        missed_targets=missed_targets(snapshot),
        watched=_is_watched(snapshot.settings),
        labels_remaining=sum(state.budget.remaining for state in snapshot.assessments.values()),
    )


def model_state(snapshot: ModelSnapshot) -> ModelState:
    """Everything about one model except its groups."""
    everything = snapshot.groupings.get(ALL)
    return ModelState.of(
        snapshot,
        interval=snapshot.settings.interval,
        thresholds=Thresholds.of(snapshot.settings.alerts),
        pool_item_age_seconds=snapshot.pool_item_age,
        attributes=[AttributeState.of(one, attribute=name) for name, one in snapshot.attributes.items()],
        accuracy=_overall_accuracy(snapshot),
        ece=None if everything is None else Interval.at_index(everything.ece, 0),
        finding_count=_finding_count(snapshot),
        findings=findings(snapshot),
        changes=changes(snapshot),
        groupings=[_grouping_summary(snapshot, name) for name in snapshot.groupings],
        assessments=[assessment_state(snapshot, name) for name in snapshot.assessments],
        performances=performance_summaries(snapshot),
        drift=drift_summary(snapshot),
        has_confusion=any(grouping.confusion is not None for grouping in snapshot.groupings.values()),
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
        has_threshold=grouping.by.has_threshold,
        groups=len(grouping.groups),
        findings=finding_count(grouping),
        meets=int(grouping.meets.sum()),
        open=int((~grouping.low & ~grouping.meets).sum()) if watched else 0,
        drifted=0 if drift is None else int(drift.drifted.sum()),
    )


def _overall_accuracy(snapshot: ModelSnapshot) -> Interval | None:
    everything = snapshot.groupings.get(ALL)
    return None if everything is None else Interval.at_index(everything.accuracy, 0)
