"""Settings of assessments, with a class for each task."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from service.config.budget import Budget
from service.config.types import ClassName, Frozen, Name, PositiveSeconds, Probability
from service.domain.assessments import METRICS, Aim, LabelledRate, Metric, Policy, RateName, Task
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES, stratum_grouping
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
"""Groups that an identification finds, by its metric and end."""


_NARROWED: Final[frozenset[Task]] = frozenset(("performance", "error_rates"))


class Targets(Frozen):
    """Targets of a binary classifier's performance."""

    precision: Probability | None = None
    """minimum precision"""
    recall: Probability | None = None
    """minimum recall"""
    f1: Probability | None = None
    """minimum F1 score"""
    false_positive_rate: Probability | None = None
    """maximum false positive rate"""

    @property
    def wanted(self) -> dict[str, float]:
        """The target of every measure that has one."""
        return self.model_dump(exclude_none=True)


class ErrorCosts(Frozen):
    """Costs of a binary classifier's errors, in any unit."""

    false_positive: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """cost of a false positive"""
    false_negative: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """cost of a false negative"""


class AssessmentSettings(Frozen):
    """One assessment: a question about a model that Credence answers continuously."""

    asks_by: ClassVar[str | None] = None
    """The grouping in which labels of this task are requested, if it is fixed."""

    task: Task
    metric: Metric = "accuracy"
    """what is estimated"""
    grouping: Name = ALL
    """one of the model's groupings, or the built-in `all` or `score_bin`"""
    budget: Budget
    max_in_flight: int = Field(default=20, ge=1)
    """maximum number of open requests"""
    lease_seconds: PositiveSeconds = 3_600.0
    """time to answer a request before it expires"""
    max_attempts: int = Field(default=2, ge=1, le=100)
    """maximum number of requests for the same item"""
    reveal_prediction: bool = False
    """show the model's prediction to labellers, which biases their labels"""

    @field_validator("metric")
    @classmethod
    def _is_of_the_task(cls, metric: Metric, info: ValidationInfo) -> Metric:
        task = info.data["task"]
        if metric not in METRICS[task]:
            raise ValueError(f"task {task} accepts {', '.join(METRICS[task])}")
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
        """The grouping within whose groups labels are drawn evenly: score bins for overall accuracy."""
        return self.asks_by or (SCORE_BIN if self.metric == "overall_accuracy" else self.grouping)

    @property
    def chosen_grouping(self) -> str:
        """The grouping whose groups are chosen for labels."""
        return self.asked_grouping


class PolicySettings(AssessmentSettings):
    """Settings of assessments whose requests a policy directs; those of other tasks are planned."""

    policy: Policy = "thompson"
    """how the groups that are labelled next are chosen; `certify` requests what a certificate still lacks,
    and `adaptive` what narrows a measure of the tasks performance and error_rates most"""

    @field_validator("policy")
    @classmethod
    def _is_for_the_task(cls, policy: Policy, info: ValidationInfo) -> Policy:
        task = info.data.get("task")
        if policy == "adaptive" and task not in _NARROWED:
            raise ValueError("adaptive requires the task performance or error_rates")
        if task == "error_rates" and policy not in {"adaptive", "random"}:
            raise ValueError("task error_rates accepts adaptive, random")
        return policy

    @property
    def reserved_labels(self) -> int:
        """Labels of every period that only suspected groups may get; score bins never are."""
        if self.budget.per_days is None or self.asked_grouping in {SCORE_BIN, POSITIVE_SCORE}:
            return 0
        return self.budget.reserved_labels


class EstimationSettings(PolicySettings):
    """Estimate every group."""

    task: Literal["estimation"] = "estimation"


class IdentificationSettings(PolicySettings):
    """Find the groups with the lowest or highest metric."""

    task: Literal["identification"] = "identification"
    extreme: Extreme | None = None
    """lowest or highest; default: the worse end, which is the lowest accuracy, or the highest calibration
    error or cost"""
    top_m: int = Field(default=1, ge=1)
    """number of groups to find"""

    @property
    def end(self) -> Extreme:
        """The end of the metric whose groups are found."""
        return self.extreme or ("lowest" if self.metric == "accuracy" else "highest")


class ComparisonSettings(PolicySettings):
    """Compare two groups."""

    task: Literal["comparison"] = "comparison"
    between: list[ClassName] = Field(min_length=2, max_length=2)
    """names of the two groups"""
    region: float = Field(default=0.05, gt=0, lt=1)
    """region of practical equivalence (ROPE): a smaller difference in accuracy counts as none"""


