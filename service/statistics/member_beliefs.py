"""Posterior of every member of an ensemble, from labels of vote patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.vote_patterns import Allocation

_ROUNDING = 1e-9  # tolerance of sums of forgotten labels


class Parts(NamedTuple):
    """Every member's part of every stratum [..., members, S]."""

    shares: Floats  # of the member's positives, without leading axes
    labels: Floats
    positive: Floats  # sum of the labels' outcomes


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
    """Posterior of every member's metric, each member by itself, with an interval of probability `mass`.

    theta_m = sum over strata h of w_h theta_h, with w_h the stratum's share of the member's positives; a Beta
    for every stratum, and for the sum the Beta of its mean and variance. With c the prior's strength in
    pseudo-labels; 1 is Jeffreys':

    - The mean is that of theta_h ~ Beta(w_h c / 2 + r_h, w_h c / 2 + n_h - r_h): c pseudo-labels, divided as
      a sample would be. So a member has c of them in all, as one without strata, not c for every stratum.
    - The variance of theta_h is that under the whole prior, Beta(c / 2 + r_h, c / 2 + n_h - r_h): with a
      divided prior, a stratum of two labels, both positive, would be almost certainly all positive.
    - Strata without labels are not independent: their precisions are one unknown, with the prior's
      distribution. So without any labels the posterior is the prior itself, however many strata there are.

    That two priors are used, and the form of the sum, are approximations, which coverage in simulations
    supports: tests/simulation/test_sharing_coverage.py. docs/ensembles.md explains why not Jeffreys' for
    every pattern.

    Labels of every pattern [..., P] are without requests in flight, and fractional where old ones are
    forgotten; `positive` is the sum of their outcomes, 0 or 1 each [..., P]: truly positive, for precision.

    Raises:
        ValueError: there are not as many counts as patterns, one is not 0 or more, outcomes exceed labels, or
            mass or strength are out of range.
    """
    if not 0 < mass < 1:
        raise ValueError("the mass of an interval must be above 0 and below 1")
    if not 0 < strength < np.inf:
        raise ValueError("the strength of a prior must be above 0")
    parts = member_parts(allocation, labels, positive)
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


def member_parts(allocation: Allocation, labels: Floats, positive: Floats) -> Parts:
    """Labels and outcomes of every pattern [..., P], as parts of strata.

    Raises:
        ValueError: there are not as many counts as patterns, one is not 0 or more, or outcomes exceed labels.
    """
    for counts in (labels, positive):
        if counts.shape[-1:] != allocation.patterns.masks.shape:
            raise ValueError("there must be as many counts as patterns")
        if not np.all((counts >= 0) & np.isfinite(counts)):
            raise ValueError("labels and outcomes must be 0 or more")
    if np.any(positive > labels + _ROUNDING):
        raise ValueError("there are more outcomes than labels")
    called = allocation.patterns.called()
    shares = allocation.sums(allocation.patterns.within())
    return Parts(shares, *(allocation.sums(counts[..., None, :] * called) for counts in (labels, positive)))
