"""Anytime-valid evidence that error rates are beyond their limits, from labels whose draws were kept (pure).

A label of an item that was drawn for its stratum has one factor in the evidence, which was fixed but for the
label when it was requested. It counts once all earlier requests for its group have ended, and never loses
weight. A request without a label, if any true class is allowed for, counts as what says the least. So do the
items of a census, or of an even sample of all traffic, which are random items of their groups.

Of what is confirmed of one assessment at any one time, a share of alpha is false on average, at the most; and
while nothing is wrong, anything is ever confirmed with at most that probability.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Flags, Floats, UInt64s
from service.domain.assessments import RateName
from service.domain.cells import OTHER, grouping_key
from service.domain.request_order import NO_PLACE
from service.monitoring.evidence_base import arrival_order
from service.monitoring.group_index import GroupIndex
from service.monitoring.open_places import first_open
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.outcome_rows import GroupKey, stratum_group
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase, arrival_numbers
from service.statistics.balance_heuristic import sums
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


@dataclass(frozen=True)
class Labelled:
    """Labels of the groups of one grouping that are evidence."""

    groups: list[str]
    arrivals: list[str]  # in the order of their first requests, also those without traffic now
    base: RateBase  # what labels said that are not among these
    draws: StratumDraws  # of strata that were drawn
    marks: UInt64s  # of these: which outcome each is, and what its label says [n]
    labels: Floats  # random items, by whether they are positive, and selected [G, 2, 2]
    unlabelled: Floats  # those that may have any true class, by whether they are selected [G, 2]

    def part(self, which: Flags) -> Labelled:
        """Of some groups [G]."""
        chosen, places = which[self.draws.groups], np.cumsum(which) - 1
        draws = self.draws.part(chosen)
        return replace(
            self,
            groups=[name for name, is_in in zip(self.groups, which.tolist(), strict=True) if is_in],
            draws=replace(draws, groups=places[draws.groups]),
            marks=self.marks[chosen],
            labels=self.labels[which],
            unlabelled=self.unlabelled[which],
        )


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
    for name, rate in RATES.items():
        if not rate.needs_labels:
            continue
        # Nothing can differ by more than 1, nor be less than 0 times as high.
        most = settings.max_differences.get(name, 1.0)
        least = settings.min_ratios.get(name, 0.0)
        log_e, difference, quotient = np.full(len(own), np.nan), np.nan, np.nan
        if (configured := _configured(settings, name)).size:
            evidence, counted[name] = _evidence(name, name, labelled, configured, before.get(name))
            log_e = np.where(own, _beyond(evidence, limits[name], is_good=rate.is_good), np.nan)
        if most < 1 or least > 0:
            gap = f"{name} of groups"
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
    capital += Capital.of_sample(rate, limits, labelled.labels, labelled.unlabelled)
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
    if before is None or not continues:
        return CountedCapital(groups, limits, marks, Capital.of_draws(rate, limits, draws, len(groups)))
    new = ~np.isin(marks, before.marks)
    more = Capital.of_draws(rate, limits, draws.part(new), len(groups)) if new.any() else None
    return CountedCapital(groups, limits, marks, before.capital if more is None else before.capital + more)


def _beyond(evidence: LabelEvidence, limits: Floats, *, is_good: bool) -> Floats:
    """Log e-values against "the rate of each group is within its limit" [G]; NaN without one."""
    test = evidence.log_e_falls_short if is_good else evidence.log_e_exceeds
    found = np.full(len(limits), np.nan)
    for limit in np.unique(limits[~np.isnan(limits)]).tolist():
        of = limits == limit
        found[of] = test(limit)[0, of]
    return found


def evidence_labels(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    opened: Mapping[GroupKey, int],
    *,
    now: float,
    since: float | None,
    any_class: Collection[int],
    base: RateBase,
    until: int = NO_PLACE,
) -> Labelled:
    """Labels of an assessment's groups that are evidence, by requests before the place `until`.

    It begins with what was predicted `since` the end of the reference window, if one was set. `opened` has
    the places of the first open requests, as of `open_places`.
    """
    groups, positive_class = index[settings.grouping], index.space.classes.index(settings.positive_class)
    asked = settings.asked_grouping
    drawn = ledger.stratum_labels(asked, at=now, unanswered=any_class)
    key = grouping_key(asked, index.space.groupings[asked].definition(index.space.score_edges))
    # Labels that come late may be of another kind than those that come at once.
    first_still_open = first_open(opened, key, groups.names)
    ended = np.append(np.minimum(first_still_open, np.uint64(until)), np.uint64(0))
    counts = (drawn.places < ended[groups.numbers[drawn.cells]]) & (drawn.places > base.position)
    if since is not None:
        counts &= drawn.predicted_at >= since
    drawn = drawn.part(counts)
    positive = drawn.true_classes == positive_class
    labels, unlabelled = _sampled(
        settings, index, ledger, positive_class, now=now, since=since, any_class=any_class
    )
    firsts = {
        of[1]: place
        for drawn_for, place in ledger.first_requests().items()
        if (of := stratum_group(drawn_for)) is not None and of[0] == key
    }
    for name, place in zip(groups.names, first_still_open.tolist(), strict=True):
        firsts[name] = min(place, firsts.get(name, NO_PLACE))
    return Labelled(
        groups=groups.names,
        arrivals=arrival_order(base.arrived, firsts, until=until),
        base=base,
        draws=StratumDraws(
            groups=groups.cells[drawn.cells],
            selected=index.cells.classes[drawn.cells] == positive_class,
            positive=positive,
            has_label=drawn.true_classes >= NO_CLASS,
            estimators=drawn.estimators,
        ),
        marks=drawn.marks + positive.astype(np.uint64),
        labels=labels,
        unlabelled=unlabelled,
    )


def _sampled(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    positive_class: int,
    *,
    now: float,
    since: float | None,
    any_class: Collection[int],
) -> tuple[Floats, Floats]:
    """Labels of an even sample of all traffic, and items of it without one, as `Labelled` has them."""
    groups = index[settings.grouping]
    shape = len(groups.names), 2
    if not ledger.samples_traffic:
        return np.zeros((*shape, 2)), np.zeros(shape)
    outcomes = ledger.sums(at=now, decay=0.0, since=since, unanswered=any_class)
    chosen = outcomes.part(ledger.of_traffic[outcomes.sources] & groups.has_group[outcomes.cells])
    selected = index.cells.classes[chosen.cells] == positive_class
    place = 2 * groups.cells[chosen.cells] + selected
    counts, size = chosen.counts.astype(np.float64), 2 * len(groups.names)
    is_open, positive = chosen.true_classes < NO_CLASS, chosen.true_classes == positive_class
    labels = [
        sums(place, counts * (~is_open & (positive == kind)), size).reshape(shape) for kind in (False, True)
    ]
    return np.stack(labels, axis=1), sums(place, counts * is_open, size).reshape(shape)


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
