"""The documents of the HTTP API about the performance of binary classifiers.

A score here is that of the *positive* class, whichever class was predicted.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.serving.documents.base import Document, Interval, Range, Seconds, Verdict
from service.statistics.recalibration import Form

Measure = Literal["precision", "recall", "f1", "false_positive_rate", "prevalence"]


class MeasureState(Document):
    """One measure of a binary classifier at its threshold; of prevalence, of the traffic."""

    measure: Measure
    value: Range | None = Field(
        description="design-based if `design_disagrees`, else model-based; null if it does not exist"
    )
    design: Range | None = Field(
        description="design-based estimate and its confidence interval, from labels and their inclusion "
        "probabilities alone; null if it does not exist"
    )
    target: float | None = Field(
        description="configured target: a minimum, or a maximum for the false positive rate; null without a "
        "target"
    )
    missed: float | None = Field(
        description="posterior probability that the target is missed; null without a target or an estimate"
    )
    verdict: Verdict = Field(
        description="whether it meets the target: `meets` or `fails` with enough labels and confidence, else "
        "`open`; `none` without a target"
    )


class PerformanceSummary(Document):
    """Performance of a binary classifier in short."""

    name: str = Field(description="of the assessment")
    positive_class: str
    threshold: float = Field(
        description="the model's decision threshold: the lowest score of the positive class that it predicts "
        "as positive"
    )
    taken_at: Seconds | None = Field(
        description="when the labels and scores for this estimate were read; null before the first estimate"
    )
    labels: int = Field(description="labels used for the estimate")
    measures: list[MeasureState] = Field(description="empty before the first estimate")
    design_disagrees: bool = Field(
        description="whether labels contradict the score model (Bayes factor of at least 10), so that the "
        "estimates at the threshold are design-based"
    )
    sentence: str = Field(description="the same in words")


class CurvePoint(Document):
    """One point of the precision-recall curve."""

    recall: float
    precision: Range | None = Field(
        description="precision at this recall; null if the recall cannot be reached"
    )


class RocPoint(Document):
    """One point of the ROC curve."""

    false_positive_rate: float
    recall: Range | None = Field(description="recall at this rate; null if the rate cannot be reached")


class ThresholdState(Document):
    """Performance if all items from one score on are called positive."""

    threshold: float | None = Field(
        description="the lowest score that is predicted positive; null if none is"
    )
    precision: Range | None
    recall: Range | None
    f1: Range | None
    false_positive_rate: Range | None
    met: float | None = Field(description="probability that all targets are met; null without targets")
    cost: Interval = Field(description="expected cost of an item, from `error_costs`")


class CostState(Document):
    """What errors cost."""

    configured: bool = Field(
        description="false if not configured: both errors cost 1, and `cost` is the share of misclassified "
        "items"
    )
    false_positive: float
    false_negative: float


class Seeing(Document):
    """Score models: their posterior weights, and how well they fit."""

    way: str = Field(
        description="model with most of the weight: calibrated (scores are nearly calibrated "
        "probabilities), lapsing (likewise, but the highest scores all mean the same), informed (shaped "
        "like the mixture) or ranked (only the order of scores matters); average, if none has most of it"
    )
    weights: dict[str, float] = Field(description="posterior weight of every model; they sum to 1")
    misfit: bool = Field(description="whether the mixture does not fit the scores")
    misfit_p_value: float = Field(description="p-value of the fit of the mixture")
    separation: float = Field(
        description="share of the uncertainty about an item's class that its score removes, in the mixture"
    )
    negative_family: str = Field(description="the mixture's distribution of scores of the negative class")
    positive_family: str = Field(description="the mixture's distribution of scores of the positive class")
    effective_draws: float = Field(description="effective sample size of the draws of the mixture")
    method: Literal["importance sampling", "walkers"] = Field(description="sampling method")


class PerformanceState(Document):
    """Performance of a binary classifier at its threshold, and at every other one."""

    model: str
    assessment: str
    taken_at: Seconds = Field(description="when the labels and scores for this estimate were read")
    interval: float = Field(description="probability inside intervals")
    positive_class: str
    threshold: float = Field(
        description="the model's decision threshold: the lowest score that it predicts as positive"
    )
    labels: int = Field(description="labels used for the estimate")
    scores: int = Field(description="scores of unlabelled items used for the estimate")
    measures: list[MeasureState] = Field(description="performance at the model's threshold")
    design_disagrees: bool = Field(
        description="whether labels contradict the score model (Bayes factor of at least 10), so that the "
        "estimates at the threshold are design-based. Curves and other thresholds stay model-based"
    )
    design_log10_factor: float = Field(
        description="log10 of the Bayes factor of a positive share that changes with the score in steps, "
        "against the score model"
    )
    sentence: str = Field(description="the same in words")
    curve: list[CurvePoint] = Field(description="precision by recall")
    roc: list[RocPoint] = Field(description="recall by false positive rate")
    thresholds: list[ThresholdState] = Field(
        description="ascending; a selection if there are many, with `operating` and `best`"
    )
    operating: int = Field(
        description="position in `thresholds` of the one that classifies like the model's threshold"
    )
    best: int = Field(
        description="position of the threshold with the highest probability of meeting all targets; ties go "
        "to the lowest cost if error costs are configured, otherwise to the highest F1"
    )
    error_costs: CostState
    seeing: Seeing


class MapPoint(Document):
    """The probability that a score stands for."""

    score: float
    probability: float = Field(
        description="posterior mean probability that an item of this score is positive"
    )
    lower: float = Field(description="lower end of the credible interval")
    upper: float = Field(description="upper end of the credible interval")


class Recalibration(Document):
    """A map from scores to probabilities, to be applied elsewhere."""

    model: str
    assessment: str
    positive_class: str
    form: Form
    taken_at: Seconds = Field(description="when the labels and scores for this estimate were read")
    labels: int = Field(description="labels used for the estimate")
    interval: float = Field(description="probability inside intervals")
    how: str = Field(description="how to apply it")
    coefficients: dict[str, Interval] = Field(
        description="coefficients of the formula in `how`; empty for an isotonic map"
    )
    table: list[MapPoint] = Field(description="by ascending score")
