"""Anytime-valid evidence that error rates are beyond their limits, from labels whose draws were kept (pure).

A label of an item that was drawn for its stratum has one factor in the evidence, which was fixed but for the
label when it was requested. It counts once all earlier requests for its group have ended, and never loses
weight. A request without a label, if any true class is allowed for, counts as what says the least. So do the
items of a census, or of an even sample of all traffic, which are random items of their groups. If labels may
be wrong, bets allow for as many as are stated to be wrong at most (`statistics/rates/wrong_labels.py`).

Of what is confirmed of one assessment at any one time, a share of alpha is false on average, at the most; and
while nothing is wrong, anything is ever confirmed with at most that probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Flags, Floats, UInt64s
from service.domain.assessments import RateName
from service.domain.cells import OTHER
from service.monitoring.rate_base import arrival_numbers
from service.monitoring.rate_labels import Labelled
from service.statistics.e_processes import discoveries, log_arrival_weights
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.gaps import log_e_any_difference, log_e_any_ratio
from service.statistics.rates.label_evidence import Capital, LabelEvidence, StratumDraws
from service.statistics.rates.measures import RATES, Rate

_MOST_COMPARED: Final = 50  # groups of which all pairs are tested against one another


@dataclass(frozen=True)
class RateProof:
    """What labels prove of one rate; log e-values are NaN without a limit."""

    log_e: Floats  # that the rate of every group is beyond its limit [G]
    log_e_difference: float
    log_e_ratio: float
    confirmed: Flags  # of every group [G]
    difference_confirmed: bool
    ratio_confirmed: bool


@dataclass(frozen=True)
class CountedCapital:
    """The capital of one rate by labels that were counted in an earlier round."""

    groups: list[str]
    limits: Floats  # that the rate is tested against [T]
    marks: UInt64s  # of the labels, ascending [n]
    capital: Capital


@dataclass(frozen=True)
class RateProofs:
    """Evidence on the rates of one assessment."""

    proofs: Mapping[RateName, RateProof]
    counted: Mapping[str, CountedCapital]  # by what it is evidence on


def error_rate_evidence(
    settings: ErrorRateSettings,
    labelled: Labelled,
    limits: Mapping[RateName, Floats],
    *,
    alpha: float,
    before: Mapping[str, CountedCapital],
) -> RateProofs:
    """Evidence on every rate that depends on labels, by limits of every group [G].

    What was counted `before` is not counted again. Values of the attribute without a group of their own are
    left out, as which these are depends on the traffic. Of very many groups, those that arrived first are
    compared: which these are does not change.
    """
    own = np.array([name != OTHER for name in labelled.groups], np.bool_)
    numbers = arrival_numbers(labelled.groups, labelled.arrivals)
    first = labelled.part(own & (numbers <= _MOST_COMPARED))
    found: dict[RateName, tuple[Floats, float, float]] = {}
    counted: dict[str, CountedCapital] = {}
    # What allows for another share of wrong labels is other evidence, in a checkpoint too.
    how = f" if {labelled.wrong_labels} of the labels are wrong" if labelled.wrong_labels else ""
    for name, rate in RATES.items():
        if not rate.needs_labels:
            continue
        # Nothing can differ by more than 1, nor be less than 0 times as high.
        most = settings.max_differences.get(name, 1.0)
        least = settings.min_ratios.get(name, 0.0)
        log_e, difference, quotient = np.full(len(own), np.nan), np.nan, np.nan
        if (configured := _configured(settings, name)).size:
            of = f"{name}{how}"
            evidence, counted[of] = _evidence(name, of, labelled, configured, before.get(of))
            log_e = np.where(own, _beyond(evidence, limits[name], is_good=rate.is_good), np.nan)
        if most < 1 or least > 0:
            gap = f"{name} of groups{how}"
            evidence, counted[gap] = _evidence(name, gap, first, LIMITS, before.get(gap))
            difference = float(log_e_any_difference(evidence, most)[0]) if most < 1 else np.nan
            quotient = float(log_e_any_ratio(evidence, least)[0]) if least > 0 else np.nan
        found[name] = log_e, difference, quotient
    return RateProofs(_concluded(settings, found, log_arrival_weights(numbers), alpha), counted)


def _configured(settings: ErrorRateSettings, name: RateName) -> Floats:
    """All limits of a rate, whether their groups have traffic or not, ascending."""
    found = {own[name] for own in (settings.limits, *settings.group_limits.values()) if name in own}
    return np.array(sorted(found), np.float64)


def _evidence(
    name: RateName, of: str, labelled: Labelled, limits: Floats, before: CountedCapital | None
) -> tuple[LabelEvidence, CountedCapital]:
    """Evidence on one rate against some limits [T]; the checkpoint knows it by what it is evidence `of`."""
    rate = RATES[name]
    counted = _counted(rate, labelled, limits, before)
    capital = counted.capital + labelled.base.capital(of, labelled.groups, limits)
    capital += Capital.of_sample(
        rate, limits, labelled.labels, labelled.unlabelled, wrong_labels=labelled.wrong_labels
    )
    return LabelEvidence.of(rate, limits, capital), counted


def rate_limits(settings: ErrorRateSettings, groups: Sequence[str]) -> dict[RateName, Floats]:
    """The limits of every rate in every group [G]; NaN without one."""
    found = {}
    for name in RATES:
        limits = [None if name == "selection_rate" else settings.limit(name, group) for group in groups]
        found[name] = np.array([np.nan if limit is None else limit for limit in limits], np.float64)
    return found


def _counted(rate: Rate, labelled: Labelled, limits: Floats, before: CountedCapital | None) -> CountedCapital:
    """The capital by labels of strata: that of earlier rounds, with those labels that are new.

    From the beginning, if one that was counted is no more, or says something else.
    """
    marks, draws, groups = labelled.marks, labelled.draws, labelled.groups
    continues = (
        before is not None
        and before.groups == groups
        and np.array_equal(before.limits, limits)
        and np.isin(before.marks, marks).all()
    )

    def capital(of: StratumDraws) -> Capital:
        return Capital.of_draws(rate, limits, of, len(groups), wrong_labels=labelled.wrong_labels)

    if before is None or not continues:
        return CountedCapital(groups, limits, marks, capital(draws))
    new = ~np.isin(marks, before.marks)
    more = capital(draws.part(new)) if new.any() else None
    return CountedCapital(groups, limits, marks, before.capital if more is None else before.capital + more)


def _beyond(evidence: LabelEvidence, limits: Floats, *, is_good: bool) -> Floats:
    """Log e-values against "the rate of each group is within its limit" [G]; NaN without one."""
    test = evidence.log_e_falls_short if is_good else evidence.log_e_exceeds
    found = np.full(len(limits), np.nan)
    for limit in np.unique(limits[~np.isnan(limits)]).tolist():
        of = limits == limit
        found[of] = test(limit)[0, of]
    return found


def _concluded(
    settings: ErrorRateSettings,
    found: Mapping[RateName, tuple[Floats, float, float]],
    log_weights: Floats,
    alpha: float,
) -> dict[RateName, RateProof]:
    """What is confirmed, by weighted e-BH over all hypotheses.

    The limits of a rate, its difference and its ratio have the same share of alpha each, as many of these as
    are configured. Of the share of limits, every group has a part that is fixed when it arrives
    (`log_weights` [G]): if each newcomer had a chance of its own, these would add up.
    """
    limited = {*settings.limits, *(name for own in settings.group_limits.values() for name in own)}
    questions = max(len(limited) + len(settings.max_differences) + len(settings.min_ratios), 1)
    every = np.concatenate(
        [np.append(groups, (difference, ratio)) for groups, difference, ratio in found.values()]
    )
    weights = np.tile(np.append(log_weights, (0.0, 0.0)), len(found)) - np.log(questions)
    taken = discoveries(every, alpha, weights)
    parts = np.split(taken, len(found))
    return {
        name: RateProof(*known, part[:-2], bool(part[-2]), bool(part[-1]))
        for (name, known), part in zip(found.items(), parts, strict=True)
    }
