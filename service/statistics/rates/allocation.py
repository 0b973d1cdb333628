"""Which group and stratum is labelled next, if labels are to find a gap or a rate above its limit.

Within a group, strata get labels in proportion to their share times the standard deviation of what a label
adds to "numerator - L denominator" (Neyman, JRSS 1934). That is none where classes are certain, and little
where the rate hardly depends on them. Half of the chance follows the shares of all strata that matter, so
that no weight is above 2: the largest weight bounds all bets.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.policies import proportional
from service.statistics.rates.measures import Rate
from service.statistics.rates.strata import RateLabels, rates_of
from service.statistics.ratios import ratio

_KEPT: Final = 0.5  # part of the chances in proportion to traffic
_STRENGTH: Final = 2.0  # pseudo-labels of the model's score


class Aim(NamedTuple):
    """How labels of some groups are best spread over strata, and what they would achieve."""

    chances: Floats  # probability of every stratum, given the group [n, K]; all 0 if no item is left
    spread: Floats  # standard deviation of an estimate of the rate from one label [n]


def aim(
    rate: Rate,
    labels: RateLabels,
    runs: Indices,
    groups: Indices,
    limits: Floats,
    *,
    others: bool = False,
) -> Aim:
    """The best spread of labels over the strata of some groups [n], for a rate near some limits [n].

    With `others`, labels are for other rates, too: then half of the chance follows the shares of all strata.
    """
    strata = labels.strata
    mean = labels.expected(runs, groups)
    deviation = np.sqrt(mean * (1 - mean))
    steps = (rate.numerator[1] - rate.numerator[0])[strata.predictions]
    falls = (rate.denominator[1] - rate.denominator[0])[strata.predictions]
    left = strata.left(groups, labels.labels[runs, groups])
    wanted = left * deviation * np.abs(steps - limits[:, None] * falls)
    sums = wanted.sum(axis=1, keepdims=True)
    telling = left * ((steps != 0) | (falls != 0) | others)
    even = ratio(
        telling, telling.sum(axis=1, keepdims=True), ratio(left, left.sum(axis=1, keepdims=True), 0.0)
    )
    chances = _KEPT * even + (1 - _KEPT) * ratio(wanted, sums, even)
    counted = rate.denominator[0][strata.predictions] * (1 - mean)
    counted = counted + rate.denominator[1][strata.predictions] * mean
    base = (strata.shares[groups] * counted).sum(axis=1)
    return Aim(chances, ratio(sums[:, 0], base, np.inf))


def sampled_rates(rate: Rate, labels: RateLabels, rng: np.random.Generator) -> Floats:
    """One draw of the posterior of the rate of every group [R, G]; 0.5 where nothing is counted."""
    strata = labels.strata
    alpha = labels.positives + _STRENGTH * strata.scores
    beta = labels.labels + _STRENGTH - alpha
    drawn = rng.beta(np.maximum(alpha, 1e-3), np.maximum(beta, 1e-3))
    return rates_of(rate, strata.shares, strata.predictions, drawn)


def choose_for_gap(rate: Rate, labels: RateLabels, rng: np.random.Generator) -> tuple[Indices, Indices, Aim]:
    """Groups and strata of the next labels of all runs [R], and how strata were drawn.

    The two groups that are furthest apart in a draw of the posterior (Thompson) get labels in proportion to
    what the rate of each varies: the difference of both is then learned soonest.
    """
    drawn = sampled_rates(rate, labels, rng)
    count = np.arange(len(drawn))
    unknown = np.isnan(drawn)
    high = np.where(unknown, -np.inf, drawn).argmax(axis=1)
    low = np.where(unknown, np.inf, drawn).argmin(axis=1)
    middle = (drawn[count, high] + drawn[count, low]) / 2
    aims = [aim(rate, labels, count, groups, middle) for groups in (high, low)]
    spreads = np.stack([np.where(each.chances.any(axis=1), each.spread, 0.0) for each in aims], axis=1)
    second = proportional(np.minimum(spreads, 1e6), rng) == 1
    groups = np.where(second, low, high)
    chances = np.where(second[:, None], aims[1].chances, aims[0].chances)
    spread = np.where(second, aims[1].spread, aims[0].spread)
    return groups, proportional(chances, rng), Aim(chances, spread)


def choose_for_limit(
    rate: Rate, labels: RateLabels, limit: float, open_: Flags, rng: np.random.Generator
) -> tuple[Indices, Indices, Aim]:
    """Groups and strata of the next labels of all runs [R], and how strata were drawn.

    Of the groups that are not decided yet, `open_` [R, G], the one is labelled that is furthest beyond the
    limit in a draw of the posterior (Thompson), by what one label varies: its evidence grows fastest.
    """
    runs, count = open_.shape
    every = np.repeat(np.arange(runs), count), np.tile(np.arange(count), runs)
    all_aims = aim(rate, labels, *every, np.full(runs * count, limit))
    spread = all_aims.spread.reshape(runs, count)
    beyond = (sampled_rates(rate, labels, rng) - limit) / np.maximum(spread, 1e-12)
    if rate.is_good:
        beyond = -beyond
    has_items = all_aims.chances.any(axis=1).reshape(runs, count)
    groups = np.where(open_ & has_items & ~np.isnan(beyond), beyond, -np.inf).argmax(axis=1)
    at = np.arange(runs) * count + groups
    chances = all_aims.chances[at]
    return groups, proportional(chances, rng), Aim(chances, all_aims.spread[at])
