"""Accuracy of items without a self-selected label, learned from those of them that were requested.

Items with a label are no random sample. Of the others some are requested, and these are one, within the
groups that they are requested by: subsampling of non-respondents (Hansen and Hurwitz, JASA 1946). The log
odds that such a prediction is correct are

    a + b x + sum over factors f of u_f,level,

with x the log odds of its score, and deviations u of the levels of every factor, such as its region and its
score bin. They have t distributions with 4 degrees of freedom and an unknown scale for each factor. That of
a factor whose levels may differ a lot is about 1, so that a level unlike all others is seen as such. The
prior of a is that of Jeffreys for a share (Beta(1/2, 1/2)), so without any request the share may be anything.
As every level has a deviation, the model agrees with the rate of each level that has many requests, however
wrong it is otherwise.

Of some requested items it is not known whether they have a self-selected label. Such a prediction is correct
with the probability c + s p, where s is the share of items like it without such a label, p their accuracy,
and c the share of items with such a label that is correct. So all requests count, and estimates are not worse
than without the self-selected labels.

Chains of Metropolis steps run side by side, all with the same random numbers for the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.absent_chains import DEGREES, AnsweredItems, Chains

_WARM_UP, _KEPT, _BETWEEN = 150, 50, 2  # sweeps


class Strata(NamedTuple):
    """Strata of items that are alike [S]."""

    scores: Floats  # log odds of the score
    levels: Indices  # of every factor [F, S]
    differ: Flags  # whether levels of a factor may differ a lot [F]

    def part(self, which: Flags) -> Strata:
        """Some of the strata."""
        return Strata(self.scores[which], self.levels[:, which], self.differ)


@dataclass(frozen=True)
class AccuracyDraws:
    """Draws of the parameters [D]; every other one is as if unclear items were correct."""

    intercept: Floats
    slope: Floats
    known: Sequence[Indices]  # levels of every factor that have been seen, ascending [F][L]
    deviations: Sequence[Floats]  # of these levels [F][D, L]
    scales: Floats  # of every factor [D, F]
    centre: float  # log odds of the score at which the intercept is the log odds

    def accuracies(self, scores: Floats, levels: Indices) -> Floats:
        """Probability that predictions of some strata are correct, for every draw [D, S]."""
        found = self.intercept[:, None] + self.slope[:, None] * (scores - self.centre)
        for factor, (known, deviations) in enumerate(zip(self.known, self.deviations, strict=True)):
            of_strata, numbers = np.unique(levels[factor], return_inverse=True)
            # Of a level that nothing is known of, from the prior.
            fresh = np.random.default_rng(factor).standard_t(DEGREES, (len(of_strata), len(self.intercept)))
            values = fresh.T * self.scales[:, factor, None]
            _, here, there = np.intersect1d(of_strata, known, assume_unique=True, return_indices=True)
            values[:, here] = deviations[:, there]
            found += values[:, numbers.ravel()]
        return np.asarray(special.expit(found), np.float64)


def draw_accuracies(items: AnsweredItems, seed: int = 0, *, kept_sweeps: int = _KEPT) -> AccuracyDraws:
    """Learn from requested items.

    It takes a fifth of a second with few strata, and several seconds with 5,000. What
    other data said is no start: else estimates would depend on when a process was started.
    """
    chains = Chains(items, np.random.default_rng(seed))
    for _ in range(_WARM_UP):
        chains.sweep()
        chains.adapt()
    kept = []
    for _ in range(kept_sweeps):
        for _ in range(_BETWEEN):
            chains.sweep()
        kept.append((chains.intercept.copy(), chains.slope.copy(), chains.log_scales.copy(), chains.copies()))
    intercept, slope, log_scales = (np.concatenate([each[place] for each in kept]) for place in range(3))
    deviations = [np.concatenate([each[3][f] for each in kept]) for f in range(len(chains.known))]
    return AccuracyDraws(intercept, slope, chains.known, deviations, np.exp(log_scales), chains.centre)


def draw_shares(strata: Strata, counts: Floats, others: Floats, seed: int) -> Floats:
    """Posterior draws of a share in every stratum, one for every chain [C, S], by the same model.

    The share is of some items in these, and `others` [S].
    """
    some = counts + others > 0
    none = np.zeros(int(np.count_nonzero(some)))
    items = AnsweredItems(*strata.part(some), none + 1, none, counts[some], others[some], none)
    return draw_accuracies(items, seed, kept_sweeps=1).accuracies(strata.scores, strata.levels)


def stratified(draws: Floats, weights: Floats, count: int) -> Floats:
    """A few draws [count, S] that stand for all [D, S].

    They are the quantiles of the weighted mean over strata, and of every stratum: each value is replaced by
    that quantile which has its rank. So the mixture of a few posteriors has tails that are right.
    """
    places = ((np.arange(count) + 0.5) / count * len(draws)).astype(np.intp)
    chosen = draws[np.argsort(draws @ weights, kind="stable")[places]]
    ranks = np.argsort(np.argsort(chosen, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(np.take_along_axis(np.sort(draws, axis=0)[places], ranks, axis=0), np.float64)
