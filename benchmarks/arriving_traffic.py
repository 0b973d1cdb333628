"""Evidence on error rates of traffic: shares of strata are counted while it arrives, and labels are drawn.

Groups do not differ by more than is allowed, whatever the shares of their strata are by then. Evidence is
looked at after every label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from service.domain.arrays import Flags, Floats, Indices
from service.replay.rate_runs import RateItems, true_rates
from service.statistics.e_processes import log_arrival_weights
from service.statistics.policies import proportional
from service.statistics.rates.allocation import aim
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.gaps import log_e_any_difference
from service.statistics.rates.label_evidence import Capital, LabelEvidence, StratumDraws, stratum_estimator
from service.statistics.rates.measures import Rate
from service.statistics.rates.strata import RateLabels, RateStrata
from service.statistics.ratios import ratio

_LEAST_LEFT = 0.3  # of a share that moves


@dataclass(frozen=True)
class Arrivals:
    """Traffic of G groups with K strata each."""

    selected: Flags  # [K]
    positive: Floats  # shares of positive items [G, K]
    scores: Floats  # [G, K]
    begin: Floats  # shares of strata at first [G, K]
    end: Floats  # and in the end [G, K]
    first: int  # predictions of every group before the first label
    per_label: int  # and with every label
    half_life: float = np.inf  # of what is counted, in labels

    @classmethod
    def of(cls, items: RateItems, *, first: int, per_label: int, half_life: float = np.inf) -> Arrivals:
        """Traffic like some items, in which nothing moves."""
        strata = items.strata
        if strata.sizes is None:
            raise ValueError("the number of items of every stratum is needed")
        positive = ratio(items.positives, strata.sizes, 0.0)
        return cls(
            *(strata.selected, positive, strata.scores, strata.shares, strata.shares),
            first=first,
            per_label=per_label,
            half_life=half_life,
        )

    def moving(self, rate: Rate, rates: Floats, rng: np.random.Generator) -> Arrivals:
        """The same with shares that move so far as they can while the rates of the groups [G] stay."""
        ends = []
        for group, true in enumerate(rates):
            kinds = self.selected.astype(np.intp)
            gains = rate.numerator - true * rate.denominator
            of = gains[0][kinds] + (gains[1] - gains[0])[kinds] * self.positive[group]
            free = linalg.null_space(np.stack([np.ones(len(of)), of]))
            step = free @ rng.normal(size=free.shape[1])
            shares = self.begin[group]
            most = ((1 - _LEAST_LEFT) * shares / np.maximum(-step, 1e-12))[step < 0].min()
            ends.append(shares + most * step)
        return Arrivals(**(vars(self) | {"end": np.array(ends)}))


def confirmed(
    arrivals: Arrivals,
    rate: Rate,
    difference: float,
    *,
    runs: int,
    budget: int,
    alpha: float,
    rng: np.random.Generator,
) -> Floats:
    """After how many labels each run confirmed that groups differ by more; infinite if never [R]."""

    def is_confirmed(evidence: LabelEvidence) -> Flags:
        return np.asarray(log_e_any_difference(evidence, difference) >= -np.log(alpha))

    return _first_labels(arrivals, rate, is_confirmed, runs=runs, budget=budget, rng=rng)


def confirmed_limit(
    arrivals: Arrivals,
    rate: Rate,
    limits: Floats,
    *,
    runs: int,
    budget: int,
    alpha: float,
    rng: np.random.Generator,
) -> Floats:
    """After how many labels each run confirmed that a group is above any of these limits [R].

    So the limit, and the group that has one, may be chosen after looking. Every group has the share of alpha
    that it would have if all had limits.
    """
    shares = log_arrival_weights(np.arange(1, len(arrivals.begin) + 1))

    def is_confirmed(evidence: LabelEvidence) -> Flags:
        highest = np.max([evidence.log_e_exceeds(limit) for limit in limits.tolist()], axis=0)
        return np.asarray((highest + shares >= -np.log(alpha)).any(axis=1))

    return _first_labels(arrivals, rate, is_confirmed, runs=runs, budget=budget, rng=rng)


def _first_labels(
    arrivals: Arrivals,
    rate: Rate,
    is_confirmed: Callable[[LabelEvidence], Flags],
    *,
    runs: int,
    budget: int,
    rng: np.random.Generator,
) -> Floats:
    """After how many labels evidence first confirmed something in each run; infinite if never [R]."""
    count, width = arrivals.begin.shape
    every = runs * count
    weights = np.zeros((every, width))
    answered = RateLabels.none(RateStrata(weights, arrivals.selected, np.tile(arrivals.scores, (runs, 1))), 1)
    shape = every, len(LIMITS), 6
    capital = Capital(np.zeros(shape), np.zeros(shape))
    found = np.full(runs, np.inf)
    for label in range(1, budget + 1):
        shares = arrivals.begin + (arrivals.end - arrivals.begin) * label / budget
        more = arrivals.first if label == 1 else arrivals.per_label
        weights *= 0.5 ** (1 / arrivals.half_life)
        weights += rng.multinomial(more, np.tile(shares, (runs, 1)))
        strata = RateStrata(
            weights / weights.sum(axis=1, keepdims=True), arrivals.selected, answered.strata.scores
        )
        answered = RateLabels(strata, answered.labels, answered.positives)
        groups = _chosen(rate, answered, runs, rng)
        draws = _draw(arrivals, rate, answered, groups, rng)
        capital += Capital.of_draws(rate, LIMITS, draws, every)
        evidence = LabelEvidence.of(rate, LIMITS, capital)
        by_run = LabelEvidence(
            *(rate, LIMITS),
            *(each.reshape(runs, count, -1) for each in (evidence.log_e_above, evidence.log_e_below)),
        )
        found[is_confirmed(by_run) & np.isinf(found)] = label
    return found


def _chosen(rate: Rate, answered: RateLabels, runs: int, rng: np.random.Generator) -> Indices:
    """A group of every run, mostly the one of which labels say more [R]."""
    strata, here = answered.strata, np.arange(len(answered.strata.shares))
    run = np.zeros(len(here), np.intp)
    spreads = aim(rate, answered, run, here, np.full(len(here), 0.5), others=True).spread
    labels = answered.labels[0].sum(axis=1)
    worth = (np.minimum(spreads, 1e3) / (labels + 1)).reshape(runs, -1)
    return np.arange(runs) * (len(strata.shares) // runs) + proportional(worth**2, rng)


def _draw(
    arrivals: Arrivals, rate: Rate, answered: RateLabels, groups: Indices, rng: np.random.Generator
) -> StratumDraws:
    """A stratum of every group that was chosen, and its label."""
    run = np.zeros(len(groups), np.intp)
    chances = aim(rate, answered, run, groups, np.full(len(groups), 0.35), others=True).chances
    expected, strata = answered.expected(run, groups), proportional(chances, rng)
    shares = answered.strata.shares[groups]
    numbers = np.array(
        [
            stratum_estimator(*each[:3], selected=arrivals.selected, drawn=int(each[3]))
            for each in zip(shares, chances, expected, strata, strict=True)
        ]
    ).astype("<f4")
    positive = rng.random(len(groups)) < arrivals.positive[groups % len(arrivals.positive), strata]
    answered.add(run, groups, strata, positive)
    return StratumDraws(
        groups=groups,
        selected=arrivals.selected[strata],
        positive=positive,
        has_label=np.ones(len(groups), np.bool_),
        estimators=numbers.astype(np.float64),
    )


def null_traffic(
    items: RateItems, rate: Rate, *, first: int, per_label: int, moves: bool, rng: np.random.Generator
) -> Arrivals:
    """Traffic like some items, whose rates stay, while shares move or not."""
    arrivals = Arrivals.of(items, first=first, per_label=per_label, half_life=100.0 if moves else np.inf)
    return arrivals.moving(rate, true_rates(items, rate), rng) if moves else arrivals
