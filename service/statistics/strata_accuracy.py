"""The accuracy of strata of items, as a part of a Markov chain: what is expected of it, and how it moves.

Strata are alike in nothing (uniform priors), or they share a calibration curve from which groups of them
deviate, as in `curves.py`: if s is the mean score of a stratum of group g,

    logit accuracy = c + a + b (logit s - c) + u_g + v_s,   u_g / sigma ~ t3,   2 v_s / sigma ~ t3,

with c about the mean of logit s. So one group may differ from all others, also in how its accuracy depends on
the score. Without v_s, groups of one slope would say how often people err: if the labels of a group do not
depend on the score, wrong labels would explain that (the robustness of heavy tails: O'Hagan, JRSS B 1979).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_ENDS: Final = 1e-6  # accuracies are at least so far from 0 and 1
START_ACCURACY: Final = 0.8  # a usual one
_MEANS: Final = np.array([-0.5, 1.0, -0.9])  # of a, b and log sigma
_DEVIATIONS: Final = np.array([1.75, 0.5, 0.8])
_SCALE: Final = 2  # place of log sigma
_TAIL: Final = 3.0  # degrees of freedom of the deviations of groups
_LOG_TWO: Final = float(np.log(2))
_MOVES: Final = 4  # steps of curve and groups in a sweep; they are cheap
_SIZES: Final = np.array([0.1, 0.3, 1.0])  # of steps, in turn by chance


@dataclass(frozen=True)
class Accuracies:
    """Where a chain stands."""

    strata: Floats  # accuracy of every stratum [strata]
    curve: Floats  # a, b and log sigma [3]
    groups: Floats  # deviation of every group [groups]
    own: Floats  # deviation of every stratum from its group [strata]


class ItemEvidence(NamedTuple):
    """What answers say of the items [N] of the strata, apart from the strata's accuracies."""

    strata: Indices  # of every item
    logits: Floats  # log P(answers) if the prediction is correct, less that if it is wrong
    # P(answers), divided by the higher of the two: if the prediction is wrong, and how much higher it is if
    # the prediction is correct
    wrong: Floats
    gains: Floats

    @classmethod
    def of(cls, strata: Indices, wrong: Floats, correct: Floats) -> ItemEvidence:
        """From log P(answers) if the prediction is wrong, and if it is correct."""
        highest = np.maximum(wrong, correct)
        if_wrong = np.exp(wrong - highest)
        return cls(strata, correct - wrong, if_wrong, np.exp(correct - highest) - if_wrong)

    def of_strata(self, accuracy: Floats) -> Floats:
        """Log P(answers) of every stratum by its accuracy, with correctness integrated out [strata].

        But for a constant of every stratum, as only differences count.
        """
        logs = np.log(self.wrong + self.gains * accuracy[self.strata])
        return np.asarray(np.bincount(self.strata, logs, len(accuracy)), np.float64)

    def draw_correct(self, accuracy: Floats, rng: np.random.Generator) -> Flags:
        """Whether every prediction is correct, drawn given the accuracies of strata [N]."""
        logits = special.logit(accuracy)[self.strata] + self.logits
        correct: Flags = rng.random(len(logits)) < special.expit(logits)
        return correct


class AccuracyModel(Protocol):
    """What is expected of accuracies."""

    @property
    def strata_count(self) -> int:
        """Number of strata; 0 if those that have items are all."""

    def start(self, count: int) -> Accuracies:
        """Where a chain may begin, with so many strata."""

    def log_prior(self, accuracies: Accuracies) -> float:
        """What changes of the log density when all accuracies are shifted."""

    def level(self, accuracies: Accuracies) -> float:
        """What a step of all logits shifts."""

    def parts(self, accuracies: Accuracies) -> Floats:
        """Logits of what may be shifted apart from all others [parts]."""

    def shifted(self, accuracies: Accuracies, step: float, apart: Floats) -> tuple[Accuracies, float]:
        """All logits moved by one step, and parts by their own; and the log of the change of volume."""

    def moved(self, accuracies: Accuracies, evidence: ItemEvidence, rng: np.random.Generator) -> Accuracies:
        """The next state, given all else but which predictions are correct."""


class UniformAccuracy:
    """Every stratum has a uniform prior."""

    strata_count: int = 0

    def start(self, count: int) -> Accuracies:
        """See `AccuracyModel`."""
        return Accuracies(np.full(count, START_ACCURACY), _MEANS, np.zeros(0), np.zeros(0))

    def log_prior(self, accuracies: Accuracies) -> float:  # noqa: ARG002 - all accuracies are equally probable
        """See `AccuracyModel`."""
        return 0.0

    def level(self, accuracies: Accuracies) -> float:
        """See `AccuracyModel`."""
        return float(special.logit(accuracies.strata).mean())

    def parts(self, accuracies: Accuracies) -> Floats:
        """See `AccuracyModel`."""
        logits = special.logit(accuracies.strata)
        return np.asarray(logits - logits.mean(), np.float64)

    def shifted(self, accuracies: Accuracies, step: float, apart: Floats) -> tuple[Accuracies, float]:
        """See `AccuracyModel`."""
        strata = _clipped(special.expit(special.logit(accuracies.strata) + step + apart))
        return replace(accuracies, strata=strata), _log_slope(strata) - _log_slope(accuracies.strata)

    def moved(self, accuracies: Accuracies, evidence: ItemEvidence, rng: np.random.Generator) -> Accuracies:
        """See `AccuracyModel`."""
        count = len(accuracies.strata)
        correct = evidence.draw_correct(accuracies.strata, rng)
        right = np.bincount(evidence.strata[correct], minlength=count)
        wrong = np.bincount(evidence.strata[~correct], minlength=count)
        return replace(accuracies, strata=_clipped(rng.beta(1 + right, 1 + wrong)))


