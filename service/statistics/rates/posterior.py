"""Posterior draws of the rates of every group, and what they say of differences and ratios.

Shares of positive items within strata are drawn, and rates follow from them through the shares of the strata,
which are counted. So labels may be spread over groups and strata
in any way, as long as those within a stratum are drawn evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics.names import RateName
from service.statistics.rates.measures import RATES
from service.statistics.rates.strata import RateLabels, rates_of
from service.statistics.rates.stratum_posterior import draw_positive_shares
from service.statistics.ratios import ratio

DRAWS: Final = 4_000
_ROUNDING: Final = 1e-6
_LEAST_RATE: Final = 1e-9  # so that ratios are finite
_LEAST_BEYOND: Final = 4.0  # draws beyond an end, in expectation, for the draws to tell where it is
_LEAST_ODDS: Final = 1e-12
_TAIL: Final = 0.05  # of the draws, whose fall tells how far further ones would be out


def draw_rates(
    labels: RateLabels,
    rng: np.random.Generator,
    *,
    run: int = 0,
    draws: int = DRAWS,
    traffic: Floats | None = None,
) -> Mapping[RateName, Floats]:
    """Draws of every rate of every group in one run [S, G]; NaN where a rate counts no items.

    `traffic` are draws of the strata's shares, where these are not known for sure [S, G, K].

    If the items are all there are, those with labels are certain, and the classes of others are drawn.
    """
    strata, all_, positive = labels.strata, labels.labels[run], labels.positives[run]
    shares = draw_positive_shares(all_, positive, strata.scores, strata.selected, rng=rng, draws=draws)
    if strata.sizes is not None:
        left = (strata.sizes - all_).astype(np.int64)
        shares = ratio(positive + rng.binomial(left, shares), strata.sizes, 0.0)
    known = strata.shares if traffic is None else traffic
    return {name: rates_of(rate, known, strata.predictions, shares) for name, rate in RATES.items()}


def joint_intervals(draws: Floats, mass: float) -> tuple[Floats, Floats]:
    """Ends of intervals that all hold at once with probability `mass`, from draws [S, Q]; arrays are [Q].

    Each leaves out as many draws at either end as possible, the same number of every quantity (Besag, Green,
    Higdon and Mengersen, Statistical Science 1995, section 6.3). NaN, where a quantity does not exist in a
    draw, is never outside.
    """
    count, by_quantity = len(draws), np.ascontiguousarray(draws.T)
    order = np.argsort(by_quantity, axis=1)
    ordered = np.take_along_axis(by_quantity, order, axis=1)  # NaN at the end
    nothing = np.isnan(ordered)
    some = np.maximum(count - np.count_nonzero(nothing, axis=1, keepdims=True), 1)
    first, last = _equal_draws(ordered)
    # How many draws are beyond each, on the side where fewer are; equal draws are not beyond one another.
    beyond = np.empty_like(order)
    fewer = np.where(nothing, count, np.minimum(last, some - 1 - first))
    np.put_along_axis(beyond, order, fewer, axis=1)
    cut = int(np.sort(beyond.min(axis=0, initial=count))[int((1 - mass) * count + _ROUNDING)])
    at = np.minimum(cut, (some - 1) // 2)
    lower, upper = (np.take_along_axis(ordered, end, axis=1)[:, 0] for end in (at, some - 1 - at))
    return lower, upper


def _equal_draws(ordered: Floats) -> tuple[Indices, Indices]:
    """First and last place of the draws that are equal to each, of ordered ones [Q, S]."""
    places, end = np.arange(ordered.shape[1]), np.ones((len(ordered), 1), np.bool_)
    differs = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(np.hstack([end, differs]), places, 0), axis=1)
    last = np.where(np.hstack([differs, end]), places, places.size)
    return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]


def joint_rate_intervals(draws: Floats, mass: float) -> tuple[Floats, Floats]:
    """The same of rates, within 0 and 1, of so many groups that the draws do not tell how far ends are out.

    Then each group has its part of what may be outside (Bonferroni), as groups learn nothing from one
    another, and ends are beyond the draws: tails of log odds fall exponentially, as those of Beta
    distributions do.
    """
    lower, upper = joint_intervals(draws, mass)
    groups = max(draws.shape[1], 1)
    if len(draws) >= draws_needed(groups, mass):
        return lower, upper
    tail = (1 - mass) / (2 * groups)
    odds = special.logit(np.clip(draws, _LEAST_ODDS, 1 - _LEAST_ODDS))
    # Rates that are certain, or count nothing in some draws, stay as they are.
    varies = np.ptp(draws, axis=0) > 0
    low, high = special.expit(_far_end(odds, tail)), special.expit(-_far_end(-odds, tail))
    return (
        np.where(varies, np.minimum(lower, low), lower),
        np.where(varies, np.maximum(upper, high), upper),
    )


def draws_needed(groups: int, mass: float) -> int:
    """Draws that tell where intervals of so many groups end that hold at once."""
    return int(_LEAST_BEYOND * 2 * groups / (1 - mass) + _ROUNDING)


def _far_end(values: Floats, tail: float) -> Floats:
    """Quantile below which a `tail` of every quantity is, from draws [S, Q], if it falls exponentially."""
    count = max(int(_TAIL * len(values)), 1)
    ordered = np.partition(values, count, axis=0)[: count + 1]
    start = ordered[count]
    quantile: Floats = start - (start - ordered[:count]).mean(axis=0) * np.log(_TAIL / tail)
    return quantile


Ends = tuple[float, float, float]
"""Lower end, estimate and upper end."""


class Gap(NamedTuple):
    """How far groups are apart, by fairlearn's definitions: the largest difference and the least ratio."""

    difference: Ends
    ratio: Ends
    pairs: tuple[Floats, Floats]  # ends of all differences of a and b [M, G, G] that hold at once, a first


