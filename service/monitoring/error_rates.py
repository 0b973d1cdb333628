"""Error rates of the groups of one grouping, and how far groups are apart (pure).

A stratum is the items of a group with the same prediction, positive or not, and a similar score. Its traffic
is counted. Labels say which share of its items is positive (`service/statistics/rates`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.assessments import RateName
from service.domain.cells import OTHER
from service.monitoring.error_rate_evidence import RateProof
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.score_gains import ScoreGains
from service.monitoring.weighted_labels import WeightedLabels
from service.statistics.balance_heuristic import effective_counts
from service.statistics.estimate import Estimate
from service.statistics.groups import Labels
from service.statistics.rates.measures import RATES, Rate
from service.statistics.rates.posterior import (
    Ends,
    draw_rates,
    draws_needed,
    gap,
    gap_of_groups,
    joint_rate_intervals,
)
from service.statistics.rates.strata import RateLabels, RateStrata
from service.statistics.ratios import ratio

_MOST_DRAWS: Final = 4_000
_FEWEST_DRAWS: Final = 400
_DRAWN_NUMBERS: Final = 2_000_000  # strata times draws, where groups are very many
_MOST_STRATA: Final = 10  # by score, of each prediction
_GROUP_STRATA: Final = 2_000  # in all groups together, about
_LEAST_LABELS: Final = 1.0
_NOTHING: Final = 1e-9  # effective labels
_HALF: Final = 0.5  # a prediction of either kind, by Jeffreys' prior
_MOST_PAIRED: Final = 12  # groups of which all pairs are compared


@dataclass(frozen=True)
class RateSnapshot:
    """One rate of every group; arrays are [G]."""

    estimate: Estimate  # the intervals of all groups hold at once
    difference: Ends | None  # between any two groups; None with fewer than two of which the rate is known
    ratio: Ends | None  # of the lowest rate to the highest one, likewise
    limits: Floats  # configured for every group, NaN without one
    max_difference: float | None  # configured, as the next one
    min_ratio: float | None
    violated: Flags  # groups with enough labels whose whole interval is beyond the limit
    # whether the intervals of groups with enough labels are beyond the maximum, or the minimum
    differs_too_much: bool
    ratio_too_low: bool
    proof: RateProof | None  # what evidence confirms is beyond limits, too; None without evidence


@dataclass(frozen=True)
class ErrorRatesSnapshot:
    """The error rates of the groups of one grouping; arrays are [G]."""

    positive_class: str
    grouping: str
    groups: list[str]
    shares: Floats  # of the traffic
    labels: Floats  # effective number of labels
    rates: Mapping[RateName, RateSnapshot]
    gains: ScoreGains  # what further labels are worth


def error_rates_snapshot(
    settings: ErrorRateSettings,
    index: GroupIndex,
    weighted: WeightedLabels,
    prove: Callable[[Mapping[RateName, Floats]], Mapping[RateName, RateProof]] | None,
    *,
    interval: float,
    min_labels: float,
    rng: np.random.Generator,
) -> ErrorRatesSnapshot | None:
    """Error rates from the labels that there are; None while there is no traffic.

    `prove` finds evidence by the limits of every group [G]; None where there is none. `interval` is the
    probability inside intervals. Groups with fewer than `min_labels` effective labels are
    neither compared nor beyond a limit.
    """
    groups = index[settings.grouping]
    counted = _counted(index, settings.grouping, groups)
    if counted is None:
        return None
    strata = counted.strata
    labels = [
        _labels(index, groups, each, strata, open_is_positive=number % 2 == 0)
        for number, each in enumerate(weighted.imputed or (weighted.labels,))
    ]
    size = strata.shares.size * len(labels)
    most = max(_MOST_DRAWS, draws_needed(len(groups.names), interval))
    draws = max(_FEWEST_DRAWS, min(most, _DRAWN_NUMBERS // size)) // len(labels) + 1
    drawn = [draw_rates(each, rng, draws=draws, traffic=counted.draw(rng, draws)) for each in labels]
    found = {name: np.concatenate([each[name] for each in drawn]) for name in RATES}
    found["precision"][:, counted.positive.sum(axis=1) == 0] = np.nan  # of items that there are none of
    counts = _labels(index, groups, weighted.labels, strata).labels[0].sum(axis=1)
    enough = counts >= max(min_labels, _LEAST_LABELS)
    is_one = np.array([name != OTHER for name in groups.names], np.bool_)
    compared = {name: is_one & (enough if rate.needs_labels else True) for name, rate in RATES.items()}
    limits = {name: _limits(settings, name, groups.names) for name in RATES}
    proofs = {} if prove is None else prove(limits)
    return ErrorRatesSnapshot(
        positive_class=settings.positive_class,
        grouping=settings.grouping,
        groups=groups.names,
        shares=groups.shares,
        labels=counts,
        rates={
            name: _rate(
                *(settings, name, each, proofs.get(name)),
                limits=limits[name],
                compared=compared[name],
                unseen=_unseen(RATES[name], labels),
                interval=interval,
            )
            for name, each in found.items()
        },
        gains=_gains(groups.names, found[settings.rate], counts, limits[settings.rate]),
    )


def _limits(settings: ErrorRateSettings, name: RateName, groups: Sequence[str]) -> Floats:
    """Of a rate in every group [G]; NaN without one."""
    if name == "selection_rate":
        return np.full(len(groups), np.nan)
    found = [settings.limit(name, group) for group in groups]
    return np.array([np.nan if limit is None else limit for limit in found], np.float64)


def _rate(
    settings: ErrorRateSettings,
    name: RateName,
    draws: Floats,
    proof: RateProof | None,
    *,
    limits: Floats,
    compared: Flags,
    unseen: tuple[Flags, Flags],
    interval: float,
) -> RateSnapshot:
    """One rate; `compared` are groups that may be beyond limits, and `unseen` as `_unseen` says."""
    rate, known = RATES[name], ~np.isnan(draws).any(axis=0)
    lower, upper = joint_rate_intervals(draws, interval)
    mean = ratio(np.nansum(draws, axis=0), np.count_nonzero(~np.isnan(draws), axis=0))
    # Near 0 and 1 no prior gives intervals that hold (Brown, Cai and DasGupta, Statistical Science 2001).
    varies = known & (lower < upper)
    lower = np.where(varies & unseen[0], 0.0, np.minimum(lower, mean))
    upper = np.where(varies & unseen[1], 1.0, np.maximum(upper, mean))
    # Nothing is beyond NaN.
    violated = compared & ((upper < limits) if rate.is_good else (lower > limits))
    apart = _apart(draws[:, known], interval)
    sure = apart
    if apart is not None and not compared[known].all():
        sure = _apart(draws[:, known & compared], interval)
        if sure is not None:
            # Of more groups, the difference is no less, and the ratio no higher.
            apart = (
                _ends(max(apart[0][0], sure[0][0]), apart[0][1], apart[0][2]),
                _ends(apart[1][0], apart[1][1], min(apart[1][2], sure[1][2])),
            )
    if apart is not None and (lower[known] <= 0).any():
        apart = apart[0], _ends(0.0, *apart[1][1:])
    if proof is not None:
        violated |= proof.confirmed
    most, least = settings.max_differences.get(name), settings.min_ratios.get(name)
    return RateSnapshot(
        estimate=Estimate(lower, mean, upper),
        difference=None if apart is None else apart[0],
        ratio=None if apart is None else apart[1],
        limits=limits,
        max_difference=most,
        min_ratio=least,
        violated=violated,
        differs_too_much=(most is not None and sure is not None and sure[0][0] > most)
        or (proof is not None and proof.difference_confirmed),
        ratio_too_low=(least is not None and sure is not None and sure[1][2] < least)
        or (proof is not None and proof.ratio_confirmed),
        proof=proof,
    )


def _unseen(rate: Rate, labels: Sequence[RateLabels]) -> tuple[Flags, Flags]:
    """Groups whose rate may be 0 by their labels, and those where it may be 1, in some imputation [G].

    None of the labels that count for the rate is in its numerator, or all are.
    """
    none, every = [], []
    for each in labels:
        positive = each.positives[0]
        negative, of = each.labels[0] - positive, each.strata.predictions
        inside = (positive * rate.numerator[1][of] + negative * rate.numerator[0][of]).sum(axis=1)
        among = (positive * rate.denominator[1][of] + negative * rate.denominator[0][of]).sum(axis=1)
        none.append(inside < _NOTHING)
        every.append((among - inside < _NOTHING) & (inside >= _NOTHING))
    if not rate.needs_labels:
        return np.zeros_like(none[0]), np.zeros_like(none[0])
    return np.logical_or.reduce(none), np.logical_or.reduce(every)


def _apart(draws: Floats, interval: float) -> tuple[Ends, Ends] | None:
    count = draws.shape[1]
    if count < 2:  # noqa: PLR2004 - a pair
        return None
    if count > _MOST_PAIRED:
        difference, quotient = gap_of_groups(draws, interval)
    else:
        difference, quotient, _ = gap([draws], interval)
    return _ends(*difference), _ends(*quotient)


def _ends(lower: float, mean: float, upper: float) -> Ends:
    """An interval with its estimate inside: the mean of a skewed posterior may be beyond its quantiles."""
    return min(lower, mean), mean, max(upper, mean)


@dataclass(frozen=True)
class _Counted:
    """Traffic of every group by stratum, counted; arrays are [G, K / 2] but for those of `strata`."""

    strata: RateStrata
    whole: Floats  # share of a group's traffic, both predictions together
    size: Floats  # predictions of a group, ever [G]
    others: Floats  # predictions of other classes, since these are counted by prediction
    positive: Floats  # of the positive class

    def draw(self, rng: np.random.Generator, draws: int) -> Floats:
        """Shares that the strata may have in the traffic that this is a sample of [S, G, K].

        A prediction of either kind is expected in all strata with traffic together (Jeffreys): where few are
        counted by prediction, as after an assessment was added, little is known.
        """
        size = (draws, *self.whole.shape)
        parts = rng.standard_gamma(self.whole * self.size[:, None], size)
        parts = ratio(parts, parts.sum(axis=2, keepdims=True))
        there = np.maximum(np.count_nonzero(self.others + self.positive > 0, axis=1), 1)
        prior = (_HALF / there)[:, None]
        selected = rng.beta(self.positive + prior, self.others + prior, size)
        found = np.concatenate([parts * (1 - selected), parts * selected], axis=2)
        return np.where(np.isnan(self.strata.shares), np.nan, found)


def _counted(index: GroupIndex, grouping: str, groups: Groups) -> _Counted | None:
    """Strata of every group: first those of other predictions, then of positive ones, by score bin."""
    if not groups.names:
        return None
    bins, classes = index.space.bin_count, len(index.space.classes)
    of_bins = _score_strata(bins, len(groups.names))
    table = index.traffic.tables[index.space.groupings[grouping].attribute]
    block = table.block("selected_bins").part([table.rows[name] for name in groups.names])
    weights = block.weights.reshape(len(groups.names), 2, bins)
    # Of what is counted by score bin, and weighted as all estimates are, the share of positive predictions.
    share = ratio(weights, weights.sum(axis=1, keepdims=True), 0.0)
    now = share * groups.weights[:, None, :]
    middles = (np.arange(bins) + 0.5) / bins
    scores = ratio(block.score_sums.reshape(weights.shape), weights, middles)
    # Without class probabilities, the rest is spread evenly over the classes that are not predicted.
    scores[:, 0] = (1 - scores[:, 0]) / (classes - 1)
    starts = np.flatnonzero(np.diff(of_bins, prepend=-1))
    traffic = np.add.reduceat(now, starts, axis=2)
    means = ratio(np.add.reduceat(now * scores, starts, axis=2), traffic, 0.5)
    flat = traffic.reshape(len(groups.names), -1)
    # NaN where nothing is counted yet by prediction: then no rate is known.
    shares = ratio(flat, flat.sum(axis=1, keepdims=True))
    strata = RateStrata(shares, np.repeat((False, True), len(starts)), means.reshape(flat.shape))
    counts = np.add.reduceat(block.counts.reshape(weights.shape).astype(np.float64), starts, axis=2)
    # Counts, spread as weights are, which favour what is new.
    by_prediction = counts.sum(axis=1, keepdims=True) * ratio(
        traffic, traffic.sum(axis=1, keepdims=True), 0.0
    )
    whole = np.add.reduceat(groups.weights, starts, axis=1)
    return _Counted(
        strata,
        ratio(whole, whole.sum(axis=1, keepdims=True)),
        groups.counts.sum(axis=1).astype(np.float64),
        by_prediction[:, 0],
        by_prediction[:, 1],
    )


def _score_strata(bins: int, groups: int) -> Indices:
    """Stratum of every score bin [B], ascending; fewer than bins where groups are very many."""
    count = min(bins, max(1, min(_MOST_STRATA, _GROUP_STRATA // groups)))
    return np.arange(bins) * count // bins


def _labels(
    index: GroupIndex, groups: Groups, labels: Labels, strata: RateStrata, *, open_is_positive: bool = False
) -> RateLabels:
    """Effective labels of every group and stratum, of one run.

    Items without a label that may have any true class are positive with `open_is_positive`, where they are
    not selected, and not right either.
    """
    inside = groups.labels_of(labels)
    cells, positive_class = index.cells, index.space.classes.index(_positive(index))
    selected = cells.classes[inside.cells] == positive_class
    number, width = groups.cells[inside.cells], strata.shares.shape[1]
    of_bins = _score_strata(index.space.bin_count, len(groups.names))
    place = number * width + selected * (width // 2) + of_bins[cells.bins[inside.cells]]
    positive = np.where(selected, inside.correct > 0, inside.true_classes == positive_class)
    if open_is_positive:
        positive |= ~selected & (inside.correct == 0) & (inside.true_classes == NO_CLASS)
    if len(index.space.classes) == 2:  # noqa: PLR2004 - then whoever is not right means the other class
        positive = selected == (inside.correct > 0)
    total, ones = effective_counts(
        groups=place,
        group_count=strata.shares.size,
        weights=inside.weights,
        freshness=inside.freshness,
        correct=positive.astype(np.float64),
    )
    shape = (1, len(groups.names), width)
    return RateLabels(strata, total.reshape(shape), ones.reshape(shape))


def _positive(index: GroupIndex) -> str:
    if index.space.selections is None:
        raise ValueError("no assessment of this model estimates error rates")
    return index.space.selections.positive


def _gains(names: Sequence[str], draws: Floats, labels: Floats, limits: Floats) -> ScoreGains:
    """What one more label of every group is worth, for a rate with these draws [S, G].

    It reduces the variance of the group's rate by about a part in as many as it has labels. That matters if
    the group is the highest or the lowest one, or if it is open whether it is beyond its limit.
    """
    known = np.where(np.isnan(draws), 0.5, draws)
    count = len(names)
    ends = sum(np.bincount(end, minlength=count) for end in (known.argmax(axis=1), known.argmin(axis=1)))
    matters = ends / len(known) if count > 1 else np.zeros(count)
    beyond = (known > limits).mean(axis=0)  # none is above NaN, and that is no doubt
    matters = matters + np.minimum(beyond, 1 - beyond)
    gains = matters * known.var(axis=0) / (labels + 1)
    return ScoreGains(
        dict(zip(names, gains.tolist(), strict=True)), dict(zip(names, labels.tolist(), strict=True))
    )
