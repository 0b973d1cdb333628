"""Settings of assessments: the standing questions about a model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

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

_EVEN = 0.5
_MEMBER_LABELS = 100
_MARGIN = 0.01
_DISAGREEMENT_SHARE = 0.8


class Targets(Frozen):
    """What the performance of a binary classifier has to reach."""

    precision: Probability | None = Field(default=None, description="at least")
    recall: Probability | None = Field(default=None, description="at least")
    f1: Probability | None = Field(default=None, description="at least")
    false_positive_rate: Probability | None = Field(default=None, description="at most")


class ErrorCosts(Frozen):
    """What the errors of a binary classifier cost, in any unit."""

    false_positive: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="of a negative item that is called positive"
    )
    false_negative: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="of a positive item that is called negative"
    )


class Budget(Frozen):
    """How many labels an assessment may cost."""

    labels: int = Field(ge=1, description="labels, requests in flight included")
    per_days: float | None = Field(
        default=None, gt=0, description="the budget renews after so many days (UTC); never, if absent"
    )


class AssessmentSettings(Frozen):
    """One standing question about a model."""

    task: Task = Field(
        default="estimation",
        description="know every group, find the extreme ones, compare two groups, know precision and "
        "recall of a binary classifier at every threshold, know an ensemble and its members, or whether a "
        "challenger is better",
    )
    metric: Metric = Field(
        default="accuracy",
        description="what is asked about; with performance and ensemble their only metric, if absent",
    )
    extreme: Extreme | None = Field(
        default=None,
        description="with identification: which end; if absent the worse one: the lowest accuracy, "
        "the highest calibration error or cost",
    )
    top_m: int = Field(default=1, ge=1, description="with identification: how many groups")
    between: list[ClassName] | None = Field(
        default=None, min_length=2, max_length=2, description="with comparison: names of the two groups"
    )
    region: float = Field(
        default=0.05, gt=0, lt=1, description="with comparison: difference of accuracies that does not matter"
    )
    grouping: Name = Field(
        default=ALL, description="one of the model's groupings; `all` and `score_bin` are always there"
    )
    positive_class: ClassName | None = Field(
        default=None,
        description="with performance: the class to be found, one of the model's two; with ensemble, any",
    )
    members: list[Name] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        description="with ensemble: the classifiers whose votes are pooled, as predictions name them",
    )
    member_labels: int | None = Field(
        default=None,
        ge=2,
        description="with ensemble: labels that each member is to have, the ensemble itself included; 100 if "
        "absent",
    )
    challenger: Name | None = Field(
        default=None,
        description="with challenge: the other classifier, as the votes of predictions name it; the same for "
        "all of a model",
    )
    margin: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="with challenge: difference of accuracies that does not matter; 0.01 if absent",
    )
    disagreement_share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="with challenge: share of the labels that go to items on which the two disagree; 0.8 if "
        "absent",
    )
    threshold: Probability | None = Field(
        default=None,
        description="with performance: the model calls positive what it gives this probability to, or more; "
        "0.5 if absent",
    )
    targets: Targets | None = Field(
        default=None,
        description="with performance: what is to be reached, and alerted on where it is not; with ensemble "
        "the precision alone",
    )
    error_costs: ErrorCosts | None = Field(
        default=None, description="with performance: by which, of equally good thresholds, one is chosen"
    )
    policy: Policy = Field(default="thompson", description="who is labelled next")
    budget: Budget
    max_in_flight: int = Field(default=20, ge=1, description="requests waiting for an answer, at the most")
    lease_seconds: PositiveSeconds = Field(
        default=3_600.0, description="time to answer before a request expires"
    )
    max_attempts: int = Field(default=2, ge=1, le=100, description="how often one item is asked for")
    reveal_prediction: bool = Field(
        default=False, description="show labellers what the model predicted (this sways them)"
    )

    @model_validator(mode="before")
    @classmethod
    def _some_tasks_have_one_metric(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("task") in ("performance", "ensemble"):
            return {"metric": METRICS[given["task"]][0], **given}
        return given

    @property
    def wanted_labels(self) -> int:
        """Labels that each member of an ensemble is to have."""
        return _MEMBER_LABELS if self.member_labels is None else self.member_labels

    @property
    def least_margin(self) -> float:
        """By how much a challenger must differ to matter."""
        return _MARGIN if self.margin is None else self.margin

    @property
    def aimed_share(self) -> float:
        """Share of a challenge's labels that go to disagreements."""
        return _DISAGREEMENT_SHARE if self.disagreement_share is None else self.disagreement_share

    @property
    def operating_threshold(self) -> float:
        """From which probability of the positive class on the model calls positive."""
        return _EVEN if self.threshold is None else self.threshold

    @property
    def end(self) -> Extreme:
        """The end that identification looks for."""
        return self.extreme or ("lowest" if self.metric == "accuracy" else "highest")

    @property
    def asked_grouping(self) -> str:
        """The grouping that labels are asked for: by scores, where all of the traffic is asked about."""
        if self.task == "performance":
            return POSITIVE_SCORE
        if self.task == "ensemble":
            return VOTES
        if self.task == "challenge":
            return CHALLENGE
        return SCORE_BIN if self.metric == "overall_accuracy" else self.grouping
