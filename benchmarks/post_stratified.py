"""An unbiased estimate of every ensemble member's metric from labels of vote patterns."""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats
from service.statistics.ratios import ratio
from service.statistics.vote_patterns import Allocation, member_parts


def post_stratified(allocation: Allocation, labels: Floats, positive: Floats) -> Floats:
    """Estimate of every member's metric [..., members]; NaN without labels, or without positives.

    t + sum over strata h of d_h (r_h / n_h - t): r_h / n_h is the rate among the labels of the member's part
    of the stratum, d_h the share of the member's positives that these labels represent, which is the
    stratum's share times the fraction of its labels that are the member's, and t the estimate from the strata
    that are entirely the member's, or 1/2. If all are, it is the post-stratified mean: sum of w_h r_h / n_h.

    Exactly unbiased if every stratum has labels, drawn by `Allocation.plan`: on average d_h r_h / n_h is w_h
    theta_h and d_h is w_h, and t is independent of the strata of which the member has a part. Weighting parts
    by w_h alone would be biased, by the strata whose labels miss the member's part. With few labels of a thin
    part, an estimate may be a little outside of 0 to 1.

    Source: the difference estimator of survey sampling (Saerndal, Swensson, Wretman, Model Assisted Survey
    Sampling, 1992, chapter 6), stratum by stratum.

    Args:
        allocation: needs of patterns, under current traffic.
        labels: of every pattern [..., P]; fractional where old ones are forgotten.
        positive: sum of their outcomes, 0 or 1 each [..., P]: truly positive, for precision.

    Raises:
        ValueError: there are not as many counts as patterns, one is not 0 or more, or outcomes exceed labels.
    """
    parts, patterns = member_parts(allocation, labels, positive), allocation.patterns
    sizes, everybody = patterns.sizes()[:, None], allocation.sums(labels)[..., None, :]
    held = ratio(allocation.sums(patterns.traffic), sizes, 0.0)
    # The part as its labels show it, as a share of the member's positives.
    drawn = held * ratio(parts.labels, everybody, 0.0)
    seen = parts.labels > 0
    rates = ratio(parts.positive, parts.labels, 0.0)
    undivided = allocation.sums((~patterns.called()).astype(np.float64)) == 0
    whole = np.where(seen & undivided, parts.shares, 0.0)
    known = whole.sum(axis=-1)
    centre = ratio((whole * rates).sum(axis=-1), known, 0.5)
    estimate = centre + (drawn * (rates - centre[..., None])).sum(axis=-1)
    return np.where(seen.any(axis=-1), estimate, np.nan)
