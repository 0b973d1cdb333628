"""How labels for error rates are drawn: the strata of every group, and the probability of each (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Floats
from service.domain.traffic_counts import rows_of
from service.domain.value_strata import ValueStrata
from service.monitoring.error_rate_strata import stratum_labels
from service.monitoring.group_index import GroupIndex
from service.statistics.groups import Labels
from service.statistics.rates.allocation import aim
from service.statistics.rates.measures import RATES
from service.statistics.rates.strata import RateStrata
from service.statistics.ratios import ratio


@dataclass(frozen=True)
class StratumPlan:
    """How a stratum is drawn once its group is chosen; arrays are [G, K]."""

    groups: list[str]
    strata: ValueStrata
    shares: Floats  # of a group's traffic; all 0 while nothing is counted by stratum
    chances: Floats  # at least half of the shares
    expected: Floats  # share of positive items


def stratum_plan(
    settings: ErrorRateSettings, index: GroupIndex, labels: Labels, means: Floats, limits: Floats
) -> StratumPlan:
    """The plan for the groups of an assessment, by the labels that there are.

    The rate's posterior `means` and `limits` say what labels have to tell apart [G]; NaN where unknown, or
    without a limit.
    """
    groups, strata = (
        index[settings.grouping],
        ValueStrata.of_grouping(index.space, settings.asked_grouping),
    )
    known = index[settings.asked_grouping]
    rows = rows_of(tuple(strata.names(groups.names)), tuple(known.names))
    shape = len(groups.names), len(strata)
    weights, scores = (
        np.where(rows >= 0, np.append(column.sum(axis=1), 0.0)[rows], 0.0).reshape(shape)
        for column in (known.weights, known.score_sums)
    )
    shares = ratio(weights, weights.sum(axis=1, keepdims=True), 0.0)
    scores = ratio(scores, weights, 0.5)
    # Without class probabilities, the rest is spread evenly over the classes that are not predicted.
    scores = np.where(strata.selected, scores, (1 - scores) / (len(index.space.classes) - 1))
    of = RateStrata(shares, strata.selected, scores)
    answered = stratum_labels(index, groups, labels, of, of=strata.of)
    here, run = np.arange(shape[0]), np.zeros(shape[0], np.intp)
    chances = shares
    if settings.policy == "adaptive":
        middle = (np.nanmin(means) + np.nanmax(means)) / 2 if np.isfinite(means).any() else 0.5
        near = np.where(np.isnan(limits), middle, limits)
        chances = aim(RATES[settings.rate], answered, run, here, near, others=True).chances
    return StratumPlan(groups.names, strata, shares, chances, answered.expected(run, here))
