"""Settings of assessments: the standing questions about a model, with a class for each task."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from service.config.types import ClassName, Frozen, Name, PositiveSeconds, Probability
from service.domain.assessments import METRICS, Metric, Policy, Task
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES
from service.domain.groupings import ALL

Extreme = Literal["lowest", "highest"]

QUALITIES: dict[tuple[str, str], str] = {
    ("accuracy", "lowest"): "least accurate",
    ("accuracy", "highest"): "most accurate",
    ("calibration", "highest"): "least calibrated",
    ("calibration", "lowest"): "best calibrated",
    ("cost", "highest"): "most costly",
    ("cost", "lowest"): "least costly",
}
"""What an identification looks for, by its metric and end."""


_BURST = 0.1
_RESERVE = 0.2


class Targets(Frozen):
    """What the performance of a binary classifier has to reach."""

    precision: Probability | None = None
    """at least"""
    recall: Probability | None = None
    """at least"""
    f1: Probability | None = None
    """at least"""
    false_positive_rate: Probability | None = None
    """at most"""

    @property
    def wanted(self) -> dict[str, float]:
        """What has to be reached of every measure that has a target."""
        return self.model_dump(exclude_none=True)


class ErrorCosts(Frozen):
    """What the errors of a binary classifier cost, in any unit."""

    false_positive: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """of a negative item that is called positive"""
    false_negative: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """of a positive item that is called negative"""


class Budget(Frozen):
    """How many labels an assessment may cost."""

    labels: int = Field(ge=1)
    """labels, requests in flight included"""
    per_days: float | None = Field(default=None, gt=0)
    """the budget renews after so many days (UTC); never, if absent, and then it is spent without a pace"""
    burst: float | None = Field(default=None, gt=0, le=1)
    """a budget that renews is spread over its period; at most this share of it is spent at once (0.1 if
    absent)"""
    reserve: float | None = Field(default=None, ge=0, lt=1)
    """of a budget that renews, this share is kept for suspected groups: those that have drifted or
    changed, or are estimated, but not confirmed, to violate a threshold (0.2 if absent)"""

    @model_validator(mode="after")
    def _is_paced_by_period(self) -> Budget:
        for key, share in (("burst", self.burst), ("reserve", self.reserve)):
            if self.per_days is None and share is not None:
                raise ValueError(f"`{key}` requires `per_days`: it is a share of the labels of a period")
        return self

    @property
    def burst_labels(self) -> float:
        """Labels of a period that may be spent at once."""
        return max(1.0, self.labels * (_BURST if self.burst is None else self.burst))

    @property
    def reserved_labels(self) -> int:
        """Labels of a period that only suspected groups may get."""
        return round(self.labels * (_RESERVE if self.reserve is None else self.reserve))


class AssessmentSettings(Frozen):
    """One standing question about a model."""

    asks_by: ClassVar[str | None] = None
    """The grouping that labels of the task are asked for, if it is always the same."""

    task: Task
    metric: Metric = "accuracy"
    """what is asked about"""
    grouping: Name = ALL
    """one of the model's groupings; `all` and `score_bin` are always there"""
    budget: Budget
    max_in_flight: int = Field(default=20, ge=1)
    """requests waiting for an answer, at the most"""
    lease_seconds: PositiveSeconds = 3_600.0
    """time to answer before a request expires"""
    max_attempts: int = Field(default=2, ge=1, le=100)
    """how often one item is asked for"""
    reveal_prediction: bool = False
    """show labellers what the model predicted (this sways them)"""

    @field_validator("metric")
    @classmethod
    def _is_of_the_task(cls, metric: Metric, info: ValidationInfo) -> Metric:
        task = info.data["task"]
        if metric not in METRICS[task]:
            raise ValueError(f"{task} is about one of {', '.join(METRICS[task])}")
        return metric

    @property
    def reserved_labels(self) -> int:
        """Labels of every period that only suspected groups may get."""
        return 0

    @property
    def labels_per_second(self) -> float:
        """Mean pace of the labels that any group may get; 0 of a budget that does not renew."""
        if self.budget.per_days is None:
            return 0.0
        return (self.budget.labels - self.reserved_labels) / (self.budget.per_days * 86_400)

    @property
    def asked_grouping(self) -> str:
        """The grouping that labels are asked for: score bins, where all of the traffic is asked about."""
        return self.asks_by or (SCORE_BIN if self.metric == "overall_accuracy" else self.grouping)


