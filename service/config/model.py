"""Settings of one model: its classes, groupings, costs and assessments; frozen."""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from service.config.alerts import AlertSettings
from service.config.assessments import (
    AnyAssessment,
    AssessmentSettings,
    ChallengeSettings,
    EnsembleSettings,
    ErrorRateSettings,
    PerformanceSettings,
)
from service.config.evidence import EvidenceSettings
from service.config.forgetting import RUN_LENGTH_OF_SAMPLES, ForgettingSettings
from service.config.labels_per_item import LabelsPerItem
from service.config.score_bins import checked_bins, inner_edges
from service.config.types import ClassName, Frozen, Name, Probability
from service.config.unanswered import Unanswered
from service.config.unrequested import UnrequestedLabels
from service.domain.cells import Challenge, Ensemble, Selections
from service.domain.groupings import ByAttribute, ByClass, BySuperclass, Grouping
from service.domain.open_inference import ATTRIBUTE_PREFIX, TENSOR_RULES, TensorField
from service.domain.traffic_marks import SLOTS_PER_WINDOW, Slots

TensorName = Annotated[str, Field(min_length=1, max_length=256)]

_Assessment = TypeVar("_Assessment", bound=AssessmentSettings)


CONFUSION_CLASSES = 1_000
"""Maximum number of classes for confusion and cost, whose arrays are classes by classes."""


class GroupingSettings(Frozen):
    """A partition of a model's traffic."""

    by: Literal["predicted_class", "superclass", "attribute"]
    """how traffic is split into groups"""
    attribute: Name | None = None
    """with `by: attribute`: name of the attribute"""
    superclasses: dict[Name, list[ClassName]] | None = None
    """with `by: superclass`: the classes of each superclass"""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for by, key in (("attribute", "attribute"), ("superclass", "superclasses")):
            is_given = getattr(self, key) is not None
            if is_given != (self.by == by):
                raise ValueError(
                    f"`{key}` requires `by: {by}`" if is_given else f"`by: {by}` requires `{key}`"
                )
        return self

    def partition(self, name: str) -> Grouping:
        """The grouping of this name."""
        if self.attribute is not None:
            return ByAttribute(name, self.attribute)
        if self.superclasses is None:
            return ByClass(name)
        return BySuperclass(name, superclasses={c: s for s, cs in self.superclasses.items() for c in cs})


class Mistake(Frozen):
    """Cost of one kind of mistake."""

    true: ClassName
    """true class"""
    predicted: ClassName
    """predicted class"""
    cost: float = Field(ge=0, allow_inf_nan=False)
    """cost, in any unit"""

    @model_validator(mode="before")
    @classmethod
    def _true_is_a_name(cls, given: Any) -> Any:
        # YAML takes the key for a truth value.
        if isinstance(given, dict):
            return {"true" if key is True else key: value for key, value in given.items()}
        return given


class CostSettings(Frozen):
    """Costs of wrong predictions; correct predictions cost 0."""

    default: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """cost of a mistake that is not listed"""
    mistakes: list[Mistake] = Field(default=[])
    """mistakes with another cost"""


class ReferenceSettings(Frozen):
    """The reference for current accuracy, unless `credence reference set` sets a time window."""

    labels: int = Field(default=100, ge=1)
    """number of labels in a group's reference: its first labels that were requested for its grouping while
    the group was not suspected"""
    label_share: Probability = 0.5
    """while groups lack reference labels, share of every assessment's requests that goes to these groups of
    its grouping, in equal parts; 0 leaves all requests to the policy"""


