"""Drift, how far recent traffic is from its reference: the documents of the HTTP API, and the metrics."""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field

from service.domain.errors import NotKnown
from service.monitoring.drift import GroupingDrift
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds, finite_or_none
from service.serving.documents.drift_words import (
    DriftState,
    GroupDriftState,
    drifted_groups,
    group_drift_sentence,
    group_drift_state,
    model_drift_sentence,
    model_drift_state,
    no_reference,
    quiet_groups,
    verdict_at,
)
from service.serving.documents.groups import find_group
from service.serving.metrics import (
    GROUP_LABELS,
    Measures,
    Metric,
    MetricTable,
    highest,
    metrics_of,
    read_measures,
    total,
)
from service.statistics.drift import MixDrift

measure = Measures[GroupingDrift]()


class MixState(Document):
    """A distribution by which recent traffic and the reference are compared."""

    mix: str = Field(description="`score`, `predicted_class`, `attribute:<name>` or `votes`")
    distance: float | None = Field(
        description="Jensen-Shannon distance, noise included: 0 is identical, 1 is disjoint; null without traffic in the "
        "reference, or without recent traffic"
    )
    excess: float = Field(description="the distance minus what noise could explain")


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
    recent_predictions: int = measure(
        lambda drift: drift.recent.sum(axis=1),
        Metric(
            "credence_group_recent_predictions",
            "predictions",
            "Recent predictions of the group that are compared with the reference; 0 without recent traffic.",
            other=total,
        ),
        description="of the group",
    )
    state: GroupDriftState = Field(
        description="`no_traffic`: no recent predictions; `too_little_traffic`: any drift could be noise; `no_reference`: no "
        "predictions in the reference; `not_compared`: much of its traffic may be in `__other__`"
    )
    verdict_at: Seconds | None = Field(
        description="when its traffic last showed drift, and holds until there is enough recent traffic; null unless `drifted`"
    )
    drifted: bool = measure(
        lambda drift: drift.drifted,
        Metric(
            "credence_group_drifted",
            "",
            "1 if the drift score exceeds drift.max_distance, else 0. It stays 1 while recent traffic is too little for another verdict. For `other`, 1 if any of its groups has drifted.",
            other=highest,
        ),
        description="whether `drift_score` is above `max_distance`",
    )
    drift_score: float = measure(
        lambda drift: drift.score,
        Metric(
            "credence_group_drift_score",
            "",
            "Distance of the group's recent traffic from the reference beyond what noise can explain, for the mix where it is largest; that of the last verdict, if recent traffic is too little for another one. For `other`, the highest.",
            other=highest,
        ),
        description="drift score: the largest distance of all mixes, minus what noise could explain",
    )
    max_distance: float = Field(description="drift.max_distance of the configuration")
    mixes: list[MixState]
    score_difference: float | None = measure(
        lambda drift: drift.score_difference,
        Metric(
            "credence_group_ks_statistic",
            "",
            "Largest difference of the cumulative shares of score bins between recent traffic and the reference: the Kolmogorov-Smirnov statistic, or slightly less than that of the scores themselves.",
        ),
        description="largest difference of the cumulative shares of score bins (Kolmogorov-Smirnov)",
    )
    volume_ratio: float | None = measure(
        lambda drift: drift.volume_ratio,
        Metric(
            "credence_group_volume_ratio",
            "ratio",
            "Recent predictions per second, divided by those in the reference; absent if the reference's time is unknown.",
        ),
        description="recent predictions per second, divided by those in the reference; null if its duration is unknown",
    )
    expected_accuracy: float | None = measure(
        lambda drift: drift.expected_accuracy,
        Metric(
            "credence_group_expected_accuracy_ratio",
            "ratio",
            "Accuracy expected from the group's recent scores, without labels of the group: by the accuracy of score bins in the model's labels.",
        ),
        description="accuracy expected from recent scores, from the model's labels in each score bin",
    )
    below_expected: float | None = measure(
        lambda drift: drift.below_expected,
        Metric(
            "credence_group_below_expected_probability",
            "",
            "Posterior probability that the group is less accurate than expected from its recent scores: high if scores mean something else here, such as after concept drift.",
        ),
        description="posterior probability that the group is less accurate than expected from scores",
    )
    bins: list[ScoreBinTraffic]
    sentence: str = Field(description="the same in words")


