"""The accuracy of strata of items, as a part of a Markov chain: what is expected of it, and how it moves.

Strata are alike in nothing (uniform priors), or they share a calibration curve from which groups of them
deviate, as in `curves.py`: if s is the mean score of a stratum of group g,

    logit accuracy = c + a + b (logit s - c) + u_g,   u_g / sigma ~ t3,

with c about the mean of logit s. So one group may differ from all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices

_ENDS: Final = 1e-6  # accuracies are at least so far from 0 and 1
_START: Final = 0.8
_MEANS: Final = np.array([-0.5, 1.0, -0.9])  # of a, b and log sigma
_DEVIATIONS: Final = np.array([1.75, 0.5, 0.8])
_TAIL: Final = 3.0  # degrees of freedom of the deviations of groups
_MOVES: Final = 4  # steps of curve and groups in a sweep; they are cheap
_SIZES: Final = (0.1, 0.3, 1.0)  # of steps, in turn by chance


@dataclass(frozen=True)
class Accuracies:
    """Where a chain stands."""

    strata: Floats  # accuracy of every stratum [strata]
    curve: Floats  # a, b and log sigma [3]
    groups: Floats  # deviation of every group [groups]


class AccuracyModel(Protocol):
    """What is expected of accuracies."""

    @property
    def strata_count(self) -> int:
        """Number of strata; 0 if those that have items are all."""

    def start(self, count: int) -> Accuracies:
        """Where a chain may begin, with so many strata."""

    def log_prior(self, accuracies: Accuracies) -> float:
        """What changes of the log density when all accuracies are shifted."""

    def shifted(self, accuracies: Accuracies, step: float) -> tuple[Accuracies, float]:
        """All logits moved by one step, and the log of the change of volume."""

    def moved(
        self, accuracies: Accuracies, right: Indices, total: Indices, rng: np.random.Generator
    ) -> Accuracies:
        """The next state, given how many of all predictions of every stratum are correct [strata]."""


class UniformAccuracy:
    """Every stratum has a uniform prior."""

    strata_count: int = 0

    def start(self, count: int) -> Accuracies:
        """See `AccuracyModel`."""
        return Accuracies(np.full(count, _START), _MEANS, np.zeros(0))

    def log_prior(self, accuracies: Accuracies) -> float:  # noqa: ARG002 - all accuracies are equally probable
        """See `AccuracyModel`."""
        return 0.0

    def shifted(self, accuracies: Accuracies, step: float) -> tuple[Accuracies, float]:
        """See `AccuracyModel`."""
        strata = _clipped(special.expit(special.logit(accuracies.strata) + step))
        return replace(accuracies, strata=strata), _log_slope(strata) - _log_slope(accuracies.strata)

    def moved(
        self, accuracies: Accuracies, right: Indices, total: Indices, rng: np.random.Generator
    ) -> Accuracies:
        """See `AccuracyModel`."""
        return replace(accuracies, strata=_clipped(rng.beta(1 + right, 1 + total - right)))


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

    def at(self, curve: Floats, groups: Floats) -> Accuracies:
        """Accuracies by a curve [3] and deviations of groups [groups]."""
        return Accuracies(self._strata(curve, groups), curve, groups)

    def start(self, count: int) -> Accuracies:  # noqa: ARG002 - the strata are known
        """See `AccuracyModel`."""
        return self.at(_MEANS, np.zeros(self.group_count))

    def log_prior(self, accuracies: Accuracies) -> float:
        """See `AccuracyModel`."""
        return _log_normal(accuracies.curve)

    def shifted(self, accuracies: Accuracies, step: float) -> tuple[Accuracies, float]:
        """See `AccuracyModel`."""
        return self.at(accuracies.curve + step * np.array([1.0, 0.0, 0.0]), accuracies.groups), 0.0

    def moved(
        self, accuracies: Accuracies, right: Indices, total: Indices, rng: np.random.Generator
    ) -> Accuracies:
        """See `AccuracyModel`."""
        curve, groups = accuracies.curve, accuracies.groups
        for _ in range(_MOVES):
            proposed = groups + rng.normal(size=len(groups)) * rng.choice(_SIZES, len(groups))
            now, after = (self._of_groups(curve, each, right, total) for each in (groups, proposed))
            groups = np.where(np.log(rng.random(len(groups))) < after - now, proposed, groups)
            changed = curve.copy()
            changed[rng.integers(3)] += rng.normal() * rng.choice(_SIZES)
            of_changed, of_curve = (
                float(self._of_groups(each, groups, right, total).sum()) + _log_normal(each)
                for each in (changed, curve)
            )
            if np.log(rng.random()) < of_changed - of_curve:
                curve = changed
        return self.at(curve, groups)

    def _strata(self, curve: Floats, groups: Floats) -> Floats:
        logits = self.centre + curve[0] + curve[1] * (self.scores - self.centre) + groups[self.groups]
        return _clipped(special.expit(logits))

    def _of_groups(self, curve: Floats, groups: Floats, right: Indices, total: Indices) -> Floats:
        """Log density of every group and its labels [groups]."""
        strata = self._strata(curve, groups)
        logs = right * np.log(strata) + (total - right) * np.log1p(-strata)
        deviations = groups * np.exp(-curve[2])
        of_prior = -0.5 * (_TAIL + 1) * np.log1p(deviations**2 / _TAIL) - curve[2]
        return np.asarray(np.bincount(self.groups, logs, self.group_count) + of_prior, np.float64)


def _clipped(accuracy: Floats) -> Floats:
    return np.clip(accuracy, _ENDS, 1 - _ENDS)


def _log_normal(curve: Floats) -> float:
    return float(-0.5 * (((curve - _MEANS) / _DEVIATIONS) ** 2).sum())


def _log_slope(shares: Floats) -> float:
    """Sum of the log derivatives of expit."""
    return float((np.log(shares) + np.log1p(-shares)).sum())
