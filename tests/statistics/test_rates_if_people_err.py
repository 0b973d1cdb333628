"""Bets on rates stay fair whatever labels are wrong, as long as no more are than is stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rate_examples import SELECTED

from service.domain.arrays import Floats
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.label_evidence import Capital, LabelEvidence, StratumDraws, stratum_estimator
from service.statistics.rates.measures import RATES, Rate
from service.statistics.rates.strata import rates_of
from service.statistics.rates.wrong_labels import allow_for_wrong_labels

LABELLED = [rate for rate in RATES.values() if rate.needs_labels]
FOUR = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4)
PARTS = st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8)


def mean_factors(
    rate: Rate, shares: Floats, classes: Floats, expected: Floats, *, wrong: Floats, bound: float
) -> Floats:
    """Mean factors of one label at the true rate, against both sides [2].

    The share of wrong labels is by whether an item is positive, and its stratum [2, 4].
    """
    kinds = SELECTED.astype(np.intp)
    limit = rates_of(rate, shares, kinds, classes)
    chances = 0.5 * shares + 0.5 / len(shares)
    mean = np.zeros(2)
    for stratum, share in enumerate(classes.tolist()):
        numbers = stratum_estimator(shares, chances, expected, selected=SELECTED, drawn=stratum)[None]
        positive = share * (1 - wrong[1, stratum]) + (1 - share) * wrong[0, stratum]
        for says, chance in ((True, positive), (False, 1 - positive)):
            draws = StratumDraws(
                np.zeros(1, np.intp), SELECTED[[stratum]], np.array([says]), np.ones(1, np.bool_), numbers
            )
            limits = np.array([limit])
            capital = Capital.of_draws(rate, limits, draws, 1, wrong_labels=bound)
            found = LabelEvidence.of(rate, limits, capital)
            log_e = np.array([found.log_e_above[0, 0, 0], found.log_e_below[0, 0, 0]])
            mean += chances[stratum] * chance * np.exp(log_e)
    return mean


@given(
    rate=st.sampled_from(LABELLED),
    shares=FOUR,
    true=FOUR,
    expected=FOUR,
    parts=PARTS,
    bound=st.floats(0, 0.45),
)
def test_a_label_that_may_be_wrong_raises_evidence_by_nothing_on_average(
    *,
    rate: Rate,
    shares: list[float],
    true: list[float],
    expected: list[float],
    parts: list[float],
    bound: float,
) -> None:
    of, wrong = np.array(shares) / sum(shares), bound * np.array(parts).reshape(2, 4)
    mean = mean_factors(rate, of, np.array(true), np.array(expected), wrong=wrong, bound=bound)
    assert (mean <= 1 + 1e-6).all()


@pytest.mark.parametrize("rate", LABELLED, ids=lambda rate: rate.name)
def test_it_is_exact_if_as_many_labels_as_possible_are_wrong_where_that_gains(rate: Rate) -> None:
    shares, bound = np.array([0.4, 0.2, 0.3, 0.1]), 0.1
    classes, expected = np.array([0.2, 0.4, 0.6, 0.9]), np.full(4, 0.5)
    limit = rates_of(rate, shares, SELECTED.astype(np.intp), classes)
    gains = rate.numerator - limit * rate.denominator
    kinds = SELECTED.astype(np.intp)
    for side, signed in enumerate((gains, -gains)):
        wrong = np.where(signed[::-1] > signed, bound, 0.0)[:, kinds]
        mean = mean_factors(rate, shares, classes, expected, wrong=wrong, bound=bound)
        assert mean[side] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("rate", LABELLED, ids=lambda rate: rate.name)
def test_labels_that_are_taken_for_the_truth_raise_evidence_by_more(rate: Rate) -> None:
    shares = np.array([0.4, 0.2, 0.3, 0.1])
    classes, expected = np.array([0.2, 0.4, 0.6, 0.9]), np.full(4, 0.5)
    mean = mean_factors(rate, shares, classes, expected, wrong=np.full((2, 4), 0.1), bound=0.0)
    assert mean.max() > 1.001


@given(st.floats(0, 0.4), st.floats(0, 0.4))
def test_the_more_labels_may_be_wrong_the_less_each_gains(one: float, other: float) -> None:
    gains = RATES["false_positive_rate"].numerator - LIMITS[:, None, None]
    fewer, more = (allow_for_wrong_labels(gains, bound) for bound in sorted((one, other)))
    assert (more <= fewer + 1e-12).all()
    assert (fewer <= gains + 1e-12).all()
