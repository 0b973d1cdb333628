"""How far recent traffic of every group is from the reference, without labels (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.config.model import DriftSettings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import CHALLENGE, SCORE_BIN, CellSpace, definitions, grouping_key
from service.domain.groupings import bin_names
from service.monitoring.drift_holding import held_verdicts, new_verdicts
from service.monitoring.drift_mixes import CLASSES, SCORES, GroupedTraffic
from service.monitoring.group_index import GroupIndex
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.traffic_windows import ComparedTraffic, Stretch
from service.statistics import beta as betas
from service.statistics.drift import (
    MixDrift,
    can_show,
    drift_scores,
    expected_accuracy,
    kolmogorov_smirnov,
    mix_drift,
    volume_ratio,
)
from service.store.drift_verdicts import DriftVerdict, DriftVerdicts


@dataclass(frozen=True)
class GroupingDrift:
    """How far the groups of one grouping are from their reference; arrays are [G], unless it is said."""

    reference: Ints  # predictions by score bin [G, B]
    recent: Ints  # the same of recent traffic [G, B]
    # what is compared, by name: `score`, `predicted_class`, `attribute:<name>`, `votes`
    mixes: Mapping[str, MixDrift]
    score_difference: Floats  # of the cumulative shares of score bins, the largest (Kolmogorov and Smirnov)
    volume_ratio: Floats  # recent predictions a second, over those in the reference
    score: Floats  # drift score: distance from the reference beyond noise, by the mix that is farthest
    drifted: Flags  # whether that is more than `drift.max_distance`
    can_show: Flags  # whether recent traffic is enough for any drift to show
    # groups that have drifted by an earlier verdict, as their recent traffic is too little for another one
    held: Mapping[int, DriftVerdict]
    expected_accuracy: Floats  # from recent scores and the accuracies of score bins
    below_expected: Floats  # probability that the accuracy is less than that

    @property
    def has_recent(self) -> Flags:
        """Whether the group has had recent traffic [G]."""
        return np.asarray(self.recent.sum(axis=1) > 0, np.bool_)

    def mix_of(self, group: int) -> str:
        """The mix by which a group is farthest from its reference."""
        if group in self.held:
            return self.held[group].mix
        return max(self.mixes, key=lambda name: self.mixes[name].excess[group])


@dataclass(frozen=True)
class ModelDrift:
    """How far one model's recent traffic is from its reference."""

    reference_predictions: int  # in the reference
    reference_since: float  # seconds since the epoch; minus infinity from the beginning
    reference_until: float  # the same
    recent_predictions: int  # since the time below
    recent_since: float  # seconds since the epoch
    # those that have traffic, and are in the reference; not those that were added since
    groupings: Mapping[str, GroupingDrift]
    verdicts: DriftVerdicts  # of groups that have drifted; those that hold, and new ones


def model_drift(
    *,
    index: GroupIndex,
    settings: DriftSettings,
    compared: ComparedTraffic | None,
    groupings: Mapping[str, GroupingSnapshot],
    verdicts: DriftVerdicts | None = None,
    now: float,
) -> ModelDrift | None:
    """How far recent traffic is from the reference; None while there is nothing to compare.

    A grouping, or a mix, whose table is younger than the reference has nothing to be compared with, and is
    left out until a reference is set that has it. A group that had drifted by the stored `verdicts` stays so
    while its recent traffic is too little to tell. `now` is when the traffic was read.
    """
    if compared is None:
        return None
    space = index.space
    # Of scores, of predicted classes, and of the values of every attribute: no more than these.
    mixes = len((SCORES, CLASSES)) + sum(attribute != CHALLENGE for attribute in space.attributes)
    comparisons = mixes * sum(len(grouping.groups) for grouping in groupings.values())
    accuracies = _bin_accuracies(space, groupings)
    found: dict[str, GroupingDrift] = {}
    until = compared.reference.until
    stored = verdicts.groupings if verdicts is not None and verdicts.reference_until == until else {}
    keys = {name: grouping_key(name, by) for name, by in definitions(space).items()}
    verdicts_after: dict[str, dict[str, DriftVerdict]] = {}
    for name, estimates in groupings.items():
        grouped = GroupedTraffic(space, space.groupings[name], estimates.groups)
        before, after = (grouped.scores(traffic.counts) for traffic in (compared.reference, compared.recent))
        if before is not None and after is not None:
            found[name], drifted = _grouping_drift(
                grouped,
                estimates,
                compared,
                before,
                after,
                comparisons=comparisons,
                accuracies=accuracies,
                max_distance=settings.max_distance,
                stored=stored.get(keys[name], {}),
                now=now,
            )
            if drifted:
                verdicts_after[keys[name]] = drifted
    return ModelDrift(
        reference_predictions=compared.reference.predictions,
        reference_since=compared.reference.since,
        reference_until=compared.reference.until,
        recent_predictions=compared.recent.predictions,
        recent_since=compared.recent.since,
        groupings=found,
        verdicts=DriftVerdicts(until, verdicts_after),
    )