class DriftSettings(Frozen):
    """How recent traffic is compared with a reference, and how drift directs requests."""

    window_hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """length of the window of recent traffic; whole days avoid differences between day and night"""
    reference_predictions: int = Field(default=10_000, ge=1)
    """predictions in the reference, unless you set a time window with `credence reference set`. The reference
    has at least the predictions of the first `window_hours`"""
    max_distance: float = Field(default=0.1, gt=0, lt=1)
    """maximum Jensen-Shannon distance from the reference, in excess of noise, for scores, predicted classes
    and attributes; above it a group has drifted. 0 is identical, 1 is disjoint"""
    label_share: Probability = 0.2
    """while groups drift, share of every assessment's requests that goes to drifted groups of its grouping; 0
    leaves all requests to the policy"""

    @property
    def slots(self) -> Slots:
        """Event time in slots, at whose boundaries traffic is marked."""
        return Slots(self.window_hours * 3_600 / SLOTS_PER_WINDOW)


_LONGEST_DAYS = 3_650.0
_PARTS = 7
"""Half-lives of draws, and windows of drift, in `find_within_days`."""


class ModelSettings(Frozen):
    """One deployed classifier."""

    classes: list[ClassName] = Field(min_length=2, max_length=10_000)
    """all classes, in order"""
    score_bins: int | list[float] = 10
    """number of equal-width score bins, or their inner edges; default: 10, and finer at both ends of the
    scale with task performance"""
    groupings: dict[Name, GroupingSettings] = Field(default_factory=dict)
    """groupings of the model's traffic, by name"""
    assessments: dict[Name, AnyAssessment] = Field(default_factory=dict)
    """assessments of the model, by name"""
    alerts: AlertSettings = AlertSettings()
    reference: ReferenceSettings = ReferenceSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    drift: DriftSettings = DriftSettings()
    costs: CostSettings | None = None
    """costs of mistakes, for a model with a grouping by predicted class"""
    prior: Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"] = "learned"
    """prior of a group's accuracy"""
    interval: float = Field(default=0.95, gt=0, lt=1)
    """probability of credible intervals"""
    interval_kind: Literal["equal_tailed", "highest_density"] = "equal_tailed"
    """credible intervals of accuracy and cost: equal-tailed, or highest density (the shortest). If all labels
    of a group are correct, or all are incorrect, an equal-tailed one is one-sided"""
    find_within_days: float = Field(default=7.0, gt=0, le=_LONGEST_DAYS)
    """how soon you want to detect a change. It sets the defaults of the next two keys and of
    `drift.window_hours`. A shorter time needs more labels per day for intervals of the same width"""
    traffic_half_life_days: float | None = Field(default=7.0, gt=0)
    """half-life of traffic in estimates, where no checkpoint dates the traffic; null is no decay"""
    draw_half_life_hours: float | None = Field(default=24.0, gt=0)
    """half-life of an item's chance to be drawn for a label, from the time of its record; null draws items of
    every age equally"""
    label_half_life_days: float | None = Field(default=None, gt=0)
    """half-life of labels in estimates; null is no decay"""
    forgetting: ForgettingSettings = ForgettingSettings()
    labels_per_item: LabelsPerItem = LabelsPerItem()
    unanswered: Unanswered = Unanswered()
    unrequested_labels: UnrequestedLabels | None = None
    """labels without a request; by default they are refused"""
    tensors: dict[TensorField, TensorName] = Field(
        default_factory=dict,
        description="in inference responses: names of tensors that differ from the names of their fields "
        f"({', '.join(f'`{field}`' for field in TENSOR_RULES)})",
    )

    @model_validator(mode="before")
    @classmethod
    def _derive_half_lives(cls, given: Any) -> Any:
        days = given.get("find_within_days") if isinstance(given, dict) else None
        if not isinstance(days, int | float) or not 0 < days <= _LONGEST_DAYS:
            return given
        part = days * 24 / _PARTS
        # Whole days leave out differences of day and night; less than a day is for trying.
        window = part if days < 1 else 24.0 * max(1, round(days / _PARTS))
        drift = given.get("drift", {})
        if isinstance(drift, dict):
            drift = {"window_hours": window, **drift}
        return {"traffic_half_life_days": days, "draw_half_life_hours": part, **given, "drift": drift}

    @model_validator(mode="before")
    @classmethod
    def _derive_run_length(cls, given: Any) -> Any:
        unrequested = given.get("unrequested_labels") if isinstance(given, dict) else None
        if not isinstance(unrequested, dict) or unrequested.get("items") not in ("census", "sampled"):
            return given
        forgetting = given.get("forgetting", {})
        if isinstance(forgetting, dict):
            forgetting = {"run_length": RUN_LENGTH_OF_SAMPLES, **forgetting}
        return {**given, "forgetting": forgetting}

    @field_validator("classes")
    @classmethod
    def _classes_differ(cls, classes: list[str]) -> list[str]:
        if twice := sorted(name for name, count in Counter(classes).items() if count > 1):
            raise ValueError(f"must differ from one another, but {', '.join(twice)} comes more than once")
        return classes

    @field_validator("score_bins")
    @classmethod
    def _bins_ascend(cls, bins: int | list[float]) -> int | list[float]:
        return checked_bins(bins)

    @field_validator("tensors")
    @classmethod
    def _tensors_differ(cls, tensors: dict[TensorField, str]) -> dict[TensorField, str]:
        if len({tensors.get(field, field) for field in TENSOR_RULES}) < len(TENSOR_RULES):
            raise ValueError("must differ from one another, and from the fields that keep their names")
        if any(name.startswith(ATTRIBUTE_PREFIX) for name in tensors.values()):
            raise ValueError(f"must not begin with `{ATTRIBUTE_PREFIX}`: such a tensor is an attribute")
        return tensors

    @property
    def score_edges(self) -> tuple[float, ...]:
        """Inner edges of the score bins."""
        fine_ends = self.positive_class is not None and "score_bins" not in self.model_fields_set
        return inner_edges(self.score_bins, fine_ends=fine_ends)

    def assessments_of(self, task: type[_Assessment]) -> dict[str, _Assessment]:
        """The assessments of one task, by name."""
        return {name: each for name, each in self.assessments.items() if isinstance(each, task)}

    @property
    def positive_class(self) -> str | None:
        """The positive class, if any assessment estimates performance."""
        performances = self.assessments_of(PerformanceSettings).values()
        return next((each.positive_class for each in performances), None)

    @property
    def ensemble(self) -> Ensemble | None:
        """The ensemble whose votes form groups, if an assessment estimates one."""
        ensembles = self.assessments_of(EnsembleSettings).values()
        return next((Ensemble(tuple(each.members), each.positive_class) for each in ensembles), None)

    @property
    def challenge(self) -> Challenge | None:
        """The challenger whose agreement forms groups, if an assessment compares one."""
        challenges = self.assessments_of(ChallengeSettings).values()
        return next((Challenge(each.challenger) for each in challenges), None)

    @property
    def selections(self) -> Selections | None:
        """What error rates are of, if an assessment estimates any."""
        found = [*self.assessments_of(ErrorRateSettings).values()]
        if not found:
            return None
        attributes = [
            self.groupings[one.grouping].attribute for one in found if one.grouping in self.groupings
        ]
        return Selections(found[0].positive_class, frozenset(name for name in attributes if name))

    @property
    def traffic_decay_per_second(self) -> float:
        """How fast traffic loses weight, in 1/s; 0 without a half-life."""
        return decay_per_second(self.traffic_half_life_days)

    @property
    def draw_decay_per_second(self) -> float:
        """How fast pooled items lose weight in draws, in 1/s; 0 without a half-life."""
        hours = self.draw_half_life_hours
        return decay_per_second(None if hours is None else hours / 24)

    @property
    def label_decay_per_second(self) -> float:
        """How fast labels lose weight, in 1/s; 0 without a half-life."""
        return decay_per_second(self.label_half_life_days)

    @property
    def change_run_length(self) -> float | None:
        """Expected labels of a group between two changes; None if changes are not detected."""
        return self.forgetting.run_length if self.forgetting.after_change else None


def decay_per_second(half_life_days: float | None) -> float:
    """Rate of exponential decay in 1/s for a half-life in days; 0 for None."""
    return 0.0 if half_life_days is None else math.log(2) / (half_life_days * 86_400)
