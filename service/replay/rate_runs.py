"""Many runs that label the items of a recording until a rate's gap or excess is confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.e_processes import discoveries
from service.statistics.policies import NONE, proportional
from service.statistics.rates.allocation import choose_for_gap, choose_for_limit
from service.statistics.rates.evidence import Drawn, RateEvidence
from service.statistics.rates.gaps import log_e_any_difference
from service.statistics.rates.measures import Rate
from service.statistics.rates.strata import RateLabels, RateStrata, rates_of
from service.statistics.ratios import ratio

Way = Literal["aimed", "random", "plain"]
"""How labels are chosen and used: aimed at the question; random, with strata; or random, without strata."""

WAYS: Final[tuple[Way, ...]] = get_args(Way)


@dataclass(frozen=True)
class RateItems:
    """Items by group and stratum, and how many of them are positive [G, K]."""

    strata: RateStrata  # with sizes
    positives: Floats


@dataclass(frozen=True)
class RateQuestion:
    """What is to be confirmed of a rate: that groups differ by more than `difference`, or miss a `limit`."""

    rate: Rate
    difference: float | None = None  # in (0, 1)
    limit: float | None = None  # in (0, 1); the most, or of rates where more is better the least
    alpha: float = 0.05


class RateEnds(NamedTuple):
    """After how many labels something was confirmed; infinite if never."""

    confirmed: Floats  # the gap, or the first group [R]
    groups: Floats  # every group, if a limit is asked about [R, G]


def run_rates(
    items: RateItems, question: RateQuestion, way: Way, *, runs: int, budget: int, rng: np.random.Generator
) -> RateEnds:
    """Label item after item in every run, and look at the evidence after each; at most `budget` labels.

    A run ends when the gap is confirmed. With a limit it goes on, as further groups may miss it.
    """
    strata = items.strata
    labels = RateLabels.none(strata, runs)
    evidence = RateEvidence(question.rate, labels)
    ends = RateEnds(np.full(runs, np.inf), np.full((runs, len(strata.shares)), np.inf))
    going = np.arange(runs)
    for used in range(1, budget + 1):
        drawn = _draw(items, question, way, labels, rng, undecided=~np.isfinite(ends.groups[going]))
        evidence.observe(labels, drawn)
        labels.add(drawn.runs, drawn.groups, drawn.strata, drawn.positive)
        if question.limit is not None:
            found = _beyond(evidence, question, question.limit)
            ends.groups[going] = np.minimum(ends.groups[going], np.where(found, used, np.inf))
            ends.confirmed[going] = ends.groups[going].min(axis=1)
            continue
        done = log_e_any_difference(evidence, question.difference or 0.0) >= -np.log(question.alpha)
        if done.any():
            ends.confirmed[going[done]] = used
            stay = np.flatnonzero(~done)
            going, labels, evidence = going[stay], labels.part(stay), evidence.part(stay)
        if not len(going):
            break
    return ends


def label_items(
    items: RateItems, question: RateQuestion, way: Way, *, runs: int, budget: int, rng: np.random.Generator
) -> RateLabels:
    """So many labels of every run, chosen for the question, whatever evidence says."""
    labels = RateLabels.none(items.strata, runs)
    undecided = np.ones(labels.labels.shape[:2], np.bool_)
    for _ in range(budget):
        drawn = _draw(items, question, way, labels, rng, undecided=undecided)
        labels.add(drawn.runs, drawn.groups, drawn.strata, drawn.positive)
    return labels


def true_rates(items: RateItems, rate: Rate) -> Floats:
    """The rate of every group by all labels [G]; NaN where it counts no items."""
    strata = items.strata
    return rates_of(rate, strata.shares, strata.predictions, ratio(items.positives, _sizes(items), 0.0))


def _beyond(evidence: RateEvidence, question: RateQuestion, limit: float) -> Flags:
    """Groups that are shown to miss the limit [R, G], by e-BH over the groups."""
    good = question.rate.is_good
    log_e = evidence.log_e_falls_short(limit) if good else evidence.log_e_exceeds(limit)
    return np.stack([discoveries(each, question.alpha) for each in log_e])


def _draw(
    items: RateItems,
    question: RateQuestion,
    way: Way,
    labels: RateLabels,
    rng: np.random.Generator,
    *,
    undecided: Flags,
) -> Drawn:
    runs = np.arange(len(labels.labels))
    if way != "aimed":
        groups, strata, chances = _random(items, labels, rng)
    elif question.limit is not None:
        aimed = choose_for_limit(question.rate, labels, question.limit, undecided, rng)
        groups, strata, chances = aimed[0], aimed[1], aimed[2].chances
        # Where no group that is undecided has an item left, any item is labelled.
        any_group, any_stratum, any_chances = _random(items, labels, rng)
        stuck = strata == NONE
        groups, strata = np.where(stuck, any_group, groups), np.where(stuck, any_stratum, strata)
        chances = np.where(stuck[:, None], any_chances, chances)
    else:
        groups, strata, (chances, _) = choose_for_gap(question.rate, labels, rng)
    at = runs, groups, strata
    left = _sizes(items)[groups, strata] - labels.labels[at]
    positive = rng.random(len(runs)) * left < items.positives[groups, strata] - labels.positives[at]
    expected = None if way == "plain" else labels.expected(runs, groups)
    return Drawn(runs, groups, strata, positive, chances, expected)


def _random(
    items: RateItems, labels: RateLabels, rng: np.random.Generator
) -> tuple[Indices, Indices, Floats]:
    """Any item without a label, each with the same probability: its group and stratum, and chances [R, K]."""
    left = _sizes(items) - labels.labels
    groups = proportional(left.sum(axis=2), rng)
    within = left[np.arange(len(left)), groups]
    chances = ratio(within, within.sum(axis=1, keepdims=True), 0.0)
    return groups, proportional(chances, rng), chances


def _sizes(items: RateItems) -> Floats:
    if items.strata.sizes is None:
        raise ValueError("items without a number cannot be drawn")
    return items.strata.sizes