def _grouping_drift(
    grouped: GroupedTraffic,
    estimates: GroupingSnapshot,
    compared: ComparedTraffic,
    reference: Ints,
    recent: Ints,
    *,
    comparisons: int,
    accuracies: Floats,
    max_distance: float,
    stored: Mapping[str, DriftVerdict],
    now: float,
) -> tuple[GroupingDrift, dict[str, DriftVerdict]]:
    """Drift of the groups of one grouping, and the verdicts of those that have drifted, by name."""
    mixes = {
        mix.name: mix_drift(mix.reference, mix.recent, comparisons=comparisons)
        for mix in grouped.mixes(compared.reference.counts, compared.recent.counts)
    }
    of_mixes, nothing = list(mixes.values()), np.zeros(len(grouped.names))
    suspected = drift_scores(of_mixes) if mixes else nothing
    drifted = suspected > max_distance
    volume = _volume_ratio(grouped, compared.reference, compared.recent)
    partial = grouped.is_partial(compared.reference.counts) | grouped.is_partial(compared.recent.counts)
    predictions = np.where(partial, 0, recent.sum(axis=1))
    held = held_verdicts(
        grouped.names,
        stored,
        drifted=drifted,
        mixes=mixes,
        predictions=predictions,
        volume_ratio=volume,
        max_distance=max_distance,
    )
    verdicts = new_verdicts(
        grouped.names, stored, held, drifted=drifted, mixes=mixes, predictions=predictions, now=now
    )
    for group, verdict in held.items():
        suspected[group], drifted[group] = verdict.score, True
    expected = expected_accuracy(recent, accuracies)
    # By the Beta of the same moments: the exact mixture would take as long as all the rest.
    accuracy = estimates.beliefs.accuracy
    below = special.betainc(*betas.matching(accuracy.mean(), accuracy.variance()), expected)
    found = GroupingDrift(
        reference=reference,
        recent=recent,
        mixes=mixes,
        score_difference=kolmogorov_smirnov(reference, recent),
        volume_ratio=volume,
        score=suspected,
        drifted=drifted,
        can_show=can_show(of_mixes, max_distance) if mixes else nothing > 0,
        held=held,
        expected_accuracy=expected,
        below_expected=np.asarray(below, np.float64),
    )
    return found, verdicts


def _volume_ratio(grouped: GroupedTraffic, reference: Stretch, recent: Stretch) -> Floats:
    """Recent predictions a second, over those in the reference [G]; NaN where either is not known."""
    before, after = grouped.scores(reference.timed_counts), grouped.scores(recent.timed_counts)
    if before is None or after is None:
        return np.full(len(grouped.names), np.nan)
    ratio = volume_ratio(
        before.sum(axis=1),
        after.sum(axis=1),
        reference_seconds=reference.timed_seconds,
        recent_seconds=recent.timed_seconds,
    )
    ratio[grouped.is_partial(reference.counts) | grouped.is_partial(recent.counts)] = np.nan
    return ratio


def _bin_accuracies(space: CellSpace, groupings: Mapping[str, GroupingSnapshot]) -> Floats:
    """Mean accuracy of every score bin [B]; NaN of those that never had traffic."""
    accuracies = np.full(space.bin_count, np.nan)
    bins = groupings.get(SCORE_BIN)
    if bins is not None:
        places = {name: place for place, name in enumerate(bin_names(space.score_edges))}
        accuracies[[places[name] for name in bins.groups]] = bins.accuracy.mean
    return accuracies
