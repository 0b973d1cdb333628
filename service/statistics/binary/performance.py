"""Performance of a binary classifier at every threshold, and the threshold that meets a target best.

Performance is drawn from P(positive | score). Of the *sample*: the items at hand, where labelled ones are
known and the others' labels are drawn, so that nothing is uncertain once all are labelled. Of the
*population* that the items come from: the scores, too, are a random sample (Welinder, Welling and Perona,
CVPR 2013, section 3, equations 5 to 7).

If a share of the items may have any class, performance is between two extremes (Manski, American Economic
Review 1990). At a threshold the classifier is wrong about all of them, or right about all: that is the lowest
precision, recall and F1 and the highest false positive rate there, or the opposite. Half of the draws are of
either, so an interval of the even mixture covers a value anywhere between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.binary.semi_supervised import ScorePosterior
from service.statistics.estimate import Estimate
from service.statistics.ratios import ratio

Scope = Literal["sample", "population"]

_LEAST_CALLING = 0.5  # share of the draws that call items positive, for a precision


@dataclass(frozen=True)
class Performance:
    """Draws of the performance at every threshold; an item is called positive from the threshold on.

    Threshold t of T = B + 1 is the lower edge of bin t; the last one calls nothing positive. Arrays are [S,
    T].
    """

    thresholds: Floats  # [T]: the first is the lowest score, the last is infinite
    called: Floats  # items that are called positive
    right: Floats  # of these, the positive ones
    positives: Floats  # all positive items [S]; [S, T] if the extremes differ by threshold
    items: Floats  # all items [S]

    @cached_property
    def precision(self) -> Floats:
        """Positive share of the items called positive [S, T]; NaN where none are.

        Also NaN where most draws call nothing positive: the few others would be sure of what is forgotten.
        """
        rarely = (self.called > 0).mean(axis=0) < _LEAST_CALLING
        return np.where(rarely, np.nan, _share(self.right, self.called))

    @cached_property
    def recall(self) -> Floats:
        """Share of the positive items that are called positive [S, T]; NaN where there are none."""
        return _share(self.right, self._positives)

    @cached_property
    def false_positive_rate(self) -> Floats:
        """Share of the negative items that are called positive [S, T]; NaN where there are none."""
        return _share(self.called - self.right, self.items[:, None] - self._positives)

    @cached_property
    def f1(self) -> Floats:
        """Harmonic mean of precision and recall [S, T]; NaN where nothing is positive or called positive."""
        return _share(2 * self.right, self.called + self._positives)

    @cached_property
    def prevalence(self) -> Floats:
        """Share of the positive items [S]."""
        return self._positives[:, 0] / self.items

    @cached_property
    def missed(self) -> Floats:
        """Positive items that are not called positive [S, T]."""
        return self._positives - self.right

    @property
    def _positives(self) -> Floats:
        """All positive items [S, 1 or T]."""
        return self.positives.reshape(len(self.items), -1)

    def nearest(self, threshold: float) -> int:
        """Position of the lowest threshold that is not below the given one."""
        return int(np.searchsorted(self.thresholds, threshold, side="left"))

    def precision_at_recall(self, recalls: Floats) -> Floats:
        """Precision where these recalls, in (0, 1], are reached [S, R]; NaN in draws without positive items.

        Between two thresholds, positive and negative items are taken to be evenly mixed, so right and called
        ones grow in proportion (Davis and Goadrich, ICML 2006, interpolate like this).
        """
        found, positives = np.full((len(self.items), len(recalls)), np.nan), self._positives
        for row in np.flatnonzero((positives > 0).all(axis=1)):
            # In units of the positive items at the lowest threshold, if their number differs.
            unit = positives[row, 0] / positives[row, ::-1]
            right, called = self.right[row, ::-1] * unit, self.called[row, ::-1] * unit
            wanted = recalls * positives[row, 0]
            at = np.clip(np.searchsorted(right, wanted * (1 - 1e-12)), 1, len(right) - 1)
            part = (wanted - right[at - 1]) / np.maximum(right[at] - right[at - 1], 1e-300)
            found[row] = wanted / np.maximum(called[at - 1] + part * (called[at] - called[at - 1]), wanted)
        return found

    def recall_at_false_positive_rate(self, rates: Floats) -> Floats:
        """Recall where these false positive rates, in [0, 1], are reached, by linear interpolation [S, R]."""
        found, positives = np.full((len(self.items), len(rates)), np.nan), self._positives
        both = (positives > 0) & (positives < self.items[:, None])
        for row in np.flatnonzero(both.all(axis=1)):
            found[row] = np.interp(rates, self.false_positive_rate[row, ::-1], self.recall[row, ::-1])
        return found


def performance(
    posterior: ScorePosterior,
    rng: np.random.Generator,
    *,
    scope: Scope = "sample",
    unclear: Floats | None = None,
) -> Performance:
    """Draws of the performance at every threshold, of the items at hand or of their population.

    In a population the class of some items may be any: `unclear` are draws of their share in every bin [S,
    B]. The others are positive as the posterior has it.
    """
    bins, probabilities = posterior.bins, posterior.probabilities
    if scope == "sample":
        # Weighted items are no whole number; what is left of one is as likely positive as any.
        whole = np.floor(bins.unlabelled)
        drawn = rng.binomial(whole.astype(np.int64), probabilities)
        positive = drawn + (bins.unlabelled - whole) * probabilities + bins.positives
        items = np.broadcast_to(bins.counts, positive.shape)
    else:
        # The Bayesian bootstrap (Rubin, Annals of Statistics 1981), over bins.
        items = rng.dirichlet(bins.counts, len(probabilities)) * bins.total
        positive = items * probabilities
    called, right = sums_from_the_top(items), sums_from_the_top(positive)
    positives = right[:, 0]
    if unclear is not None:
        known, doubtful = sums_from_the_top((1 - unclear) * positive), sums_from_the_top(unclear * items)
        called = np.vstack((called, called))
        right = np.vstack((known, known + doubtful))
        positives = np.vstack((known[:, :1] + doubtful[:, :1] - doubtful, known[:, :1] + doubtful))
    return Performance(
        thresholds=np.append(bins.lower_ends, np.inf),
        called=called,
        right=right,
        positives=positives,
        items=called[:, 0],
    )


def _share(part: Floats, whole: Floats) -> Floats:
    """Part / whole; NaN where the whole is not above 0. By rounding, differences of sums may leave [0, 1]."""
    return np.clip(ratio(part, whole), 0.0, 1.0)


def sums_from_the_top(values: Floats) -> Floats:
    """Sum of every bin and those above it, and 0 above them all [S, T]."""
    sums = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    return np.hstack((sums, np.zeros((len(values), 1))))


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
    best: int  # position of the threshold to take


def choose_threshold(
    performance: Performance, target: Target, costs: Costs | None = None, *, mass: float = 0.95
) -> ThresholdChoice:
    """The threshold that most probably meets the target; not the one that calls nothing positive.

    The probability is the share of the posterior's draws in which the target is met there (Welinder, Welling
    and Perona, CVPR 2013, section 4.4). Among those that are indistinguishable, the cheapest if costs are
    given, and else the one of the highest expected F1. Thresholds are indistinguishable if their
    probabilities differ by less than the standard error of a share of the draws. Without costs, the reported
    cost counts 1 per error.
    """
    probability: Floats = target.met(performance).mean(axis=0)
    counted = Costs() if costs is None else costs
    wrong = performance.called - performance.right
    missed = counted.false_negative * performance.missed
    cost = (counted.false_positive * wrong + missed) / performance.items[:, None]
    highest = float(probability[:-1].max())
    error = np.sqrt(highest * (1 - highest) / len(performance.items))
    equal = np.flatnonzero(probability[:-1] >= highest - error)
    f1 = np.nan_to_num(Estimate.of(performance.f1, mass).mean)
    worth = f1 if costs is None else -cost.mean(axis=0)
    return ThresholdChoice(
        thresholds=performance.thresholds,
        probability=probability,
        cost=Estimate.of(cost, mass),
        best=int(equal[np.argmax(worth[equal])]),
    )
