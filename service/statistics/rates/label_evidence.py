"""Anytime-valid evidence on a rate of groups from labels whose draws were kept, whatever their order.

This is the evidence of `RateEvidence` for traffic, with all that it needs of a draw in ten numbers, which are
fixed when the label is requested (`service/domain/stratum_estimator.py`). Let w_k be the shares of the
group's strata, as counted then, q_k the probabilities with which they are drawn, m_k the expected shares of
positive items, and g = N - L D, by whether an item is positive and selected. A label of stratum k gives the
estimate

    sum_j w_j g(m_j) + w_k / q_k (g - g(m_k)) + u min g,

where g(m) is the mean of g if a share of m is positive. Strata without an item to draw are u of the traffic:
they count as what says the least. So the estimate is at most 0 on average as long as the rate is at most L:
the rate that these shares make of the strata's shares of positive items. Each label has one factor, 1 + b
times its estimate. Their product is an e-process for every b that cannot ruin. Which group is labelled next
may be chosen in any way.

A label of a random item of a group has the gain g itself. If labels may be wrong, g is lower for some of them
(`wrong_labels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.rates.evidence import BETS, LEAST_BOUND, LimitEvidence, log_mean
from service.statistics.rates.measures import Rate
from service.statistics.rates.wrong_labels import allow_for_wrong_labels
from service.statistics.ratios import ratio

LARGEST_WEIGHT: Final = 2.0
"""Of a stratum's label: half of the chance follows the shares of the traffic."""

_ROUNDING: Final = 1e-6
_AT_ONCE: Final = 256  # labels


@dataclass(frozen=True)
class StratumDraws:
    """Labels of strata that were drawn, as columns [n]."""

    groups: Indices
    selected: Flags
    positive: Flags
    has_label: Flags  # an item without one may have any true class
    estimators: Floats  # what is kept of the draws [n, 10]

    def part(self, which: Flags | slice) -> StratumDraws:
        """Some of them."""
        return StratumDraws(*(column[which] for column in vars(self).values()))


@dataclass(frozen=True)
class Capital:
    """Logs of the capital of bets on a rate of G groups, against T limits [G, T, B]."""

    above: Floats  # against "the rate is at most the limit"
    below: Floats  # against "the rate is at least the limit"

    def __add__(self, other: Capital) -> Capital:
        """With further labels."""
        return Capital(self.above + other.above, self.below + other.below)

    @classmethod
    def of_draws(
        cls, rate: Rate, limits: Floats, draws: StratumDraws, groups: int, *, wrong_labels: float = 0.0
    ) -> Capital:
        """From labels of strata that were drawn, of which at most a share is wrong (`wrong_labels.py`)."""
        shape = groups, len(limits), len(BETS)
        found, (above, below) = cls(np.zeros(shape), np.zeros(shape)), _gains(rate, limits, wrong_labels)
        for begin in range(0, len(draws.groups), _AT_ONCE):
            some = draws.part(slice(begin, begin + _AT_ONCE))
            np.add.at(found.above, some.groups, _log_factors(above, some))
            np.add.at(found.below, some.groups, _log_factors(below, some))
        return found

    @classmethod
    def of_sample(
        cls, rate: Rate, limits: Floats, labels: Floats, unlabelled: Floats, *, wrong_labels: float = 0.0
    ) -> Capital:
        """From numbers of random items of the groups, by whether they are positive, and selected [G, 2, 2].

        Items without a label may have any true class, `unlabelled` by whether they are selected [G, 2]. They
        count as what says the least.
        """
        above, below = _gains(rate, limits, wrong_labels)
        return cls(_sample_capital(above, labels, unlabelled), _sample_capital(below, labels, unlabelled))


@dataclass(frozen=True)
class LabelEvidence(LimitEvidence):
    """Log e-values of one rate of G groups; R is 1."""

    rate: Rate
    limits: Floats
    log_e_above: Floats
    log_e_below: Floats

    @classmethod
    def of(cls, rate: Rate, limits: Floats, capital: Capital) -> LabelEvidence:
        """Of all bets together."""
        return cls(rate, limits, log_mean(capital.above)[None], log_mean(capital.below)[None])

    def of_groups(self, groups: Flags) -> LabelEvidence:
        """Of some groups [G]."""
        return LabelEvidence(self.rate, self.limits, self.log_e_above[:, groups], self.log_e_below[:, groups])