class DriftSummary(Document):
    """Drift of recent traffic from the reference, found without labels."""

    max_distance: float = Field(description="drift.max_distance of the configuration")
    reference_predictions: int | None = Field(description="in the reference; null if there is none yet")
    reference_until: Seconds | None = Field(description="end of the reference; null if there is none yet")
    recent_predictions: int | None = Field(
        description="recent predictions that are compared with the reference; null if there is none yet"
    )
    state: DriftState = Field(
        description="`collecting`: no reference yet; `no_traffic`: no recent predictions; `too_little_traffic`: any drift could "
        "be noise"
    )
    drifted_groups: int = Field(description="drifted groups of all groupings")
    held_groups: int = Field(
        description="drifted groups whose recent traffic is too little for another verdict"
    )
    quiet_groups: int = Field(description="groups in the reference without recent traffic, except score bins")
    sentence: str = Field(description="the same in words")


def drift_summary(snapshot: ModelSnapshot) -> DriftSummary:
    """How a model's recent traffic is compared."""
    drift, max_distance = snapshot.drift, snapshot.settings.drift.max_distance
    if drift is None:
        return DriftSummary(
            max_distance=max_distance,
            reference_predictions=None,
            reference_until=None,
            recent_predictions=None,
            state="collecting",
            drifted_groups=0,
            held_groups=0,
            quiet_groups=0,
            sentence=no_reference(snapshot),
        )
    return DriftSummary.of(
        drift,
        max_distance=max_distance,
        state=model_drift_state(drift),
        drifted_groups=len(drifted_groups(snapshot, drift)),
        held_groups=sum(len(groups.held) for groups in drift.groupings.values()),
        quiet_groups=len(quiet_groups(snapshot, drift)),
        sentence=model_drift_sentence(snapshot, drift),
    )


def group_drift(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> GroupDrift:
    """How far one group's recent traffic is from its reference.

    Raises:
        NotKnown: there is no such group, it has had no traffic, or there is no reference yet.
    """
    _, group = find_group(snapshot, grouping_name, group_name)
    drift = snapshot.drift
    if drift is None:
        raise NotKnown(no_reference(snapshot))
    if grouping_name not in drift.groupings:
        raise NotKnown(
            "the reference has no traffic by this grouping, which was added later; set a new reference"
        )
    groups = drift.groupings[grouping_name]
    edges = (0.0, *snapshot.settings.score_edges, 1.0)
    reference, recent = (
        (counts[group] / max(1, counts[group].sum())).tolist() for counts in (groups.reference, groups.recent)
    )
    return GroupDrift.of(
        drift,
        **read_measures(GroupDrift, groups, group),
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        grouping=grouping_name,
        group=group_name,
        reference_since=finite_or_none(drift.reference_since),
        max_distance=snapshot.settings.drift.max_distance,
        mixes=[
            MixState(mix=name, distance=finite_or_none(mix.distance[group]), excess=float(mix.excess[group]))
            for name, mix in groups.mixes.items()
        ],
        bins=[
            ScoreBinTraffic(lower_edge=low, upper_edge=high, reference=before, recent=now)
            for (low, high), before, now in zip(pairwise(edges), reference, recent, strict=True)
        ],
        state=group_drift_state(groups, group),
        verdict_at=verdict_at(groups, group, snapshot.taken_at),
        sentence=group_drift_sentence(groups, group, words.place(grouping_name, group_name)),
    )


# fmt: off
DRIFT = MetricTable[GroupingDrift](GROUP_LABELS, metrics_of(GroupDrift))
DRIFT_BY_MIX = MetricTable[MixDrift]((*GROUP_LABELS, "mix"), (
    Metric("credence_group_drift_distance", "", "Jensen-Shannon distance of the group's recent traffic from the reference, noise included: of its score bins (score), its predicted classes (predicted_class), an attribute's values (attribute:<name>), or an ensemble's votes; 0 is the same, 1 is nothing in common. Absent while there is no reference, and for groups without traffic in the reference or recently. For `other`, the highest.", lambda mix: mix.distance, other=highest),
))
# fmt: on
