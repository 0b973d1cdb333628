"""Facts -> how far recent traffic is from the reference, without labels (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.drift import (
    MixDrift,
    expected_accuracy,
    kolmogorov_smirnov,
    mix_counts,
    mix_drift,
    suspicion,
    volume_ratio,
)
from service.cells import CHALLENGE, SCORE_BIN, VOTES, CellSpace, Grouping, bin_names
from service.drift_settings import DriftSettings
from service.grouping_snapshot import GroupingSnapshot
from service.marking import ComparedTraffic, compared_traffic
from service.present import present_groups
from service.shard import Ints
from service.store.facts import TrafficFacts
from service.store.marks import Marks
from service.store.references import ReferenceWindow

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

SCORES = "score"
"""The mix of score bins."""

CLASSES = "predicted_class"
"""The mix of predicted classes."""

MOST_ENTRIES = 2_000_000
"""A mix of so many groups times kinds at most is compared: 16 MB, and some milliseconds."""


@dataclass(frozen=True)
class GroupingDrift:
    """How far the groups of one grouping are from their reference; arrays are [G], unless it is said.

    Attributes:
        reference: predictions by score bin [G, B].
        recent: the same of late [G, B].
        mixes: what is compared, by name: `score`, `predicted_class`, `attribute:<name>`, `votes`.
        score_difference: of the cumulative shares of score bins, the largest (Kolmogorov and Smirnov).
        volume_ratio: predictions a second of late, over those in the reference.
        suspicion: how far the group surely is from its reference, by the mix that tells most.
        drifted: whether that is more than `drift.max_distance`.
        expected_accuracy: what recent scores promise, by what the model's labels say of its score bins.
        below_expected: probability that the accuracy is less than that.
    """

    reference: Ints
    recent: Ints
    mixes: Mapping[str, MixDrift]
    score_difference: Floats
    volume_ratio: Floats
    suspicion: Floats
    drifted: Flags
    expected_accuracy: Floats
    below_expected: Floats

    def mix_of(self, group: int) -> str:
        """The mix by which a group is farthest from its reference."""
        return max(self.mixes, key=lambda name: self.mixes[name].surely[group])


@dataclass(frozen=True)
class ModelDrift:
    """How far one model's recent traffic is from its reference.

    Attributes:
        reference_predictions: in the reference.
        reference_since: seconds since the epoch; minus infinity from the beginning.
        reference_until: the same.
        recent_predictions: since the time below.
        recent_since: seconds since the epoch.
        groupings: those that have traffic.
    """

    reference_predictions: int
    reference_since: float
    reference_until: float
    recent_predictions: int
    recent_since: float
    groupings: Mapping[str, GroupingDrift]


@dataclass(frozen=True)
class _Mix:
    """Kinds that traffic is told apart by.

    Attributes:
        name: as it is told.
        kinds: kind of every cell [cells].
        count: how many kinds there are.
    """

    name: str
    kinds: Indices
    count: int


def model_drift(
    *,
    space: CellSpace,
    settings: DriftSettings,
    traffic: TrafficFacts,
    marks: Marks,
    reference: ReferenceWindow | None,
    groupings: Mapping[str, GroupingSnapshot],
    now: float,
) -> ModelDrift | None:
    """How far recent traffic is from the reference; None while there is no reference.

    Args:
        space: cells of the model.
        settings: of drift.
        traffic: of the model.
        marks: of its traffic.
        reference: the window that was set, if one was.
        groupings: what is believed of those that have traffic.
        now: when the traffic was read, seconds since the epoch.
    """
    compared = compared_traffic(marks, traffic.traffic.counts, reference, settings, now=now)
    if compared is None:
        return None
    mixes = list(_mixes(space, traffic))
    comparisons = len(mixes) * sum(len(grouping.groups) for grouping in groupings.values())
    accuracies = _bin_accuracies(space, groupings)
    return ModelDrift(
        reference_predictions=compared.reference.predictions,
        reference_since=compared.reference.since,
        reference_until=compared.reference.until,
        recent_predictions=compared.recent.predictions,
        recent_since=compared.recent.since,
        groupings={
            name: _grouping_drift(
                space.groupings[name],
                present_groups(space, name, traffic).cells,
                believed,
                compared,
                mixes,
                comparisons=comparisons,
                accuracies=accuracies,
                max_distance=settings.max_distance,
            )
            for name, believed in groupings.items()
        },
    )


def _mixes(space: CellSpace, traffic: TrafficFacts) -> Iterator[_Mix]:
    """All mixes of a model; that of scores is the first.

    Not agreement with a challenger: a new one, or votes that come or go, is no change of the model's traffic.
    """
    yield _Mix(SCORES, space.groups(SCORE_BIN, traffic.combinations)[1], space.bin_count)
    if space.by_class:
        yield _Mix(CLASSES, space.predicted_classes(len(traffic.combinations)), len(space.classes))
    for attribute in space.attributes:
        if attribute == CHALLENGE:
            continue
        values, kinds = space.attribute_values(attribute, traffic.combinations)
        yield _Mix(_told(attribute), kinds, len(values))


def _told(attribute: str) -> str:
    return "votes" if attribute == VOTES else f"attribute:{attribute}"


def _tells_nothing(mix: _Mix, grouping: Grouping) -> bool:
    """Whether all of a group is of one kind, as the grouping is by just that."""
    own = {SCORE_BIN: SCORES, CLASSES: CLASSES}.get(grouping.kind, _told(grouping.attribute))
    return mix.name == own


def _grouping_drift(
    grouping: Grouping,
    cell_groups: Indices,
    believed: GroupingSnapshot,
    compared: ComparedTraffic,
    mixes: list[_Mix],
    *,
    comparisons: int,
    accuracies: Floats,
    max_distance: float,
) -> GroupingDrift:
    size = len(believed.groups)
    told: dict[str, MixDrift] = {}
    for mix in mixes:
        if not _tells_nothing(mix, grouping) and size * mix.count <= MOST_ENTRIES:
            then, lately = (
                mix_counts(cell_groups, mix.kinds, counts, (size, mix.count))
                for counts in (compared.reference.counts, compared.recent.counts)
            )
            told[mix.name] = mix_drift(then, lately, comparisons=comparisons)
    reference, recent, timed, lately = (
        mix_counts(cell_groups, mixes[0].kinds, counts, (size, mixes[0].count))
        for counts in (
            compared.reference.counts,
            compared.recent.counts,
            compared.reference.timed_counts,
            compared.recent.timed_counts,
        )
    )
    suspected = suspicion(list(told.values())) if told else np.zeros(size)
    expected = expected_accuracy(recent, accuracies)
    # By the Beta of the same moments: the exact mixture would take as long as all the rest.
    accuracy = believed.beliefs.accuracy
    below = special.betainc(*betas.matching(accuracy.mean(), accuracy.variance()), expected)
    return GroupingDrift(
        reference=reference,
        recent=recent,
        mixes=told,
        score_difference=kolmogorov_smirnov(reference, recent),
        volume_ratio=volume_ratio(
            timed.sum(axis=1),
            lately.sum(axis=1),
            reference_seconds=compared.reference.timed_seconds,
            recent_seconds=compared.recent.timed_seconds,
        ),
        suspicion=suspected,
        drifted=suspected > max_distance,
        expected_accuracy=expected,
        below_expected=np.asarray(below, np.float64),
    )


def _bin_accuracies(space: CellSpace, groupings: Mapping[str, GroupingSnapshot]) -> Floats:
    """What is believed of the accuracy of every score bin [B]; NaN of those that never had traffic."""
    accuracies = np.full(space.bin_count, np.nan)
    bins = groupings.get(SCORE_BIN)
    if bins is not None:
        places = {name: place for place, name in enumerate(bin_names(space.score_edges))}
        accuracies[[places[name] for name in bins.groups]] = bins.accuracy_mean
    return accuracies
