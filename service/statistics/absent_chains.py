"""Chains of Metropolis steps of the model of `absent_answers`, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.balance_heuristic import sums

CHAINS: Final = 20  # even: in every other one, unclear items are correct
DEGREES: Final = 4
_SLOPE: Final = (0.5, 1.0)  # mean and standard deviation of the prior
_SCALE: Final = 0.7  # of the prior of the scales: half of a t distribution with 3 degrees of freedom
_UNLIKE: Final = 0.5  # standard deviation of the log of the scale of a factor whose levels may differ
_WANTED: Final = 0.44  # share of steps that are accepted (Roberts and Rosenthal, Statistical Science 2001)
_TINY: Final = 1e-12
_TAIL: Final = 1.96  # standard deviations within which 95% are


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

    def may_all_be(self, accuracy: int) -> bool:
        """Whether the answers agree with it that all items without a self-selected label are like that.

        Then an interval of 95% contains 0, or 1. Those that have no such label for sure are all alike.
        """
        answers = self.correct + self.incorrect
        rate = np.clip(self.right + accuracy * self.absent, 0.0, 1.0)
        expected = np.atleast_2d(rate) @ answers
        spread = expected.var() + (np.atleast_2d(rate * (1 - rate)) @ answers).mean()
        certain = np.atleast_2d(self.absent == 1).all(axis=0)
        others = self.incorrect if accuracy else self.correct
        distance = abs(float(self.correct.sum() - expected.mean()))
        return not others[certain].any() and distance <= _TAIL * float(np.sqrt(spread)) + _TINY


class Chains:
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
    return np.asarray(-(DEGREES + 1) / 2 * np.log1p(values**2 / DEGREES), np.float64)