class PerformanceSettings(PolicySettings):
    """Estimate precision and recall of a binary classifier at every threshold."""

    asks_by = POSITIVE_SCORE

    task: Literal["performance"] = "performance"
    metric: Metric = "precision_recall"
    """always `precision_recall`"""
    policy: Policy = "adaptive"
    """how the scores that are labelled next are chosen; `adaptive` narrows the aim most"""
    aim: Aim = "f1"
    """what adaptive labels narrow: a measure at the threshold, or the precision-recall curve"""
    positive_class: ClassName
    """the positive class, one of the model's classes"""
    threshold: Probability = 0.5
    """decision threshold: a prediction is positive if its probability is at least this"""
    targets: Targets = Targets()
    """targets, with an alert for each that is missed; with ensemble only `precision`"""
    error_costs: ErrorCosts | None = None
    """costs for which the cheapest threshold is suggested"""


class EnsembleSettings(AssessmentSettings):
    """Estimate the precision of an ensemble and its members."""

    asks_by = VOTES

    task: Literal["ensemble"] = "ensemble"
    metric: Metric = "precision"
    """always `precision`"""
    positive_class: ClassName
    """the positive class, one of the model's classes"""
    members: list[Name] = Field(min_length=1, max_length=16)
    """names of the member classifiers in the votes of predictions"""
    member_labels: int = Field(default=100, ge=2)
    """number of labels that each member needs, and the ensemble itself"""
    targets: Targets = Targets()
    """targets, with an alert for each that is missed; with ensemble only `precision`"""


class ChallengeSettings(AssessmentSettings):
    """Test whether a challenger is more accurate than the model."""

    asks_by = CHALLENGE

    task: Literal["challenge"] = "challenge"
    challenger: Name
    """name of the challenger in the votes of predictions; the same in all assessments of a model"""
    margin: float = Field(default=0.01, ge=0, lt=1)
    """a smaller difference in accuracy counts as none"""
    disagreement_share: float = Field(default=0.8, gt=0, le=1)
    """share of labels for items on which challenger and model disagree"""


class ErrorRateSettings(PolicySettings):
    """Estimate the error rates of every group for one class against the rest."""

    task: Literal["error_rates"] = "error_rates"
    metric: Metric = "error_rates"
    """always `error_rates`"""
    policy: Policy = "adaptive"
    """how the groups, and strata of these, that are labelled next are chosen: `adaptive` or `random`"""
    positive_class: ClassName
    """the positive class, one of the model's classes; the same in all assessments of error rates"""
    rate: LabelledRate = "false_positive_rate"
    """the rate that adaptive labels are requested for"""
    limits: dict[LabelledRate, Probability] = Field(default={})
    """limits of rates in every group, with an alert: the maximum of `false_positive_rate` and
    `false_negative_rate`, the minimum of `true_positive_rate` and `precision`"""
    group_limits: dict[ClassName, dict[LabelledRate, Probability]] = Field(default={})
    """limits of single groups, by name; they replace those of `limits`"""
    max_differences: dict[RateName, Probability] = Field(default={})
    """maximum difference between any two groups, by rate, with an alert"""
    min_ratios: dict[RateName, Probability] = Field(default={})
    """minimum ratio of the lowest to the highest rate of any group, by rate, with an alert"""

    @property
    def reserved_labels(self) -> int:
        """None: groups are suspected for their accuracy, and these labels are for their error rates."""
        return 0

    @property
    def asked_grouping(self) -> str:
        """The strata of the groups."""
        return stratum_grouping(self.grouping)

    @property
    def chosen_grouping(self) -> str:
        """The groups themselves: then a stratum of one is drawn."""
        return self.grouping

    def limit(self, rate: LabelledRate, group: str) -> float | None:
        """The limit of a rate in a group, if there is one."""
        return self.group_limits.get(group, {}).get(rate, self.limits.get(rate))


def _with_task(given: Any) -> Any:
    return {"task": "estimation", **given} if isinstance(given, dict) else given


AnyAssessment = Annotated[
    EstimationSettings
    | IdentificationSettings
    | ComparisonSettings
    | PerformanceSettings
    | EnsembleSettings
    | ChallengeSettings
    | ErrorRateSettings,
    Field(discriminator="task"),
    BeforeValidator(_with_task),
]
"""The settings of an assessment of any task; `estimation` is the default."""

ASSESSMENTS: Final[dict[Task, type[AssessmentSettings]]] = {
    kind.model_fields["task"].default: kind for kind in get_args(get_args(AnyAssessment)[0])
}
"""The settings of every task."""


def tasks_accepting(key: str) -> list[Task]:
    """The tasks whose assessments have a key."""
    return [task for task, kind in ASSESSMENTS.items() if key in kind.model_fields]
