"""Certificates: evidence that every group of a grouping meets its target; bets learn from all groups.

For every group an e-process tests "labels agree with at most a share t of its predictions". Before each
label a share q >= t is predicted. Then evidence is multiplied by q / t if the label agrees, else by (1 - q)
/ (1 - t). That is at most 1 on average if the group misses the target, whatever q is, as long as it is
chosen before the label is seen (Shafer, JRSS A 2021). So q may be learned from earlier labels of *all*
groups: it is the predictive probability of a hierarchical model, in which the Beta distribution of
accuracies is learned, too (empirical Bayes: Robbins 1956; Efron and Morris, JASA 1975). A group that misses
its target keeps the lowest of all e-values below 1 / alpha with probability 1 - alpha (Ville), so nothing
is corrected for the number of groups (intersection-union: Berger, Technometrics 1982).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.e_processes import log_arrival_weights, log_e_below

_SHIFTS: Final = (-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # of priors, from the target's logit
_STRENGTHS: Final = (10.0, 100.0, 1000.0)  # pseudo-labels of a prior: the more, the more alike groups are
_AT_ONCE: Final = 1 << 14  # labels per portion, which bounds the memory of intermediate arrays
_LEAST_GAIN: Final = 1e-12  # of a label, in nats, if a group is to reach any level


class Collected(NamedTuple):
    """What labels have shown in R runs of G groups; sums of an earlier and a later part add up."""

    labels: Floats  # [R, G]
    correct: Floats  # those that agree with the prediction [R, G]
    log_e: Floats  # log e-value against "the group misses the target" [R, G]
    fits: Floats  # log probability of all labels under every prior [R, K]

    def part(self, runs: Indices) -> Collected:
        """Of some runs."""
        return Collected(*(column[runs] for column in self))


@dataclass(frozen=True, eq=False)
class CertificateTest:
    """Tests whether labels agree with more than a share `target` of every group's predictions.

    It is in (0, 1 - 1e-6]: predictive probabilities are not exact enough for more. One target is of all
    groups; of several, each is of one group [G]. What the groups have in common is then how far they are
    above their targets.
    """

    target: Floats | float

    @cached_property
    def _priors(self) -> tuple[Floats, Floats]:
        """Beta priors of a group's share of labels that agree: agreeing pseudo-labels, and all [K].

        With several targets the former are [G, K].
        """
        shifts, strengths = np.array(list(product(_SHIFTS, _STRENGTHS))).T
        centres = special.logit(np.asarray(self.target, np.float64))[..., None] + shifts
        return strengths * special.expit(centres), strengths

    def _of_groups(self, groups: Indices, count: int) -> tuple[Floats, Floats]:
        """Agreeing pseudo-labels under every prior [n, K] or [K], and the target [n], of groups [n]."""
        target = np.broadcast_to(np.asarray(self.target, np.float64), count)[groups]
        right = self._priors[0]
        return right if right.ndim == 1 else right[groups], target

    def collected(self, labels: Floats, correct: Floats, log_e: Floats) -> Collected:
        """What is known after labels that are summed up; all are [R, G]."""
        right, all_ = self._priors
        wrong = all_ - right
        fits = special.betaln(right + correct[..., None], wrong + (labels - correct)[..., None])
        return Collected(labels, correct, log_e, (fits - special.betaln(right, wrong)).sum(axis=1))

    def advance(self, before: Collected, groups: Indices, correct: Flags) -> Collected:
        """Add labels: the group of each, and whether it agrees, in the order of evidence [R, n].

        The labels of one call or of several give the same result.
        """
        step = max(1, _AT_ONCE // len(groups))
        for begin in range(0, groups.shape[1], step):
            before = self._bet(before, groups[:, begin : begin + step], correct[:, begin : begin + step])
        return before

    def _bet(self, before: Collected, groups: Indices, correct: Flags) -> Collected:
        shape = before.labels.shape
        keys = (np.arange(len(groups))[:, None] * shape[1] + groups).ravel()
        agrees = correct.ravel()
        # How many labels of the same group come before each in this call, and how many of them agree.
        order = np.argsort(keys, kind="stable")
        firsts = np.searchsorted(keys[order], keys[order])
        agreeing: Ints = np.cumsum(agrees[order]) - agrees[order]
        labels, right = before.labels.ravel()[keys], before.correct.ravel()[keys]
        labels[order] += np.arange(len(keys)) - firsts
        right[order] += agreeing - agreeing[firsts]

        agreeing_before, target = self._of_groups(groups.ravel(), shape[1])
        chances = (agreeing_before + right[:, None]) / (self._priors[1] + labels[:, None])
        fits = np.where(agrees[:, None], np.log(chances), np.log1p(-chances)).reshape(*groups.shape, -1)
        after = before.fits[:, None] + np.cumsum(fits, axis=1)
        weights = special.softmax(after - fits, axis=2).reshape(chances.shape)
        bets = np.maximum((weights * chances).sum(axis=1), target)
        gains = np.where(agrees, np.log(bets / target), np.log((1 - bets) / (1 - target)))
        more_labels, more_correct, more_evidence = (
            np.bincount(keys, each, before.labels.size).reshape(shape)
            for each in (np.ones(len(keys)), agrees, gains)
        )
        return Collected(
            before.labels + more_labels,
            before.correct + more_correct,
            before.log_e + more_evidence,
            after[:, -1],
        )

    def expected(self, collected: Collected) -> Floats:
        """Probability that the next label of every group agrees with the prediction [R, G]."""
        right, all_ = self._priors
        chances = (right + collected.correct[..., None]) / (all_ + collected.labels[..., None])
        weights = special.softmax(collected.fits, axis=1)
        return np.asarray(np.einsum("rgk,rk->rg", chances, weights), np.float64)

    def labels_left(self, collected: Collected, alpha: float) -> Floats:
        """Labels that every group still lacks, on average, until its e-value is 1 / alpha [R, G].

        What is missing over the gain of a label, the Kullback-Leibler divergence of the expected share from
        the target (Wald, Sequential Analysis, 1947). Infinite for groups that are not expected to meet it.
        """
        share, missing = self.expected(collected), -np.log(alpha) - collected.log_e
        gain = special.rel_entr(share, self.target) + special.rel_entr(1 - share, 1 - self.target)
        likely = (share > self.target) & (gain > _LEAST_GAIN)
        left = np.where(likely, missing / np.where(likely, gain, 1.0), np.inf)
        return np.where(missing > 0, np.maximum(np.ceil(left), 1.0), 0.0)


class RunningCertificates:
    """The certificates of R independent runs of G groups, label by label."""

    def __init__(self, runs: int, groups: int, *, target: float, alpha: float) -> None:
        self._test, self._alpha = CertificateTest(target), alpha
        self.collected = self._test.collected(*np.zeros((3, runs, groups)))

    @property
    def is_given(self) -> Flags:
        """Whether the e-value of every group has reached 1 / alpha [R]."""
        given: Flags = (self.collected.log_e >= -np.log(self._alpha)).all(axis=1)
        return given

    @property
    def is_missed(self) -> Flags:
        """Whether a group is confirmed to be below the target, were this the only kind of evidence [R]."""
        right, labels = self.collected.correct, self.collected.labels
        evidence = log_e_below(right, labels - right, np.full(right.shape, self._test.target))
        shares = log_arrival_weights(np.arange(1, right.shape[1] + 1))
        return np.asarray((evidence + shares >= -np.log(self._alpha)).any(axis=1), np.bool_)

    def observe(self, runs: Indices, groups: Indices, correct: Flags) -> None:
        """Add a label of a group in some distinct runs [n]."""
        more = self._test.advance(self.collected.part(runs), groups[:, None], correct[:, None])
        for column, new in zip(self.collected, more, strict=True):
            column[runs] = new

    def labels_left(self) -> Floats:
        """Labels that every group still lacks [R, G]."""
        return self._test.labels_left(self.collected, self._alpha)
