"""The documents of the HTTP API about groups: one grouping's, and one group in detail."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.serving.documents.evidence_documents import GroupEvidenceState
from service.serving.documents.schemas import Document, Interval, Seconds, Verdict


class Relearning(Document):
    """A change of a group's accuracy, after which it is learned anew."""

    since: Seconds = Field(
        description="when the first prediction was made that is likeliest to be from after the change"
    )
    labels_before: int = Field(description="from before it, of those that the grouping asked for")
    kept: float = Field(description="what one of these still counts, at the most")


class GroupState(Document):
    """What is believed of one group."""

    group: str
    share: float = Field(description="of the model's traffic, recent traffic counting more")
    missed_traffic: float = Field(
        description="share of the group's traffic that may be in `__other__` instead, at most"
    )
    score_mean: float = Field(description="what the model itself says of its accuracy")
    labels_correct: int
    labels_incorrect: int
    effective_labels: float = Field(description="what its labels are worth after weighting and forgetting")
    accuracy: Interval
    own_rate: float | None = Field(
        description="how many of its own labels say that it is right, by themselves; null without any"
    )
    own_share: float = Field(
        description="part of `accuracy` that comes from its own labels; the rest is what scores and other "
        "groups tell"
    )
    accuracy_below: float | None = Field(description="probability of less than min_accuracy")
    verdict: Verdict = Field(
        description="whether it meets min_accuracy: known with enough labels either way, still open, or none "
        "without a threshold"
    )
    verdict_labels: float | None = Field(
        description="labels still needed for a verdict, in the median of what is believed; null if none is "
        "wanted, or more than can be told"
    )
    verdict_seconds: Seconds | None = Field(
        description="time to them at the budgets that renew; null if these never suffice, or none renews"
    )
    calibration_gap: float = Field(description="mean score less mean accuracy; positive: overconfident")
    ece: Interval = Field(description="expected calibration error")
    ece_above: float | None = Field(description="probability of more than max_ece")
    miscalibrated: bool = Field(description="whether it is known, with enough labels, to have more than that")
    cost: Interval | None = Field(description="expected cost of a prediction, where costs are configured")
    drifted: bool | None = Field(
        description="whether its recent traffic is surely farther from the reference than "
        "drift.max_distance; null while there is no reference"
    )
    suspicion: float | None = Field(description="how far it surely is; null likewise")
    evidence: GroupEvidenceState | None = Field(
        description="that may be looked at any time; null of a grouping that no assessment asks labels for"
    )
    low_since: Seconds | None = Field(description="since when it is known to fail, as far as remembered")
    low_since_or_earlier: bool = Field(description="whether it may have begun before `low_since`")
    relearned: Relearning | None = Field(
        description="the last change of its accuracy, if one is more probable than not: labels from before "
        "count little"
    )


SortKey = Literal[
    "evidence", "accuracy", "group", "share", "labels", "ece", "gap", "cost", "uncertainty", "drift"
]


class GroupTable(Document):
    """Groups of one grouping, sorted."""

    model: str
    taken_at: Seconds
    grouping: str
    sort: SortKey
    total: int = Field(description="groups that fit the search")
    groups: list[GroupState]


class ReliabilityBin(Document):
    """One score bin."""

    lower_edge: float
    upper_edge: float
    share: float = Field(description="of the group's traffic")
    score_mean: float
    accuracy: Interval


class Reliability(Document):
    """How accurate a group is where the model says so much: the reliability diagram."""

    model: str
    taken_at: Seconds
    grouping: str
    group: str
    ece: Interval
    bins: list[ReliabilityBin] = Field(description="those with traffic")


class TimelinePoint(Document):
    """What was believed at one time."""

    time: Seconds
    accuracy: Interval
    ece: Interval
    labels: int


class Timeline(Document):
    """What was believed of a group as time went by, by the labels known then.

    Of large groupings, only groups with metrics of their own are remembered; of others the present is told.
    """

    model: str
    grouping: str
    group: str
    points: list[TimelinePoint] = Field(description="oldest first")


class ConfusionRow(Document):
    """True classes of what was predicted to be one class."""

    predicted: str
    share: float = Field(description="of the traffic")
    effective_labels: float
    classes: list[Interval] = Field(description="probability of every true class, as listed in `classes`")


class FrequentMistake(Document):
    """One confusion that is met often."""

    predicted: str
    true: str
    probability: Interval = Field(description="of the true class, given the predicted one")
    frequency: float = Field(description="share of all traffic that is confused so, in the mean")


class ConfusionMatrix(Document):
    """What the true class is, given the predicted one."""

    model: str
    taken_at: Seconds
    classes: list[str] = Field(description="true classes shown, in the order of the configuration")
    omitted: int = Field(description="classes that are not shown: those that are confused least")
    rows: list[ConfusionRow]
    mistakes: list[FrequentMistake] = Field(description="the most frequent first, at most 20")
