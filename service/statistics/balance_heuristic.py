"""Label weights: what a label asked for one grouping is worth for another.

Labels are drawn within the groups of the assessment that asks, not in proportion to traffic. The balance
heuristic (Veach and Guibas, SIGGRAPH 1995) weights a label by the inverse of how densely its cell was
labelled by all assessments together. Each draws evenly within its groups, so that the density is a sum over
assessments, and the shares of groups are all that has to be known of the traffic. Kish's effective counts
(Survey Sampling, 1965) tell how many equal labels the weighted ones are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats, Indices


def sums(groups: Indices, values: Floats, count: int) -> Floats:
    """Sum of the values of every group [count]."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Asked:
    """What one assessment asked for.

    Attributes:
        groups: group of every label cell under the assessment's grouping; the number of groups of a cell
            without one [cells].
        labels: which labels it asked for [m], as positions in the labels' columns.
        shares: of all traffic, of every group [G].
        kept: what changes leave of its labels, where these differ within its groups; any scale within a
            group [cells].
    """

    groups: Indices
    labels: Indices
    shares: Floats
    kept: Floats | None = None


def balance_weights(*, cells: Indices, freshness: Floats, asked: Sequence[Asked]) -> Floats:
    """Weight of every label [n]: 1 / sum over assessments of (labels in its group / the group's share).

    Labels are counted by what forgetting leaves of them, but a group that has any counts one at least:
    else a few stale labels would stand for their group's whole traffic, at enormous weights, and drown
    what fresh labels tell of all other groups. So a group forgotten fades out.

    Labels that are alike may come as one row, with the sum of their freshness.

    Args:
        cells: label cell of every label [n].
        freshness: what forgetting leaves of every label [n], in (0, 1].
        asked: one entry per assessment that has labels.
    """
    cell_count = len(asked[0].groups) if asked else int(cells.max(initial=-1)) + 1
    density = asked_densities(cells=cells, freshness=freshness, asked=asked, cell_count=cell_count)
    return inverse(density[cells])


def asked_densities(*, cells: Indices, freshness: Floats, asked: Sequence[Asked], cell_count: int) -> Floats:
    """How densely every label cell was asked about, in labels over the share of all traffic [cells].

    An assessment adds nothing to a cell that has no group in its grouping: there is no such traffic to draw
    from.

    Args:
        cells: label cell of every label [n].
        freshness: what forgetting leaves of every label [n], in (0, 1].
        asked: one entry per assessment that has labels.
        cell_count: number of label cells.
    """
    density = np.zeros(cell_count)
    for assessment in asked:
        found = group_densities(assessment, cells=cells, freshness=freshness)[assessment.groups]
        if assessment.kept is not None:
            found *= _unevenly(assessment, assessment.kept, cells, freshness, len(assessment.shares) + 1)
        density += found
    return density


def group_densities(assessment: Asked, *, cells: Indices, freshness: Floats) -> Floats:
    """How densely an assessment asked about each of its groups, and 0 of cells without a group [G + 1].

    Args:
        assessment: what it asked for.
        cells: label cell of every label [n].
        freshness: what forgetting leaves of every label [n], in (0, 1].
    """
    count = len(assessment.shares)
    drawn_from = assessment.groups[cells[assessment.labels]]
    drawn = np.maximum(sums(drawn_from, freshness[assessment.labels], count + 1), 1.0)
    drawn[np.bincount(drawn_from, minlength=count + 1) == 0] = 0.0
    drawn[count] = 0.0
    densities: Floats = drawn / np.append(np.maximum(assessment.shares, 1e-12), 1.0)
    return densities


def inverse(densities: Floats) -> Floats:
    """Weights of labels by how densely their cells were asked about; finite of those that were not."""
    return 1 / np.maximum(densities, np.finfo(float).tiny)


def even_say(*, even: Floats, parts: Iterable[tuple[Floats, Floats]], unlabelled: float) -> Floats:
    """How much of a stratum its evenly drawn labels tell, beside those that were drawn unevenly [strata].

    Of an even label the part of its stratum is not known. So its weight must be the same for all parts of the
    stratum, or the two together would not count every part by its traffic: a share w of the stratum is told
    by even labels, and 1 - w by the others. Whatever w is, as long as it is the same for all parts and does
    not depend on what labels say, no part is counted too often: so the shares of parts need not be exact.
    They only decide how well the two are combined.

    Each sample has a say in proportion to its effective number (Kish): n of even labels, and 1 / sum over
    parts of (part's share of the stratum)^2 / labels of others. Where all were drawn evenly, this is the
    balance heuristic.

    A part without uneven labels, in a stratum that has some, counts as if all such parts, of all strata
    together, had one.

    Args:
        even: how densely every stratum was asked about by labels of which the part is not known [strata].
        parts: share of the stratum of every part, and how densely the part was asked about by labels of which
            it is known [strata].
        unlabelled: share of all traffic of the parts without uneven labels.
    """
    spread, bare, told = np.zeros(len(even)), np.zeros(len(even)), np.zeros(len(even), np.bool_)
    for share, density in parts:
        labelled = (density > 0) & (share > 0)
        told |= labelled
        spread += np.divide(share, density, out=np.zeros(len(share)), where=labelled)
        bare += np.where(labelled, 0.0, share)
    spread += bare * max(unlabelled, 1e-12)
    of_uneven = np.divide(1.0, spread, out=np.zeros(len(spread)), where=told)
    return np.divide(even, even + of_uneven, out=np.zeros(len(even)), where=even > 0)


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
