"""Evidence on error rates: fair bets whatever is drawn, the confidence sequence, and gaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rate_examples import SELECTED, strata
from scipy import special

from service.domain.arrays import Floats
from service.statistics.rates.allocation import aim, choose_for_gap, choose_for_limit
from service.statistics.rates.evidence import LIMITS, Drawn, RateEvidence
from service.statistics.rates.gaps import (
    log_e_any_difference,
    log_e_any_ratio,
    log_e_difference,
    log_e_ratio,
)
from service.statistics.rates.label_evidence import Capital, LabelEvidence
from service.statistics.rates.measures import RATES, Rate
from service.statistics.rates.strata import RateLabels, RateStrata, rates_of

LABELLED = [rate for rate in RATES.values() if rate.needs_labels]
RATE = RATES["false_positive_rate"]


def sample_evidence(rate: Rate, labels: Floats, unlabelled: Floats, limits: Floats = LIMITS) -> LabelEvidence:
    """Of random items alone."""
    return LabelEvidence.of(rate, limits, Capital.of_sample(rate, limits, labels, unlabelled))


def mean_gains(
    rate: Rate, labels: RateLabels, true: Floats, *, chances: Floats, expected: Floats | None
) -> tuple[Floats, Floats]:
    """By how much a label multiplies the e-values against both sides of every limit, on average [T]."""
    of = labels.strata
    if of.sizes is not None:
        true = (true * of.sizes[0] - labels.positives[0, 0]) / np.maximum(
            of.sizes[0] - labels.labels[0, 0], 1
        )
    above, below = np.zeros(201), np.zeros(201)
    for stratum in range(4):
        for positive in (False, True):
            if not chances[stratum]:
                continue
            chance = chances[stratum] * (true[stratum] if positive else 1 - true[stratum])
            evidence = RateEvidence(rate, labels)
            drawn = Drawn(
                runs=np.array([0]),
                groups=np.array([0]),
                strata=np.array([stratum]),
                positive=np.array([positive]),
                chances=chances[None],
                expected=None if expected is None else expected[None],
            )
            evidence.observe(labels, drawn)
            above += chance * np.exp(evidence.log_e_above[0, 0])
            below += chance * np.exp(evidence.log_e_below[0, 0])
    return above, below


SHARES = st.lists(st.floats(0.05, 1), min_size=4, max_size=4)
PARTS = st.lists(st.floats(0.02, 0.98), min_size=4, max_size=4)


@given(shares=SHARES, true=PARTS, chances=SHARES, expected=PARTS | st.none(), rate=st.sampled_from(LABELLED))
def test_one_more_label_does_not_raise_evidence_on_average_if_the_rate_is_within_the_limit(
    shares: list[float], true: list[float], chances: list[float], expected: list[float] | None, rate: Rate
) -> None:
    of, positive = strata([shares]), np.array(true)
    drawn, prior = np.array(chances) / sum(chances), None if expected is None else np.array(expected)
    above, below = mean_gains(rate, RateLabels.none(of, 1), positive, chances=drawn, expected=prior)
    limits = RateEvidence(rate, RateLabels.none(of, 1)).limits
    value = rates_of(rate, of.shares[0], of.predictions, positive)
    assert (above[limits >= value] <= 1 + 1e-9).all()
    assert (below[limits <= value] <= 1 + 1e-9).all()


@given(
    counts=st.lists(st.integers(1, 30), min_size=4, max_size=4),
    seed=st.integers(0, 10_000),
    rate=st.sampled_from(LABELLED),
)
def test_evidence_without_replacement_is_about_all_items(counts: list[int], seed: int, rate: Rate) -> None:
    rng, of = np.random.default_rng(seed), strata([counts], sizes=True)
    assert of.sizes is not None
    positives = rng.integers(0, of.sizes[0] + 1)
    labels = RateLabels.none(of, 1)
    labels.labels[0, 0] = rng.integers(0, of.sizes[0] + 1)
    drawn = np.minimum(positives, labels.labels[0, 0])
    labels.positives[0, 0] = np.maximum(drawn - 1, positives - (of.sizes[0] - labels.labels[0, 0])).clip(0)
    left = of.sizes[0] - labels.labels[0, 0]
    true = positives / of.sizes[0]
    value = rates_of(rate, of.shares[0], of.predictions, true)
    if not left.any() or np.isnan(value):
        return
    above, below = mean_gains(rate, labels, true, chances=left / left.sum(), expected=np.full(4, 0.4))
    limits = RateEvidence(rate, labels).limits
    assert (above[limits >= value] <= 1 + 1e-9).all()
    assert (below[limits <= value] <= 1 + 1e-9).all()


def simulated(true: Floats, labels: int, *, runs: int = 40, seed: int = 0) -> tuple[RateEvidence, RateLabels]:
    """Evidence after so many labels of two groups with these shares of positive items [2, 4]."""
    of, rng = strata([[3, 3, 2, 2], [3, 3, 2, 2]], score=0.4), np.random.default_rng(seed)
    known, every = RateLabels.none(of, runs), np.arange(runs)
    evidence = RateEvidence(RATE, known)
    for _ in range(labels):
        groups, chosen, (chances, _) = choose_for_gap(RATE, known, rng)
        positive = rng.random(runs) < true[groups, chosen]
        evidence.observe(
            known, Drawn(every, groups, chosen, positive, chances, known.expected(every, groups))
        )
        known.add(every, groups, chosen, positive)
    return evidence, known


# False positive rates of 0.25 and 0.6: (0.4 (1 - p)) / (0.4 (1 - p) + 0.6 (1 - q)).
APART = np.array([[0.1, 0.1, 0.55, 0.55], [0.4, 0.4, 0.1, 0.1]])


def test_evidence_on_a_gap_grows_with_labels() -> None:
    evidence, _ = simulated(APART, 300)
    assert np.median(log_e_any_difference(evidence, 0.05)) > np.log(20)
    assert np.median(log_e_difference(evidence, 0.05)[:, 1, 0]) > np.log(20)
    assert (log_e_difference(evidence, 0.05)[:, 0, 1] < 0).all()


def test_no_evidence_says_that_a_group_differs_from_itself() -> None:
    evidence, _ = simulated(APART, 5)
    assert np.isneginf(log_e_difference(evidence, 0.0)[:, [0, 1], [0, 1]]).all()


def test_a_larger_gap_has_less_evidence() -> None:
    evidence, _ = simulated(APART, 200)
    found = [log_e_any_difference(evidence, least) for least in (0.0, 0.1, 0.2, 0.9)]
    assert all((more >= less).all() for more, less in pairwise(found))


def test_a_ratio_of_one_is_a_difference_of_nothing() -> None:
    evidence, _ = simulated(APART, 50)
    np.testing.assert_allclose(log_e_ratio(evidence, 1.0), log_e_difference(evidence, 0.0))
    np.testing.assert_allclose(log_e_any_ratio(evidence, 1.0), log_e_any_difference(evidence, 0.0))


def test_bounds_cover_the_rate_and_narrow() -> None:
    early, _ = simulated(APART, 50)
    late, known = simulated(APART, 500)
    true = rates_of(RATE, known.strata.shares, known.strata.predictions, APART)
    lower, upper = late.bounds(0.95)
    assert ((lower <= true) & (true <= upper)).mean() > 0.9
    assert (upper - lower).mean() < 0.6 * np.subtract(*early.bounds(0.95)[::-1]).mean()


def test_without_labels_a_rate_may_be_anything() -> None:
    evidence, _ = simulated(APART, 0)
    lower, upper = evidence.bounds(0.95)
    assert (lower == 0).all()
    assert (upper == 1).all()


def test_a_limit_between_two_of_the_grid_is_tested_at_the_safe_side() -> None:
    evidence, _ = simulated(APART, 100)
    np.testing.assert_array_equal(evidence.log_e_exceeds(0.3021), evidence.log_e_exceeds(0.305))
    np.testing.assert_array_equal(evidence.log_e_falls_short(0.3021), evidence.log_e_falls_short(0.3))


def test_evidence_of_some_runs_continues_alone() -> None:
    evidence, known = simulated(APART, 20, runs=6)
    part, labels = evidence.part(np.array([4])), known.part(np.array([4]))
    at, group, stratum = (np.array([number]) for number in (4, 1, 2))
    positive, chances, expected = np.array([True]), np.full((1, 4), 0.25), np.full((1, 4), 0.4)
    part.observe(labels, Drawn(np.array([0]), group, stratum, positive, chances, expected))
    evidence.observe(known, Drawn(at, group, stratum, positive, chances, expected))
    np.testing.assert_array_equal(part.log_e_above[0], evidence.log_e_above[4])
    np.testing.assert_array_equal(part.log_e_below[0], evidence.log_e_below[4])


def test_no_label_informs_about_the_selection_rate() -> None:
    with pytest.raises(ValueError, match="it is counted"):
        RateEvidence(RATES["selection_rate"], RateLabels.none(strata([[1, 1, 1, 1]]), 1))


def test_a_stratum_that_is_never_drawn_is_refused() -> None:
    labels = RateLabels.none(strata([[1, 1, 1, 1]]), 1)
    one, chances = np.array([0]), np.array([[0.5, 0.5, 0.0, 0.0]])
    with pytest.raises(ValueError, match="never be drawn"):
        RateEvidence(RATE, labels).observe(labels, Drawn(one, one, one, np.array([True]), chances, None))


@pytest.mark.parametrize("least", [-0.1, 1.0])
def test_a_difference_that_cannot_be_is_refused(least: float) -> None:
    evidence, _ = simulated(APART, 0, runs=1)
    with pytest.raises(ValueError, match="difference"):
        log_e_any_difference(evidence, least)


def test_one_group_has_no_evidence_of_a_gap() -> None:
    evidence = RateEvidence(RATE, RateLabels.none(strata([[1, 1, 1, 1]]), 3))
    np.testing.assert_array_equal(log_e_any_difference(evidence, 0.0), np.zeros(3))


def test_labels_go_where_they_tell_most_about_the_rate() -> None:
    of = strata([[4, 4, 1, 1]], score=0.5)
    labels = RateLabels.none(of, 1)
    labels.labels[0, 0], labels.positives[0, 0] = 100, [1, 50, 50, 50]
    chances = aim(RATE, labels, np.array([0]), np.array([0]), np.array([0.2])).chances[0]
    assert chances.sum() == pytest.approx(1)
    # Stratum 0 is nearly certain; a selected item tells four times as much as another one.
    assert chances[1] > 1.3 * chances[0]
    assert chances[2] > chances[1] / 2
    assert (chances >= 0.5 * of.shares[0] - 1e-12).all()


@given(p=st.floats(0.05, 0.95), limit=st.floats(0.05, 0.95))
def test_the_precision_needs_labels_of_selected_items_alone(p: float, limit: float) -> None:
    labels = RateLabels.none(strata([[1, 1, 1, 1]], score=p), 1)
    found = aim(RATES["precision"], labels, np.array([0]), np.array([0]), np.array([limit]))
    np.testing.assert_allclose(found.chances[0], [0, 0, 0.5, 0.5])
    expected = np.sqrt(special.xlogy(p, 1) + p * (1 - p))
    assert found.spread[0] == pytest.approx(expected, rel=0.05)


@given(shares=SHARES, true=PARTS, expected=PARTS | st.none())
def test_evidence_on_the_precision_is_fair_without_labels_of_items_that_are_not_selected(
    shares: list[float], true: list[float], expected: list[float] | None
) -> None:
    rate, labels = RATES["precision"], RateLabels.none(strata([shares]), 1)
    prior = None if expected is None else np.array(expected)
    chances = np.array([0.0, 0.0, 0.6, 0.4])
    above, below = mean_gains(rate, labels, np.array(true), chances=chances, expected=prior)
    limits = RateEvidence(rate, labels).limits
    value = rates_of(rate, labels.strata.shares[0], labels.strata.predictions, np.array(true))
    assert (above[limits >= value] <= 1 + 1e-9).all()
    assert (below[limits <= value] <= 1 + 1e-9).all()


def test_strata_without_items_are_not_drawn() -> None:
    of = strata([[5, 5, 5, 5], [5, 5, 5, 5]], sizes=True)
    labels = RateLabels.none(of, 50)
    labels.labels[:, :, 0] = 5
    labels.labels[:, 0] = 5
    rng = np.random.default_rng(0)
    groups, chosen, _ = choose_for_gap(RATE, labels, rng)
    assert (groups == 1).all()
    assert (chosen != 0).all()


def test_decided_groups_get_no_more_labels() -> None:
    labels = RateLabels.none(strata([[1, 1, 1, 1]] * 3), 30)
    open_ = np.tile([True, False, True], (30, 1))
    groups, _, _ = choose_for_limit(RATE, labels, 0.3, open_, np.random.default_rng(0))
    assert set(groups.tolist()) == {0, 2}


def test_scores_that_are_too_high_are_corrected_by_labels() -> None:
    labels = RateLabels.none(strata([[1, 1, 1, 1]], score=0.9), 1)
    labels.labels[0, 0, 2], labels.positives[0, 0, 2] = 50, 10
    found = labels.expected(np.array([0]), np.array([0]))[0]
    assert found[3] < 0.4
    assert found[0] > 0.8
    assert SELECTED.sum() == 2


@pytest.mark.parametrize("rate", LABELLED, ids=lambda rate: rate.name)
def test_labels_of_random_items_are_the_same_evidence_as_with_strata_that_say_nothing(rate: Rate) -> None:
    rng = np.random.default_rng(5)
    of = RateStrata(np.array([[0.6, 0.4]]), np.array([False, True]), np.full((1, 2), 0.5))
    labels, counts = RateLabels.none(of, 1), np.zeros((1, 2, 2))
    evidence = RateEvidence(rate, labels)
    for _ in range(60):
        stratum, positive = int(rng.random() < 0.4), rng.random(1) < 0.3
        here = np.zeros(1, np.intp)
        drawn = Drawn(here, here, np.array([stratum]), positive, of.shares, None)
        evidence.observe(labels, drawn)
        labels.add(here, here, drawn.strata, positive)
        counts[0, int(positive[0]), stratum] += 1
    sample = sample_evidence(rate, counts, np.zeros((1, 2)))
    assert sample.log_e_above == pytest.approx(evidence.log_e_above, abs=1e-9)
    assert sample.log_e_below == pytest.approx(evidence.log_e_below, abs=1e-9)


@given(
    shares=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    rate=st.sampled_from(LABELLED),
)
def test_a_random_label_raises_evidence_at_the_true_rate_by_nothing_on_average(
    shares: list[float], rate: Rate
) -> None:
    chances = np.array(shares).reshape(2, 2) / sum(shares)
    true = float((chances * rate.numerator).sum() / (chances * rate.denominator).sum())
    before = np.array([[[3.0, 2.0], [1.0, 4.0]]])
    now = sample_evidence(rate, before, np.zeros((1, 2)), np.array([true]))
    after = np.zeros(2)
    for positive, selected in np.ndindex(2, 2):
        more = before.copy()
        more[0, positive, selected] += 1
        then = sample_evidence(rate, more, np.zeros((1, 2)), np.array([true]))
        chance = chances[positive, selected]
        after += chance * np.exp([then.log_e_above[0, 0, 0], then.log_e_below[0, 0, 0]])
    assert after == pytest.approx(np.exp([now.log_e_above[0, 0, 0], now.log_e_below[0, 0, 0]]), rel=1e-6)


@pytest.mark.parametrize("rate", LABELLED, ids=lambda rate: rate.name)
def test_whatever_a_missing_label_would_be_evidence_is_at_most_that(rate: Rate) -> None:
    before = np.array([[[9.0, 2.0], [3.0, 8.0]]])
    for selected in range(2):
        missing = np.zeros((1, 2))
        missing[0, selected] = 1
        least = sample_evidence(rate, before, missing)
        for positive in range(2):
            labels = before.copy()
            labels[0, positive, selected] += 1
            known = sample_evidence(rate, labels, np.zeros((1, 2)))
            assert (least.log_e_above <= known.log_e_above + 1e-9).all()
            assert (least.log_e_below <= known.log_e_below + 1e-9).all()


def test_a_stratum_without_positive_items_gets_few_labels_where_the_class_is_rare() -> None:
    recall, shares = RATES["true_positive_rate"], [[0.9, 0.06, 0.02, 0.02]]
    of = replace(strata(shares), scores=np.array([[0.0002, 0.05, 0.5, 0.8]]))
    one = np.zeros(1, np.intp)
    chances = aim(recall, RateLabels.none(of, 1), one, one, np.array([0.7])).chances[0]
    assert chances[0] < 0.75
