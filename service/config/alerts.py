"""Thresholds of alerts about a model, its groupings and their groups; frozen."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from service.config.types import ClassName, Frozen, Name, Probability
from service.domain.groupings import Grouping

Measure = Literal["min_accuracy", "max_ece"]
"""What a group can have a threshold of."""

OF_ALL_GROUPS: Final[dict[str, str]] = {
    "min_reliability": "people label items of all groups",
    "min_labels": "verdicts of all groups need the same",
    "confidence": "verdicts of all groups need the same",
}
"""Keys that a model has once, and why: none is a measure of a group."""


class GroupThresholds(Frozen):
    """Thresholds of some groups, which replace those of the model; null is no threshold."""

    min_accuracy: Probability | None = None
    """minimum accuracy, instead of that of the grouping, or else of the model"""
    max_ece: Probability | None = None
    """maximum expected calibration error, instead of that of the grouping, or else of the model"""

    def sets(self, measure: Measure) -> bool:
        """Whether it replaces the threshold of a measure, by another one or by none."""
        return measure in self.model_fields_set


class GroupingThresholds(GroupThresholds):
    """Thresholds of the groups of one grouping, which replace those of the model; null is no threshold."""

    groups: dict[ClassName, GroupThresholds] = Field(default={})
    """thresholds of single groups, by name"""


class AlertSettings(Frozen):
    """Thresholds of alerts."""

    min_accuracy: Probability | None = None
    """minimum accuracy of every group, except score bins: low scores are expected to be less accurate"""
    max_ece: Probability | None = None
    """maximum expected calibration error of every group, except groups by votes of other classifiers"""
    groupings: dict[Name, GroupingThresholds] = Field(default={})
    """other thresholds for the groups of some groupings, by the grouping's name, such as `all`"""
    min_reliability: Probability | None = None
    """where labels may be wrong: minimum share of the model's items about which the people of a vendor are
    right"""
    min_labels: float = Field(default=10.0, ge=0)
    """effective labels that a group needs before it can violate or meet a threshold; twice as many for
    calibration"""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """posterior probability at which a threshold counts as violated, or met"""

    def threshold(self, measure: Measure, by: Grouping, group: str | None = None) -> float | None:
        """The threshold of a group: its own, else its grouping's, else the model's.

        Without a group, that of all groups without one of their own. None if there is none, or if groups of
        this grouping are expected to differ in the measure.
        """
        if not applies(measure, by):
            return None
        grouping = self.groupings.get(by.name)
        own = None if grouping is None or group is None else grouping.groups.get(group)
        for section in (own, grouping):
            if section is not None and section.sets(measure):
                given: float | None = getattr(section, measure)
                return given
        return self.min_accuracy if measure == "min_accuracy" else self.max_ece

    def given(self, measure: Measure) -> list[float]:
        """Thresholds of a measure that some group may have."""
        groupings = self.groupings.values()
        sections = [self, *groupings, *(group for one in groupings for group in one.groups.values())]
        found = [getattr(section, measure) for section in sections]
        return [threshold for threshold in found if threshold is not None]

    def named_groups(self, grouping: str) -> list[str]:
        """Groups that may have thresholds of their own."""
        return [*self.groupings[grouping].groups] if grouping in self.groupings else []


def applies(measure: Measure, by: Grouping) -> bool:
    """Whether groups of a grouping can have a threshold of a measure."""
    return by.has_threshold if measure == "min_accuracy" else not by.is_by_votes