class PolicySettings(AssessmentSettings):
    """What assessments have whose labels a policy chooses; those of other tasks are planned."""

    policy: Policy = "thompson"
    """who is labelled next"""

    @property
    def reserved_labels(self) -> int:
        """Labels of every period that only suspected groups may get; score bins never are."""
        if self.budget.per_days is None or self.asked_grouping in {SCORE_BIN, POSITIVE_SCORE}:
            return 0
        return self.budget.reserved_labels


class EstimationSettings(PolicySettings):
    """Know every group."""

    task: Literal["estimation"] = "estimation"


class IdentificationSettings(PolicySettings):
    """Find the extreme groups."""

    task: Literal["identification"] = "identification"
    extreme: Extreme | None = None
    """which end; if absent the worse one: the lowest accuracy, the highest calibration error or cost"""
    top_m: int = Field(default=1, ge=1)
    """how many groups"""

    @property
    def end(self) -> Extreme:
        """The end that is looked for."""
        return self.extreme or ("lowest" if self.metric == "accuracy" else "highest")


class ComparisonSettings(PolicySettings):
    """Compare two groups."""

    task: Literal["comparison"] = "comparison"
    between: list[ClassName] = Field(min_length=2, max_length=2)
    """names of the two groups"""
    region: float = Field(default=0.05, gt=0, lt=1)
    """difference of accuracies that does not matter"""


class PerformanceSettings(PolicySettings):
    """Know precision and recall of a binary classifier at every threshold."""

    asks_by = POSITIVE_SCORE

    task: Literal["performance"] = "performance"
    metric: Metric = "precision_recall"
    """the only one"""
    positive_class: ClassName
    """the class to be found, one of the model's"""
    threshold: Probability = 0.5
    """the model calls positive what it gives this probability to, or more"""
    targets: Targets = Targets()
    """what is to be reached, and alerted on where it is not; with ensemble the precision alone"""
    error_costs: ErrorCosts | None = None
    """by which, of equally good thresholds, one is chosen"""


class EnsembleSettings(AssessmentSettings):
    """Know an ensemble and its members."""

    asks_by = VOTES

    task: Literal["ensemble"] = "ensemble"
    metric: Metric = "precision"
    """the only one"""
    positive_class: ClassName
    """the class to be found, one of the model's"""
    members: list[Name] = Field(min_length=1, max_length=16)
    """the classifiers whose votes are pooled, as predictions name them"""
    member_labels: int = Field(default=100, ge=2)
    """labels that each member is to have, the ensemble itself included"""
    targets: Targets = Targets()
    """what is to be reached, and alerted on where it is not; with ensemble the precision alone"""


class ChallengeSettings(AssessmentSettings):
    """Know whether a challenger is better."""

    asks_by = CHALLENGE

    task: Literal["challenge"] = "challenge"
    challenger: Name
    """the other classifier, as the votes of predictions name it; the same for all of a model"""
    margin: float = Field(default=0.01, ge=0, lt=1)
    """difference of accuracies that does not matter"""
    disagreement_share: float = Field(default=0.8, gt=0, le=1)
    """share of the labels that go to items on which the two disagree"""


def _with_task(given: Any) -> Any:
    return {"task": "estimation", **given} if isinstance(given, dict) else given


AnyAssessment = Annotated[
    EstimationSettings
    | IdentificationSettings
    | ComparisonSettings
    | PerformanceSettings
    | EnsembleSettings
    | ChallengeSettings,
    Field(discriminator="task"),
    BeforeValidator(_with_task),
]
"""The settings of an assessment of any task: estimation where no task is given."""

ASSESSMENTS: Final[dict[Task, type[AssessmentSettings]]] = {
    kind.model_fields["task"].default: kind for kind in get_args(get_args(AnyAssessment)[0])
}
"""The settings of every task."""


def tasks_accepting(key: str) -> list[Task]:
    """The tasks whose assessments have a key."""
    return [task for task, kind in ASSESSMENTS.items() if key in kind.model_fields]
