"""The documents of the HTTP API; the status page and `credence status` show the same.

Probabilities, shares and accuracies are ratios between 0 and 1. Times are seconds since the epoch.
"""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from service.domain.assessments import Task
from service.domain.groupings import GroupingKind
from service.statistics.estimate import Estimate

Seconds = float


class Document(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(Document):
    """A posterior, in short."""

    lower: float = Field(description="lower end of the credible interval")
    mean: float = Field(description="posterior mean")
    upper: float = Field(description="upper end of the credible interval")

    @classmethod
    def of(cls, told: Estimate, which: int | tuple[()] = ()) -> Self:
        """One of several posteriors, or the only one."""
        return cls(
            lower=float(told.lower[which]), mean=float(told.mean[which]), upper=float(told.upper[which])
        )

    @classmethod
    def if_any(cls, told: Estimate, which: int | tuple[()] = ()) -> Self | None:
        """The same; None of what cannot exist."""
        return cls.of(told, which) if math.isfinite(told.mean[which]) else None


class Thresholds(Document):
    """What beliefs are compared with."""

    min_accuracy: float | None = Field(description="alerts.min_accuracy of the configuration")
    max_ece: float | None = Field(description="alerts.max_ece of the configuration")
    confidence: float = Field(description="posterior probability from which a threshold counts as crossed")
    min_labels: float = Field(
        description="effective labels without which it counts neither as crossed nor as met; twice as many "
        "for calibration"
    )


class Finding(Document):
    """A group of which a threshold is known to be crossed: with enough labels, and with `confidence`."""

    kind: Literal["accuracy_low", "miscalibrated"]
    grouping: str
    group: str
    probability: float = Field(description="posterior probability that the threshold is crossed")
    share: float = Field(description="the group's share of the traffic")
    labels: int = Field(description="labels in the group that this rests on")
    value: Interval = Field(description="accuracy, or expected calibration error")
    threshold: float
    since: Seconds = Field(description="when this was first believed without a break, as far as remembered")
    since_or_earlier: bool = Field(description="whether it may have begun before `since`")
    confirmed: bool = Field(description="whether evidence that may be looked at any time says so too")
    sentence: str = Field(description="the same in words")


class GroupChange(Document):
    """A group that became less accurate than its reference, or than a threshold that it reached there."""

    grouping: str
    group: str
    at: Seconds = Field(description="when the first label after it was requested, as it is likeliest")
    earliest: Seconds = Field(description="lower end of its 90 % interval")
    latest: Seconds = Field(description="upper end")
    predicted_at: Seconds = Field(description="when the item of that label was predicted")
    labels: int = Field(description="since then, that the grouping asked for")
    sentence: str = Field(description="the same in words")


class BudgetState(Document):
    """Labels that an assessment may cost."""

    labels: int = Field(description="allowed in one window")
    remaining: int = Field(description="left in this window")
    renews_at: Seconds | None = Field(description="when the next window begins; never, if null")


class ModelSummary(Document):
    """One model in a line."""

    model: str
    taken_at: Seconds | None = Field(description="when its beliefs were computed; null before the first time")
    predictions: int
    outcomes: int
    last_label_at: Seconds | None
    accuracy: Interval | None = Field(description="over all traffic; null without traffic")
    finding_count: int = Field(description="thresholds, of all groups, that are known to be crossed")
    missed_targets: int = Field(description="targets of performance that are known to be missed")
    watched: bool = Field(description="whether a threshold, or a target of performance, is configured")
    labels_remaining: int = Field(description="left in the budgets of all assessments")


class Overview(Document):
    """All models."""

    version: str = Field(description="of Credence")
    now: Seconds
    tick_seconds: Seconds = Field(description="time between two rounds")
    models: list[ModelSummary]


class GroupingSummary(Document):
    """One partition of the traffic."""

    name: str
    by: GroupingKind
    groups: int = Field(description="groups that have had traffic")
    findings: int = Field(description="thresholds of its groups that are known to be crossed")
    meets: int = Field(description="groups that are known to meet min_accuracy")
    open: int = Field(description="groups of which it is not known whether they do")
    drifted: int = Field(description="groups whose traffic has drifted from the reference")


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


Verdict = Literal["meets", "fails", "open", "none"]
Measure = Literal["precision", "recall", "f1", "false_positive_rate", "prevalence"]


class MeasureState(Document):
    """One measure of a binary classifier at its threshold; of prevalence, of the traffic."""

    measure: Measure
    value: Interval | None = Field(description="null of what cannot exist")
    target: float | None = Field(
        description="configured: at least; of the false positive rate at most. Null without one"
    )
    missed: float | None = Field(description="probability that the target is missed; null without one")
    verdict: Verdict = Field(
        description="whether it meets the target: known with enough labels either way, still open, or none "
        "without a target"
    )


class PerformanceSummary(Document):
    """How a binary classifier does, in short."""

    name: str = Field(description="of the assessment")
    positive_class: str
    threshold: float = Field(description="from which score of the positive class on the model calls positive")
    taken_at: Seconds | None = Field(
        description="when the facts were read that it was learned from; null before the first time"
    )
    labels: int = Field(description="that it was learned from")
    measures: list[MeasureState] = Field(description="empty before the first time")
    sentence: str = Field(description="the same in words")


class DriftSummary(Document):
    """How recent traffic is compared with the reference, without labels."""

    max_distance: float = Field(description="drift.max_distance of the configuration")
    reference_predictions: int | None = Field(description="in the reference; null while there is none")
    reference_until: Seconds | None = Field(description="when it ended; null while there is none")
    recent_predictions: int | None = Field(description="that are compared with it; null likewise")
    drifted_groups: int = Field(description="groups, of all groupings, that have drifted")
    sentence: str = Field(description="the same in words")


class AttributeState(Document):
    """Values of one attribute that groupings use."""

    attribute: str
    values: int = Field(description="that are told apart")
    limit: int = Field(description="that a partition tells apart at most (bounds.attribute_values)")
    other_share: float = Field(description="share of the traffic whose value is in `__other__`")


class ModelState(Document):
    """Everything of one model but its groups."""

    model: str
    taken_at: Seconds
    interval: float = Field(description="probability inside credible intervals")
    thresholds: Thresholds
    predictions: int
    outcomes: int
    pool_items: int
    pool_item_age_seconds: Seconds | None = Field(description="median, from a sample; null of an empty pool")
    outbox_size: int = Field(description="label requests that wait to be published")
    attributes: list[AttributeState] = Field(description="that groupings use")
    last_label_at: Seconds | None
    accuracy: Interval | None = Field(description="over all traffic; null without traffic")
    ece: Interval | None = Field(description="over all traffic; null without traffic")
    finding_count: int = Field(description="thresholds, of all groups, that are known to be crossed")
    findings: list[Finding] = Field(description="those that matter most, at most 50")
    changes: list[GroupChange] = Field(description="groups that became less accurate, the latest first")
    groupings: list[GroupingSummary]
    assessments: list[AssessmentState]
    performances: list[PerformanceSummary] = Field(description="of every assessment with `task: performance`")
    drift: DriftSummary
    has_confusion: bool = Field(description="whether there is a confusion matrix to ask for")


class RequestState(Document):
    """A label request that waits for an answer."""

    request_id: str
    assessment: str
    group: str | None = Field(
        description="that it was drawn for; null where it would tell what labellers are not to know"
    )
    requested_at: Seconds
    attempt: int
    predicted_class: str | None = Field(description="null where labellers are not to know it")
    score: float | None = Field(description="null likewise")


class RecentLabel(Document):
    """A label that was given."""

    request_id: str
    item_id: str
    assessment: str
    group: str = Field(description="that it was asked for")
    predicted_class: str
    true_class: str
    correct: bool
    score: float
    given_at: Seconds
    delay_seconds: Seconds = Field(description="from the first issue of its request")


class FlowBin(Document):
    """Labels in one stretch of time."""

    begin: Seconds
    end: Seconds
    correct: int
    incorrect: int


class Activity(Document):
    """Label requests and labels of late."""

    model: str
    taken_at: Seconds
    requests: list[RequestState] = Field(description="the newest first, at most 50")
    labels: list[RecentLabel] = Field(description="the newest first, at most 50")
    flow: list[FlowBin] = Field(description="oldest first")


class Problem(Document):
    """Why a request was not answered."""

    detail: str
