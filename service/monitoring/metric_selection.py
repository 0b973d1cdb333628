"""Which groups of a large grouping are told one by one, and what is told of the others together.

Thousands of groups, each with many metrics, are more than Prometheus should keep. Those that matter keep
metrics of their own; the others are `other`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.statistics import beta as betas
from service.statistics.groups import GroupingBeliefs

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

OTHER = "other"

_LOYALTY = 4
"""A group that was told last time is preferred by a quarter of the places, so that series do not flap."""


@dataclass(frozen=True)
class OtherGroups:
    """Groups that are not told one by one, together.

    Attributes:
        members: which they are.
        share: of the traffic.
        score_mean: over their traffic.
        labels_correct: how many.
        labels_incorrect: how many.
        effective_labels: how many.
        accuracy: lower end, mean and upper end over their traffic.
        accuracy_below: the highest probability among those with labels enough; None without a threshold.
        ece_above: likewise.
    """

    members: Indices
    share: float
    score_mean: float
    labels_correct: int
    labels_incorrect: int
    effective_labels: float
    accuracy: tuple[float, float, float]
    accuracy_below: float | None
    ece_above: float | None


def told_groups(
    names: Sequence[str],
    *,
    mean: Floats,
    width: Floats,
    shares: Floats,
    crossed: npt.NDArray[np.bool_],
    limit: int,
    before: Collection[str],
) -> Indices:
    """Groups that are told one by one, ascending [told].

    Those of which a threshold is crossed come first, then, in turn, the least accurate and those that are
    least known for their traffic. A group that bears the name of the others is one of them.

    Args:
        names: of the groups [G].
        mean: of accuracy [G].
        width: of its interval [G].
        shares: of the traffic [G].
        crossed: whether a threshold is known to be crossed [G].
        limit: groups told at most.
        before: names of those told last time.
    """
    if len(names) <= limit:
        return np.arange(len(names))
    worst, unknown = _ranks(mean), _ranks(-shares * width)
    place = np.minimum(2 * worst, 2 * unknown + 1).astype(np.float64)
    kept = set(before)
    place -= np.array([name in kept for name in names]) * (limit / _LOYALTY)
    nameless = np.array([name == OTHER for name in names])
    order = np.lexsort((place, ~crossed, nameless))
    chosen = order[: min(limit, len(names) - int(nameless.sum()))]
    return np.sort(chosen)


def other_groups(
    members: Indices,
    beliefs: GroupingBeliefs,
    *,
    accuracy_below: Floats | None,
    ece_above: Floats | None,
    interval: float,
) -> OtherGroups:
    """What is told of groups together.

    Their accuracy is the mean by traffic. Its deviation is taken as if all were wrong alike, which is never
    too little.

    Args:
        members: which groups.
        beliefs: about all groups.
        accuracy_below: probability that the threshold is crossed [G]; 0 without labels enough.
        ece_above: likewise.
        interval: probability inside the interval.
    """
    shares, accuracy = beliefs.shares[members], beliefs.accuracy.part(members)
    share = float(shares.sum())
    parts = shares / share if share > 0 else np.full(len(members), 1 / len(members))
    centre, spread = float(parts @ accuracy.mean()), float(parts @ np.sqrt(accuracy.variance()))
    alpha, beta = betas.matching(np.array([centre]), np.array([spread**2]))
    lower, upper = betas.interval(alpha, beta, interval)
    return OtherGroups(
        members=members,
        share=share,
        score_mean=float(parts @ beliefs.scores[members]),
        labels_correct=int(beliefs.labels_correct[members].sum()),
        labels_incorrect=int(beliefs.labels_incorrect[members].sum()),
        effective_labels=float(beliefs.labels[members].sum()),
        accuracy=(float(lower[0]), centre, float(upper[0])),
        accuracy_below=None if accuracy_below is None else float(accuracy_below[members].max()),
        ece_above=None if ece_above is None else float(ece_above[members].max()),
    )


def _ranks(values: Floats) -> Floats:
    """Places of values, counted from 1 at the lowest; of equal ones the first comes first."""
    ranks = np.empty(len(values))
    ranks[values.argsort(kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
