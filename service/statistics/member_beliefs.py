"""Posterior of every member of an ensemble, from labels of vote patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.vote_patterns import Allocation

_ROUNDING = 1e-9  # tolerance of sums of forgotten labels


class _Parts(NamedTuple):
    """Of every member's part of every stratum [..., members, S]; the first has no leading axes."""

    shares: Floats
    """Of the member's positives."""
    labels: Floats
    positive: Floats
    """Sum of the labels' outcomes."""
    drawn: Floats
    """The part as the labels show it: the stratum's traffic that its labels tell to be the member's, as a
    share of the member's positives."""


def post_stratified(allocation: Allocation, labels: Floats, positive: Floats) -> Floats:
    """Estimate of every member's metric [..., members]; NaN without labels, or without positives.

    t + sum over strata h of d_h (r_h / n_h - t): r_h / n_h is the rate among the labels of the member's part
    of the stratum, d_h the share of the member's positives that these labels stand for, which is the
    stratum's share times the fraction of its labels that are the member's, and t the estimate from those
    strata that are the member's as a whole, or 1/2. Where all are, it is the post-stratified mean: sum of
    w_h r_h / n_h.

    Exactly unbiased if every stratum has labels, drawn by `Allocation.plan`: on average d_h r_h / n_h is w_h
    theta_h and d_h is w_h, and t knows nothing of the strata of which the member has a part. Merely
    weighting parts by w_h would be biased, by the strata whose labels miss the member's part. Little of a
    thin part may bring an estimate a little outside of 0 to 1.

    Source: the difference estimator of survey sampling (Saerndal, Swensson, Wretman, Model Assisted Survey
    Sampling, 1992, chapter 6), stratum by stratum.

    Args:
        allocation: what patterns need, under traffic as it is now.
        labels: of every pattern [..., P]; not whole numbers where old ones are forgotten.
        positive: sum of their outcomes, 0 or 1 each [..., P]: truly positive, for precision.

    Raises:
        ValueError: there are not as many counts as patterns, one is not 0 or more, or outcomes exceed labels.
    """
    parts = _parts(allocation, labels, positive)
    seen = parts.labels > 0
    rates = np.divide(parts.positive, parts.labels, out=np.zeros(seen.shape), where=seen)
    undivided = allocation.sums((~allocation.patterns.called()).astype(np.float64)) == 0
    whole = np.where(seen & undivided, parts.shares, 0.0)
    known = whole.sum(axis=-1)
    centre = np.full(known.shape, 0.5)
    np.divide((whole * rates).sum(axis=-1), known, out=centre, where=known > 0)
    estimate = centre + (parts.drawn * (rates - centre[..., None])).sum(axis=-1)
    return np.where(seen.any(axis=-1), estimate, np.nan)


@dataclass(frozen=True)
class MemberBeliefs:
    """Posterior of every member's metric, such as precision; arrays are [..., members]."""

    mean: Floats
    lower: Floats  # end of the equal-tailed credible interval
    upper: Floats
    labels: Floats  # of a random sample with as narrow a posterior; more than wanted where patterns differ
    alpha: Floats  # parameters of the Beta that approximates the posterior
    beta: Floats


def member_beliefs(
    allocation: Allocation, labels: Floats, positive: Floats, *, mass: float = 0.95, strength: float = 1.0
) -> MemberBeliefs:
    """Posterior of every member's metric, each member by itself.

    theta_m = sum over strata h of w_h theta_h, with w_h the stratum's share of the member's positives; a Beta
    for every stratum, and for the sum the Beta of its mean and variance. With c the prior's strength:

    - The mean is that of theta_h ~ Beta(w_h c / 2 + r_h, w_h c / 2 + n_h - r_h): c pseudo-labels, divided as
      a sample would be. So a member has c of them in all, as one without strata, not c for every stratum.
    - The variance of theta_h is that under the whole prior, Beta(c / 2 + r_h, c / 2 + n_h - r_h): with a
      divided prior, a stratum of two labels, both positive, would be almost certainly all positive.
    - Strata without labels are not independent: their precisions are one unknown, with the prior's
      distribution. So without any labels the posterior is the prior itself, however many strata there are.

    That two priors are used, and the form of the sum, are approximations, which coverage in simulations
    supports: tests/simulation/test_sharing_coverage.py. Jeffreys' prior for every pattern, mean and variance,
    is no alternative: it shrinks members of many patterns so far to 1/2 that intervals of 95% covered the
    truth in 14 to 93% of cases (docs/ensembles.md).

    Args:
        allocation: needs of patterns, under current traffic.
        labels: of every pattern [..., P], without requests in flight; fractional where old ones are
            forgotten.
        positive: sum of their outcomes, 0 or 1 each [..., P]: truly positive, for precision.
        mass: probability of the credible interval, strictly within 0 and 1.
        strength: c, pseudo-labels of the prior; 1 is Jeffreys'.

    Raises:
        ValueError: there are not as many counts as patterns, one is not 0 or more, outcomes exceed labels, or
            mass or strength are out of range.
    """
    if not 0 < mass < 1:
        raise ValueError("the mass of an interval must be above 0 and below 1")
    if not 0 < strength < np.inf:
        raise ValueError("the strength of a prior must be above 0")
    parts = _parts(allocation, labels, positive)
    wrong = np.maximum(parts.labels - parts.positive, 0.0)
    known = np.where(parts.labels > 0, parts.shares, 0.0)
    unknown = np.maximum(1 - known.sum(axis=-1), 0.0)
    # Where nothing is known the weight in both sums is 0, and any proper belief will do.
    shared_out = np.where(known > 0, known, 1.0) * strength / 2
    rates = betas.mean(shared_out + parts.positive, shared_out + wrong)
    spread = betas.variance(strength / 2 + parts.positive, strength / 2 + wrong)
    mean = (known * rates).sum(axis=-1) + unknown / 2
    variance = (known**2 * spread).sum(axis=-1) + unknown**2 / (4 * (strength + 1))
    alpha, beta = betas.matching(mean, variance)
    lower, upper = betas.interval(alpha, beta, mass)
    worth = np.maximum(mean * (1 - mean) / variance - 1 - strength, 0.0)
    return MemberBeliefs(mean, lower, upper, worth, alpha, beta)


def _parts(allocation: Allocation, labels: Floats, positive: Floats) -> _Parts:
    patterns = allocation.patterns
    for counts in (labels, positive):
        if counts.shape[-1:] != patterns.masks.shape:
            raise ValueError("there must be as many counts as patterns")
        if not np.all((counts >= 0) & np.isfinite(counts)):
            raise ValueError("labels and outcomes must be 0 or more")
    if np.any(positive > labels + _ROUNDING):
        raise ValueError("there are more outcomes than labels")
    called, sizes = patterns.called(), patterns.sizes()[:, None]
    shares = allocation.sums(patterns.within())
    seen, right = (allocation.sums(counts[..., None, :] * called) for counts in (labels, positive))
    everybody = allocation.sums(labels)[..., None, :]
    traffic = allocation.sums(patterns.traffic)
    held = np.divide(traffic, sizes, out=np.zeros(shares.shape), where=sizes > 0)
    drawn = held * np.divide(seen, everybody, out=np.zeros(seen.shape), where=everybody > 0)
    return _Parts(shares, seen, right, drawn)
