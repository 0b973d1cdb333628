"""Models, in a line each or one in full: the documents, made from snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from service import __version__
from service.domain.groupings import ALL
from service.monitoring.pipeline import PipelineState
from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.pipeline_problems import pipeline_problems
from service.monitoring.problems import problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.annotators import (
    AnnotatorState,
    LabelAgreement,
    LabelErrors,
    VendorState,
    annotator_states,
    label_agreement,
    label_errors,
    vendor_states,
)
from service.serving.documents.assessments import AssessmentState, assessment_state
from service.serving.documents.base import Document, Interval, Seconds
from service.serving.documents.drifts import DriftSummary, drift_summary
from service.serving.documents.groupings import GroupingSummary, grouping_summary
from service.serving.documents.performance_documents import PerformanceSummary
from service.serving.documents.performances import performance_summaries
from service.serving.documents.pipeline import PipelineLine, pipeline_in_short
from service.serving.documents.problems import (
    Headline,
    ProblemState,
    headline,
    model_headline,
    problem_states,
)
from service.serving.documents.references import ReferenceSummary, reference_summary
from service.serving.documents.unanswered import UnansweredState, unanswered_state
from service.serving.documents.waiting import WaitingState, waiting_state


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
    headline: Headline
    labels_remaining: int = Field(description="remaining in the budgets of all assessments")


class Overview(Document):
    """All models."""

    version: str = Field(description="of Credence")
    now: Seconds
    tick_seconds: Seconds = Field(description="time between two rounds")
    pipeline: PipelineLine | None = Field(description="null before the first round")
    models: list[ModelSummary]


class Thresholds(Document):
    """Thresholds that estimates are compared with."""

    min_accuracy: float | None = Field(
        description="alerts.min_accuracy of the configuration; groups may have others"
    )
    max_ece: float | None = Field(description="alerts.max_ece of the configuration; groups may have others")
    min_reliability: float | None = Field(description="alerts.min_reliability of the configuration")
    confidence: float = Field(description="posterior probability at which a threshold counts as violated")
    min_labels: float = Field(
        description="effective labels that a verdict needs; twice as many for calibration"
    )


class AttributeState(Document):
    """Values of one attribute that groupings use."""

    attribute: str
    values: int = Field(description="values with groups of their own")
    limit: int = Field(
        description="maximum number of values with groups of their own (bounds.attribute_values)"
    )
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
    pool_item_age_seconds: Seconds | None = Field(
        description="median, from a sample; null if the pool is empty"
    )
    outbox_size: int = Field(description="label requests that are not published yet")
    attributes: list[AttributeState] = Field(description="the attributes that groupings use")
    last_label_at: Seconds | None
    accuracy: Interval | None = Field(description="over all traffic; null without traffic")
    ece: Interval | None = Field(description="over all traffic; null without traffic")
    headline: Headline
    problems: list[ProblemState] = Field(
        description="everything that is wrong with the model, the most severe first, at most 50"
    )
    notes: list[ProblemState] = Field(
        description="what evidence confirms and no alert fires about; the headline does not count it"
    )
    groupings: list[GroupingSummary]
    assessments: list[AssessmentState]
    performances: list[PerformanceSummary] = Field(
        description="one for every assessment with `task: performance`"
    )
    annotators: list[AnnotatorState] = Field(
        description="people who label, the least reliable first, at most 200; none if labels are the truth"
    )
    unanswered: UnansweredState = Field(description="label requests that ended without a label")
    selection_bias: Interval | None = Field(
        description="accuracy of items with an unrequested label minus that of all traffic; null unless "
        "`unrequested_labels.items` is `unknown`, and some items have no label"
    )
    waiting: WaitingState | None = Field(
        description="predictions that wait for unrequested labels; null without `unrequested_labels`"
    )
    vendors: list[VendorState] = Field(
        description="who these people belong to, the least reliable first; none if labels are the truth"
    )
    label_agreement: LabelAgreement | None = Field(
        description="null if labels are the truth, or too few items have several"
    )
    label_errors: LabelErrors | None = Field(
        description="how often first labels are wrong at most; null unless labels_per_item.max_error is "
        "`learned`"
    )
    drift: DriftSummary
    reference: ReferenceSummary
    has_confusion: bool = Field(description="whether the model has a confusion matrix")


def overview(
    models: Sequence[str],
    snapshots: Sequence[ModelSnapshot],
    *,
    pipeline: PipelineState | None = None,
    tick_seconds: float,
    now: float,
) -> Overview:
    """All configured models in a line each, by the latest snapshots of those that have one."""
    taken = {snapshot.model: snapshot for snapshot in snapshots}
    troubles = pipeline_problems(pipeline, now)
    return Overview(
        version=__version__,
        now=now,
        tick_seconds=tick_seconds,
        pipeline=None if pipeline is None else pipeline_in_short(pipeline, now),
        models=[
            _summary(
                name,
                taken.get(name),
                model_headline(taken.get(name), pipeline=troubles, now=now, tick_seconds=tick_seconds),
            )
            for name in models
        ],
    )


def _summary(model: str, snapshot: ModelSnapshot | None, line: Headline) -> ModelSummary:
    if snapshot is None:
        return ModelSummary(
            model=model,
            taken_at=None,
            predictions=0,
            outcomes=0,
            last_label_at=None,
            accuracy=None,
            headline=line,
            labels_remaining=0,
        )
    return ModelSummary.of(
        snapshot,
        accuracy=_overall_accuracy(snapshot),
        headline=line,
        labels_remaining=sum(state.budget.remaining for state in snapshot.assessments.values()),
    )


def model_state(
    snapshot: ModelSnapshot,
    *,
    pipeline: Sequence[PipelineProblem] = (),
    now: float,
    tick_seconds: float,
) -> ModelState:
    """Everything about one model except its groups; a round is due every `tick_seconds`."""
    found = problems(snapshot, now)
    counts = Counter(one.grouping for one in found)
    everything = snapshot.groupings.get(ALL)
    return ModelState.of(
        snapshot,
        interval=snapshot.settings.interval,
        thresholds=Thresholds.of(snapshot.settings.alerts),
        pool_item_age_seconds=snapshot.pool_item_age,
        attributes=[AttributeState.of(one, attribute=name) for name, one in snapshot.attributes.items()],
        accuracy=_overall_accuracy(snapshot),
        ece=None if everything is None else Interval.at_index(everything.ece, 0),
        headline=headline(snapshot, found, pipeline=pipeline, now=now, tick_seconds=tick_seconds),
        problems=problem_states(found),
        notes=problem_states(snapshot.notes),
        groupings=[grouping_summary(snapshot, name, counts[name]) for name in snapshot.groupings],
        assessments=[assessment_state(snapshot, name) for name in snapshot.assessments],
        performances=performance_summaries(snapshot),
        annotators=annotator_states(snapshot),
        unanswered=unanswered_state(snapshot),
        selection_bias=None if (bias := snapshot.selection_bias) is None else Interval.at_index(bias),
        waiting=waiting_state(snapshot),
        vendors=vendor_states(snapshot),
        label_agreement=label_agreement(snapshot),
        label_errors=label_errors(snapshot),
        drift=drift_summary(snapshot),
        reference=reference_summary(snapshot),
        has_confusion=any(grouping.confusion is not None for grouping in snapshot.groupings.values()),
    )


def _overall_accuracy(snapshot: ModelSnapshot) -> Interval | None:
    everything = snapshot.groupings.get(ALL)
    return None if everything is None else Interval.at_index(everything.accuracy, 0)
