"""Drift, how far recent traffic is from its reference: the documents of the HTTP API, and the metrics."""

from __future__ import annotations

from pydantic import Field

from service.monitoring.drift import GroupingDrift
from service.serving.documents.base import Document, Seconds
from service.serving.measures import Measures, gauge, metrics_of
from service.serving.metrics import GROUP_LABELS, Metric, MetricTable, highest
from service.statistics.drift import MixDrift

measure = Measures[GroupingDrift]()


class MixState(Document):
    """A distribution by which recent traffic and the reference are compared."""

    mix: str = Field(description="`score`, `predicted_class`, `attribute:<name>` or `votes`")
    distance: float | None = Field(
        description="Jensen-Shannon distance, noise included: 0 is identical, 1 is disjoint; null without traffic in the "
        "reference, or without recent traffic"
    )
    surely: float = Field(description="the distance minus what noise could explain")


class ScoreBinTraffic(Document):
    """Traffic of one score bin."""

    lower_edge: float
    upper_edge: float
    reference: float = Field(description="share of the group's predictions in the reference")
    recent: float = Field(description="share of its recent predictions")


class GroupDrift(Document):
    """Distance of one group's recent traffic from its reference."""

    model: str
    taken_at: Seconds
    grouping: str
    group: str
    reference_since: Seconds | None = Field(
        description="when the reference begins; null: with the first prediction"
    )
    reference_until: Seconds
    recent_since: Seconds
    reference_predictions: int = measure(
        lambda drift: drift.reference.sum(axis=1), description="of the group"
    )
    recent_predictions: int = measure(lambda drift: drift.recent.sum(axis=1), description="of the group")
    drifted: bool = measure(
        lambda drift: drift.drifted,
        gauge(
            "credence_group_drifted",
            "",
            "1 if the drift score exceeds drift.max_distance, else 0. For `other`, 1 if any of its groups has drifted.",
            other=highest,
        ),
        description="whether `suspicion` is above `max_distance`",
    )
    suspicion: float = measure(
        lambda drift: drift.suspicion,
        gauge(
            "credence_group_drift_score",
            "",
            "Distance of the group's recent traffic from the reference beyond what noise can explain, for the mix where it is largest. For `other`, the highest.",
            other=highest,
        ),
        description="drift score: the largest distance of all mixes, minus what noise could explain",
    )
    max_distance: float = Field(description="drift.max_distance of the configuration")
    mixes: list[MixState]
    score_difference: float | None = measure(
        lambda drift: drift.score_difference,
        gauge(
            "credence_group_ks_statistic",
            "",
            "Largest difference of the cumulative shares of score bins between recent traffic and the reference: the Kolmogorov-Smirnov statistic, or slightly less than that of the scores themselves.",
        ),
        description="largest difference of the cumulative shares of score bins (Kolmogorov-Smirnov)",
    )
    volume_ratio: float | None = measure(
        lambda drift: drift.volume_ratio,
        gauge(
            "credence_group_volume_ratio",
            "ratio",
            "Recent predictions per second, divided by those in the reference; absent if the reference's time is unknown.",
        ),
        description="recent predictions per second, divided by those in the reference; null if its duration is unknown",
    )
    expected_accuracy: float | None = measure(
        lambda drift: drift.expected_accuracy,
        gauge(
            "credence_group_expected_accuracy_ratio",
            "ratio",
            "Accuracy expected from the group's recent scores, without labels of the group: by the accuracy of score bins in the model's labels.",
        ),
        description="accuracy expected from recent scores, by the model's labels of each score bin",
    )
    below_expected: float | None = measure(
        lambda drift: drift.below_expected,
        gauge(
            "credence_group_below_expected_probability",
            "",
            "Posterior probability that the group is less accurate than expected from its recent scores: high if scores mean something else here, such as after concept drift.",
        ),
        description="posterior probability that the group is less accurate than that",
    )
    bins: list[ScoreBinTraffic]
    sentence: str = Field(description="the same in words")


# fmt: off
DRIFT = MetricTable[GroupingDrift](GROUP_LABELS, metrics_of(GroupDrift))
DRIFT_BY_MIX = MetricTable[MixDrift]((*GROUP_LABELS, "mix"), (
    Metric("credence_group_drift_distance", "", "Jensen-Shannon distance of the group's recent traffic from the reference, noise included: of its score bins (score), its predicted classes (predicted_class), an attribute's values (attribute:<name>), or an ensemble's votes; 0 is the same, 1 is nothing in common. Absent while there is no reference, and for groups without traffic in the reference or recently. For `other`, the highest.", lambda mix: mix.distance, other=highest),
))
# fmt: on
