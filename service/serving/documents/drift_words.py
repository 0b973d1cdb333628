"""What is said about drift: states of models and groups, and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from service.domain.groupings import ALL
from service.domain.times import in_words
from service.monitoring.drift import GroupingDrift, ModelDrift
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.problem_words import mix_in_words

DriftState = Literal["collecting", "no_traffic", "too_little_traffic", "like_reference", "drifted"]
GroupDriftState = Literal[
    "no_reference", "no_traffic", "not_compared", "too_little_traffic", "like_reference", "drifted"
]

_EXPECTED = 10
"""A group's traffic has stopped if there is none where its share of the reference suggests this much."""

_MOST_NAMED = 5
"""Groups that are listed by name; of more, only the number is shown."""


def drifted_groups(snapshot: ModelSnapshot, drift: ModelDrift) -> list[str]:
    """Groups that have drifted, as people name them, the highest drift score first."""
    found = [
        (-float(groups.score[group]), words.place(name, snapshot.groupings[name].groups[group]))
        for name, groups in drift.groupings.items()
        for group in np.flatnonzero(groups.drifted)
    ]
    return [place for _, place in sorted(found)]


def quiet_groups(snapshot: ModelSnapshot, drift: ModelDrift) -> list[str]:
    """Groups whose traffic has stopped while that of others goes on, the largest first; no score bins."""
    fewest = _EXPECTED * drift.reference_predictions / max(1, drift.recent_predictions)
    found = [
        (-int(groups.reference[group].sum()), words.place(name, snapshot.groupings[name].groups[group]))
        for name, groups in drift.groupings.items()
        if snapshot.groupings[name].by.has_threshold
        for group in np.flatnonzero((groups.reference.sum(axis=1) >= fewest) & ~groups.has_recent)
    ]
    return [place for _, place in sorted(found)]


def model_drift_state(drift: ModelDrift) -> DriftState:
    """How recent traffic of the model compares with the reference."""
    everything = drift.groupings.get(ALL)
    if not drift.recent_predictions:
        return "no_traffic"
    if any(groups.drifted.any() for groups in drift.groupings.values()):
        return "drifted"
    if everything is not None and not everything.can_show.all():
        return "too_little_traffic"
    return "like_reference"


def model_drift_sentence(snapshot: ModelSnapshot, drift: ModelDrift) -> str:
    """The same in words, with the groups that have drifted or have no recent traffic."""
    state, since = model_drift_state(drift), in_words(drift.recent_since)
    drifted, quiet = drifted_groups(snapshot, drift), quiet_groups(snapshot, drift)
    said = []
    if state == "no_traffic":
        newest = snapshot.newest_record
        found = f"the newest record is of {in_words(newest)}" if math.isfinite(newest) else "no predictions"
        said.append(f"No recent traffic: {found}, so drift is not evaluated.")
    if state == "too_little_traffic":
        count = f"{drift.recent_predictions:,} predictions since {since}"
        said.append(f"Too little recent traffic to detect drift: {count}.")
    if state == "like_reference":
        said.append("No drift: recent traffic is like the reference.")
    if drifted:
        assessments = snapshot.assessments.values()
        aimed = sorted({a.settings.chosen_grouping for a in assessments if a.aim and a.aim.label_share > 0})
        asked = f"; a share of the label requests by {' and by '.join(aimed)} goes there" if aimed else ""
        said.append(f"Drifted from the reference: {_listed(drifted)}{asked}.")
    held = [verdict.at for groups in drift.groupings.values() for verdict in groups.held.values()]
    if held:
        of_these = "It had" if len(drifted) == 1 else f"{len(held):,} of these had"
        said.append(
            f"{of_these} too little traffic since the last verdict ({in_words(min(held))}), which holds "
            "until there is enough again."
        )
    if quiet and state != "no_traffic":
        said.append(f"No recent traffic: {_listed(quiet)}.")
    return " ".join(said)


def _listed(groups: Sequence[str]) -> str:
    named, others = ", ".join(groups[:_MOST_NAMED]), len(groups) - _MOST_NAMED
    return f"{named} and {others:,} more" if others > 0 else named


def no_reference(snapshot: ModelSnapshot) -> str:
    """Why there is no reference yet."""
    drift = snapshot.settings.drift
    if snapshot.reference is not None and snapshot.reference.until > snapshot.taken_at - drift.slots.seconds:
        return "Collecting the drift reference: the window that was set has not ended."
    hours, wanted = drift.window_hours, drift.reference_predictions
    if snapshot.predictions >= wanted:
        return f"Collecting the drift reference: it needs predictions of {hours:g} hours."
    return (
        "Collecting the drift reference: "
        f"{min(snapshot.predictions, wanted):,} of {wanted:,} predictions so far."
    )


def verdict_at(groups: GroupingDrift, group: int, now: float) -> float | None:
    """When the traffic of a group last showed drift; None if it has not drifted."""
    if group in groups.held:
        return groups.held[group].at
    return now if groups.drifted[group] else None


def group_drift_state(groups: GroupingDrift, group: int) -> GroupDriftState:
    """How recent traffic of a group compares with the reference."""
    if groups.reference[group].sum() == 0:
        return "no_reference"
    if groups.recent[group].sum() == 0:
        return "no_traffic"
    if groups.drifted[group]:
        return "drifted"
    if groups.mixes and all(math.isnan(mix.distance[group]) for mix in groups.mixes.values()):
        return "not_compared"
    return "like_reference" if groups.can_show[group] else "too_little_traffic"


def group_drift_sentence(groups: GroupingDrift, group: int, place: str) -> str:
    """The same in words."""
    recent = int(groups.recent[group].sum())
    said = {
        "no_reference": f"The reference has no traffic of {place} to compare with.",
        "no_traffic": f"There is no recent traffic of {place}.",
        "not_compared": f"{place} is not compared: much of its traffic may be counted in __other__.",
        "too_little_traffic": f"Too little recent traffic of {place} to detect drift: {recent:,} "
        "predictions.",
        "like_reference": f"Recent traffic of {place} has not drifted from the reference.",
        "drifted": f"Recent traffic of {place} has drifted: its {mix_in_words(groups.mix_of(group))} differ "
        f"from the reference by more than noise, drift score {groups.score[group]:.2f}.",
    }
    state = group_drift_state(groups, group)
    if group not in groups.held:
        return said[state]
    verdict = groups.held[group]
    drifted = (
        f"At the last verdict, {in_words(verdict.at)}, it had drifted: its {mix_in_words(verdict.mix)} "
        f"differed from the reference by more than noise, drift score {verdict.score:.2f}. This holds until "
        "there is enough recent traffic."
    )
    return f"{said['no_traffic' if state == 'no_traffic' else 'too_little_traffic']} {drifted}"
