"""The documents of the HTTP API about the performance of binary classifiers.

A score here is that of the *positive* class, whichever class was predicted.
"""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field

from service.serving.documents.base import Document, Interval, Seconds, Verdict
from service.statistics.estimate import Band
from service.statistics.recalibration import Form

Measure = Literal["precision", "recall", "f1", "false_positive_rate", "prevalence"]


class MeasureState(Document):
    """One measure of a binary classifier at its threshold; of prevalence, of the traffic."""

    measure: Measure
    value: Interval | None = Field(description="null of what cannot exist")
    target: float | None = Field(
        description="configured: at least; of the false positive rate at most. Null without one"
    )
    missed: float | None = Field(description="probability that the target is missed; null without one")
    verdict: Verdict = Field(
        description="whether it meets the target: known with enough labels either way, still open, or none "
        "without a target"
    )


class PerformanceSummary(Document):
    """How a binary classifier does, in short."""

    name: str = Field(description="of the assessment")
    positive_class: str
    threshold: float = Field(description="from which score of the positive class on the model calls positive")
    taken_at: Seconds | None = Field(
        description="when the facts were read that it was learned from; null before the first time"
    )
    labels: int = Field(description="that it was learned from")
    measures: list[MeasureState] = Field(description="empty before the first time")
    sentence: str = Field(description="the same in words")


class Range(Document):
    """Where a curve is at one point."""

    lower: float = Field(description="lower edge of the band")
    median: float = Field(description="the curve")
    upper: float = Field(description="upper edge of the band")

    @classmethod
    def if_any(cls, band: Band, which: int) -> Self | None:
        """At one of the curve's points; None where it cannot exist."""
        lower, median, upper = (float(each[which]) for each in (band.lower, band.median, band.upper))
        return cls(lower=lower, median=median, upper=upper) if math.isfinite(median) else None


class CurvePoint(Document):
    """One point of the precision-recall curve."""

    recall: float
    precision: Range | None = Field(description="where this recall is reached; null if it cannot be")


class RocPoint(Document):
    """One point of the ROC curve."""

    false_positive_rate: float
    recall: Range | None = Field(description="where this rate is reached; null if it cannot be")


class ThresholdState(Document):
    """What happens where all items from one score on are called positive."""

    threshold: float | None = Field(description="the lowest score that is called positive; null: none is")
    precision: Interval | None
    recall: Interval | None
    f1: Interval | None
    false_positive_rate: Interval | None
    met: float | None = Field(description="probability that all targets are met; null without targets")
    cost: Interval = Field(description="of an item, by `error_costs`")


class CostState(Document):
    """What errors cost."""

    configured: bool = Field(description="else both cost 1, and `cost` is the share of items called wrongly")
    false_positive: float
    false_negative: float


class Seeing(Document):
    """How the scores are seen, and what says whether that is right."""

    way: str = Field(
        description="that has most of the weight: calibrated (scores are about right as probabilities), "
        "mixture (scores are those of two classes), informed (of the mixture's shape) or ranked (nothing but "
        "the order of scores is right); average, if none has most of it"
    )
    weights: dict[str, float] = Field(description="probability of every way; they sum to 1")
    misfit: bool = Field(description="whether the scores are no mixture of two classes as far as known")
    misfit_p_value: float = Field(description="how often scores of such a mixture are as far from it")
    separation: float = Field(
        description="share of the uncertainty about an item's class that its score takes away, in the mixture"
    )
    negative_family: str = Field(description="the mixture's distribution of scores of the negative class")
    positive_family: str = Field(description="likewise of the positive class")
    effective_draws: float = Field(description="as how many independent draws those of the mixture count")
    method: Literal["importance sampling", "walkers"] = Field(description="how they were made")


class PerformanceState(Document):
    """How a binary classifier does at its threshold, and would at every other one."""

    model: str
    assessment: str
    taken_at: Seconds = Field(description="when the facts were read that it was learned from")
    interval: float = Field(description="probability inside intervals")
    positive_class: str
    threshold: float = Field(description="from which score on the model calls positive")
    labels: int = Field(description="that it was learned from")
    scores: int = Field(description="of unlabelled items that were looked at")
    measures: list[MeasureState] = Field(description="at the model's threshold")
    sentence: str = Field(description="the same in words")
    curve: list[CurvePoint] = Field(description="precision by recall")
    roc: list[RocPoint] = Field(description="recall by false positive rate")
    thresholds: list[ThresholdState] = Field(
        description="ascending; of very many those that differ, and always `operating` and `best`"
    )
    operating: int = Field(
        description="position in `thresholds` of what calls the same items positive as the model's threshold"
    )
    best: int = Field(
        description="position of the threshold that meets all targets most probably; of equal ones, the "
        "cheapest where error costs are configured, else that of the highest F1"
    )
    error_costs: CostState
    seeing: Seeing


class MapPoint(Document):
    """What a score means."""

    score: float
    probability: float = Field(description="that an item of this score is positive, in the mean")
    lower: float = Field(description="lower end of the credible interval")
    upper: float = Field(description="upper end of the credible interval")


class Recalibration(Document):
    """A map from scores to probabilities, to be applied elsewhere."""

    model: str
    assessment: str
    positive_class: str
    form: Form
    taken_at: Seconds = Field(description="when the facts were read that it was learned from")
    labels: int = Field(description="that it was learned from")
    interval: float = Field(description="probability inside intervals")
    how: str = Field(description="how to apply it")
    coefficients: dict[str, Interval] = Field(description="of the formula in `how`; none of an isotonic map")
    table: list[MapPoint] = Field(description="by ascending score")
