"""Anytime-valid evidence that error rates are beyond their limits, from labels of random items (pure).

Labels that were requested for the grouping are of random items of each group, whatever the policy. Each
counts once, and never loses weight. A request without a label, if any true class is allowed for, counts as
what says the least. Of what is confirmed of one assessment at any one time, a share of alpha is false on
average, at the most; and while nothing is wrong, anything is ever confirmed with at most that probability.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Flags, Floats
from service.domain.assessments import RateName
from service.domain.cells import OTHER
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import sums
from service.statistics.e_processes import discoveries
from service.statistics.rates.gaps import log_e_any_difference, log_e_any_ratio
from service.statistics.rates.measures import RATES
from service.statistics.rates.sample_evidence import SampleEvidence

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


def error_rate_evidence(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    limits: Mapping[RateName, Floats],
    *,
    alpha: float,
    now: float,
    since: float | None,
    any_class: Collection[int],
) -> dict[RateName, RateProof]:
    """Evidence on every rate that depends on labels, by limits of every group [G].

    It begins with what was predicted `since` the end of the reference window, if one was set. Values of the
    attribute without a group of their own are left out, as which these are depends on the traffic.
    """
    labels, unlabelled = _requested(settings, index, ledger, now=now, since=since, any_class=any_class)
    names = index[settings.grouping].names
    own = np.array([name != OTHER for name in names], np.bool_)
    few = np.count_nonzero(own) <= _MOST_COMPARED
    found: dict[RateName, tuple[Floats, float, float]] = {}
    for name, rate in RATES.items():
        if not rate.needs_labels:
            continue
        most, least = settings.max_differences.get(name), settings.min_ratios.get(name)
        if most is None and least is None and np.isnan(limits[name]).all():
            found[name] = np.full(len(names), np.nan), np.nan, np.nan
            continue
        evidence = SampleEvidence.of(rate, labels, unlabelled)
        compared = evidence.of_groups(own)
        found[name] = (
            np.where(own, _beyond(evidence, limits[name], is_good=rate.is_good), np.nan),
            float(log_e_any_difference(compared, most)[0]) if few and most not in (None, 1.0) else np.nan,
            float(log_e_any_ratio(compared, least)[0]) if few and least not in (None, 0.0) else np.nan,
        )
    return _concluded(found, alpha)


def _beyond(evidence: SampleEvidence, limits: Floats, *, is_good: bool) -> Floats:
    """Log e-values against "the rate of each group is within its limit" [G]; NaN without one."""
    test = evidence.log_e_falls_short if is_good else evidence.log_e_exceeds
    found = np.full(len(limits), np.nan)
    for limit in np.unique(limits[~np.isnan(limits)]).tolist():
        of = limits == limit
        found[of] = test(limit)[0, of]
    return found


def _requested(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    now: float,
    since: float | None,
    any_class: Collection[int],
) -> tuple[Floats, Floats]:
    """Labels by whether items are positive, and selected [G, 2, 2]; requests without one [G, 2]."""
    outcomes = ledger.sums(at=now, decay=0.0, since=since, unanswered=any_class)
    groups, positive_class = index[settings.grouping], index.space.classes.index(settings.positive_class)
    asked = ledger.is_sample_of(settings.grouping, unanswered=any_class)[outcomes.sources]
    chosen = outcomes.part(asked & groups.has_group[outcomes.cells])
    selected = index.cells.classes[chosen.cells] == positive_class
    place = 2 * groups.cells[chosen.cells] + selected
    counts, size = chosen.counts.astype(np.float64), 2 * len(groups.names)
    is_open, positive = chosen.true_classes < NO_CLASS, chosen.true_classes == positive_class
    shape = (len(groups.names), 2)
    labels = [
        sums(place, counts * (~is_open & (positive == kind)), size).reshape(shape) for kind in (False, True)
    ]
    return np.stack(labels, axis=1), sums(place, counts * is_open, size).reshape(shape)


def _concluded(
    found: Mapping[RateName, tuple[Floats, float, float]], alpha: float
) -> dict[RateName, RateProof]:
    """What is confirmed, by e-BH over all hypotheses that there are."""
    every = np.concatenate(
        [np.append(groups, (difference, ratio)) for groups, difference, ratio in found.values()]
    )
    taken = np.zeros(len(every), np.bool_)
    there = ~np.isnan(every)
    if there.any():
        taken[there] = discoveries(every[there], alpha)
    parts = np.split(taken, len(found))
    return {
        name: RateProof(*known, part[:-2], bool(part[-2]), bool(part[-1]))
        for (name, known), part in zip(found.items(), parts, strict=True)
    }
