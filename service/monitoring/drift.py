"""How far recent traffic of every group is from the reference, without labels (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.config.model import DriftSettings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import CHALLENGE, SCORE_BIN, CellSpace
from service.domain.groupings import bin_names
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.checkpoint_schedule import ComparedTraffic, Stretch, compared_traffic
from service.monitoring.drift_mixes import CLASSES, SCORES, GroupedTraffic
from service.monitoring.group_index import GroupIndex
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics import beta as betas
from service.statistics.drift import (
    MixDrift,
    drift_scores,
    expected_accuracy,
    kolmogorov_smirnov,
    mix_drift,
    volume_ratio,
)
from service.store.references import ReferenceWindow
from service.store.traffic_checkpoints import Marks


@dataclass(frozen=True)
class GroupingDrift:
    """How far the groups of one grouping are from their reference; arrays are [G], unless it is said."""

    reference: Ints  # predictions by score bin [G, B]
    recent: Ints  # the same of recent traffic [G, B]
    # what is compared, by name: `score`, `predicted_class`, `attribute:<name>`, `votes`
    mixes: Mapping[str, MixDrift]
    score_difference: Floats  # of the cumulative shares of score bins, the largest (Kolmogorov and Smirnov)
    volume_ratio: Floats  # recent predictions a second, over those in the reference
    suspicion: Floats  # distance of the group from its reference beyond noise, by the mix that is farthest
    drifted: Flags  # whether that is more than `drift.max_distance`
    expected_accuracy: Floats  # from recent scores and the accuracies of score bins
    below_expected: Floats  # probability that the accuracy is less than that

    def mix_of(self, group: int) -> str:
        """The mix by which a group is farthest from its reference."""
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


def model_drift(
    *,
    index: GroupIndex,
    settings: DriftSettings,
    marks: Marks,
    reference: ReferenceWindow | None,
    groupings: Mapping[str, GroupingSnapshot],
    now: float,
) -> ModelDrift | None:
    """How far recent traffic is from the reference; None while there is no reference.

    A grouping, or a mix, whose table is younger than the reference has nothing to be compared with, and is
    left out until a reference is set that has it. `now` is when the traffic was read.
    """
    compared = compared_traffic(marks, TrafficCounts.of(index.traffic), reference, settings, now=now)
    if compared is None:
        return None
    space = index.space
    # Of scores, of predicted classes, and of the values of every attribute: no more than these.
    mixes = len((SCORES, CLASSES)) + sum(attribute != CHALLENGE for attribute in space.attributes)
    comparisons = mixes * sum(len(grouping.groups) for grouping in groupings.values())
    accuracies = _bin_accuracies(space, groupings)
    found: dict[str, GroupingDrift] = {}
    for name, estimates in groupings.items():
        grouped = GroupedTraffic(space, space.groupings[name], estimates.groups)
        before, after = (grouped.scores(traffic.counts) for traffic in (compared.reference, compared.recent))
        if before is not None and after is not None:
            found[name] = _grouping_drift(
                grouped,
                estimates,
                compared,
                before,
                after,
                comparisons=comparisons,
                accuracies=accuracies,
                max_distance=settings.max_distance,
            )
    return ModelDrift(
        reference_predictions=compared.reference.predictions,
        reference_since=compared.reference.since,
        reference_until=compared.reference.until,
        recent_predictions=compared.recent.predictions,
        recent_since=compared.recent.since,
        groupings=found,
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
) -> GroupingDrift:
    mixes = {
        mix.name: mix_drift(mix.reference, mix.recent, comparisons=comparisons)
        for mix in grouped.mixes(compared.reference.counts, compared.recent.counts)
    }
    suspected = drift_scores(list(mixes.values())) if mixes else np.zeros(len(grouped.names))
    expected = expected_accuracy(recent, accuracies)
    # By the Beta of the same moments: the exact mixture would take as long as all the rest.
    accuracy = estimates.beliefs.accuracy
    below = special.betainc(*betas.matching(accuracy.mean(), accuracy.variance()), expected)
    return GroupingDrift(
        reference=reference,
        recent=recent,
        mixes=mixes,
        score_difference=kolmogorov_smirnov(reference, recent),
        volume_ratio=_volume_ratio(grouped, compared.reference, compared.recent),
        suspicion=suspected,
        drifted=suspected > max_distance,
        expected_accuracy=expected,
        below_expected=np.asarray(below, np.float64),
    )


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
