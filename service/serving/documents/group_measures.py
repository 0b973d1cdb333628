"""The measures of a group: each is declared once, and Prometheus, JSON API and terminal show it as declared.

A field made with `measure` is part of the JSON API. Its `gauge` is in Prometheus, its `column` in the table that
`credence status` prints. Measures of evidence and drift are beside their documents.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from service.domain.arrays import Floats, Ints
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.serving.documents.base import Document, Interval, Seconds, Verdict
from service.serving.documents.evidence import GroupEvidenceState
from service.serving.documents.words import cell_of_interval, cell_of_verdict
from service.serving.measures import Column, Measures, gauge, interval, metrics_of
from service.serving.metrics import GROUP_LABELS, Metric, MetricTable, total

measure = Measures[GroupingSnapshot]()


class Relearning(Document):
    """A change of a group's accuracy, after which it is learned anew."""

    since: Seconds = Field(
        description="when the first prediction was made that is likeliest to be from after the change"
    )
    labels_before: int = Field(description="from before it, of those that the grouping asked for")
    kept: float = Field(description="what one of these still counts, at the most")


class GroupState(Document):
    """What is believed of one group."""

    group: str
    share: float = measure(
        lambda grouping: grouping.beliefs.shares,
        gauge(
            "credence_group_traffic_share_ratio",
            "ratio",
            "Share of the model's traffic, recent traffic counting more.",
            other=total,
        ),
        description="of the model's traffic, recent traffic counting more",
        column=Column("share", lambda group: f"{group.share:.1%}"),
    )
    missed_traffic: float = measure(
        lambda grouping: grouping.missed,
        gauge(
            "credence_group_missed_traffic_ratio",
            "ratio",
            "Share of the group's traffic that may be in `__other__` instead, at most; absent where none is.",
            shown=lambda missed: np.where(missed > 0, missed, np.nan),
            off_dashboards="the page marks such groups, and the runbook asks for it",
        ),
        description="share of the group's traffic that may be in `__other__` instead, at most",
    )
    score_mean: float = measure(
        lambda grouping: grouping.beliefs.scores,
        gauge(
            "credence_group_score_mean_ratio",
            "ratio",
            "Mean score: what the model itself says of its accuracy.",
            other=lambda others, _: others.score_mean,
        ),
        description="what the model itself says of its accuracy",
    )
    labels_correct: int = measure(lambda grouping: grouping.beliefs.labels_correct)
    labels_incorrect: int = measure(
        lambda grouping: grouping.beliefs.labels_incorrect,
        column=Column("labels", lambda group: f"{group.labels_correct + group.labels_incorrect}"),
    )
    effective_labels: float = measure(
        lambda grouping: grouping.beliefs.labels,
        gauge(
            "credence_group_effective_labels",
            "labels",
            "What the group's labels are worth after weighting and forgetting.",
            other=total,
        ),
        description="what its labels are worth after weighting and forgetting",
    )
    accuracy: Interval = measure(
        lambda grouping: grouping.accuracy,
        *interval(
            "credence_group_accuracy_{}_ratio",
            "ratio",
            "Lower end of the credible interval of accuracy; of grouping `all`, of the overall accuracy.",
            "Posterior mean of accuracy.",
            "Upper end of the credible interval of accuracy.",
            other=lambda others: others.accuracy,
        ),
        column=Column("accuracy %", lambda group: cell_of_interval(group.accuracy)),
    )
    own_rate: float | None = measure(
        lambda grouping: grouping.own_rate,
        description="how many of its own labels say that it is right, by themselves; null without any",
    )
    own_share: float = measure(
        lambda grouping: grouping.own_share,
        gauge(
            "credence_group_own_labels_share",
            "",
            "Share of what is believed of the group's accuracy that comes from its own labels; the rest comes from scores and other groups. Absent of `other`.",
        ),
        description="part of `accuracy` that comes from its own labels; the rest is what scores and other groups tell",
    )
    accuracy_below: float | None = measure(
        lambda grouping: grouping.accuracy_below,
        gauge(
            "credence_group_accuracy_below_threshold_probability",
            "",
            "Posterior probability that accuracy is below alerts.min_accuracy; absent without one, and of score bins. Of `other`, the highest among those with labels enough.",
            other=lambda others, _: others.accuracy_below,
        ),
        description="probability of less than min_accuracy",
        column=Column(
            "below {min_accuracy:g} %",
            lambda group: cell_of_verdict(
                group.accuracy_below, group.verdict, group.verdict_labels, group.verdict_seconds
            ),
            has_failed=lambda group: group.verdict == "fails",
        ),
    )
    verdict: Verdict = Field(
        description="whether it meets min_accuracy: known with enough labels either way, still open, or none "
        "without a threshold"
    )
    verdict_labels: float | None = measure(
        lambda grouping: grouping.verdict_labels,
        gauge(
            "credence_group_labels_to_decision",
            "",
            "Labels that the group still needs, in the median of what is believed, until it has alerts.min_labels and is known with alerts.confidence on which side of alerts.min_accuracy it lies; 0 once it is known, absent without a threshold.",
        ),
        description="labels still needed for a verdict, in the median of what is believed; null if none is wanted, or more than can be told",
    )
    verdict_seconds: Seconds | None = measure(
        lambda grouping: grouping.verdict_seconds,
        gauge(
            "credence_group_time_to_decision_seconds",
            "seconds",
            "Time to that many labels, if all budgets are spent and the group goes on to get its share of the labels; absent without a budget that renews.",
        ),
        description="time to them at the budgets that renew; null if these never suffice, or none renews",
    )
    calibration_gap: float = measure(
        lambda grouping: grouping.beliefs.scores - grouping.accuracy_mean,
        gauge(
            "credence_group_calibration_gap_ratio",
            "ratio",
            "Mean score less the posterior mean of accuracy: positive where the model is overconfident, negative where it is underconfident.",
            other=lambda others, _: others.score_mean - others.accuracy[1],
        ),
        description="mean score less mean accuracy; positive: overconfident",
    )
    ece: Interval = measure(
        lambda grouping: grouping.ece,
        *interval(
            "credence_group_ece_{}_ratio",
            "ratio",
            "Lower end of the credible interval of the expected calibration error.",
            "Posterior mean of the expected calibration error.",
            "Upper end of the credible interval of the expected calibration error.",
        ),
        description="expected calibration error",
        column=Column(
            "ECE %", lambda group: cell_of_interval(group.ece), has_failed=lambda group: group.miscalibrated
        ),
    )
    ece_above: float | None = measure(
        lambda grouping: grouping.ece_above,
        gauge(
            "credence_group_ece_above_threshold_probability",
            "",
            "Posterior probability that the expected calibration error is above alerts.max_ece; absent without one. Of `other`, the highest among those with labels enough.",
            other=lambda others, _: others.ece_above,
        ),
        description="probability of more than max_ece",
    )
    miscalibrated: bool = measure(
        lambda grouping: grouping.miscalibrated,
        description="whether it is known, with enough labels, to have more than that",
    )
    cost: Interval | None = measure(
        lambda grouping: grouping.cost,
        *interval(
            "credence_group_cost_{}",
            "cost",
            "Lower end of the credible interval of the expected cost of a prediction, in the unit of costs; of predicted classes, absent without costs.",
            "Posterior mean of the expected cost of a prediction.",
            "Upper end of the credible interval of the expected cost of a prediction.",
        ),
        description="expected cost of a prediction, where costs are configured",
    )
    drifted: bool | None = Field(
        description="whether its recent traffic is surely farther from the reference than "
        "drift.max_distance; null while there is no reference"
    )
    suspicion: float | None = Field(description="how far it surely is; null likewise")
    evidence: GroupEvidenceState | None = Field(
        description="that may be looked at any time; null of a grouping that no assessment asks labels for"
    )
    low_since: Seconds | None = Field(description="since when it is known to fail, as far as remembered")
    low_since_or_earlier: bool = Field(description="whether it may have begun before `low_since`")
    relearned: Relearning | None = Field(
        description="the last change of its accuracy, if one is more probable than not: labels from before "
        "count little"
    )


def _changed_at(grouping: GroupingSnapshot) -> Floats:
    times = (
        grouping.relearned[name].since if name in grouping.relearned else math.nan for name in grouping.groups
    )
    return np.fromiter(times, np.float64, count=len(grouping.groups))


GROUPS = MetricTable[GroupingSnapshot](
    GROUP_LABELS,
    (
        *metrics_of(GroupState),
        Metric(
            "credence_group_change_point_timestamp_seconds",
            "seconds",
            "When the first prediction was made after the last change of the group's accuracy, as far as labels tell: those from before count little. Absent where no change is more probable than not, and of `other`.",
            _changed_at,
        ),
    ),
)
LABELS_BY_OUTCOME = MetricTable[Ints](
    (*GROUP_LABELS, "outcome"),
    (
        Metric(
            "credence_group_labels",
            "labels",
            "Labelled predictions in the group, whoever asked for them, by outcome: correct or incorrect.",
            lambda labels: labels,
            other=total,
        ),
    ),
)
