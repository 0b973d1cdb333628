"""Sample sharing where items are known by counts alone: how many labels every vote pattern needs.

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

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.ratios import ratio
from service.statistics.sample_sharing import MOST_MEMBERS, pattern_masks

_ROUNDING = 1e-9  # tolerance by which a need may exceed an integer, from floating point


@dataclass(frozen=True)
class VotePatterns:
    """Traffic of an ensemble's vote patterns.

    Raises:
        ValueError: masks and traffic differ in length; a pattern comes twice, or names a member that does not
            exist; traffic is negative or not finite; there are no members, or more than `MOST_MEMBERS`.
    """

    masks: Ints  # patterns [P], each once: bit m is set where member m calls it positive; bit 0 is the parent
    traffic: Floats  # weight of each [P]; any scale
    members: int  # how many there are, the parent included

    def __post_init__(self) -> None:
        if self.masks.shape != self.traffic.shape or self.masks.ndim != 1:
            raise ValueError("there must be as many weights of traffic as patterns")
        if not 1 <= self.members <= MOST_MEMBERS:
            raise ValueError(f"an ensemble has 1 to {MOST_MEMBERS} members, its own decision included")
        if np.any(self.masks < 0) or np.any(self.masks >> self.members):
            raise ValueError("a pattern names a member that is not there")
        if len(np.unique(self.masks)) < len(self.masks):
            raise ValueError("every pattern must stand once")
        if not np.all((self.traffic >= 0) & np.isfinite(self.traffic)):
            raise ValueError("traffic must be finite, and 0 at least")

    @classmethod
    def of_items(cls, votes: Flags) -> VotePatterns:
        """Of single items, by whether a member calls an item positive [N, members], the parent first.

        Raises:
            ValueError: votes are not a table of booleans, or have too many columns.
        """
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
        sizes = self.sizes()[:, None]
        held = np.where(self.called(), self.traffic, 0.0)
        return ratio(held, sizes, 0.0)


@dataclass(frozen=True)
class PatternPlan:
    """How many more labels every vote pattern should get."""

    more: Indices  # labels to ask for [P]
    separate: int  # labels for separate samples: those wanted, times the members that call anything positive

    @property
    def cost(self) -> int:
        """Labels to ask for, in all."""
        return int(self.more.sum())

    @property
    def saving(self) -> float:
        """1 - cost / separate; 0 where nothing is called positive.

        It is negative where a plan costs more than separate samples: strata are rounded up to whole labels.
        The excess is less than a label per stratum, where few labels are wanted and members hardly overlap.
        """
        return 1 - self.cost / self.separate if self.separate else 0.0


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

    def plan(self, labelled: Floats, rng: np.random.Generator) -> PatternPlan:
        """How many more labels every pattern should get, given those it has, with requests in flight [P].

        Every stratum gets as many as it needs, rounded up, minus those that it has. Within a stratum of thin
        patterns they are drawn in proportion to traffic; once they are there, nothing more is requested.
        Counts may be fractional where old labels are forgotten.

        Raises:
            ValueError: labelled has another length than the patterns, or a count is not 0 or more.
        """
        if labelled.shape != self.needed.shape:
            raise ValueError("there must be as many counts of labels as patterns")
        if not np.all((labelled >= 0) & np.isfinite(labelled)):
            raise ValueError("labels must be 0 or more")
        more = np.zeros(len(self.needed), np.intp)
        for stratum in range(self.count):
            of = np.flatnonzero(self.strata == stratum)
            lacking = np.ceil(self.needed[of].sum() - _ROUNDING) - labelled[of].sum()
            wanting = max(int(np.ceil(lacking - _ROUNDING)), 0)
            traffic = self.patterns.traffic[of]
            more[of] = rng.multinomial(wanting, traffic / traffic.sum())
        separate = self.wanted * int(np.count_nonzero(self.patterns.sizes()))
        return PatternPlan(more, separate)

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

    Raises:
        ValueError: wanted is below 1.
    """
    if wanted < 1:
        raise ValueError("a member is to have one label at least")
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
