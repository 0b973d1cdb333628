"""How precise labels alone can be, if they are spread in the best way over strata of scores.

The best way is that of Neyman (Journal of the Royal Statistical Society 1934): labels in proportion to the
standard deviation of what a stratum adds to the measure, without replacement. It needs the positive share of
every stratum, which is what labels are for. So to first order, no unbiased estimate from labels of these
strata is more precise. An estimate that also relies on the scores of items without a label may be.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from service.domain.arrays import Floats
from service.statistics.binary.label_gains import CURVE, LabelledStrata, changes_by_one
from service.statistics.ratios import ratio


def best_standard_error(strata: LabelledStrata, positives: Floats, labels: int, aim: str) -> Floats:
    """Standard error of a measure by linearisation, with so many labels: one [1], or at each recall [R].

    `positives` are all positive items of every stratum [B]; the labels of `strata` do not matter.
    """
    counts = strata.counts
    none = np.zeros_like(counts)
    unlabelled = LabelledStrata(strata.called, counts, none, none)
    _, changes = changes_by_one(unlabelled, (positives / counts)[None], aim)
    variances = ratio(positives * (counts - positives), counts * (counts - 1), 0.0)
    importance = np.sqrt((changes**2).mean(axis=0) * variances) * counts
    some = importance > 0
    spread = _spread(importance[some], counts[some], float(labels))
    left = counts[some] ** 2 * variances[some] * (1 / spread - 1 / counts[some])
    return np.asarray(np.sqrt(changes[:, some] ** 2 @ left), np.float64)


def best_width(strata: LabelledStrata, positives: Floats, labels: int, mass: float) -> float:
    """Mean width of the band of a curve for which labels are spread in the best way."""
    errors = best_standard_error(strata, positives, labels, CURVE)
    return float(2 * stats.norm.ppf((1 + mass) / 2) * errors.mean())


def _spread(importance: Floats, counts: Floats, labels: float) -> Floats:
    """Labels in proportion to importance, but at most all items of a stratum [B]."""
    spread = counts.copy()
    is_open = np.ones(len(counts), np.bool_)
    while is_open.any():
        share = (labels - counts[~is_open].sum()) * importance / importance[is_open].sum()
        over = is_open & (share >= counts)
        if not over.any():
            return np.where(is_open, share, spread)
        is_open &= ~over
    return spread