@dataclass(frozen=True)
class CurvedAccuracy:
    """Strata share a calibration curve, from which groups of them deviate."""

    scores: Floats  # logit of the mean score of every stratum [strata]
    groups: Indices  # group of every stratum [strata]
    group_count: int
    centre: float  # c

    @property
    def strata_count(self) -> int:
        """See `AccuracyModel`."""
        return len(self.scores)

    def at(self, curve: Floats, groups: Floats, own: Floats) -> Accuracies:
        """Accuracies by a curve [3] and deviations of groups [groups] and strata [strata]."""
        return Accuracies(self._strata(curve, groups, own), curve, groups, own)

    def start(self, count: int) -> Accuracies:  # noqa: ARG002 - the strata are known
        """See `AccuracyModel`."""
        return self.at(_MEANS, np.zeros(self.group_count), np.zeros(self.strata_count))

    def log_prior(self, accuracies: Accuracies) -> float:
        """See `AccuracyModel`."""
        curve = accuracies.curve
        own = _log_t(accuracies.own, curve[2] - _LOG_TWO).sum()
        return _log_normal(curve) + float(_log_t(accuracies.groups, curve[2]).sum() + own)

    def level(self, accuracies: Accuracies) -> float:
        """See `AccuracyModel`."""
        return float(accuracies.curve[0])

    def parts(self, accuracies: Accuracies) -> Floats:
        """See `AccuracyModel`."""
        return accuracies.groups

    def shifted(self, accuracies: Accuracies, step: float, apart: Floats) -> tuple[Accuracies, float]:
        """See `AccuracyModel`."""
        curve = accuracies.curve + step * np.array([1.0, 0.0, 0.0])
        return self.at(curve, accuracies.groups + apart, accuracies.own), 0.0

    def moved(self, accuracies: Accuracies, evidence: ItemEvidence, rng: np.random.Generator) -> Accuracies:
        """See `AccuracyModel`.

        Correctness is integrated out: given which predictions are correct, accuracies could hardly move where
        the answers say little of it (Liu, JASA 1994, of collapsed samplers).
        """
        curve, groups, own = accuracies.curve, accuracies.groups, accuracies.own
        # Steps of strata, groups and curve are drawn all at once, which is quicker.
        count, shape = len(own), (_MOVES, len(own) + len(groups) + 1)
        steps = rng.normal(size=shape) * _SIZES[rng.integers(len(_SIZES), size=shape)]
        bounds, which = np.log(rng.random(shape)), rng.integers(len(curve), size=_MOVES)
        # What did not move is not computed again.
        of_items = evidence.of_strata(self._strata(curve, groups, own))
        of_own, of_groups = _log_t(own, curve[2] - _LOG_TWO), _log_t(groups, curve[2])
        for step, bound, part in zip(steps, bounds, which.tolist(), strict=True):
            proposed = own + step[:count]
            after, of_proposed = (
                evidence.of_strata(self._strata(curve, groups, proposed)),
                _log_t(proposed, curve[2] - _LOG_TWO),
            )
            is_taken = bound[:count] < (after + of_proposed) - (of_items + of_own)
            own, of_items = np.where(is_taken, proposed, own), np.where(is_taken, after, of_items)
            of_own = np.where(is_taken, of_proposed, of_own)
            proposed = groups + step[count:-1]
            after, of_proposed = (
                evidence.of_strata(self._strata(curve, proposed, own)),
                _log_t(proposed, curve[2]),
            )
            gains = self._by_group((after + of_own) - (of_items + of_own)) + of_proposed - of_groups
            is_taken = bound[count:-1] < gains
            groups, of_groups = (
                np.where(is_taken, proposed, groups),
                np.where(is_taken, of_proposed, of_groups),
            )
            of_items = np.where(is_taken[self.groups], after, of_items)
            changed = curve.copy()
            changed[part] += step[-1]
            # The scale is no part of the accuracies, and all there is to deviations.
            after, own_after, groups_after = (
                (of_items, _log_t(own, changed[2] - _LOG_TWO), _log_t(groups, changed[2]))
                if part == _SCALE
                else (evidence.of_strata(self._strata(changed, groups, own)), of_own, of_groups)
            )
            gain = ((after + own_after) - (of_items + of_own)).sum() + (groups_after - of_groups).sum()
            if bound[-1] < gain + _log_normal(changed) - _log_normal(curve):
                curve, of_items, of_own, of_groups = changed, after, own_after, groups_after
        return self.at(curve, groups, own)

    def _by_group(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.groups, values, self.group_count), np.float64)

    def _strata(self, curve: Floats, groups: Floats, own: Floats) -> Floats:
        logits = self.centre + curve[0] + curve[1] * self._from_centre + groups[self.groups] + own
        return _clipped(special.expit(logits))

    @cached_property
    def _from_centre(self) -> Floats:
        return self.scores - self.centre


def _clipped(accuracy: Floats) -> Floats:
    # Of few numbers, twice as fast as clip.
    return np.minimum(np.maximum(accuracy, _ENDS), 1 - _ENDS)


def _log_normal(curve: Floats) -> float:
    return float(-0.5 * (((curve - _MEANS) / _DEVIATIONS) ** 2).sum())


def _log_t(deviations: Floats, log_scale: float) -> Floats:
    """Log densities of t distributed deviations, but for a constant."""
    logs = -0.5 * (_TAIL + 1) * np.log1p((deviations * np.exp(-log_scale)) ** 2 / _TAIL) - log_scale
    return np.asarray(logs, np.float64)


def _log_slope(shares: Floats) -> float:
    """Sum of the log derivatives of expit."""
    return float((np.log(shares) + np.log1p(-shares)).sum())
