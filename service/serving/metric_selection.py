"""Which groups have metrics of their own, and what the metrics of the others together say.

Thousands of groups, each with many metrics, are more than Prometheus should keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.prominence import prominent_groups
from service.monitoring.snapshot import ModelSnapshot
from service.statistics import beta as betas
from service.statistics.estimate import Estimate


@dataclass(frozen=True)
class OtherGroups:
    """Groups without metrics of their own, together.

    Attributes:
        members: their positions.
        score_mean: over their traffic.
        accuracy: over their traffic [1].
        accuracy_below: the highest probability among those with enough labels; None if none has a threshold.
        ece_above: likewise.
    """

    members: Indices
    score_mean: float
    accuracy: Estimate
    accuracy_below: float | None
    ece_above: float | None


@dataclass(frozen=True)
class ShownGroups:
    """The groups of one grouping that have metrics of their own [shown], and the others, if any."""

    names: list[str]
    members: Indices
    other: OtherGroups | None


def shown_groups(
    snapshot: ModelSnapshot, *, limit: int, before: Mapping[str, ShownGroups]
) -> dict[str, ShownGroups]:
    """The groups that metrics show, at most `limit` of each grouping, by grouping.

    Groups that were shown `before` are preferred, so that series last.
    """
    shown = {}
    for name, grouping in snapshot.groupings.items():
        last = before[name].names if name in before else ()
        members = prominent_groups(name, grouping, snapshot.drift, limit=limit, before=last)
        rest = np.setdiff1d(np.arange(len(grouping.groups)), members)
        other = other_groups(rest, grouping, interval=snapshot.settings.interval) if rest.size else None
        shown[name] = ShownGroups([grouping.groups[g] for g in members], members, other)
    return shown


def other_groups(members: Indices, grouping: GroupingSnapshot, *, interval: float) -> OtherGroups:
    """What metrics say of several groups together.

    Their accuracy is the mean by traffic. Its standard deviation is that of fully correlated errors, an upper
    bound. Its interval has the probability `interval`.
    """
    beliefs = grouping.beliefs
    shares, accuracy = beliefs.shares[members], beliefs.accuracy.part(members)
    share = float(shares.sum())
    parts = shares / share if share > 0 else np.full(len(members), 1 / len(members))
    centre, spread = float(parts @ accuracy.mean()), float(parts @ np.sqrt(accuracy.variance()))
    mean = np.array([centre])
    lower, upper = betas.interval(*betas.matching(mean, np.array([spread**2])), interval)
    return OtherGroups(
        members=members,
        score_mean=float(parts @ beliefs.scores[members]),
        accuracy=Estimate(lower, mean, upper),
        accuracy_below=_highest(grouping.accuracy_below, grouping.enough, members),
        ece_above=_highest(grouping.ece_above, grouping.enough_for_ece, members),
    )


def _highest(probabilities: Floats | None, enough: Flags, members: Indices) -> float | None:
    """The highest probability of some groups; 0 of those without enough labels, None without a threshold."""
    if probabilities is None or np.isnan(probabilities[members]).all():
        return None
    return float(np.nanmax(np.where(enough, probabilities, 0.0)[members]))
