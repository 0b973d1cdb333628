"""How often a group at its limit is ever confirmed, by the labels that evidence uses.

One group, a false positive rate at its limit of 0.2, two strata, and a stream of 1,000 entries. The factor of
a label depends on its stratum and class alone, so evidence of labels in a row is a difference of cumulative
sums. Evidence is looked at after every 20 labels.
"""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.e_processes import log_arrival_weights
from service.statistics.rates.evidence import log_mean
from service.statistics.rates.label_evidence import Capital, StratumDraws, stratum_estimator
from service.statistics.rates.measures import RATES

LIMIT, STREAM, ALPHA, EVERY = 0.2, 1_000, 0.05, 20
SHARES, POSITIVE = np.array([0.7, 0.3]), np.array([0.1, 0.475])
CHANCES, EXPECTED = np.array([0.6, 0.4]), np.array([0.12, 0.45])
SELECTED = np.array([False, True])


def factors() -> Floats:
    """Logs of the factors of a label, by stratum and whether it is positive [4, B]."""
    rate, found = RATES["false_positive_rate"], []
    for stratum in (0, 1):
        numbers = stratum_estimator(SHARES, CHANCES, EXPECTED, selected=SELECTED, drawn=stratum)
        for positive in (False, True):
            draws = StratumDraws(
                np.zeros(1, np.intp),
                SELECTED[[stratum]],
                np.array([positive]),
                np.ones(1, np.bool_),
                numbers[None],
            )
            found.append(Capital.of_draws(rate, np.array([LIMIT]), draws, 1).above[0, 0])
    return np.array(found)


def sums(labels: int, rng: np.random.Generator) -> Floats:
    """Cumulative logs of the factors of random labels [labels + 1, B]."""
    strata = (rng.random(labels) < CHANCES[1]).astype(np.intp)
    positive = rng.random(labels) < POSITIVE[strata]
    logs = factors()[2 * strata + positive]
    return np.concatenate([np.zeros((1, logs.shape[1])), np.cumsum(logs, axis=0)])


def ever(log_capital: Floats) -> bool:
    """Whether any is confirmed, of the capital of bets [n, B]."""
    least = -np.log(ALPHA) - log_arrival_weights(np.array([1]))[0]
    return bool((log_mean(log_capital) >= least).any())


def of_all(known: Floats) -> Floats:
    """What is claimed."""
    return known[EVERY::EVERY]


def shared(known: Floats) -> Floats:
    """Half have a further draw: no checkpoint is written, and two thirds of the stream are left."""
    ends = np.arange(EVERY, len(known), EVERY)
    return np.asarray(known[ends] - known[np.maximum(ends - STREAM * 2 // 3, 0)], np.float64)


def flickering(known: Floats, period: int = 250) -> Floats:
    """Another group, with a limit of its own, comes into the traffic and leaves it."""
    found, base, position, of_base = [], np.zeros(known.shape[1]), 0, False
    for end in range(EVERY, len(known), EVERY):
        is_there = end // period % 2 == 1
        kept = base if of_base == is_there else 0.0 * base
        found.append(kept + known[end] - known[position])
        if end - position >= STREAM * 3 // 4:
            base, position, of_base = (
                kept + known[end - STREAM // 2] - known[position],
                end - STREAM // 2,
                is_there,
            )
    return np.array(found)


def confirmed(runs: int, labels: int, seed: int) -> dict[str, Flags]:
    """Of every run, whether anything was ever confirmed, by what evidence uses."""
    found: dict[str, list[bool]] = {}
    for run in range(runs):
        known = sums(labels, np.random.default_rng((seed, run)))
        for way in (of_all, shared, flickering):
            found.setdefault(way.__name__, []).append(ever(way(known)))
    return {name: np.array(each) for name, each in found.items()}
