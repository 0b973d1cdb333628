"""Sample sharing where items are known by counts alone: labels of vote patterns, and posteriors of members.

An item's vote pattern is the set of members that call it positive. A member's positives are a union of
patterns, and within a pattern all items are alike to all members. A random sample of n of the positives of
member m has n s_p / s_m labels of a pattern p, with s_p the pattern's share of traffic and s_m that of the
member's positives. If every pattern has at least

    n_p = n s_p / (the least s_m of the members m that call p positive)

labels, then each member's post-stratified estimate varies no more than the mean of n random labels, whatever
the precisions theta_p: with w_p = s_p / s_m, sum of w_p^2 theta_p (1 - theta_p) / n_p <= sum of w_p theta_p
(1 - theta_p) / n <= theta (1 - theta) / n (Cochran, Sampling Techniques, 1977, chapter 5, of proportional
allocation). For one child this takes as many labels as the source's scheme (`sample_sharing`); for several,
fewer. docs/ensembles.md explains why not even fewer.

Exact: the needs, and that post-stratified estimates are unbiased (`benchmarks/post_stratified.py`).
Approximate: the bound on their variance where patterns need less than one label each and are pooled
(`Allocation`), and posteriors (`member_beliefs`). There is no finite population correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics import beta as betas
from service.statistics.mixture import BetaMixture
from service.statistics.ratios import ratio
from service.statistics.sample_sharing import pattern_masks

_ROUNDING = 1e-9  # tolerance by which a need may exceed an integer, from floating point
_PRIOR_LABELS = 1.0  # pseudo-labels of a member's prior, which is Jeffreys'


@dataclass(frozen=True)
class VotePatterns:
    """Traffic of an ensemble's vote patterns."""

    masks: Ints  # patterns [P], each once: bit m is set where member m calls it positive; bit 0 is the parent
    traffic: Floats  # weight of each [P]; any scale
    members: int  # how many there are, the parent included; at most `sample_sharing.MOST_MEMBERS`

    @classmethod
    def of_items(cls, votes: Flags) -> VotePatterns:
        """Of single items, by whether a member calls an item positive [N, members], the parent first."""
        masks, counts = np.unique(pattern_masks(votes), return_counts=True)
        return cls(masks, counts.astype(np.float64), votes.shape[1])

    def called(self) -> Flags:
        """Whether a member calls the items of a pattern positive [members, P]."""
        return (self.masks >> np.arange(self.members)[:, None] & 1).astype(np.bool_)

    def sizes(self) -> Floats:
        """Traffic of every member's positives [members], on the scale of the traffic."""
        return self.called() @ self.traffic

    def within(self) -> Floats:
        """Share of every pattern in a member's positives [members, P]; all 0 where there are none."""
        held = np.where(self.called(), self.traffic, 0.0)
        return ratio(held, self.sizes()[:, None], 0.0)


@dataclass(frozen=True)
class Allocation:
    """What every vote pattern needs, so that all members have as many labels as are wanted.

    A pattern that needs one label or more is a stratum. Thin patterns, which need less, would each be rounded
    up to a label, and there may be hundreds; so those of the same smallest member form one stratum. Its
    labels are drawn in proportion to traffic and so are a random sample of it, and of every member's part of
    it. Labels drawn otherwise, or under other traffic, bias a thin stratum, but not a thick pattern.
    """

    patterns: VotePatterns
    wanted: int  # labels that every member should have
    needed: Floats  # by pattern [P], before rounding up; 0 where nobody calls it positive
    strata: Indices  # stratum of every pattern [P], from 0; -1 where nothing is needed

    def plan(self, labelled: Floats, rng: np.random.Generator) -> Indices:
        """How many more labels every pattern should get [P], given those it has, with requests in flight [P].

        Every stratum gets as many as it needs, rounded up, minus those that it has. Within a stratum of thin
        patterns they are drawn in proportion to traffic; once they are there, nothing more is requested.
        Counts may be fractional where old labels are forgotten.
        """
        more = np.zeros(len(self.needed), np.intp)
        for stratum in range(self.count):
            of = np.flatnonzero(self.strata == stratum)
            lacking = np.ceil(self.needed[of].sum() - _ROUNDING) - labelled[of].sum()
            wanting = max(int(np.ceil(lacking - _ROUNDING)), 0)
            traffic = self.patterns.traffic[of]
            more[of] = rng.multinomial(wanting, traffic / traffic.sum())
        return more

    @property
    def count(self) -> int:
        """Number of strata."""
        return int(self.strata.max(initial=-1)) + 1

    def sums(self, values: Floats) -> Floats:
        """Sums over the patterns of every stratum [..., count], of values by pattern [..., P]."""
        if not self.count:
            return np.zeros((*values.shape[:-1], 0))
        grouped = np.argsort(self.strata, kind="stable")
        starts = np.searchsorted(self.strata[grouped], np.arange(self.count))
        return np.add.reduceat(values[..., grouped], starts, axis=-1)


