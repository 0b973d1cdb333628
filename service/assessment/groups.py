"""Beliefs about all groups of one grouping, from facts: the one function behind service and replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment.calibration import CalibrationError, calibration_error
from service.assessment.curves import bin_beliefs
from service.assessment.mixture import BetaMixture
from service.assessment.priors import PriorName, group_prior
from service.assessment.weights import effective_counts, sums

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class CellTraffic:
    """Traffic of every cell [cells]: weights, and weighted sums of scores."""

    weights: Floats
    score_sums: Floats


@dataclass(frozen=True)
class Labels:
    """Labelled predictions as columns [n].

    Attributes:
        cells: cell of each.
        correct: 1.0 where the predicted class is the true one, else 0.0.
        weights: of the balance heuristic, any scale.
        freshness: what forgetting leaves of each, in (0, 1].
    """

    cells: Indices
    correct: Floats
    weights: Floats
    freshness: Floats


@dataclass(frozen=True)
class GroupingBeliefs:
    """What is believed about the groups of one grouping; arrays are [G].

    Attributes:
        shares: traffic share of every group.
        scores: mean score of every group.
        labels: effective number of labels.
        labels_counted: how many labels there are, forgotten ones included.
        accuracy: beliefs about accuracy.
        ece: beliefs about calibration error.
    """

    shares: Floats
    scores: Floats
    labels: Floats
    labels_counted: npt.NDArray[np.int64]
    accuracy: BetaMixture
    ece: CalibrationError


def assess_grouping(
    *,
    cell_groups: Indices,
    cell_bins: Indices,
    group_count: int,
    bin_count: int,
    traffic: CellTraffic,
    labels: Labels,
    prior: PriorName,
) -> GroupingBeliefs:
    """Beliefs about every group of a grouping.

    Args:
        cell_groups: group of every cell [cells].
        cell_bins: score bin of every cell [cells].
        group_count: number of groups G.
        bin_count: number of score bins B.
        traffic: of every cell.
        labels: all labels of the model, whoever asked for them.
        prior: name of the prior.
    """
    weights = sums(cell_groups, traffic.weights, group_count)
    total = float(weights.sum())
    overall = float(traffic.score_sums.sum()) / total if total > 0 else 0.5
    scores = _ratio(sums(cell_groups, traffic.score_sums, group_count), weights, overall)
    groups = cell_groups[labels.cells]
    counts = {"weights": labels.weights, "freshness": labels.freshness, "correct": labels.correct}
    n, r = effective_counts(groups=groups, group_count=group_count, **counts)

    fine_cells = cell_groups * bin_count + cell_bins
    fine_count = group_count * bin_count
    fine_weights = sums(fine_cells, traffic.weights, fine_count)
    middles = (np.arange(bin_count) + 0.5) / bin_count
    fine_scores = _ratio(
        sums(fine_cells, traffic.score_sums, fine_count),
        fine_weights,
        np.tile(middles, group_count),
    )
    fine_n, fine_r = effective_counts(groups=fine_cells[labels.cells], group_count=fine_count, **counts)
    shape = (group_count, bin_count)
    bins = bin_beliefs(
        prior, scores=fine_scores.reshape(shape), labels=fine_n.reshape(shape), correct=fine_r.reshape(shape)
    )
    return GroupingBeliefs(
        shares=weights / total if total > 0 else np.zeros(group_count),
        scores=scores,
        labels=n,
        labels_counted=np.bincount(groups, minlength=group_count),
        accuracy=group_prior(prior).posterior(scores=scores, labels=n, correct=r),
        ece=calibration_error(
            beliefs=bins,
            scores=fine_scores.reshape(shape),
            shares=_ratio(fine_weights.reshape(shape), weights[:, None], 0.0),
        ),
    )


def _ratio(numerator: Floats, denominator: Floats, otherwise: Floats | float) -> Floats:
    """The quotient, or `otherwise` where there is nothing to divide by."""
    ratio: Floats = np.array(np.broadcast_to(otherwise, numerator.shape), dtype=np.float64)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio
