"""Label weights: what a label asked for one grouping is worth for another.

Labels are drawn within the groups of the assessment that asks, not in proportion to traffic. The balance
heuristic (Veach and Guibas, SIGGRAPH 1995) weights a label by the inverse of how densely its cell was
labelled by all assessments together, and Kish's effective counts (Survey Sampling, 1965) tell how many
equal labels the weighted ones are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def sums(groups: Indices, values: Floats, count: int) -> Floats:
    """Sum of the values of every group [count]."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Asked:
    """What one assessment asked for.

    Attributes:
        groups: group of every cell under the assessment's grouping [cells].
        labels: which labels it asked for [m], as positions in the labels' columns.
        kept: what changes leave of its labels, where these differ within its groups; any scale within a
            group [cells].
    """

    groups: Indices
    labels: Indices
    kept: Floats | None = None


def balance_weights(*, cells: Indices, freshness: Floats, traffic: Floats, asked: Sequence[Asked]) -> Floats:
    """Weight of every label [n]: 1 / sum over assessments of (labels in its group / the group's share).

    Labels are counted by what forgetting leaves of them, but a group that has any counts one at least:
    else a few stale labels would stand for their group's whole traffic, at enormous weights, and drown
    what fresh labels tell of all other groups. So a group forgotten fades out.

    Labels that are alike may come as one row, with the sum of their freshness.

    Args:
        cells: cell of every label [n].
        freshness: what forgetting leaves of every label [n], in (0, 1].
        traffic: weight of every cell [cells]; any scale.
        asked: one entry per assessment that has labels.
    """
    density = asked_densities(cells=cells, freshness=freshness, traffic=traffic, asked=asked)
    return 1 / np.maximum(density[cells], np.finfo(float).tiny)


def asked_densities(*, cells: Indices, freshness: Floats, traffic: Floats, asked: Sequence[Asked]) -> Floats:
    """How densely every cell was asked about, in labels over the share of all traffic [cells].

    Args:
        cells: cell of every label [n].
        freshness: what forgetting leaves of every label [n], in (0, 1].
        traffic: weight of every cell [cells]; any scale.
        asked: one entry per assessment that has labels.
    """
    share = traffic / max(float(traffic.sum()), np.finfo(float).tiny)
    density = np.zeros(len(traffic))
    for assessment in asked:
        size = int(assessment.groups.max(initial=0)) + 1
        drawn_from = assessment.groups[cells[assessment.labels]]
        drawn = np.maximum(sums(drawn_from, freshness[assessment.labels], size), 1.0)
        drawn[np.bincount(drawn_from, minlength=size) == 0] = 0.0
        group_share = sums(assessment.groups, share, size)
        asked_here = (drawn / np.maximum(group_share, 1e-12))[assessment.groups]
        if assessment.kept is not None:
            asked_here *= _unevenly(assessment, assessment.kept, cells, freshness, size)
        density += asked_here
    return density


def even_say(*, even: Floats, uneven: Floats, traffic: Floats, strata: Indices) -> Floats:
    """How much of a stratum its evenly drawn labels tell, beside those that were drawn unevenly [cells].

    Of an even label the cell within its stratum is not known. So its weight must be the same for all cells
    of the stratum, or the two together would not count every cell by its traffic: a share w of the stratum
    is told by even labels, and 1 - w by the others. Each sample has a say in proportion to its effective
    number (Kish): n of even labels, and 1 / sum over cells of (cell's share of the stratum)^2 / labels of
    others. Where all were drawn evenly, this is the balance heuristic.

    A cell without uneven labels, in a stratum that has some, counts as if all such cells together had one.

    Args:
        even: how densely every cell was asked about by labels of which it is not known [cells].
        uneven: likewise by those of which it is [cells].
        traffic: weight of every cell [cells]; any scale.
        strata: stratum of every cell [cells].
    """
    tiny, count = np.finfo(float).tiny, int(strata.max(initial=-1)) + 1
    share = np.maximum(traffic / max(float(traffic.sum()), tiny), 1e-30)
    size = sums(strata, share, count)
    told = np.bincount(strata, weights=uneven > 0, minlength=count) > 0
    bare = told[strata] & (uneven == 0)
    uneven = np.where(bare, 1 / max(float(share[bare].sum()), 1e-12), uneven)
    of_even, of_uneven = (
        size / sums(strata, share / np.maximum(density, 1e-200), count) for density in (even, uneven)
    )
    of_even, of_uneven = of_even[strata], np.where(told, of_uneven, 0.0)[strata]
    return np.divide(of_even, of_even + of_uneven, out=np.ones(len(share)), where=even > 0) * (even > 0)


def _unevenly(assessment: Asked, kept: Floats, cells: Indices, freshness: Floats, size: int) -> Floats:
    """How much more of its group's labels is left in a cell than on average over the group [cells].

    An assessment asks evenly within a group. Where another grouping's group has changed, less is left of its
    labels there: taken for even, they would leave the changed part without a say.
    """
    there = cells[assessment.labels]
    left = freshness[assessment.labels]
    total = sums(assessment.groups[there], left, size)
    whole = sums(assessment.groups[there], left / kept[there], size)
    scale = np.divide(whole, total, out=np.ones(size), where=total > 0)
    return kept * scale[assessment.groups]


def effective_counts(
    *, groups: Indices, group_count: int, weights: Floats, freshness: Floats, correct: Floats
) -> tuple[Floats, Floats]:
    """Effective numbers of labels and of correct ones, per group [groups].

    n = (sum w d)^2 / sum(w^2 d) and r = n sum(w d z) / sum(w d), with w the label's weight, d its
    freshness, z its outcome. Without forgetting (d = 1) n is Kish's; with equal weights n is the sum
    of freshness, so old labels lose their say even when no new ones come. All of these are sums over d, so
    labels of the same weight and outcome may come as one row, with the sum of their freshness.

    Args:
        groups: group of every label [n].
        group_count: number of groups.
        weights: of every label [n], any scale.
        freshness: of every label [n], in (0, 1].
        correct: outcome of every label [n], 0 or 1.
    """
    total = sums(groups, weights * freshness, group_count)
    squares = sums(groups, weights**2 * freshness, group_count)
    successes = sums(groups, weights * freshness * correct, group_count)
    seen = squares > 0
    labels = np.divide(total**2, squares, out=np.zeros(group_count), where=seen)
    ratio = np.divide(successes, total, out=np.zeros(group_count), where=seen)
    return labels, labels * np.clip(ratio, 0.0, 1.0)
