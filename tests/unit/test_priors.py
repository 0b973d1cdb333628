"""Priors: what is believed before labels, and how labels change it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from service.assessment.curves import LearnedCurve, bin_beliefs
from service.assessment.mixture import BetaMixture
from service.assessment.priors import FixedPrior, LearnedPrior, group_prior, log_likelihood

NAMES = ["learned", "informed", "informed_jeffreys", "uniform"]
SCORES = np.array([0.6, 0.8, 0.9, 0.95])
NONE = np.zeros(4)


def counts(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_the_informed_prior_is_the_papers() -> None:
    believed = FixedPrior().posterior(scores=SCORES, labels=counts(5, 0, 0, 0), correct=counts(3, 0, 0, 0))
    np.testing.assert_allclose(believed.alpha[0], 2 * SCORES + [3, 0, 0, 0])
    np.testing.assert_allclose(believed.beta[0], 2 * (1 - SCORES) + [2, 0, 0, 0])


def test_the_floor_adds_half_a_label_to_both_sides() -> None:
    plain, floored = (
        group_prior(name).posterior(scores=SCORES, labels=NONE, correct=NONE)
        for name in ("informed", "informed_jeffreys")
    )
    np.testing.assert_allclose(floored.alpha - plain.alpha, 0.5)
    np.testing.assert_allclose(floored.beta - plain.beta, 0.5)


@given(st.integers(1, 40), st.floats(0.05, 50), st.floats(0.05, 50), st.data())
def test_the_marginal_likelihood_is_the_beta_binomials(
    labels: int, alpha: float, beta: float, data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, labels))
    found = log_likelihood(counts(alpha), counts(beta), counts(right), counts(labels - right))[0]
    reference = stats.betabinom.logpmf(right, labels, alpha, beta)
    assert found + np.log(special.comb(labels, right)) == pytest.approx(reference, abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_scores_of_zero_and_one_give_proper_beliefs(name: str, score: float) -> None:
    believed = group_prior(name).posterior(
        scores=np.full(2, score), labels=counts(3, 0), correct=counts(1, 0)
    )
    assert (believed.alpha > 0).all()
    assert (believed.beta > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_treated_alike_whatever_their_order(name: str) -> None:
    labels, right, order = counts(9, 0, 20, 4), counts(6, 0, 19, 4), np.array([2, 0, 3, 1])
    prior = group_prior(name)
    straight = prior.posterior(scores=SCORES, labels=labels, correct=right)
    mixed = prior.posterior(scores=SCORES[order], labels=labels[order], correct=right[order])
    np.testing.assert_allclose(straight.mean()[order], mixed.mean(), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_very_many_labels_speak_for_themselves(name: str) -> None:
    believed = group_prior(name).posterior(
        scores=SCORES, labels=np.full(4, 1e5), correct=1e5 * counts(0.2, 0.5, 0.8, 0.99)
    )
    np.testing.assert_allclose(believed.mean(), [0.2, 0.5, 0.8, 0.99], atol=2e-3)


def test_without_labels_the_learned_prior_believes_the_scores_on_the_whole() -> None:
    believed = LearnedPrior().posterior(scores=SCORES, labels=NONE, correct=NONE)
    assert (np.diff(believed.mean()) > 0).all()
    lower, upper = believed.interval(0.95)
    assert ((lower < SCORES) & (upper > SCORES)).all()


def test_a_group_without_labels_learns_from_the_others() -> None:
    overconfident = LearnedPrior().posterior(
        scores=SCORES, labels=counts(50, 50, 50, 0), correct=counts(15, 25, 30, 0)
    )
    alone = LearnedPrior().posterior(scores=SCORES, labels=NONE, correct=NONE)
    assert overconfident.mean()[3] < alone.mean()[3] - 0.1


def test_a_group_unlike_the_others_is_believed_by_its_own_labels() -> None:
    scores = np.full(6, 0.95)
    labels, right = np.full(6, 30.0), counts(29, 28, 29, 30, 29, 12)
    believed = LearnedPrior().posterior(scores=scores, labels=labels, correct=right)
    lower, upper = believed.interval(0.95)
    assert lower[5] < 12 / 30 < upper[5]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_a_bins_beliefs_depend_on_counts_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.tile((np.arange(4) + 0.5) / 4, (3, 1))
    labels = rng.integers(0, 8, (3, 4)).astype(float)
    right = rng.binomial(labels.astype(int), 0.7).astype(float)
    order = rng.permutation(3)
    straight = LearnedCurve().posterior(scores=scores, labels=labels, correct=right).mean().reshape(3, 4)
    mixed = LearnedCurve().posterior(scores=scores, labels=labels[order], correct=right[order]).mean()
    np.testing.assert_allclose(straight[order], mixed.reshape(3, 4), rtol=1e-7)


def test_a_degraded_group_has_a_curve_of_its_own() -> None:
    scores = np.tile((np.arange(5) + 0.5) / 5, (4, 1))
    labels = np.full((4, 5), 20.0)
    right = 20 * np.vstack([scores[:3], scores[3:] * 0.5])
    believed = bin_beliefs("learned", scores=scores, labels=labels, correct=right).mean().reshape(4, 5)
    np.testing.assert_allclose(believed[0], scores[0], atol=0.08)
    # Nearer to its own 0.45 than to its neighbours' 0.9.
    assert believed[3, 4] < (0.45 + 0.9) / 2


@pytest.mark.parametrize("name", NAMES)
def test_bins_without_labels_have_beliefs_too(name: str) -> None:
    nothing = np.zeros((2, 3))
    believed = bin_beliefs(name, scores=np.full((2, 3), 0.7), labels=nothing, correct=nothing)
    assert believed.size == 6
    assert np.isfinite(believed.mean()).all()


MIXTURE = BetaMixture(np.array([0.6, 0.3, 0.1]), *np.random.default_rng(2).uniform(0.3, 30, (2, 3, 4)))


def reference_mass(group: int, value: float) -> float:
    return float(
        sum(
            weight * stats.beta.cdf(value, MIXTURE.alpha[j, group], MIXTURE.beta[j, group])
            for j, weight in enumerate(MIXTURE.weights)
        )
    )


@pytest.mark.parametrize("group", range(4))
def test_an_interval_of_a_mixture_leaves_equal_tails(group: int) -> None:
    lower, upper = MIXTURE.interval(0.95)
    # A quantile may miss its mass by a millionth.
    assert reference_mass(group, lower[group]) == pytest.approx(0.025, abs=2e-6)
    assert reference_mass(group, upper[group]) == pytest.approx(0.975, abs=2e-6)


def test_moments_of_a_mixture_are_those_of_its_draws() -> None:
    drawn = MIXTURE.sample(np.random.default_rng(3), 400_000)
    # Four standard errors of 400,000 draws.
    np.testing.assert_allclose(MIXTURE.mean(), drawn.mean(axis=0), atol=4 * 0.5 / 400_000**0.5)
    np.testing.assert_allclose(MIXTURE.variance(), drawn.var(axis=0), rtol=0.02)


def test_probability_below_a_threshold_is_exact() -> None:
    expected = [reference_mass(group, 0.7) for group in range(4)]
    np.testing.assert_allclose(MIXTURE.probability_below(0.7), expected, rtol=1e-9)


def test_labels_in_flight_leave_the_mean_and_narrow_the_belief() -> None:
    one = MIXTURE.component(np.random.default_rng(1))
    expecting = one.expecting(counts(0, 5, 50, 500))
    np.testing.assert_allclose(expecting.mean(), one.mean(), rtol=1e-9)
    assert (np.diff(expecting.variance() / one.variance()) < 0).all()


def test_probabilities_of_being_lowest_add_up() -> None:
    for top_m in (1, 2, 3):
        found = MIXTURE.extreme_probabilities(np.random.default_rng(4), top_m=top_m, draws=4_000)
        assert found.sum() == pytest.approx(top_m)


def test_probability_of_being_the_lowest_agrees_with_quadrature() -> None:
    pair = BetaMixture(np.ones(1), np.array([[8.0, 4.0]]), np.array([[2.0, 3.0]]))
    grid = (np.arange(20_000) + 0.5) / 20_000
    exact = (stats.beta.pdf(grid, 8, 2) * stats.beta.sf(grid, 4, 3)).mean()
    found = pair.extreme_probabilities(np.random.default_rng(4), top_m=1, draws=40_000)[0]
    assert found == pytest.approx(exact, abs=4 * 0.5 / 40_000**0.5)


def test_all_groups_are_among_as_many_as_there_are() -> None:
    found = MIXTURE.extreme_probabilities(np.random.default_rng(4), top_m=4, draws=10)
    assert found.tolist() == [1, 1, 1, 1]


def test_every_prior_has_beliefs_for_a_single_group() -> None:
    for name, labels in itertools.product(NAMES, (0.0, 7.5)):
        believed = group_prior(name).posterior(
            scores=counts(0.9), labels=counts(labels), correct=counts(labels / 2)
        )
        lower, upper = believed.interval(0.95)
        assert 0 <= lower[0] < believed.mean()[0] < upper[0] <= 1
