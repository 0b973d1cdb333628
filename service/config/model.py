"""Settings of one model: its classes, groupings, costs, and what is asked about it; frozen."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from service.config.assessments import (
    AnyAssessment,
    AssessmentSettings,
    ChallengeSettings,
    EnsembleSettings,
    PerformanceSettings,
)
from service.config.types import ClassName, Frozen, Name, Probability
from service.domain.cells import Challenge, Ensemble
from service.domain.groupings import ByAttribute, ByClass, BySuperclass, Grouping
from service.domain.open_inference import ATTRIBUTE_PREFIX, TENSOR_RULES, TensorField

TensorName = Annotated[str, Field(min_length=1, max_length=256)]

_Assessment = TypeVar("_Assessment", bound=AssessmentSettings)

CONFUSION_CLASSES = 1_000
"""Confusion and cost, which take arrays of classes by classes, are known of models with so many at most."""


class GroupingSettings(Frozen):
    """A partition of a model's traffic."""

    by: Literal["predicted_class", "superclass", "attribute"]
    """what tells groups apart"""
    attribute: Name | None = None
    """with `by: attribute`: its name"""
    superclasses: dict[Name, list[ClassName]] | None = None
    """with `by: superclass`: the classes of every superclass"""

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


class AlertSettings(Frozen):
    """Thresholds that alerts compare estimates with."""

    min_accuracy: Probability | None = None
    """of every group but score bins, whose scores may be low"""
    max_ece: Probability | None = None
    """of every group but those by what other classifiers say"""
    min_labels: float = Field(default=10.0, ge=0)
    """effective labels without which a threshold counts neither as crossed nor as met; twice as many for
    calibration"""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """probability from which a threshold counts as crossed, or met"""


class Mistake(Frozen):
    """What one kind of mistake costs."""

    true: ClassName
    """what it is"""
    predicted: ClassName
    """what the model says"""
    cost: float = Field(ge=0, allow_inf_nan=False)
    """in any unit"""

    @model_validator(mode="before")
    @classmethod
    def _true_is_a_name(cls, given: Any) -> Any:
        # YAML takes the key for a truth value.
        if isinstance(given, dict):
            return {"true" if key is True else key: value for key, value in given.items()}
        return given


class CostSettings(Frozen):
    """What wrong predictions cost; right ones cost nothing."""

    default: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """of a mistake not listed"""
    mistakes: list[Mistake] = Field(default=[])
    """those that cost more, or less"""


class ReferenceSettings(Frozen):
    """What "now" is compared with, unless `credence reference set` has set a window of time."""

    labels: int = Field(default=100, ge=1)
    """the first so many labels of every group are the reference, those that the group's grouping asked for"""


class EvidenceSettings(Frozen):
    """How often evidence may be wrong, however often one looks."""

    alpha: float = Field(default=0.05, ge=1e-6, le=0.5)
    """expected share of false ones among all that evidence confirms about a model at one time, and the
    probability that it ever confirms anything while nothing is wrong; also the probability that a group's
    confidence sequence ever fails to hold its accuracy"""


class DriftSettings(Frozen):
    """How recent traffic is compared with a reference without labels, and how drift directs requests."""

    window_hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """how far back traffic is recent; whole days leave out differences of day and night"""
    reference_predictions: int = Field(default=10_000, ge=1)
    """recent traffic is compared with the first so many predictions, and no fewer than come in window_hours,
    unless `credence reference set` has set a window of time"""
    max_distance: float = Field(default=0.1, gt=0, lt=1)
    """Jensen-Shannon distance from the reference, beyond noise, above which a group has drifted: of its
    scores, predicted classes or attributes; 0 is the same, 1 is nothing in common"""
    label_share: Probability = 0.2
    """this share of every assessment's requests goes to groups of its grouping that have drifted, while any
    has; 0 leaves all to the policy"""

    @property
    def window_seconds(self) -> float:
        """How far back traffic is recent."""
        return self.window_hours * 3_600


class ForgettingSettings(Frozen):
    """What labels from before a change of a group's accuracy still count; beside `label_half_life_days`."""

    after_change: bool = True
    """whether they are down-weighted by the probability that the accuracy has changed since"""
    run_length: int = Field(default=500, ge=100)
    """expected labels of a group between two changes of its accuracy; the shorter, the sooner intervals allow
    for a change, and the wider they are while nothing changes"""


