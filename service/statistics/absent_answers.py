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
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.balance_heuristic import sums

CHAINS: Final = 20  # even: in every other one, unclear items are correct
_WARM_UP, _KEPT, _BETWEEN = 150, 50, 2  # sweeps
_SLOPE: Final = (0.5, 1.0)  # mean and standard deviation of the prior
_SCALE: Final = 0.7  # of the prior of the scales: half of a t distribution with 3 degrees of freedom
_UNLIKE: Final = 0.5  # standard deviation of the log of the scale of a factor whose levels may differ
_DEGREES: Final = 4
_TINY: Final = 1e-12
_REMEMBERED: Final = 12  # results, of rounds and of estimates for earlier times
_WANTED: Final = 0.44  # share of steps that are accepted (Roberts and Rosenthal, Statistical Science 2001)


class Strata(NamedTuple):
    """Strata of items that are alike [S]."""

    scores: Floats  # log odds of the score
    levels: Indices  # of every factor [F, S]
    differ: Flags  # whether levels of a factor may differ a lot [F]

    def part(self, which: Flags) -> Strata:
        """Some of the strata."""
        return Strata(self.scores[which], self.levels[:, which], self.differ)


@dataclass(frozen=True)
class AnsweredItems:
    """Requested items by strata of equal ones [S]."""

    scores: Floats  # of the strata, as in `Strata`
    levels: Indices
    differ: Flags
    # share of items like these without a self-selected label, and share with one that is correct; in every
    # chain, if they are estimates [C, S] or [S]
    absent: Floats
    right: Floats
    correct: Floats  # how many predictions are correct
    incorrect: Floats
    unclear: Floats  # requested items that may be either


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
            fresh = np.random.default_rng(factor).standard_t(_DEGREES, (len(of_strata), len(self.intercept)))
            values = fresh.T * self.scales[:, factor, None]
            _, here, there = np.intersect1d(of_strata, known, assume_unique=True, return_indices=True)
            values[:, here] = deviations[:, there]
            found += values[:, numbers.ravel()]
        return np.asarray(special.expit(found), np.float64)


def draw_accuracies(items: AnsweredItems, seed: int = 0) -> AccuracyDraws:
    """Learn from requested items; a fifth of a second."""
    chains = _Chains(items, np.random.default_rng(seed))
    for _ in range(_WARM_UP):
        chains.sweep()
        chains.adapt()
    kept = []
    for _ in range(_KEPT):
        for _ in range(_BETWEEN):
            chains.sweep()
        kept.append((chains.intercept.copy(), chains.slope.copy(), chains.log_scales.copy(), chains.copies()))
    intercept, slope, log_scales = (np.concatenate([each[place] for each in kept]) for place in range(3))
    deviations = [np.concatenate([each[3][f] for each in kept]) for f in range(len(chains.known))]
    return AccuracyDraws(intercept, slope, chains.known, deviations, np.exp(log_scales), chains.centre)


class AbsentMemory:
    """Cache of what was learned from the same items, which does not affect it."""

    def __init__(self) -> None:
        self._known: dict[bytes, AccuracyDraws] = {}

    def learned(self, items: AnsweredItems, seed: int = 0) -> AccuracyDraws:
        """What these items say."""
        key = bytes([seed]) + b"".join(np.ascontiguousarray(each).tobytes() for each in vars(items).values())
        found = self._known.pop(key, None) or draw_accuracies(items, seed)
        self._known[key] = found
        for old in list(self._known)[:-_REMEMBERED]:
            del self._known[old]
        return found

    def shares(self, strata: Strata, counts: Floats, others: Floats, seed: int) -> Floats:
        """Posterior draws of a share in every stratum, one for every chain [C, S], by the same model.

        The share is of some items in these, and `others` [S].
        """
        some = counts + others > 0
        none = np.zeros(int(np.count_nonzero(some)))
        items = AnsweredItems(*strata.part(some), none + 1, none, counts[some], others[some], none)
        return self.learned(items, seed).accuracies(strata.scores, strata.levels)[-CHAINS:]


