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
from service.domain.arrays import Flags, Floats
from service.domain.assessments import RateName
from service.domain.cells import OTHER
from service.monitoring.error_rate_evidence import CountedCapital, RateProof, RateProofs, rate_limits
from service.monitoring.error_rate_strata import counted_strata, stratum_labels
from service.monitoring.group_index import GroupIndex
from service.monitoring.score_gains import ScoreGains
from service.monitoring.stratum_plan import StratumPlan, stratum_plan
from service.monitoring.weighted_labels import WeightedLabels
from service.statistics.estimate import Estimate
from service.statistics.rates.measures import RATES, Rate
from service.statistics.rates.posterior import (
    DRAWS,
    Ends,
    draw_rates,
    draws_needed,
    gap,
    gap_of_groups,
    joint_rate_intervals,
)
from service.statistics.rates.strata import RateLabels
from service.statistics.ratios import ratio

_FEWEST_DRAWS: Final = 400
_DRAWN_NUMBERS: Final = 2_000_000  # strata times draws, where groups are very many
_LEAST_LABELS: Final = 1.0
_NOTHING: Final = 1e-9  # effective labels
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
    # groups whose whole interval is beyond the limit, with enough labels, or of which evidence confirms it
    violated: Flags
    # whether the intervals of such groups are beyond the maximum, or the minimum, or evidence confirms it
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
    plan: StratumPlan  # how a stratum is drawn once its group is chosen
    counted: Mapping[str, CountedCapital]  # evidence by labels, which is not counted again


def error_rates_snapshot(
    settings: ErrorRateSettings,
    index: GroupIndex,
    weighted: WeightedLabels,
    prove: Callable[[Mapping[RateName, Floats]], RateProofs] | None,
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
    counted = counted_strata(index, settings.grouping, groups)
    if counted is None:
        return None
    strata = counted.strata
    answered = stratum_labels(index, groups, weighted.labels, strata)
    labels = [
        stratum_labels(index, groups, each, strata, open_is_positive=number % 2 == 0)
        for number, each in enumerate(weighted.imputed)
    ] or [answered]
    size = strata.shares.size * len(labels)
    most = max(DRAWS, draws_needed(len(groups.names), interval))
    draws = max(_FEWEST_DRAWS, min(most, _DRAWN_NUMBERS // size)) // len(labels) + 1
    drawn = [draw_rates(each, rng, draws=draws, traffic=counted.draw(rng, draws)) for each in labels]
    found = {name: np.concatenate([each[name] for each in drawn]) for name in RATES}
    found["precision"][:, counted.positive.sum(axis=1) == 0] = np.nan  # of items that there are none of
    counts = answered.labels[0].sum(axis=1)
    enough = counts >= max(min_labels, _LEAST_LABELS)
    is_one = np.array([name != OTHER for name in groups.names], np.bool_)
    compared = {name: is_one & (enough if rate.needs_labels else True) for name, rate in RATES.items()}
    limits = rate_limits(settings, groups.names)
    proofs = RateProofs({}, {}) if prove is None else prove(limits)
    return ErrorRatesSnapshot(
        positive_class=settings.positive_class,
        grouping=settings.grouping,
        groups=groups.names,
        shares=groups.shares,
        labels=counts,
        rates={
            name: _rate(
                *(settings, name, each, proofs.proofs.get(name)),
                limits=limits[name],
                compared=compared[name],
                unseen=_unseen(RATES[name], labels),
                interval=interval,
            )
            for name, each in found.items()
        },
        gains=_gains(groups.names, found[settings.rate], counts, limits[settings.rate]),
        plan=stratum_plan(
            settings,
            index,
            weighted.labels,
            np.where(counts > 0, found[settings.rate].mean(axis=0), np.nan),
            limits[settings.rate],
        ),
        counted=proofs.counted,
    )


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