_LONGEST_DAYS = 3_650.0
_PARTS = 7
"""Half-lives of draws, and windows of drift, in the time within which a change is to be found."""


class ModelSettings(Frozen):
    """One deployed classifier."""

    classes: list[ClassName] = Field(min_length=2, max_length=10_000)
    """label set, in order"""
    score_bins: int | list[float] = 10
    """number of equal-width bins, or their inner edges"""
    groupings: dict[Name, GroupingSettings] = Field(default_factory=dict)
    """partitions of the model's traffic, by name"""
    assessments: dict[Name, AnyAssessment] = Field(default_factory=dict)
    """standing questions about the model, by name"""
    alerts: AlertSettings = AlertSettings()
    reference: ReferenceSettings = ReferenceSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    drift: DriftSettings = DriftSettings()
    costs: CostSettings | None = None
    """of mistakes, for a model with a grouping by predicted class"""
    prior: Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"] = "learned"
    """estimate of a group before its labels: the prior"""
    interval: float = Field(default=0.95, gt=0, lt=1)
    """probability inside credible intervals"""
    interval_kind: Literal["equal_tailed", "highest_density"] = "equal_tailed"
    """of accuracy and cost: as much probability on either side, or the shortest interval"""
    find_within_days: float = Field(default=7.0, gt=0, le=_LONGEST_DAYS)
    """how soon you want to hear of a change: it sets the next two keys and `drift.window_hours` where they
    are absent. The shorter, the sooner, and the more labels a day it takes for the same intervals"""
    traffic_half_life_days: float | None = Field(default=7.0, gt=0)
    """traffic that no mark dates counts half after this time; never less, if null"""
    draw_half_life_hours: float | None = Field(default=24.0, gt=0)
    """an item is half as likely to be drawn for a label so long after its record arrived; equally likely at
    every age, if null"""
    label_half_life_days: float | None = Field(default=None, gt=0)
    """a label counts half after this time; never less, if null"""
    forgetting: ForgettingSettings = ForgettingSettings()
    tensors: dict[TensorField, TensorName] = Field(
        default_factory=dict,
        description="in inference responses: names of tensors that are not called like their field "
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

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes must differ from one another")
        too_few = isinstance(self.score_bins, int) and self.score_bins < 1
        limits = (0.0, *self.score_edges, 1.0)
        if too_few or not all(low < high for low, high in itertools.pairwise(limits)):
            raise ValueError("score_bins must be at least 1, or inner edges that ascend within (0, 1)")
        if len({self.tensors.get(field, field) for field in TENSOR_RULES}) < len(TENSOR_RULES):
            raise ValueError(
                "tensors must differ from one another, and from the fields that keep their names"
            )
        if any(name.startswith(ATTRIBUTE_PREFIX) for name in self.tensors.values()):
            raise ValueError(f"tensors cannot begin with `{ATTRIBUTE_PREFIX}`: such a tensor is an attribute")
        return self

    @property
    def score_edges(self) -> tuple[float, ...]:
        """Inner edges of the score bins."""
        if isinstance(self.score_bins, int):
            return tuple(i / self.score_bins for i in range(1, max(self.score_bins, 0)))
        return tuple(self.score_bins)

    def assessments_of(self, task: type[_Assessment]) -> dict[str, _Assessment]:
        """The assessments of one task, by name."""
        return {name: each for name, each in self.assessments.items() if isinstance(each, task)}

    @property
    def positive_class(self) -> str | None:
        """The class to be found, if any assessment asks about performance."""
        performances = self.assessments_of(PerformanceSettings).values()
        return next((each.positive_class for each in performances), None)

    @property
    def ensemble(self) -> Ensemble | None:
        """Whose votes tell groups apart, if any assessment asks about an ensemble."""
        ensembles = self.assessments_of(EnsembleSettings).values()
        return next((Ensemble(tuple(each.members), each.positive_class) for each in ensembles), None)

    @property
    def challenge(self) -> Challenge | None:
        """Whose agreement tells groups apart, if any assessment asks about a challenger."""
        challenges = self.assessments_of(ChallengeSettings).values()
        return next((Challenge(each.challenger) for each in challenges), None)

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
        """Labels of a group from one change to the next; None where changes are not looked for."""
        return self.forgetting.run_length if self.forgetting.after_change else None


def decay_per_second(half_life_days: float | None) -> float:
    """Rate of exponential decay in 1/s for a half-life in days; 0 for None."""
    return 0.0 if half_life_days is None else math.log(2) / (half_life_days * 86_400)
