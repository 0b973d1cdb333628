"""Which threshold meets a target, with which probability, and what it costs.

Welinder, Welling and Perona, CVPR 2013, section 4.4: the probability that a condition such as "recall of at
least 0.9 and precision of at least 0.8" holds at a threshold is the share of the posterior's draws in which
it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.binary.performance import Performance
from service.statistics.estimate import Estimate


@dataclass(frozen=True)
class Target:
    """What a threshold has to reach; None is not required."""

    precision: float | None = None  # at least
    recall: float | None = None  # at least
    f1: float | None = None  # at least
    false_positive_rate: float | None = None  # at most

    def met(self, performance: Performance) -> Flags:
        """In which draws, at which thresholds [S, T]. What does not exist in a draw is not reached in it."""
        met = np.ones(performance.called.shape, np.bool_)
        for name in ("precision", "recall", "f1"):
            if (least := getattr(self, name)) is not None:
                met &= getattr(performance, name) >= least
        if self.precision is not None:
            met &= performance.called > 0
        if self.false_positive_rate is not None:
            met &= performance.false_positive_rate <= self.false_positive_rate
        return met


@dataclass(frozen=True)
class Costs:
    """Costs of errors, in a unit of one's own."""

    false_positive: float = 1.0
    false_negative: float = 1.0


@dataclass(frozen=True)
class ThresholdChoice:
    """How good every threshold is; arrays are [T]."""

    thresholds: Floats  # as in `Performance`
    probability: Floats  # that the target is met
    cost: Estimate  # per item
    f1: Floats  # expected
    best: int  # position of the threshold to take


def choose_threshold(
    performance: Performance, target: Target, costs: Costs | None = None, *, mass: float = 0.95
) -> ThresholdChoice:
    """The threshold that most probably meets the target; not the one that calls nothing positive.

    Among those that are indistinguishable, the cheapest if costs are given, and else the one of the highest
    expected F1. Thresholds are indistinguishable if their probabilities differ by less than the standard
    error of a share of the draws. Without costs, the reported cost counts 1 per error.
    """
    probability: Floats = target.met(performance).mean(axis=0)
    counted = Costs() if costs is None else costs
    wrong = performance.called - performance.right
    missed = performance.positives[:, None] - performance.right
    cost = (counted.false_positive * wrong + counted.false_negative * missed) / performance.items[:, None]
    f1 = np.nan_to_num(Estimate.of(performance.f1, mass).mean)
    highest = float(probability[:-1].max())
    error = np.sqrt(highest * (1 - highest) / len(performance.items))
    equal = np.flatnonzero(probability[:-1] >= highest - error)
    worth = f1[equal] if costs is None else -cost.mean(axis=0)[equal]
    return ThresholdChoice(
        thresholds=performance.thresholds,
        probability=probability,
        cost=Estimate.of(cost, mass),
        f1=f1,
        best=int(equal[np.argmax(worth)]),
    )
