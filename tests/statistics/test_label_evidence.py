"""Evidence from labels of strata: fair bets whatever stratum is drawn, and one factor of each label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.arrays import Flags, Floats
from service.domain.stratum_estimator import ESTIMATOR_TYPE, packed_estimator, unpacked_estimators
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.label_evidence import Capital, LabelEvidence, StratumDraws, stratum_estimator
from service.statistics.rates.measures import RATES, Rate

LABELLED = [rate for rate in RATES.values() if rate.needs_labels]
SELECTED = np.array([False, False, True, True])
FOUR = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4)


def chances_of(shares: Floats, wanted: Floats, available: Flags) -> Floats:
    """Half of the chance by traffic, and half as wanted, of strata that have items."""
    chances = np.where(available, 0.5 * shares + 0.5 * wanted / wanted.sum(), 0.0)
    return np.asarray(chances / chances.sum(), np.float64)


def draws_of(estimators: Floats, strata: list[int], positive: list[bool], *, labelled: bool) -> StratumDraws:
    return StratumDraws(
        groups=np.zeros(len(strata), np.intp),
        selected=SELECTED[strata],
        positive=np.array(positive, np.bool_),
        has_label=np.full(len(strata), labelled),
        estimators=estimators,
    )


def log_e(rate: Rate, draws: StratumDraws, limits: Floats) -> tuple[Floats, Floats]:
    """Against both sides of every limit [T]."""
    found = LabelEvidence.of(rate, limits, Capital.of_draws(rate, limits, draws, 1))
    return found.log_e_above[0, 0], found.log_e_below[0, 0]


@given(
    shares=FOUR,
    wanted=FOUR,
    expected=FOUR,
    true=FOUR,
    missing=st.none() | st.integers(0, 3),
    rate=st.sampled_from(LABELLED),
)
def test_a_label_raises_evidence_at_the_true_rate_by_nothing_on_average(
    *,
    shares: list[float],
    wanted: list[float],
    expected: list[float],
    true: list[float],
    missing: int | None,
    rate: Rate,
) -> None:
    of, classes = np.array(shares) / sum(shares), np.array(true)
    chances = chances_of(of, np.array(wanted), np.arange(4) != missing)
    here = SELECTED.astype(np.intp)
    numerator, denominator = (
        float((of * (by[0][here] * (1 - classes) + by[1][here] * classes)).sum())
        for by in (rate.numerator, rate.denominator)
    )
    limits = np.array([numerator / denominator])
    mean = np.zeros(2)
    for stratum in np.flatnonzero(chances).tolist():
        numbers = stratum_estimator(of, chances, np.array(expected), selected=SELECTED, drawn=stratum)[None]
        for positive in (False, True):
            chance = chances[stratum] * (classes[stratum] if positive else 1 - classes[stratum])
            draws = draws_of(numbers, [stratum], [positive], labelled=True)
            mean += chance * np.exp(np.concatenate(log_e(rate, draws, limits)))
    if missing is None:
        assert mean == pytest.approx(1.0, abs=1e-6)
    else:
        assert (mean <= 1 + 1e-6).all(), "strata without an item may have any classes"


@pytest.mark.parametrize("rate", LABELLED, ids=lambda rate: rate.name)
def test_whatever_a_missing_label_would_be_it_is_more_evidence_than_none(rate: Rate) -> None:
    shares = np.array([0.4, 0.2, 0.3, 0.1])
    numbers = stratum_estimator(shares, shares, np.full(4, 0.3), selected=SELECTED, drawn=2)[None]
    least = log_e(rate, draws_of(numbers, [2], [False], labelled=False), LIMITS)
    for positive in (False, True):
        known = log_e(rate, draws_of(numbers, [2], [positive], labelled=True), LIMITS)
        for missing, there in zip(least, known, strict=True):
            assert (missing <= there + 1e-9).all()


def test_labels_add_up_in_whatever_pieces_they_are_counted() -> None:
    rng = np.random.default_rng(3)
    shares, rate = rng.dirichlet(np.ones(4)), RATES["false_positive_rate"]
    strata = rng.integers(0, 4, 600).tolist()
    numbers = np.array(
        [
            stratum_estimator(shares, shares, rng.random(4), selected=SELECTED, drawn=stratum)
            for stratum in strata
        ]
    )
    draws = draws_of(numbers, strata, (rng.random(600) < 0.4).tolist(), labelled=True)
    whole = Capital.of_draws(rate, LIMITS, draws, 1)
    parts = [Capital.of_draws(rate, LIMITS, draws.part(piece), 1) for piece in (slice(0, 7), slice(7, 600))]
    assert (parts[0] + parts[1]).above == pytest.approx(whole.above)
    assert (parts[0] + parts[1]).below == pytest.approx(whole.below)


def test_a_stratum_that_is_drawn_too_seldom_is_refused() -> None:
    shares = np.array([0.25, 0.25, 0.25, 0.25])
    with pytest.raises(ValueError, match="less than half of its share"):
        stratum_estimator(shares, np.array([0.1, 0.3, 0.3, 0.3]), np.full(4, 0.5), selected=SELECTED, drawn=1)


def test_what_is_kept_of_a_draw_is_read_as_it_was_written() -> None:
    numbers = 1 / 2.0 ** np.arange(10)
    column = np.array([packed_estimator(numbers)] * 3, ESTIMATOR_TYPE)
    assert unpacked_estimators(column).tolist() == [numbers.tolist()] * 3
    assert unpacked_estimators(column[:0]).shape == (0, 10)


@pytest.mark.parametrize("rate", LABELLED, ids=[rate.name for rate in LABELLED])
@given(labels=st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_random_items_are_less_evidence_against_a_limit_that_is_easier_to_keep(
    rate: Rate, labels: list[int]
) -> None:
    limits = LIMITS[1:-1]
    counts = np.array(labels, np.float64).reshape(1, 2, 2)
    found = LabelEvidence.of(rate, limits, Capital.of_sample(rate, limits, counts, np.zeros((1, 2))))
    # So a limit that is chosen after looking, and is kept, is confirmed no sooner than the rate itself.
    assert (np.diff(found.log_e_above[0, 0]) <= 1e-9).all()
    assert (np.diff(found.log_e_below[0, 0]) >= -1e-9).all()
