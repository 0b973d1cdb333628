"""Priors: what is believed before labels, and how labels change it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from service.statistics.beliefs import LearnedAccuracy, Outcomes
from service.statistics.bin_beliefs import LearnedBins
from service.statistics.calibration import calibration_error
from service.statistics.curves import LearnedCurve, log_rising
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.laplace import COEFFICIENT_DEVIATIONS, COEFFICIENT_MEANS, Cells
from service.statistics.mixture import BetaMixture
from service.statistics.prior_posterior import binwise, plausible_fit, single
from service.statistics.priors import FIXED_PRIORS

NAMES = ["learned", *FIXED_PRIORS]
BINS = 5
MIDDLES = (np.arange(BINS) + 0.5) / BINS


def counts(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def assessed(
    name: str,
    labels: np.ndarray,
    correct: np.ndarray,
    scores: np.ndarray | None = None,
    changed: np.ndarray | None = None,
) -> GroupingBeliefs:
    """Beliefs from so many labels and correct ones of every cell [G, B], traffic being spread evenly."""
    groups, bins = labels.shape
    cells = np.repeat(np.arange(labels.size), labels.ravel().astype(int))
    right = [
        [1.0] * int(r) + [0.0] * int(n - r) for n, r in zip(labels.ravel(), correct.ravel(), strict=True)
    ]
    scores = np.tile((np.arange(bins) + 0.5) / bins, (groups, 1)) if scores is None else scores
    return assess_grouping(
        cell_groups=np.repeat(np.arange(groups), bins),
        cell_bins=np.tile(np.arange(bins), groups),
        group_count=groups,
        bin_count=bins,
        traffic=CellTraffic(np.ones(labels.size), scores.ravel()),
        labels=Labels(
            cells,
            np.array(list(itertools.chain.from_iterable(right))),
            np.ones(len(cells)),
            np.ones(len(cells)),
            np.full(len(cells), -1),
        ),
        prior=name,
        changed=changed,
    )


def even_cells(groups: int) -> Cells:
    scores = np.tile(MIDDLES, (groups, 1))
    return Cells(np.full(scores.shape, 1 / BINS), scores, np.full(groups, 1 / groups))


# Fixed priors


def test_the_informed_prior_is_the_papers() -> None:
    alpha, beta = FIXED_PRIORS["informed"].parameters(counts(0.6, 0.9))
    np.testing.assert_allclose(alpha, [1.2, 1.8])
    np.testing.assert_allclose(beta, [0.8, 0.2])


def test_a_groups_posterior_under_a_fixed_prior_is_the_papers() -> None:
    labels, right = np.full((2, BINS), 4.0), np.tile(counts(1, 2, 2, 3, 4), (2, 1))
    believed = assessed("informed", labels, right)
    np.testing.assert_allclose(believed.accuracy.alpha[0], 2 * 0.5 + 12)
    np.testing.assert_allclose(believed.accuracy.beta[0], 2 * 0.5 + 8)


def test_the_floor_adds_half_a_label_to_both_sides() -> None:
    plain, floored = (
        FIXED_PRIORS[name].parameters(counts(0.6, 0.9)) for name in ("informed", "informed_jeffreys")
    )
    np.testing.assert_allclose(np.subtract(floored, plain), 0.5)


def test_the_vague_prior_leaves_the_word_to_the_first_label() -> None:
    alpha, beta = FIXED_PRIORS["vague"].parameters(counts(0.9))
    assert (alpha + 1) / (alpha + beta + 1) == pytest.approx(1, abs=1e-5)


@given(st.integers(1, 40), st.floats(0.05, 50), st.floats(0.05, 50), st.data())
def test_the_marginal_likelihood_is_the_beta_binomials(
    labels: int, alpha: float, beta: float, data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, labels))
    rising = log_rising(counts(alpha, beta, alpha + beta), counts(right, labels - right, labels))
    found = rising[0] + rising[1] - rising[2]
    reference = stats.betabinom.logpmf(right, labels, alpha, beta)
    assert found + np.log(special.comb(labels, right)) == pytest.approx(reference, abs=1e-8)


# Every prior


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_scores_of_zero_and_one_give_proper_beliefs(name: str, score: float) -> None:
    labels = np.array([[3.0], [0.0]])
    believed = assessed(name, labels, labels / 3, np.full((2, 1), score))
    for mixture in (believed.accuracy, believed.overall, believed.bins):
        assert (mixture.alpha > 0).all()
        assert (mixture.beta > 0).all()
        lower, upper = mixture.interval(0.95)
        assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_treated_alike_whatever_their_order(name: str) -> None:
    rng = np.random.default_rng(2)
    labels, order = rng.integers(0, 8, (4, BINS)).astype(float), np.array([2, 0, 3, 1])
    right = rng.binomial(labels.astype(int), 0.7).astype(float)
    straight, mixed = assessed(name, labels, right), assessed(name, labels[order], right[order])
    np.testing.assert_allclose(straight.accuracy.mean()[order], mixed.accuracy.mean(), rtol=1e-6)
    np.testing.assert_allclose(straight.ece.mean[order], mixed.ece.mean, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_very_many_labels_speak_for_themselves(name: str) -> None:
    truth = np.array([[0.2, 0.5], [0.8, 0.98]])
    labels = np.full((2, 2), 20_000.0)
    believed = assessed(name, labels, labels * truth)
    np.testing.assert_allclose(believed.accuracy.mean(), truth.mean(axis=1), atol=2e-3)
    np.testing.assert_allclose(believed.bins.mean(), truth.ravel(), atol=2e-3)
    np.testing.assert_allclose(believed.overall.mean(), truth.mean(), atol=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_group_has_the_overall_accuracy(name: str) -> None:
    labels = np.full((3, BINS), 12.0)
    right = np.round(12 * np.tile(MIDDLES, (3, 1)))
    several = assessed(name, labels, right)
    single_one = assessed(name, 3 * labels[:1], 3 * right[:1])
    np.testing.assert_array_equal(single_one.accuracy.alpha, single_one.overall.alpha)
    # Three groups know that they could differ; all traffic is the same.
    np.testing.assert_allclose(several.overall.mean(), single_one.accuracy.mean(), atol=0.01)


# The learned prior


def test_without_labels_the_learned_prior_orders_by_score_and_expects_overconfidence() -> None:
    nothing = np.zeros((2, BINS))
    believed = assessed("learned", nothing, nothing)
    bins = believed.bins.mean().reshape(2, BINS)
    assert (np.diff(bins, axis=1) > 0).all()
    promised = MIDDLES > 0.5
    assert (bins[:, promised] < MIDDLES[promised]).all()
    np.testing.assert_allclose(bins[0], MIDDLES, atol=0.18)
    lower, upper = believed.bins.interval(0.95)
    assert ((lower < np.tile(MIDDLES, 2)) & (upper > np.tile(MIDDLES, 2))).all()


def overconfident(scores: np.ndarray) -> np.ndarray:
    return special.expit(special.logit(scores) - 2)


@pytest.mark.parametrize("labels", [0, 1, 5, 20, 200])
@pytest.mark.parametrize(
    ("tail", "share"), [*((4.0, share) for share in (0.0, 0.4, 0.7, 1.0)), (2.0, 0.4), (2.0, 0.7), (8.0, 0.0)]
)
def test_the_offset_of_one_group_has_the_exact_mean_and_variance(
    tail: float, labels: int, share: float
) -> None:
    # Labels of very many other groups fix the curve, so that one offset alone remains unknown.
    spread, others, score = 0.45, 400, 0.7
    cells = Cells(
        np.ones((others + 1, 1)), np.full((others + 1, 1), score), np.full(others + 1, 1 / (others + 1))
    )
    asked = np.append(np.full(others, 1000.0), labels)[None, :, None]
    right = np.append(np.full(others, 1000 * score), share * labels)[None, :, None]
    prior = LearnedCurve(spreads=((spread, tail),), strengths=(1e9,))
    fit = prior.fit(cells, asked, right)

    offsets, step = np.linspace(-60, 60, 240_001, retstep=True)
    eta = special.logit(score) + offsets
    log_density = stats.t.logpdf(offsets, tail, scale=spread)
    log_density += labels * (share * special.log_expit(eta) + (1 - share) * special.log_expit(-eta))
    density = np.exp(log_density - log_density.max())
    density /= density.sum() * step
    mean = (density * eta).sum() * step
    deviation = np.sqrt((density * (eta - mean) ** 2).sum() * step)
    assert fit.centres[0, 0, -1, 0] == pytest.approx(mean, abs=0.03 * deviation)
    assert fit.deviations[0, 0, -1, 0] == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("unlike", [0.0, 0.7, 1.5])
def test_a_spread_is_as_probable_as_its_marginal_likelihood(unlike: float) -> None:
    rng = np.random.default_rng(5)
    groups, labels, score = 60, 4, 0.8
    correct = rng.binomial(labels, special.expit(special.logit(score) + unlike * rng.normal(size=groups)))
    cells = Cells(np.ones((groups, 1)), np.full((groups, 1), score), np.full(groups, 1 / groups))
    prior = LearnedCurve(strengths=(1e9,))
    fit = prior.fit(cells, np.full((1, groups, 1), float(labels)), correct[None, :, None].astype(float))

    shared, offsets = np.linspace(-8, 6, 281), np.linspace(-40, 40, 8001)
    eta = special.logit(score) + shared[:, None] + offsets
    likelihoods = {
        k: special.expit(eta) ** k * special.expit(-eta) ** (labels - k) for k in range(labels + 1)
    }
    of_shared = stats.norm.logpdf(shared, COEFFICIENT_MEANS[0], COEFFICIENT_DEVIATIONS[0])
    exact = []
    for spread, tail in prior.spreads:
        density = stats.t.pdf(offsets, tail, scale=spread)
        of_groups = {k: np.log(likelihoods[k] @ density) for k in np.unique(correct).tolist()}
        exact.append(special.logsumexp(of_shared + sum(of_groups[k] for k in correct.tolist())))
    np.testing.assert_allclose(fit.weights[0], special.softmax(exact), atol=0.015)


def test_an_overconfident_model_is_found_out_in_groups_without_labels_too() -> None:
    labels = np.full((4, BINS), 30.0)
    labels[3] = 0
    believed = assessed("learned", labels, np.round(labels * overconfident(MIDDLES)))
    scores, truth = MIDDLES.mean(), overconfident(MIDDLES).mean()
    assert abs(believed.accuracy.mean()[3] - truth) < 0.35 * (scores - truth)
    lower, upper = believed.accuracy.interval(0.95)
    assert ((lower < truth) & (upper > truth)).all()
    # That groups without labels are as far off is learned from the others, so that it is wider.
    assert upper[3] - lower[3] > 1.5 * (upper[0] - lower[0])


def test_a_group_unlike_the_others_is_estimated_by_its_own_labels() -> None:
    labels = np.full((6, BINS), 8.0)
    right = np.round(labels * MIDDLES)
    right[5] = counts(0, 0, 1, 2, 3)
    believed = assessed("learned", labels, right)
    lower, upper = believed.accuracy.interval(0.95)
    assert lower[5] < 6 / 40 < upper[5]
    assert upper[5] < lower[0]


def learned(
    history: list[tuple[int, int, bool]], kind: type[LearnedAccuracy | LearnedBins]
) -> LearnedAccuracy | LearnedBins:
    """Beliefs after labels of (group, bin), right or wrong, one by one."""
    beliefs = kind(LearnedCurve(), even_cells(3), 1)
    for group, score_bin, right in history:
        outcomes = Outcomes(counts(right), np.array([score_bin]), np.zeros(1, np.intp))
        beliefs.observe(np.zeros(1, np.intp), np.array([group]), outcomes)
    return beliefs


events = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, BINS - 1), st.booleans()), min_size=1, max_size=12
)


@settings(max_examples=15)
@given(events, st.randoms(use_true_random=False))
def test_the_order_of_labels_does_not_matter(history: list[tuple[int, int, bool]], random: object) -> None:
    mixed = history.copy()
    random.shuffle(mixed)
    straight, shuffled = (learned(h, LearnedAccuracy).overall().mean() for h in (history, mixed))
    # Newton's search ends within 0.01 logits, wherever it started from.
    np.testing.assert_allclose(straight, shuffled, atol=2e-3)


@settings(max_examples=15)
@given(events)
def test_labels_one_by_one_are_labels_at_once(history: list[tuple[int, int, bool]]) -> None:
    labels, right = np.zeros((3, BINS)), np.zeros((3, BINS))
    for group, score_bin, correct in history:
        labels[group, score_bin] += 1
        right[group, score_bin] += correct
    stepwise = learned(history, LearnedAccuracy)
    stepwise.refresh()
    at_once = assessed("learned", labels, right)
    np.testing.assert_allclose(stepwise.overall().mean().ravel(), at_once.overall.mean(), atol=2e-3)
    np.testing.assert_allclose(stepwise.mixture.mean()[0], at_once.accuracy.mean(), atol=5e-3)


def test_a_label_that_is_replaced_leaves_no_trace() -> None:
    labels, right = np.full((2, BINS), 3.0), np.full((2, BINS), 2.0)
    replaced = right.copy()
    replaced[0, 0] -= 1
    without, corrected = assessed("learned", labels, replaced), assessed("learned", labels, right)
    again = replaced.copy()
    again[0, 0] += 1
    np.testing.assert_array_equal(
        assessed("learned", labels, again).accuracy.mean(), corrected.accuracy.mean()
    )
    assert without.accuracy.mean()[0] < corrected.accuracy.mean()[0]


def test_many_runs_at_once_are_as_each_alone() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 9, (3, 4, BINS)).astype(float)
    right = rng.binomial(labels.astype(int), 0.6).astype(float)
    together = LearnedCurve().fit(even_cells(4), labels, right)
    for run in range(3):
        alone = LearnedCurve().fit(even_cells(4), labels[run : run + 1], right[run : run + 1])
        # The search goes on until the last run is near its end.
        np.testing.assert_allclose(together.groups().mean()[run], alone.groups().mean()[0], atol=1e-3)


@pytest.mark.parametrize("per_cell", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("groups", [3, 20])
def test_what_is_dropped_of_the_grid_is_not_missed(groups: int, per_cell: float) -> None:
    rng = np.random.default_rng(int(groups + per_cell))
    cells = even_cells(groups)
    labels = rng.poisson(per_cell, cells.scores.shape).astype(float)
    right = rng.binomial(labels.astype(int), overconfident(cells.scores)).astype(float)
    full = LearnedCurve().fit(cells, labels[None], right[None])
    small = plausible_fit(LearnedCurve(), cells, labels, right)
    assert small.weights.shape[1] <= full.weights.shape[1]
    for whole, part in ((full.groups(), small.groups()), (full.overall(), small.overall())):
        np.testing.assert_allclose(single(part).mean(), single(whole).mean(), atol=5e-4)
        for found, expected in zip(single(part).interval(0.95), single(whole).interval(0.95), strict=True):
            np.testing.assert_allclose(found, expected, atol=2e-3)


def test_nothing_is_missed_either_where_most_scores_are_near_1_and_many_are_wrong() -> None:
    # The search begins at the scores, six logits away.
    rng = np.random.default_rng(3)
    scores = special.expit(special.logit(0.9995) + rng.normal(size=(400, BINS)))
    cells = Cells(np.full(scores.shape, 1 / BINS), scores, np.full(400, 1 / 400))
    labels = rng.poisson(6, scores.shape).astype(float)
    accuracy = special.expit(special.logit(scores) - 6 + 0.5 * rng.standard_t(4, (400, 1)))
    right = rng.binomial(labels.astype(int), accuracy).astype(float)
    whole = single(LearnedCurve().fit(cells, labels[None], right[None]).groups())
    part = single(plausible_fit(LearnedCurve(), cells, labels, right).groups())
    deviations = np.sqrt(whole.variance())
    assert (np.abs(part.mean() - whole.mean()) < 0.05 * deviations).all()
    np.testing.assert_allclose(np.sqrt(part.variance()), deviations, rtol=0.05)


@pytest.mark.parametrize(
    ("per_cell", "mean", "end"), [(0.0, 0.015, 0.05), (2.0, 0.004, 0.05), (10.0, 0.002, 0.015)]
)
def test_bins_in_few_components_tell_nearly_the_calibration_error_of_all(
    per_cell: float, mean: float, end: float
) -> None:
    rng = np.random.default_rng(8)
    cells = even_cells(6)
    labels = rng.poisson(per_cell, cells.scores.shape).astype(float)
    right = rng.binomial(labels.astype(int), overconfident(cells.scores)).astype(float)
    fit = LearnedCurve().fit(cells, labels[None], right[None])
    whole, few = (
        calibration_error(beliefs=beliefs, scores=cells.scores, shares=cells.shares)
        for beliefs in (single(fit.bins()), binwise(fit))
    )
    np.testing.assert_allclose(few.mean, whole.mean, atol=mean)
    for found, expected in zip(few.interval(0.95), whole.interval(0.95), strict=True):
        np.testing.assert_allclose(found, expected, atol=end)


# Mixtures

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


@pytest.mark.parametrize("probability", [0.011, 0.025, 0.5, 0.975, 0.989])
def test_quantiles_of_components_far_apart_are_found(probability: float) -> None:
    weights = np.array([0.011, 0.222, 0.534, 0.222, 0.011])
    means, strengths = np.array([0.05, 0.1, 0.2, 0.35, 0.6]), np.array([20.0, 2_000.0, 40_000.0])
    alpha, beta = np.multiply.outer(means, strengths), np.multiply.outer(1 - means, strengths)
    found = BetaMixture(weights, alpha, beta).quantile(probability)
    mass = weights @ stats.beta.cdf(found, alpha, beta)
    np.testing.assert_allclose(mass, probability, atol=2e-6)


@given(st.integers(0, 2**32), st.sampled_from([0.025, 0.5, 0.975]))
def test_quantiles_of_any_mixture_are_found(seed: int, probability: float) -> None:
    rng = np.random.default_rng(seed)
    alpha, beta = np.exp(rng.uniform(-6, 8, (2, 4, 5)))
    mixture = BetaMixture(rng.dirichlet(np.ones(4)), alpha, beta)
    t = special.logit(mixture.quantile(probability))
    # Where the mass jumps, no value has it, but one a little lower has less, one a little higher more.
    lower, upper = (mixture.probability_below(special.expit(t + step)) for step in (-1e-7, 1e-7))
    held = (lower < probability + 2e-6) & (upper > probability - 2e-6)
    # Nearer to 1 doubles are so far apart that the mass of the nearest one is not this.
    assert (held | (t < -30) | (t > 25)).all()


def test_a_quantile_where_the_mass_jumps_is_found() -> None:
    # Much of the mass is so near to 1 that no double lies between: Newton's steps stay inside and come no
    # nearer.
    alpha = [1.85, 4.05, 5.82, 6.48, 6.69, 1.78, 3.79, 5.32, 5.89, 6.06, 1.51, 2.92, 3.82, 4.13, 4.21]
    beta = [
        0.057,
        0.125,
        0.179,
        0.2,
        0.206,
        0.058,
        0.123,
        0.173,
        0.191,
        0.197,
        0.062,
        0.119,
        0.156,
        0.168,
        0.172,
    ]
    jumping = BetaMixture(np.full(15, 1 / 15), np.array(alpha)[:, None], np.array(beta)[:, None])
    assert jumping.quantile(0.975)[0] == pytest.approx(1, abs=1e-12)


def test_a_group_is_pooled_less_the_more_probably_it_has_changed() -> None:
    labels, correct = np.full((6, BINS), 5.0), np.full((6, BINS), 4.0)
    correct[0] = 2.0
    means = []
    for probability in (0.0, 0.2, 0.5, 1.0):
        changed = np.append(probability, np.zeros(5))
        found = assessed("learned", labels, correct, np.full((6, BINS), 0.9), changed)
        means.append(float(found.accuracy.mean()[0]))
    assert means == sorted(means, reverse=True)
    assert means[0] - means[1] > 0.005
    assert means[-1] - 0.4 < (means[0] - 0.4) / 2