def gap(rates: Sequence[Floats], mass: float) -> Gap:
    """The gap of a criterion from draws [S, G] of its M rates: the largest difference in any of them.

    A maximum of draws is never 0, also where groups are alike. So the lower end of the difference is the
    highest one of any pair, of intervals that hold for all pairs at once. So is the upper end of the ratio.
    """
    draws = np.maximum(np.stack(rates, axis=1), _LEAST_RATE)  # [S, M, G]
    _, kinds, groups = draws.shape
    if groups < 2:  # noqa: PLR2004 - a pair
        nothing = np.zeros((kinds, groups, groups))
        return Gap((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (nothing, nothing))
    tail = (1 - mass) / 2
    high, low = np.nanmax(draws, axis=2), np.nanmin(draws, axis=2)
    means = np.nanmean(draws, axis=0)
    first, second = np.triu_indices(groups, 1)
    lower, upper = joint_intervals(_flat(draws[:, :, first] - draws[:, :, second]), mass)
    ratios = ratio(draws[:, :, first], draws[:, :, second])
    least, most = joint_intervals(_flat(ratios), mass)
    highest_ratio = float(np.nanmin(np.minimum(np.minimum(most, ratio(1.0, least, np.inf)), 1.0)))
    estimates = means.max(axis=1) - means.min(axis=1)
    quotients = ratio(means.min(axis=1), means.max(axis=1), 1.0)
    return Gap(
        difference=(
            float(max(0.0, np.nanmax(np.maximum(lower, -upper)))),
            float(estimates.max()),
            float(np.quantile((high - low).max(axis=1), 1 - tail)),
        ),
        ratio=(
            float(np.quantile(ratio(low, high, 1.0).min(axis=1), tail)),
            float(quotients.min()),
            highest_ratio,
        ),
        pairs=(_square(lower, -upper, kinds, groups), _square(upper, -lower, kinds, groups)),
    )


def gap_of_groups(draws: Floats, mass: float) -> tuple[Ends, Ends]:
    """Difference and ratio of one rate of many groups, from draws [S, G], at least two; each has its ends.

    As `gap`, but not of all pairs: the lower end of the difference is how far intervals of groups that hold
    at once are apart. So it takes time in proportion to the groups, and is a little further down.
    """
    draws = np.maximum(draws, _LEAST_RATE)
    tail, means = (1 - mass) / 2, draws.mean(axis=0)
    lower, upper = joint_rate_intervals(draws, mass)
    high, low = draws.max(axis=1), draws.min(axis=1)
    apart, alike = lower.max() - upper.min(), ratio(upper.min(), lower.max(), 1.0)
    return (
        (max(0.0, float(apart)), float(np.ptp(means)), float(np.quantile(high - low, 1 - tail))),
        (
            float(np.quantile(ratio(low, high, 1.0), tail)),
            float(ratio(means.min(), means.max(), 1.0)),
            min(1.0, float(alike)),
        ),
    )


def _flat(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def _square(above: Floats, below: Floats, kinds: int, groups: int) -> Floats:
    """One end of the differences of all pairs [M, G, G]: of those with a before b, and of the others."""
    first, second = np.triu_indices(groups, 1)
    ends = np.zeros((kinds, groups, groups))
    ends[:, first, second] = above.reshape(kinds, -1)
    ends[:, second, first] = below.reshape(kinds, -1)
    return ends
