"""Drift, how far recent traffic is from its reference: the documents of the HTTP API, and the metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from pydantic import Field

from service.domain.errors import NotKnown
from service.monitoring.drift import GroupingDrift, ModelDrift
from service.monitoring.drift_mixes import CLASSES, SCORES
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds, finite_or_none
from service.serving.documents.groups import find_group
from service.serving.metrics import (
    GROUP_LABELS,
    Measures,
    Metric,
    MetricTable,
    highest,
    metrics_of,
    read_measures,
)
from service.statistics.drift import MixDrift

measure = Measures[GroupingDrift]()

_MOST_NAMED = 5
"""Drifted groups that are listed by name; of more, only the number is shown."""


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
        Metric(
            "credence_group_drifted",
            "",
            "1 if the drift score exceeds drift.max_distance, else 0. For `other`, 1 if any of its groups has drifted.",
            other=highest,
        ),
        description="whether `suspicion` is above `max_distance`",
    )
    suspicion: float = measure(
        lambda drift: drift.suspicion,
        Metric(
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
        description="accuracy expected from recent scores, by the model's labels of each score bin",
    )
    below_expected: float | None = measure(
        lambda drift: drift.below_expected,
        Metric(
            "credence_group_below_expected_probability",
            "",
            "Posterior probability that the group is less accurate than expected from its recent scores: high if scores mean something else here, such as after concept drift.",
        ),
        description="posterior probability that the group is less accurate than that",
    )
    bins: list[ScoreBinTraffic]
    sentence: str = Field(description="the same in words")


class DriftSummary(Document):
    """Drift of recent traffic from the reference, found without labels."""

    max_distance: float = Field(description="drift.max_distance of the configuration")
    reference_predictions: int | None = Field(description="in the reference; null while there is none")
    reference_until: Seconds | None = Field(description="when it ended; null while there is none")
    recent_predictions: int | None = Field(
        description="recent predictions that are compared with it; null likewise"
    )
    drifted_groups: int = Field(description="drifted groups of all groupings")
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
            drifted_groups=0,
            sentence=_no_reference(snapshot),
        )
    drifted = _drifted_groups(snapshot, drift)
    return DriftSummary.of(
        drift,
        max_distance=max_distance,
        drifted_groups=len(drifted),
        sentence=_summary_sentence(snapshot, drifted),
    )


def _drifted_groups(snapshot: ModelSnapshot, drift: ModelDrift) -> list[str]:
    """Groups that have drifted, as people name them, the highest drift score first."""
    found = [
        (-float(groups.suspicion[group]), words.place(name, snapshot.groupings[name].groups[group]))
        for name, groups in drift.groupings.items()
        for group in np.flatnonzero(groups.drifted)
    ]
    return [place for _, place in sorted(found)]


def _summary_sentence(snapshot: ModelSnapshot, drifted: Sequence[str]) -> str:
    if not drifted:
        return "No drift: recent traffic is like the reference."
    named, others = ", ".join(drifted[:_MOST_NAMED]), len(drifted) - _MOST_NAMED
    if others > 0:
        named += f" and {others:,} more"
    assessments = snapshot.assessments.values()
    aimed = sorted({a.settings.asked_grouping for a in assessments if a.aim and a.aim.label_share > 0})
    asked = f"; a share of the label requests by {' and by '.join(aimed)} goes there." if aimed else "."
    return f"Drifted from the reference: {named}{asked}"


def _no_reference(snapshot: ModelSnapshot) -> str:
    if snapshot.reference is not None and snapshot.reference.until > snapshot.taken_at:
        return "Collecting the drift reference: the window that was set has not ended."
    wanted = snapshot.settings.drift.reference_predictions
    if snapshot.predictions >= wanted:
        return (
            "Collecting the drift reference: it needs predictions of "
            f"{snapshot.settings.drift.window_hours:g} hours."
        )
    return (
        "Collecting the drift reference: "
        f"{min(snapshot.predictions, wanted):,} of {wanted:,} predictions so far."
    )


def group_drift(snapshot: ModelSnapshot, grouping_name: str, group_name: str) -> GroupDrift:
    """How far one group's recent traffic is from its reference.

    Raises:
        NotKnown: there is no such group, it has had no traffic, or there is no reference yet.
    """
    _, group = find_group(snapshot, grouping_name, group_name)
    drift = snapshot.drift
    if drift is None:
        raise NotKnown(_no_reference(snapshot))
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
            MixState(mix=name, distance=finite_or_none(mix.distance[group]), surely=float(mix.excess[group]))
            for name, mix in groups.mixes.items()
        ],
        bins=[
            ScoreBinTraffic(lower_edge=low, upper_edge=high, reference=before, recent=now)
            for (low, high), before, now in zip(pairwise(edges), reference, recent, strict=True)
        ],
        sentence=_sentence(groups, group, words.place(grouping_name, group_name)),
    )


def _sentence(groups: GroupingDrift, group: int, place: str) -> str:
    if groups.reference[group].sum() == 0:
        return f"The reference has no traffic of {place} to compare with."
    if groups.recent[group].sum() == 0:
        return f"There is no recent traffic of {place}."
    if groups.mixes and all(math.isnan(mix.distance[group]) for mix in groups.mixes.values()):
        return f"{place} is not compared: much of its traffic may be counted in __other__."
    if not groups.drifted[group]:
        return f"Recent traffic of {place} has not drifted from the reference."
    return (
        f"Recent traffic of {place} has drifted: its {_mix(groups.mix_of(group))} differ from the reference "
        f"by more than noise, drift score {groups.suspicion[group]:.2f}."
    )


def _mix(name: str) -> str:
    plain = {SCORES: "scores", CLASSES: "predicted classes"}
    return plain.get(name) or f"{name.removeprefix('attribute:')} values"


# fmt: off
DRIFT = MetricTable[GroupingDrift](GROUP_LABELS, metrics_of(GroupDrift))
DRIFT_BY_MIX = MetricTable[MixDrift]((*GROUP_LABELS, "mix"), (
    Metric("credence_group_drift_distance", "", "Jensen-Shannon distance of the group's recent traffic from the reference, noise included: of its score bins (score), its predicted classes (predicted_class), an attribute's values (attribute:<name>), or an ensemble's votes; 0 is the same, 1 is nothing in common. Absent while there is no reference, and for groups without traffic in the reference or recently. For `other`, the highest.", lambda mix: mix.distance, other=highest),
))
# fmt: on
