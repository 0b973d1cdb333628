"""Groupings of a model, in a line each."""

from __future__ import annotations

from pydantic import Field

from service.domain.groupings import GroupingKind
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Interval
from service.serving.documents.certificates import GroupingCertificate, grouping_certificate
from service.serving.documents.problems import undecided_groups


class WeakestGroup(Document):
    """The weakest group of a grouping."""

    group: str = Field(description="the group with the lowest estimate; another one may be weaker")
    accuracy: Interval = Field(
        description="of that group; the interval accounts for the choice of the lowest"
    )
    lower: float = Field(
        description="lower end of the credible interval of the accuracy of the weakest group, whichever it is"
    )
    upper: float = Field(description="upper end of the same")
    below: float | None = Field(
        description="lower bound of the probability that a group with min_labels is below its min_accuracy"
    )
    sentence: str = Field(description="the same in words")


class GroupingSummary(Document):
    """One partition of the traffic."""

    name: str
    by: GroupingKind
    has_threshold: bool = Field(
        description="whether groups can have min_accuracy: not by score or votes, which expect them to differ"
    )
    groups: int = Field(description="groups with traffic")
    problems: int = Field(description="problems of its groups")
    meets: int = Field(description="groups that meet their min_accuracy")
    open: int = Field(description="groups that are undecided: more labels are needed")
    weakest: WeakestGroup | None = Field(description="null for a single group, score bins and votes")
    drifted: int = Field(description="groups whose traffic has drifted from the reference")
    certificate: GroupingCertificate | None = Field(
        description="whether all groups are shown to meet min_accuracy; null without it, or without labels"
    )


def grouping_summary(snapshot: ModelSnapshot, name: str, problem_count: int) -> GroupingSummary:
    """One grouping, whose groups have so many problems."""
    grouping = snapshot.groupings[name]
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(name)
    return GroupingSummary(
        name=name,
        by=grouping.by.kind,
        has_threshold=grouping.by.has_threshold,
        groups=len(grouping.groups),
        problems=problem_count,
        meets=int(grouping.meets.sum()),
        open=undecided_groups(grouping),
        weakest=_weakest(grouping),
        drifted=0 if drift is None else int(drift.drifted.sum()),
        certificate=grouping_certificate(snapshot, name),
    )


def _weakest(grouping: GroupingSnapshot) -> WeakestGroup | None:
    if (weakest := grouping.weakest) is None:
        return None
    name, accuracy = grouping.groups[weakest.group], Interval.at_index(grouping.adjusted, weakest.group)
    return WeakestGroup.of(
        weakest,
        group=name,
        accuracy=accuracy,
        sentence=f"Lowest estimate: {name}, {words.percent_interval(accuracy)}, adjusted for "
        f"{len(grouping.groups):,} groups. The weakest group, whichever it is, is between "
        f"{words.percent(weakest.lower)} and {words.percent(weakest.upper)}.",
    )
