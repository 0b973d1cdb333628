"""Which scores to label next, so that precision, recall and others at the threshold get known soonest.

A label of stratum b informs about theta_b = P(positive), and the class of one item. It is expected to reduce
the variance of a measure T by that of the best linear predictor of T from the label y,

    Cov(T, y)^2 / Var(y),   Cov(T, y) = Cov(T, theta_b) + w_b E theta_b (1 - theta_b),

with w_b the change of T if one more item of the stratum is positive. So the few items called positive are
labelled first, and then those not called positive where missed ones may be. (Sawade, Landwehr and Scheffer,
NIPS 2010, derive the optimal independent draws for F-measures; Marchant and Rubinstein, VLDB 2017, draw by
strata of scores, as here.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Floats, Ints
from service.statistics.binary.performance import Performance, sums_from_the_top
from service.statistics.narrowing import EXPLORED, diminished

PLANNING_SIGMAS: Final = (1.0, 2.0)
"""Standard deviations of the smooth deviations that labels are chosen under.

With smaller ones a few labels without a positive item would end the search among low scores, although it is
the curve, and not these labels, that says that nothing is to be found there.
"""


@dataclass(frozen=True)
class LabelledStrata:
    """What is known of strata; arrays are [B]."""

    called: Floats  # share of the items that is called positive
    counts: Floats  # items
    positives: Floats  # positive labels
    negatives: Floats  # negative labels

    @property
    def unlabelled(self) -> Floats:
        """Items without a label."""
        return np.maximum(self.counts - self.positives - self.negatives, 0.0)

    def merged(self) -> LabelledStrata:
        """One stratum of the items called positive, and one of the others, where strata are either."""
        sides = [side for side in (self.called > 0, self.called <= 0) if side.any()]

        def sums(values: Floats) -> Floats:
            return np.array([values[side].sum() for side in sides])

        called = np.array([self.called[side].max() for side in sides])
        return LabelledStrata(called, sums(self.counts), sums(self.positives), sums(self.negatives))


class Counts(NamedTuple):
    """What measures depend on."""

    right: Floats  # positive items called positive, in every draw [S]
    positives: Floats  # positive items [S]
    called: float  # items called positive
    items: float  # all items


class _Measure(NamedTuple):
    """A measure in every draw, and its derivatives by its arguments [S]."""

    value: Floats
    by_right: Floats  # by the positive items called positive
    by_positives: Floats  # by the positive items


def _precision(of: Counts) -> _Measure:
    return _Measure(of.right / of.called, np.full_like(of.right, 1 / of.called), np.zeros_like(of.right))


def _recall(of: Counts) -> _Measure:
    return _Measure(of.right / of.positives, 1 / of.positives, -of.right / of.positives**2)


def _f1(of: Counts) -> _Measure:
    both = of.called + of.positives
    return _Measure(2 * of.right / both, 2 / both, -2 * of.right / both**2)


def _false_positive_rate(of: Counts) -> _Measure:
    wrong, negatives = of.called - of.right, np.maximum(of.items - of.positives, 1.0)
    return _Measure(wrong / negatives, -1 / negatives, wrong / negatives**2)


AIMS: Final[Mapping[str, Callable[[Counts], _Measure]]] = {
    "f1": _f1,
    "precision": _precision,
    "recall": _recall,
    "false_positive_rate": _false_positive_rate,
}
"""Measures at the threshold that labels may be chosen for."""

CURVE: Final = "curve"
"""The aim that is the whole precision-recall curve."""

_RECALLS: Final[Floats] = np.linspace(0.05, 0.95, 19)

_LEAST_VARIANCE: Final = 1e-12
_FEWEST_ITEMS: Final = 1e-9


def expected_gains(strata: LabelledStrata, theta: Floats, aim: str) -> Floats:
    """Expected fall of the aim's variance by one label of each stratum [B], from draws of theta [S, B].

    Of the curve it is the mean over recalls. Strata ascend by score.
    """
    values, of_one = changes_by_one(strata, theta, aim)
    mean = theta.mean(axis=0)
    shared = (values - values.mean(axis=0)).T @ (theta - mean) / len(theta)
    covariance = shared + of_one * (theta * (1 - theta)).mean(axis=0)
    gains = (covariance**2).mean(axis=0) / np.maximum(mean * (1 - mean), _LEAST_VARIANCE)
    return np.where(strata.unlabelled >= 1, gains, 0.0)


def changes_by_one(strata: LabelledStrata, theta: Floats, aim: str) -> tuple[Floats, Floats]:
    """The aim in every draw of theta [S, R], and its mean change by one more positive item [R, B].

    R is 1, but for the curve, of which it is the number of recalls.
    """
    if aim == CURVE:
        return _curve(strata, theta)
    return _at_threshold(strata, theta, AIMS[aim])


def _at_threshold(
    strata: LabelledStrata, theta: Floats, measured: Callable[[Counts], _Measure]
) -> tuple[Floats, Floats]:
    """A measure in every draw [S, 1], and its mean change by one more positive item of a stratum [1, B]."""
    expected = strata.positives + strata.unlabelled * theta
    measure = measured(
        Counts(
            right=expected @ strata.called,
            positives=np.maximum(expected.sum(axis=1), _FEWEST_ITEMS),
            called=max(float(strata.counts @ strata.called), _FEWEST_ITEMS),
            items=float(strata.counts.sum()),
        )
    )
    of_one = strata.called * measure.by_right.mean() + measure.by_positives.mean()
    return measure.value[:, None], of_one[None]


def _curve(strata: LabelledStrata, theta: Floats) -> tuple[Floats, Floats]:
    """Precision at several recalls in every draw [S, R], and how one more positive item changes it [R, B]."""
    expected = np.maximum(strata.positives + strata.unlabelled * theta, _FEWEST_ITEMS)
    usual = expected.mean(axis=0)
    more = np.vstack((usual, usual + np.eye(len(usual))))
    precision = _precision_at_recalls(strata.counts, np.vstack((expected, more)))
    changed = precision[len(expected) :]
    return precision[: len(expected)], (changed[1:] - changed[0]).T


def _precision_at_recalls(counts: Floats, positives: Floats) -> Floats:
    """Precision at `_RECALLS` [n, R], by positive items of every stratum [n, B]."""
    right = sums_from_the_top(positives)
    called = np.broadcast_to(sums_from_the_top(counts[None]), right.shape)
    everywhere = Performance(np.zeros(right.shape[1]), called, right, right[:, 0], called[:, 0])
    return everywhere.precision_at_recall(_RECALLS)


def next_labels(strata: LabelledStrata, gains: Floats, count: int, rng: np.random.Generator) -> Ints:
    """How many of the next labels each stratum gets [B]: at most what is unlabelled, `count` in all.

    A stratum's gain falls with each of its labels.
    """
    labels = strata.positives + strata.negatives
    chosen = np.zeros(len(gains), np.int64)
    random = rng.random(count) < EXPLORED
    for explores in random:
        left = np.maximum(np.floor(strata.unlabelled) - chosen, 0.0)
        if not left.any():
            break
        worth = np.where(left > 0, gains * diminished(labels, chosen), 0.0)
        if explores or not worth.any():
            chosen[rng.choice(len(gains), p=left / left.sum())] += 1
        else:
            chosen[worth.argmax()] += 1
    return chosen