def stratum_estimator(
    shares: Floats, chances: Floats, expected: Floats, *, selected: Flags, drawn: int
) -> Floats:
    """What is kept of the draw of one stratum of a group [10].

    Of all strata of the group [K], `shares` are those of its traffic, `chances` the probabilities with which
    they are drawn, 0 where they cannot be, and `expected` the expected shares of positive items.

    Raises:
        ValueError: a stratum is drawn with less than half of its share of the traffic.
    """
    there = np.where(chances > 0, shares, 0.0)
    if (there > LARGEST_WEIGHT * chances * (1 + _ROUNDING)).any():
        raise ValueError("a stratum is drawn with less than half of its share of the traffic")
    weights = ratio(there, chances, 0.0)
    kinds = np.stack([~selected, selected])
    return np.concatenate(
        [
            (kinds * there).sum(axis=1),
            (kinds * there * expected).sum(axis=1),
            (kinds * weights * (1 - expected)).max(axis=1),
            (kinds * weights * expected).max(axis=1),
            (expected[drawn], weights[drawn]),
        ]
    )


def _gains(rate: Rate, limits: Floats, wrong_labels: float) -> tuple[Floats, Floats]:
    """What a label gains, by limit, whether it is positive, and the item selected [T, 2, 2].

    Against "the rate is at most the limit": numerator - limit denominator; and against "at least": the same
    with the opposite sign.
    """
    gains = rate.numerator - limits[:, None, None] * rate.denominator
    return allow_for_wrong_labels(gains, wrong_labels), allow_for_wrong_labels(-gains, wrong_labels)


def _log_factors(gains: Floats, draws: StratumDraws) -> Floats:
    """Logs of the factors of labels [n, T, B]."""
    other, selected, other_positive, selected_positive = draws.estimators.T[:4, :, None]
    rises, falls = draws.estimators[:, None, 4:6], draws.estimators[:, None, 6:8]
    expected, weight = draws.estimators.T[8:, :, None]
    steps = gains[:, 1] - gains[:, 0]  # [T, 2]
    means = other * gains[:, 0, 0] + other_positive * steps[:, 0]
    means = means + selected * gains[:, 0, 1] + selected_positive * steps[:, 1]
    means = means + np.maximum(1 - other - selected, 0.0) * gains.min(axis=(1, 2))
    kinds = draws.selected.astype(np.intp)
    negative, positive = gains[:, 0, kinds].T, gains[:, 1, kinds].T  # [n, T]
    said = np.where(draws.positive[:, None], positive, negative)
    said = np.where(draws.has_label[:, None], said, np.minimum(positive, negative))
    found = means + weight * (said - negative - expected * (positive - negative))
    losses = np.maximum(-steps * rises, steps * falls).max(axis=2)  # of any stratum [n, T]
    worst = losses * (1 + _ROUNDING) - means
    # Where nothing can be lost the rate cannot be at the limit, and no bet is needed.
    parts = np.where(worst > LEAST_BOUND, found / np.maximum(worst, LEAST_BOUND), 0.0)
    return np.log1p(parts[..., None] * BETS)


def _sample_capital(gains: Floats, labels: Floats, unlabelled: Floats) -> Floats:
    """Log capital against "the gain of a label is at most 0 on average" [G, T, B], of gains [T, 2, 2]."""
    worst = -gains.min(axis=(1, 2))
    parts = np.where(worst > LEAST_BOUND, BETS[:, None] / np.maximum(worst, LEAST_BOUND), 0.0)  # [B, T]
    logs = np.log1p(parts[:, :, None, None] * gains)  # [B, T, 2, 2]
    capital = np.tensordot(labels, logs, axes=((1, 2), (2, 3)))  # [G, B, T]
    capital = capital + np.tensordot(unlabelled, logs.min(axis=2), axes=((1,), (2,)))
    return np.asarray(np.moveaxis(capital, 1, 2), np.float64)
