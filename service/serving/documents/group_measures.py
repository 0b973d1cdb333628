"""The measures of a group: each is declared once, and Prometheus, JSON API and terminal show it as declared.

A field made with `measure` is part of the JSON API. Its `Metric` is in Prometheus, its `column` in the table
that `credence status` prints. Measures of evidence and drift are beside their documents.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from pydantic import Field

from service.domain.arrays import Ints
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.serving.documents.base import Document, Interval, Seconds, Verdict
from service.serving.documents.evidence import GroupEvidenceState
from service.serving.documents.words import cell_of_interval, cell_of_verdict
from service.serving.metrics import (
    GROUP_LABELS,
    Column,
    Measures,
    Metric,
    MetricTable,
    highest,
    interval,
    metrics_of,
    shared,
    total,
)

measure = Measures[GroupingSnapshot]()


class ChangePointState(Document):
    """A change point of a group's accuracy, after which it is re-estimated."""

    since: Seconds = Field(
        description="when the first prediction after the most probable change point was made"
    )
    labels_before: int = Field(description="labels from before it that were requested for the grouping")
    kept: float = Field(description="largest weight that one of these still has")


class GroupState(Document):
    """The estimates of one group."""

    group: str
    share: float = measure(
        lambda grouping: grouping.beliefs.shares,
        Metric(
            "credence_group_traffic_share_ratio",
            "ratio",
            "Share of the model's traffic; recent traffic counts more.",
            other=total,
        ),
        description="of the model's traffic; recent traffic has more weight",
        column=Column("share", lambda group: f"{group.share:.1%}"),
    )
    missed_traffic: float = measure(
        lambda grouping: grouping.missed,
        Metric(
            "credence_group_missed_traffic_ratio",
            "ratio",
            "Largest share of the group's traffic that may be in `__other__` instead; absent if none is.",
            lambda missed: np.where(missed > 0, missed, np.nan),
            off_dashboards="the page marks such groups, and the runbook asks for it",
        ),
        description="upper bound of the share of the group's traffic that is counted in `__other__`",
    )
    unanswered: float | None = measure(
        lambda grouping: grouping.unanswered,
        Metric(
            "credence_group_unanswered_ratio",
            "ratio",
            "Share of the ended label requests for the group's items that were skipped or have expired; absent "
            "without any.",
            other=highest,
        ),
        description="share of the ended label requests for its items that have no label; null without any",
    )
    score_mean: float = measure(
        lambda grouping: grouping.beliefs.scores,
        Metric(
            "credence_group_score_mean_ratio",
            "ratio",
            "Mean score: the accuracy that the model claims.",
            other=lambda others, _: others.score_mean,
        ),
        description="mean score",
    )
    labels_correct: int = measure(lambda grouping: grouping.beliefs.labels_correct)
    labels_incorrect: int = measure(
        lambda grouping: grouping.beliefs.labels_incorrect,
        column=Column("labels", lambda group: f"{group.labels_correct + group.labels_incorrect}"),
    )
    effective_labels: float = measure(
        lambda grouping: grouping.beliefs.labels,
        Metric(
            "credence_group_effective_labels",
            "labels",
            "Effective number of the group's labels, after weighting and forgetting.",
            other=total,
        ),
        description="effective number of labels after weighting and forgetting",
    )
    accuracy: Interval = measure(
        lambda grouping: grouping.accuracy,
        *interval(
            "credence_group_accuracy_{}_ratio",
            "ratio",
            "Lower end of the credible interval of accuracy; for grouping `all`, of the overall accuracy.",
            "Posterior mean of accuracy.",
            "Upper end of the credible interval of accuracy.",
            other=lambda others: others.accuracy,
        ),
        column=Column("accuracy %", lambda group: cell_of_interval(group.accuracy)),
    )
    accuracy_adjusted: Interval = measure(
        lambda grouping: grouping.adjusted,
        *(
            Metric(
                f"credence_group_accuracy_adjusted_{end}_ratio",
                "ratio",
                f"{end.capitalize()} end of the credible interval of accuracy, adjusted for the number of groups: it holds even of a group chosen by its estimate, such as the lowest.",
                attrgetter(end),
                off_dashboards="for alerts, which name such groups",
            )
            for end in ("lower", "upper")
        ),
        description="the same, with an interval that holds even of a group chosen by its estimate, such as the lowest",
    )
    own_rate: float | None = measure(
        lambda grouping: grouping.own_rate,
        description="share of its own labels that confirm the prediction; null without labels",
    )
    own_share: float = measure(
        lambda grouping: grouping.own_share,
        Metric(
            "credence_group_own_labels_share",
            "",
            "Share of the accuracy estimate that comes from the group's own labels; the rest comes from scores and other groups. Absent for `other`.",
            off_dashboards="the table of groups has room for what a decision needs",
        ),
        description="share of the estimate of `accuracy` that comes from its own labels; the rest comes from scores and other groups",
    )
    min_accuracy: float | None = measure(
        lambda grouping: grouping.min_accuracy,
        Metric(
            "credence_group_min_accuracy_ratio",
            "ratio",
            "The group's configured threshold of accuracy: its own, else its grouping's, else alerts.min_accuracy. Absent without one, and for `other` if its groups differ.",
            other=shared,
        ),
        description="its threshold of accuracy: its own, that of its grouping, or alerts.min_accuracy; null without one",
        column=Column("target %", lambda group: f"{100 * group.min_accuracy:g}", is_of_unlike=True),
    )
    accuracy_below: float | None = measure(
        lambda grouping: grouping.accuracy_below,
        Metric(
            "credence_group_accuracy_below_threshold_probability",
            "",
            "Posterior probability that accuracy is below credence_group_min_accuracy_ratio; absent without a threshold, and for score bins. For `other`, the highest among groups with enough labels.",
            other=lambda others, _: others.accuracy_below,
        ),
        description="posterior probability that accuracy is below `min_accuracy`; null without one",
        column=Column(
            "below {target}",
            lambda group: cell_of_verdict(
                group.accuracy_below,
                group.verdict,
                group.verdict_labels,
                group.verdict_seconds,
                is_affordable=group.verdict_affordable is not False,
            ),
            has_failed=lambda group: group.verdict == "fails",
        ),
    )
    verdict: Verdict = Field(
        description="whether it meets min_accuracy: `meets` or `fails` with enough labels and confidence, else `open`; "
        "`none` without a threshold"
    )
    verdict_labels: float | None = measure(
        lambda grouping: grouping.verdict_labels,
        Metric(
            "credence_group_labels_to_decision",
            "",
            "Labels that the group still needs, in the posterior median, until it has alerts.min_labels and is decided: above or below its threshold of accuracy with alerts.confidence. 0 once it is decided, absent without a threshold.",
        ),
        description="labels needed until a verdict, in the posterior median; null without a threshold, or if it cannot be estimated",
    )
    verdict_seconds: Seconds | None = measure(
        lambda grouping: grouping.verdict_seconds,
        Metric(
            "credence_group_time_to_decision_seconds",
            "seconds",
            "Time until the group has these labels, if all budgets are spent and the group keeps its share of the labels; absent without a budget that renews, and beyond ten years.",
        ),
        description="time until then with the budgets that renew; null beyond ten years, or if none renews",
    )
    verdict_affordable: bool | None = measure(
        lambda grouping: grouping.verdict_affordable,
        description="whether the budgets that renew suffice for a verdict within ten years; null if none renews, or without a threshold",
    )
    certificate_labels: float | None = measure(
        lambda grouping: grouping.certificate_labels,
        description="labels that it lacks, on average, until it is shown to meet min_accuracy, 0 once it is; null "
        "without min_accuracy, without labels, if it is not expected to meet it, or if certificates leave it out",
    )
    calibration_gap: float = measure(
        lambda grouping: grouping.beliefs.scores - grouping.accuracy.mean,
        Metric(
            "credence_group_calibration_gap_ratio",
            "ratio",
            "Mean score minus the posterior mean of accuracy: positive if the model is overconfident, negative if it is underconfident.",
            other=lambda others, _: others.score_mean - others.accuracy.mean.item(),
        ),
        description="mean score minus mean accuracy; positive: overconfident",
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
    max_ece: float | None = measure(
        lambda grouping: grouping.max_ece,
        Metric(
            "credence_group_max_ece_ratio",
            "ratio",
            "The group's configured maximum of the expected calibration error: its own, else its grouping's, else alerts.max_ece. Absent without one, and for `other` if its groups differ.",
            other=shared,
        ),
        description="its maximum of the calibration error: its own, that of its grouping, or alerts.max_ece; null without one",
    )
    ece_above: float | None = measure(
        lambda grouping: grouping.ece_above,
        Metric(
            "credence_group_ece_above_threshold_probability",
            "",
            "Posterior probability that the expected calibration error is above credence_group_max_ece_ratio; absent without one. For `other`, the highest among groups with enough labels.",
            other=lambda others, _: others.ece_above,
        ),
        description="posterior probability that the calibration error is above `max_ece`; null without one",
    )
    miscalibrated: bool = measure(
        lambda grouping: grouping.miscalibrated,
        description="whether it has enough labels and violates max_ece with the configured confidence",
    )
    cost: Interval | None = measure(
        lambda grouping: grouping.cost,
        *interval(
            "credence_group_cost_{}",
            "cost",
            "Lower end of the credible interval of the expected cost of a prediction, in the unit of costs; only for predicted classes, absent without costs.",
            "Posterior mean of the expected cost of a prediction.",
            "Upper end of the credible interval of the expected cost of a prediction.",
        ),
        description="expected cost of a prediction; null if no costs are configured",
    )
    drifted: bool | None = Field(
        description="whether its drift score is above drift.max_distance; null while there is no reference"
    )
    drift_score: float | None = Field(description="drift score; null while there is no reference")
    evidence: GroupEvidenceState | None = Field(
        description="anytime-valid evidence; null if no assessment requests labels for the grouping, or if labels "
        "may be wrong and labels_per_item.max_error is not set"
    )
    low_since: Seconds | None = Field(
        description="since when the verdict has been `fails`, within the history that is kept"
    )
    low_since_or_earlier: bool = Field(description="whether it may have begun before `low_since`")
    change_point: ChangePointState | None = Field(
        description="the last change point of its accuracy, if one is more probable than not; labels from before it are "
        "down-weighted"
    )


# fmt: off
GROUPS = MetricTable[GroupingSnapshot](GROUP_LABELS, (
    *metrics_of(GroupState),
    Metric("credence_group_change_point_timestamp_seconds", "seconds", "Time of the first prediction after the last change point of the group's accuracy, estimated from labels; labels from before it are down-weighted. Absent if a change is less probable than not, and for `other`.", lambda grouping: grouping.changed_at),
))
LABELS_BY_OUTCOME = MetricTable[Ints]((*GROUP_LABELS, "outcome"), (
    Metric("credence_group_labels", "labels", "Labelled predictions in the group, requested by any assessment, by outcome: correct or incorrect.", lambda labels: labels, other=total),
))
# fmt: on
