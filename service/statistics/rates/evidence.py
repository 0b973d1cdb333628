"""Anytime-valid evidence on a rate of groups: that it is above a limit, or groups differ by more than that.

A rate is E[numerator] / E[denominator], so "the rate is at most L" is linear: E[numerator - L denominator]
<= 0. Every label gives an unbiased estimate of both means. Its stratum k is drawn with a known probability
q_k, and with w_k the stratum's share and m_k what is expected there (augmented inverse probability
weighting: Robins, Rotnitzky and Zhao, JASA 1994),

    N = sum_k w_k m_k + w_k / q_k (numerator - m_k)

has the mean of the numerator, whatever m and q are, if they are fixed before the label. D is the same for
the denominator. So the capital of a bet, the product of 1 + b (N - L D), does not grow on average if the
rate is at most L, and is an e-process (Waudby-Smith and Ramdas, JRSS B 2024). Capital is split evenly
between bets of several sizes.

If the items are all there are, such as in a recording, labels are drawn without replacement. Then what
labels have shown is certain, and w_k is the share of items that have none yet: N has the mean of *all* items.

The group of the next label may be chosen in any way; only within it strata are drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.rates.measures import Rate
from service.statistics.rates.strata import RateLabels
from service.statistics.ratios import ratio

BETS: Final[Floats] = np.geomspace(0.05, 0.9, 6)  # parts of the largest bet that cannot ruin
LEAST_BOUND: Final = 1e-9
_ROUNDING: Final = 1e-9  # of limits
LIMITS: Final[Floats] = np.linspace(0.0, 1.0, 201)
"""Limits that every rate is tested against [T]."""


@dataclass(frozen=True)
class Drawn:
    """Labels of one group in each of some distinct runs [n], and how their strata were drawn."""

    runs: Indices
    groups: Indices
    strata: Indices
    positive: Flags
    chances: Floats  # probability of every stratum, given the group [n, K]
    expected: Floats | None  # expected share of positive items, before the label [n, K]; None if unused


class LimitEvidence:
    """Log e-values of one rate of G groups in R runs, for every limit.

    Attributes:
        rate: which rate.
        limits: that it is tested against, ascending [T].
        log_e_above: against "the rate is at most the limit" [R, G, T].
        log_e_below: against "the rate is at least the limit" [R, G, T].
    """

    rate: Rate
    limits: Floats
    log_e_above: Floats
    log_e_below: Floats

    def log_e_exceeds(self, limit: float) -> Floats:
        """Log e-values against "the rate is at most the limit" [R, G].

        Between two limits of the grid, the upper one is tested.
        """
        return self.log_e_above[..., int(np.searchsorted(self.limits, limit - _ROUNDING))]

    def log_e_falls_short(self, limit: float) -> Floats:
        """Log e-values against "the rate is at least the limit" [R, G].

        Between two limits of the grid, the lower one is tested.
        """
        return self.log_e_below[..., int(np.searchsorted(self.limits, limit + _ROUNDING, side="right")) - 1]

    def bounds(self, mass: float) -> tuple[Floats, Floats]:
        """Lower and upper ends that cover a rate at all times at once with probability `mass` [R, G].

        They enclose all intervals of the grid that are not ruled out: neither is the rate shown to be above
        the upper end of the interval, nor below the lower one.
        """
        against = np.maximum(self.log_e_above[..., 1:], self.log_e_below[..., :-1])
        possible = against < np.log(2 / (1 - mass))
        possible |= against == against.min(axis=2, keepdims=True)
        lower = np.where(possible, self.limits[:-1], np.inf).min(axis=2)
        upper = np.where(possible, self.limits[1:], -np.inf).max(axis=2)
        return lower, upper


class RateEvidence(LimitEvidence):
    """The same, label by label."""

    def __init__(self, rate: Rate, labels: RateLabels, limits: Floats = LIMITS) -> None:
        if not rate.needs_labels:
            raise ValueError(f"no label informs about the {rate.name}; it is counted")
        self.rate, self.limits = rate, limits
        runs, groups, _ = labels.labels.shape
        shape = (runs, groups, len(limits), len(BETS))
        self._above, self._below = np.zeros(shape), np.zeros(shape)
        self.log_e_above, self.log_e_below = np.zeros(shape[:-1]), np.zeros(shape[:-1])

    def observe(self, before: RateLabels, drawn: Drawn) -> None:
        """Bet on labels, given those before them.

        Raises:
            ValueError: a stratum whose labels matter has items without labels, and cannot be drawn.
        """
        at = np.arange(len(drawn.runs)), drawn.strata, drawn.positive.astype(np.intp)
        numerators = _estimates(self.rate.numerator, before, drawn)
        denominators = _estimates(self.rate.denominator, before, drawn)
        possible = ratio(1.0, drawn.chances, np.nan)[:, :, None, None] > 0
        gains = numerators[..., None] - self.limits * denominators[..., None]
        paid = gains[at]
        lowest = np.where(possible, gains, np.inf).min(axis=(1, 2))
        highest = np.where(possible, gains, -np.inf).max(axis=(1, 2))
        where = drawn.runs, drawn.groups
        sides = (
            (self._above, self.log_e_above, paid, -lowest),
            (self._below, self.log_e_below, -paid, highest),
        )
        for capital, log_e, gain, worst in sides:
            parts = (gain / np.maximum(worst, LEAST_BOUND))[..., None] * BETS
            # Where nothing can be lost the rate cannot be at the limit, and no bet is needed.
            now = capital[where] + np.log1p(np.where((worst > LEAST_BOUND)[..., None], parts, 0.0))
            capital[where], log_e[where] = now, log_mean(now)

    def part(self, runs: Indices) -> RateEvidence:
        """Of some runs."""
        other = object.__new__(RateEvidence)
        other.rate, other.limits = self.rate, self.limits
        other._above, other._below = self._above[runs], self._below[runs]
        other.log_e_above, other.log_e_below = self.log_e_above[runs], self.log_e_below[runs]
        return other


def _estimates(counted: Floats, before: RateLabels, drawn: Drawn) -> Floats:
    """Estimates of the mean of an indicator, by stratum of the label and whether it is positive [n, K, 2].

    `counted` is the indicator by whether an item is positive, and selected [2, 2].
    """
    strata, groups = before.strata, drawn.groups
    labels, positives = before.labels[drawn.runs, groups], before.positives[drawn.runs, groups]
    left = strata.left(groups, labels)
    values = counted[:, strata.predictions].T[None]  # [1, K, 2]
    known: Floats = np.zeros(len(groups))
    if strata.sizes is not None:
        sums = values[..., 1] * positives + values[..., 0] * (labels - positives)
        known = (strata.shares[groups] * ratio(sums, strata.sizes[groups], 0.0)).sum(axis=1)
    expected: Floats = np.zeros_like(left)
    if drawn.expected is not None:
        expected = values[..., 0] + (values[..., 1] - values[..., 0]) * drawn.expected
    never = (drawn.chances <= 0) & (left > 0)
    if (never & (values != expected[..., None]).any(axis=2)).any():
        raise ValueError("a stratum with items can never be drawn, so labels do not represent the group")
    weights = ratio(left, drawn.chances, 0.0)
    means = known + (left * expected).sum(axis=1)
    return np.asarray(means[:, None, None] + weights[..., None] * (values - expected[..., None]), np.float64)


def log_mean(capital: Floats) -> Floats:
    """Log of the mean capital of all bets."""
    most = capital.max(axis=-1)
    return np.asarray(most + np.log(np.exp(capital - most[..., None]).mean(axis=-1)), np.float64)
