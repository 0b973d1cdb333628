"""The documents of the HTTP API about groups: one grouping's, and one group in detail."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.serving.documents.group_measures import GroupState
from service.serving.documents.schemas import Document, Interval, Seconds

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