def allocate(patterns: VotePatterns, wanted: int) -> Allocation:
    """What every vote pattern needs, so that every member has `wanted` labels, as a random sample would.

    Labels elsewhere never replace those that a pattern lacks: they only make their own pattern more precise.
    """
    called = patterns.called()
    sizes = np.where(called, patterns.sizes()[:, None], np.inf)
    smallest, size = sizes.argmin(axis=0), sizes.min(axis=0)
    some = called.any(axis=0) & (patterns.traffic > 0)
    needed = np.divide(wanted * patterns.traffic, size, out=np.zeros(len(size)), where=some)
    thin = needed < 1 - _ROUNDING
    # Thick patterns are identified by their own numbers, thin ones by their smallest member's.
    keys = np.where(thin, -1 - smallest, np.arange(len(size)))
    strata = np.full(len(size), -1, np.intp)
    strata[some] = np.unique(keys[some], return_inverse=True)[1]
    return Allocation(patterns, wanted, needed, strata)


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


def member_beliefs(allocation: Allocation, labels: Floats, positive: Floats, *, mass: float) -> MemberBeliefs:
    """Posterior of every member's metric, each member by itself, with an interval of probability `mass`.

    theta_m = sum over strata h of w_h theta_h, with w_h the stratum's share of the member's positives; a Beta
    for every stratum, and for the sum the Beta of its mean and variance. With c the prior's pseudo-labels, 1:

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
    """
    parts = member_parts(allocation, labels, positive)
    wrong = np.maximum(parts.labels - parts.positive, 0.0)
    labelled_shares = np.where(parts.labels > 0, parts.shares, 0.0)
    unknown = np.maximum(1 - labelled_shares.sum(axis=-1), 0.0)
    # Where nothing is known the weight in both sums is 0, and any proper belief will do.
    prior_counts = np.where(labelled_shares > 0, labelled_shares, 1.0) * _PRIOR_LABELS / 2
    rates = betas.mean(prior_counts + parts.positive, prior_counts + wrong)
    spread = betas.variance(_PRIOR_LABELS / 2 + parts.positive, _PRIOR_LABELS / 2 + wrong)
    mean = (labelled_shares * rates).sum(axis=-1) + unknown / 2
    variance = (labelled_shares**2 * spread).sum(axis=-1) + unknown**2 / (4 * (_PRIOR_LABELS + 1))
    alpha, beta = betas.matching(mean, variance)
    lower, upper = betas.interval(alpha, beta, mass)
    worth = np.maximum(mean * (1 - mean) / variance - 1 - _PRIOR_LABELS, 0.0)
    return MemberBeliefs(mean, lower, upper, worth, alpha, beta)


def mixed_members(beliefs: MemberBeliefs, *, mass: float) -> MemberBeliefs:
    """The even mixture of posteriors, each given one imputation of what labels leave open [members].

    Those that are given have the imputations first [imputations, members].
    """
    weights = np.full(len(beliefs.alpha), 1 / len(beliefs.alpha))
    mixture = BetaMixture(weights, beliefs.alpha, beliefs.beta)
    mean, variance = mixture.mean(), mixture.variance()
    worth = np.maximum(mean * (1 - mean) / variance - 1 - _PRIOR_LABELS, 0.0)
    return MemberBeliefs(mean, *mixture.interval(mass), worth, *betas.matching(mean, variance))


def member_parts(allocation: Allocation, labels: Floats, positive: Floats) -> Parts:
    """Labels and outcomes of every pattern [..., P], as parts of strata."""
    called = allocation.patterns.called()
    shares = allocation.sums(allocation.patterns.within())
    return Parts(shares, *(allocation.sums(counts[..., None, :] * called) for counts in (labels, positive)))
