"""Snapshots as the documents of drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from pydantic import Field

from service.domain.arrays import Floats, Ints
from service.domain.errors import NotKnown
from service.monitoring.drift import GroupingDrift, ModelDrift
from service.monitoring.drift_mixes import CLASSES, SCORES
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds
from service.serving.documents.drift_measures import GroupDrift, MixState, ScoreBinTraffic
from service.serving.measures import read_measures

_MOST_NAMED = 5
"""Drifted groups that are listed by name; of more, only the number is shown."""


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
    suspects = _suspects(snapshot, drift)
    return DriftSummary.of(
        drift,
        max_distance=max_distance,
        drifted_groups=len(suspects),
        sentence=_accusing(suspects, _aimed(snapshot)),
    )


def _suspects(snapshot: ModelSnapshot, drift: ModelDrift) -> list[str]:
    """Groups that have drifted, as people name them, the most suspected first."""
    found = [
        (-float(groups.suspicion[group]), words.place(name, snapshot.groupings[name].groups[group]))
        for name, groups in drift.groupings.items()
        for group in np.flatnonzero(groups.drifted)
    ]
    return [place for _, place in sorted(found)]


def _aimed(snapshot: ModelSnapshot) -> list[str]:
    """Groupings by which assessments ask where traffic has drifted."""
    assessments = snapshot.assessments.values()
    return sorted({a.settings.asked_grouping for a in assessments if a.aim and a.aim.label_share > 0})


def _accusing(suspects: Sequence[str], aimed: Sequence[str]) -> str:
    if not suspects:
        return "No drift: recent traffic is like the reference."
    named, others = ", ".join(suspects[:_MOST_NAMED]), len(suspects) - _MOST_NAMED
    if others > 0:
        named += f" and {others:,} more"
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
    grouping, drift = snapshot.groupings.get(grouping_name), snapshot.drift
    if grouping is None or group_name not in grouping.groups:
        raise NotKnown("the model has no such group, or it has had no traffic")
    if drift is None:
        raise NotKnown(_no_reference(snapshot))
    if grouping_name not in drift.groupings:
        raise NotKnown(
            "the reference has no traffic by this grouping, which was added later; set a new reference"
        )
    group, groups = grouping.groups.index(group_name), drift.groupings[grouping_name]
    edges = (0.0, *snapshot.settings.score_edges, 1.0)
    reference, recent = (_shares(counts[group]) for counts in (groups.reference, groups.recent))
    return GroupDrift.of(
        drift,
        **read_measures(GroupDrift, groups, group),
        model=snapshot.model,
        taken_at=snapshot.taken_at,
        grouping=grouping_name,
        group=group_name,
        reference_since=_finite(drift.reference_since),
        max_distance=snapshot.settings.drift.max_distance,
        mixes=[
            MixState(mix=name, distance=_finite(mix.distance[group]), surely=float(mix.surely[group]))
            for name, mix in groups.mixes.items()
        ],
        bins=[
            ScoreBinTraffic(lower_edge=low, upper_edge=high, reference=then, recent=lately)
            for (low, high), then, lately in zip(
                pairwise(edges), reference.tolist(), recent.tolist(), strict=True
            )
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


def _shares(counts: Ints) -> Floats:
    return counts / max(1, int(counts.sum()))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
