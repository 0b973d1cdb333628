"""Importance weights of labels under the balance heuristic.

Labels are drawn within the groups of the assessment that requests them, not in proportion to traffic. The
balance heuristic (Veach and Guibas, SIGGRAPH 1995) weights a label by the inverse of how densely its cell was
labelled by all assessments together. Each draws evenly within its groups, so the density is a sum over
assessments, and only the groups' shares of traffic are needed. Kish's effective sample size (Survey Sampling,
1965) is the number of equally weighted labels that the weighted ones are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats, Indices
from service.statistics.ratios import ratio


def sums(groups: Indices, values: Floats, count: int) -> Floats:
    """Sum of the values of every group [count]."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class AssessmentLabels:
    """Labels that one assessment requested."""

    groups: Indices  # of every label cell in the assessment's grouping; the number of groups for none [cells]
    labels: Indices  # positions of its labels in the labels' columns [m]
    shares: Floats  # of all traffic, of every group [G]
    # factor that changes leave of its labels in every cell [cells], where it differs within groups; any scale
    # within a group
    retained: Floats | None = None


def label_densities(
    *, cells: Indices, freshness: Floats, assessments: Sequence[AssessmentLabels], cell_count: int
) -> Floats:
    """Labels per share of all traffic, by label cell [cells]: the sum of labels in a group over its share.

    Labels, of cells [n], count by their freshness in (0, 1] [n], but a group that has any counts at least
    one: else a few stale labels would represent their group's whole traffic, with enormous weights, and drown
    the fresh labels of all other groups. Identical labels may be given as one row, with the sum of their
    freshness. An assessment adds nothing to a cell that has no group in its grouping: it has no such traffic
    to draw from.
    """
    density = np.zeros(cell_count)
    for assessment in assessments:
        found = group_densities(assessment, cells=cells, freshness=freshness)[assessment.groups]
        if assessment.retained is not None:
            found *= _relative_retention(
                assessment, assessment.retained, cells, freshness, len(assessment.shares) + 1
            )
        density += found
    return density


def group_densities(assessment: AssessmentLabels, *, cells: Indices, freshness: Floats) -> Floats:
    """Labels per share of traffic of an assessment's groups, and 0 for cells without a group [G + 1]."""
    count = len(assessment.shares)
    drawn_from = assessment.groups[cells[assessment.labels]]
    drawn = np.maximum(sums(drawn_from, freshness[assessment.labels], count + 1), 1.0)
    drawn[np.bincount(drawn_from, minlength=count + 1) == 0] = 0.0
    drawn[count] = 0.0
    densities: Floats = drawn / np.append(np.maximum(assessment.shares, 1e-12), 1.0)
    return densities


def inverse(densities: Floats) -> Floats:
    """Weights of labels by the densities of their cells; finite where a density is 0."""
    return 1 / np.maximum(densities, np.finfo(float).tiny)


def even_sample_weight(*, even: Floats, parts: Iterable[tuple[Floats, Floats]], unlabelled: float) -> Floats:
    """Weight of a stratum's evenly drawn labels, relative to unevenly drawn ones [strata].

    The part of the stratum that an even label is in is unknown. So its weight must be the same for all parts,
    or the two kinds together would not weight every part by its traffic: even labels estimate a
    share w of the stratum, the others 1 - w. Any w that is the same for all parts and does not depend on
    outcomes is unbiased; shares of parts need not be exact, as they only decide the efficiency. Each sample
    is weighted by its effective size (Kish): n of even labels, and 1 / sum over parts of (part's share of the
    stratum)^2 / labels of others. If all were drawn evenly, this is the balance heuristic.

    `even` is the density of labels whose part is not known [strata]; `parts` give a part's share of the
    stratum, and the density of labels whose part is known [strata]. Parts without any, in strata that have
    some, count as if all of them together had one; `unlabelled` is their share of all traffic.
    """
    spread, bare, has_labels = np.zeros(len(even)), np.zeros(len(even)), np.zeros(len(even), np.bool_)
    for share, density in parts:
        labelled = (density > 0) & (share > 0)
        has_labels |= labelled
        spread += np.divide(share, density, out=np.zeros(len(share)), where=labelled)
        bare += np.where(labelled, 0.0, share)
    spread += bare * max(unlabelled, 1e-12)
    of_uneven = np.where(has_labels, ratio(1.0, spread, 0.0), 0.0)
    return np.where(even > 0, ratio(even, even + of_uneven, 0.0), 0.0)


def _relative_retention(
    assessment: AssessmentLabels, retained: Floats, cells: Indices, freshness: Floats, size: int
) -> Floats:
    """Retained share of labels in a cell over that of its group [cells].

    An assessment draws evenly within a group. If a group of another grouping has changed, fewer of the labels
    in it are retained. Treated as even, they would leave the changed part without weight.
    """
    there = cells[assessment.labels]
    left = freshness[assessment.labels]
    total = sums(assessment.groups[there], left, size)
    whole = sums(assessment.groups[there], left / retained[there], size)
    scale = ratio(whole, total, 1.0)
    return retained * scale[assessment.groups]


def effective_counts(
    *, groups: Indices, group_count: int, weights: Floats, freshness: Floats, correct: Floats
) -> tuple[Floats, Floats]:
    """Effective numbers of labels and of correct ones, by group [group_count].

    n = (sum w d)^2 / sum(w^2 d) and r = n sum(w d z) / sum(w d), with w the weight, on any scale, d the
    freshness in (0, 1], and z the outcome, 0 or 1, of every label [n]. Without forgetting (d = 1) n is
    Kish's; with equal weights n is the sum of freshness, so old labels lose weight even when no new ones
    arrive. Identical labels may be given as one row, with the sum of their freshness.
    """
    total = sums(groups, weights * freshness, group_count)
    squares = sums(groups, weights**2 * freshness, group_count)
    successes = sums(groups, weights * freshness * correct, group_count)
    labels = ratio(total**2, squares, 0.0)
    return labels, labels * np.clip(ratio(successes, total, 0.0), 0.0, 1.0)
