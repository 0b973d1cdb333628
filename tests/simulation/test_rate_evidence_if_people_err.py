"""Evidence on error rates where one label in twenty is wrong: nothing false with a bound, much without."""

from __future__ import annotations

import numpy as np
from scipy import stats

from service.domain.arrays import Floats
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.gaps import log_e_any_difference
from service.statistics.rates.label_evidence import Capital, LabelEvidence
from service.statistics.rates.measures import RATES

RATE = RATES["false_positive_rate"]
ALPHA, WRONG = 0.05, 0.05
RUNS, LOOKS, EVERY = 200, 80, 25
"""Looked at so often, each time after so many more labels of every group."""


def said(false_positive: float, *, raised: bool) -> Floats:
    """Shares of labels by whether they are positive, and the item selected [2, 2].

    Of each kind of items as many labels are wrong as may be, where that raises the rate, or lowers it.
    """
    base, recall = 0.45, 0.7
    negative = (1 - base) * np.array([1 - false_positive, false_positive])
    true = np.stack([negative, base * np.array([1 - recall, recall])])
    rises = np.array([[True, False], [False, True]])
    wrong = true * WRONG * (rises if raised else ~rises)
    return np.asarray(true - wrong + wrong[::-1], np.float64)


def highest_log_e(rates: tuple[float, ...], *, limit: float, bound: float, exaggerate: bool) -> Floats:
    """The highest log e-value of every run [R], of one group above a limit or two apart by more than it.

    Wrong labels raise the rate of the first group and lower that of the second one, or the other way round.
    """
    rng, of = np.random.default_rng(0), len(rates)
    shares = [said(rate, raised=exaggerate != bool(group)).ravel() for group, rate in enumerate(rates)]
    limits = LIMITS if of > 1 else np.array([limit])
    capital = Capital(*np.zeros((2, RUNS * of, len(limits), 6)))
    found = np.full(RUNS, -np.inf)
    for _ in range(LOOKS):
        labels = np.stack([rng.multinomial(EVERY, share, RUNS) for share in shares], axis=1)
        counts = labels.reshape(RUNS * of, 2, 2).astype(np.float64)
        capital += Capital.of_sample(RATE, limits, counts, np.zeros((RUNS * of, 2)), wrong_labels=bound)
        evidence = LabelEvidence.of(RATE, limits, capital)
        if of == 1:
            log_e = evidence.log_e_exceeds(limit)[0]
        else:
            sides = (side.reshape(RUNS, of, -1) for side in (evidence.log_e_above, evidence.log_e_below))
            log_e = log_e_any_difference(LabelEvidence(RATE, limits, *sides), limit)
        found = np.maximum(found, log_e)
    return found


def confirmed(rates: tuple[float, ...], *, limit: float, bound: float, exaggerate: bool = True) -> int:
    """Runs that ever confirm it."""
    highest = highest_log_e(rates, limit=limit, bound=bound, exaggerate=exaggerate)
    return int((highest >= -np.log(ALPHA)).sum())


# A thousandth of the tests would fail at a rate of alpha.
MOST = int(stats.binom.ppf(0.999, RUNS, ALPHA))


def test_few_runs_ever_confirm_a_group_at_its_limit_if_the_bound_holds() -> None:
    assert confirmed((0.3,), limit=0.3, bound=WRONG) <= MOST


def test_few_runs_ever_confirm_groups_that_differ_by_what_is_allowed_if_the_bound_holds() -> None:
    assert confirmed((0.35, 0.25), limit=0.1, bound=WRONG) <= MOST


def test_labels_that_are_taken_for_the_truth_confirm_groups_at_their_limit() -> None:
    assert confirmed((0.3,), limit=0.3, bound=0.0) > 2 * MOST


def test_a_group_far_beyond_its_limit_is_confirmed_all_the_same() -> None:
    assert confirmed((0.45,), limit=0.3, bound=WRONG, exaggerate=False) > 0.95 * RUNS


def test_a_gap_far_above_what_is_allowed_is_confirmed_all_the_same() -> None:
    assert confirmed((0.6, 0.2), limit=0.1, bound=WRONG, exaggerate=False) > 0.95 * RUNS