class _Chains:
    """Chains [C] of states of the parameters."""

    def __init__(self, items: AnsweredItems, rng: np.random.Generator) -> None:
        self._rng = rng
        self._trials = items.correct + items.incorrect + items.unclear
        odd = (np.arange(CHAINS) % 2)[:, None]
        self._correct = items.correct + odd * items.unclear  # [C, S]
        total = float(self._trials.sum())
        self.centre = float(items.scores @ self._trials / total) if total > 0 else 0.0
        self._scores = items.scores - self.centre
        self._absent, self._right = items.absent, items.right
        self._differ = items.differ
        seen = [np.unique(levels, return_inverse=True) for levels in items.levels]
        self.known = [levels for levels, _ in seen]
        self._numbers = [numbers.ravel() for _, numbers in seen]
        rate = (self._correct.sum(axis=1) + 0.5) / (total + 1)
        self.intercept = special.logit(rate) + 0.3 * rng.standard_normal(CHAINS)
        if total == 0:
            self.intercept = special.logit(np.clip(rng.beta(0.5, 0.5, CHAINS), 1e-9, 1 - 1e-9))
        self.slope = _SLOPE[0] + 0.3 * rng.standard_normal(CHAINS)
        self.log_scales = np.log(0.5) + 0.5 * rng.standard_normal((CHAINS, len(self.known)))
        self.deviations = [0.3 * rng.standard_normal((CHAINS, len(levels))) for levels in self.known]
        self._steps: dict[str, Floats] = {}
        self._accepted: dict[str, Floats] = {}
        self._adapted = 0
        self._odds = self._log_odds()
        self._likely = self._likelihood(self._odds)

    def copies(self) -> list[Floats]:
        """The deviations now."""
        return [each.copy() for each in self.deviations]

    def _log_odds(self) -> Floats:
        found = self.intercept[:, None] + self.slope[:, None] * self._scores
        for deviations, numbers in zip(self.deviations, self._numbers, strict=True):
            found = found + deviations[:, numbers]
        return np.asarray(found, np.float64)

    def _likelihood(self, odds: Floats) -> Floats:
        """Log likelihood of every stratum [C, S]."""
        rate = np.clip(self._right + self._absent * special.expit(odds), _TINY, 1 - _TINY)
        found = self._correct * np.log(rate) + (self._trials - self._correct) * np.log1p(-rate)
        return np.asarray(found, np.float64)

    def _move(self, accepted: Flags, odds: Floats, likely: Floats) -> None:
        """Go to other log odds where they are accepted [C, 1] or [C, S]."""
        self._odds = np.where(accepted, odds, self._odds)
        self._likely = np.where(accepted, likely, self._likely)

    def sweep(self) -> None:
        """Try a step of every parameter."""
        self._step_intercept()
        self._step_slope()
        for factor in range(len(self.known)):
            self._step_deviations(factor)
            self._step_shift(factor)
            self._step_scale(factor)
            self._step_spread(factor)

    def adapt(self) -> None:
        """Let steps be accepted as often as is best."""
        self._adapted += 1
        for name, accepted in self._accepted.items():
            self._steps[name] = self._steps[name] * np.exp((accepted - _WANTED) / np.sqrt(self._adapted))

    def _proposed(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A random step; its size is the same in all chains."""
        size = self._steps.setdefault(name, np.full(shape[1:], 0.5))
        return np.asarray(self._rng.standard_normal(shape) * size, np.float64)

    def _accept(self, name: str, gain: Floats) -> Flags:
        accepted: Flags = np.log(self._rng.random(gain.shape)) < gain
        self._accepted[name] = accepted.mean(axis=0)
        return accepted

    def _log_scale(self, log_scales: Floats, factor: int) -> Floats:
        """Log density of the prior of the logarithm of a scale."""
        found = log_scales - 2 * np.log1p(np.exp(2 * log_scales) / (3 * _SCALE**2))
        if self._differ[factor]:
            found = -((log_scales / _UNLIKE) ** 2) / 2
        return np.asarray(found, np.float64)

    def _step_intercept(self) -> None:
        step = self._proposed("intercept", (CHAINS,))
        likely = self._likelihood(odds := self._odds + step[:, None])
        gain = (likely - self._likely).sum(axis=1)
        gain += _log_jeffreys(self.intercept + step) - _log_jeffreys(self.intercept)
        accepted = self._accept("intercept", gain)
        self.intercept = np.where(accepted, self.intercept + step, self.intercept)
        self._move(accepted[:, None], odds, likely)

    def _step_slope(self) -> None:
        step, (mean, spread) = self._proposed("slope", (CHAINS,)), _SLOPE
        likely = self._likelihood(odds := self._odds + step[:, None] * self._scores)
        gain = (likely - self._likely).sum(axis=1)
        gain -= ((self.slope + step - mean) ** 2 - (self.slope - mean) ** 2) / (2 * spread**2)
        accepted = self._accept("slope", gain)
        self.slope = np.where(accepted, self.slope + step, self.slope)
        self._move(accepted[:, None], odds, likely)

    def _step_deviations(self, factor: int) -> None:
        """A step of all levels of a factor at once: each is accepted by itself."""
        now, numbers = self.deviations[factor], self._numbers[factor]
        step = self._proposed(f"deviations {factor}", now.shape)
        likely = self._likelihood(odds := self._odds + step[:, numbers])
        places = numbers + now.shape[1] * np.arange(CHAINS)[:, None]
        likelier = sums(places.ravel(), (likely - self._likely).ravel(), now.size).reshape(now.shape)
        scales = np.exp(self.log_scales[:, factor, None])
        gain = likelier + _log_t((now + step) / scales) - _log_t(now / scales)
        accepted = self._accept(f"deviations {factor}", gain)
        self.deviations[factor] = np.where(accepted, now + step, now)
        self._move(accepted[:, numbers], odds, likely)

    def _step_shift(self, factor: int) -> None:
        """Shift the intercept, and all levels the other way: the log odds stay."""
        step, now = self._proposed(f"shift {factor}", (CHAINS,)), self.deviations[factor]
        scales = np.exp(self.log_scales[:, factor, None])
        gain = (_log_t((now - step[:, None]) / scales) - _log_t(now / scales)).sum(axis=1)
        gain += _log_jeffreys(self.intercept + step) - _log_jeffreys(self.intercept)
        accepted = self._accept(f"shift {factor}", gain)
        self.intercept = np.where(accepted, self.intercept + step, self.intercept)
        self.deviations[factor] = np.where(accepted[:, None], now - step[:, None], now)

    def _step_scale(self, factor: int) -> None:
        """Another scale of the same deviations."""
        step, now = self._proposed(f"scale {factor}", (CHAINS,)), self.log_scales[:, factor]
        deviations, then = self.deviations[factor], now + step
        gain = (_log_t(deviations / np.exp(then)[:, None]) - _log_t(deviations / np.exp(now)[:, None])).sum(
            axis=1
        ) - step * deviations.shape[1]
        gain += self._log_scale(then, factor) - self._log_scale(now, factor)
        accepted = self._accept(f"scale {factor}", gain)
        self.log_scales[:, factor] = np.where(accepted, then, now)

    def _step_spread(self, factor: int) -> None:
        """Another scale, with which the deviations grow."""
        step, now = self._proposed(f"spread {factor}", (CHAINS,)), self.log_scales[:, factor]
        deviations = self.deviations[factor]
        wider = deviations * np.exp(step)[:, None]
        likely = self._likelihood(odds := self._odds + (wider - deviations)[:, self._numbers[factor]])
        gain = (likely - self._likely).sum(axis=1)
        gain += self._log_scale(now + step, factor) - self._log_scale(now, factor)
        accepted = self._accept(f"spread {factor}", gain)
        self.log_scales[:, factor] = np.where(accepted, now + step, now)
        self.deviations[factor] = np.where(accepted[:, None], wider, deviations)
        self._move(accepted[:, None], odds, likely)


def _log_jeffreys(odds: Floats) -> Floats:
    """Of the log odds of a share with the density of Beta(1/2, 1/2)."""
    return np.asarray(-(np.logaddexp(0.0, odds) + np.logaddexp(0.0, -odds)) / 2, np.float64)


def _log_t(values: Floats) -> Floats:
    return np.asarray(-(_DEGREES + 1) / 2 * np.log1p(values**2 / _DEGREES), np.float64)


def stratified(draws: Floats, weights: Floats, count: int) -> Floats:
    """A few draws [count, S] that stand for all [D, S].

    They are the quantiles of the weighted mean over strata, and of every stratum: each value is replaced by
    that quantile which has its rank. So the mixture of a few posteriors has tails that are right.
    """
    places = ((np.arange(count) + 0.5) / count * len(draws)).astype(np.intp)
    chosen = draws[np.argsort(draws @ weights, kind="stable")[places]]
    ranks = np.argsort(np.argsort(chosen, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(np.take_along_axis(np.sort(draws, axis=0)[places], ranks, axis=0), np.float64)
