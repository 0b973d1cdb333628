"""Rewards of tasks, against closed forms, scipy and plain sums over what a label may say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.statistics import comparison
from service.statistics.beliefs import AccuracyBeliefs, Outcomes
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.confusion_beliefs import ConfusionBeliefs, LearnedConfusion
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

SHARES = np.array([0.5, 0.3, 0.2])
WITHIN = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
SCORES = np.array([[0.4, 0.9], [0.3, 0.8], [0.5, 0.95]])
CELLS = Cells(WITHIN, SCORES, SHARES)
ALPHA, BETA = np.array([3.0, 0.7, 12.0]), np.array([2.0, 9.0, 4.0])
BIN_ALPHA, BIN_BETA = np.random.default_rng(1).uniform(0.5, 9, (2, 3, 2))
DIRICHLET = np.random.default_rng(2).uniform(0.2, 8, (3, 3))


def task(kind: str, metric: str, **question: object) -> object:
    return TASKS[kind, metric](Question(CELLS, **question))


def accuracy() -> AccuracyBeliefs:
    return AccuracyBeliefs.fixed(ALPHA, BETA, 1)


def drop(alpha: np.ndarray, other: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Expected drop of variance after a label, by scipy."""
    after = theta * stats.beta.var(alpha + 1, other) + (1 - theta) * stats.beta.var(alpha, other + 1)
    return stats.beta.var(alpha, other) - after


@pytest.mark.parametrize(("metric", "power"), [("accuracy", 1), ("overall_accuracy", 2)])
def test_estimation_is_worth_the_expected_drop_of_variance(metric: str, power: int) -> None:
    expected = SHARES**power * drop(ALPHA, BETA, ALPHA / (ALPHA + BETA))
    np.testing.assert_allclose(task("estimation", metric).expected(accuracy())[0], expected, rtol=1e-10)


def test_a_sampled_reward_of_estimation_is_that_of_the_drawn_accuracy() -> None:
    rng, same = (np.random.default_rng(4) for _ in range(2))
    found = task("estimation", "accuracy").sampled(accuracy(), rng)[0]
    np.testing.assert_allclose(found, SHARES * drop(ALPHA, BETA, same.beta(ALPHA, BETA)), rtol=1e-9)


def test_estimation_of_bins_weighs_their_variances_by_squared_shares() -> None:
    beliefs = BinBeliefs(CELLS, BIN_ALPHA, BIN_BETA, 1)
    theta = BIN_ALPHA / (BIN_ALPHA + BIN_BETA)
    expected = SHARES * (WITHIN**2 * drop(BIN_ALPHA, BIN_BETA, theta)).sum(axis=1)
    np.testing.assert_allclose(task("estimation", "calibration").expected(beliefs)[0], expected, rtol=1e-10)


@pytest.mark.parametrize(("extreme", "sign"), [("lowest", -1), ("highest", 1)])
def test_identification_by_accuracy_is_worth_the_accuracy(extreme: str, sign: int) -> None:
    chosen = task("identification", "accuracy", extreme=extreme)
    np.testing.assert_allclose(chosen.expected(accuracy())[0], sign * ALPHA / (ALPHA + BETA))
    end = stats.beta.ppf(0.975 if sign > 0 else 0.025, ALPHA, BETA)
    np.testing.assert_allclose(chosen.upper(accuracy(), 0.975)[0], sign * end, rtol=1e-9)


@pytest.mark.parametrize(("extreme", "sign"), [("lowest", -1), ("highest", 1)])
def test_identification_by_calibration_is_worth_the_calibration_error(extreme: str, sign: int) -> None:
    beliefs = BinBeliefs(CELLS, BIN_ALPHA, BIN_BETA, 40_000)
    chosen = task("identification", "calibration", extreme=extreme)
    drawn = chosen.sampled(beliefs, np.random.default_rng(3))
    error = sign * (WITHIN * np.abs(stats.beta.mean(BIN_ALPHA, BIN_BETA) - SCORES)).sum(axis=1)
    # Five standard errors of 40,000 draws of a number in [0, 1]; and no less than with the means alone.
    np.testing.assert_allclose(drawn.mean(axis=0), chosen.expected(beliefs)[0], atol=5 * 0.5 / 40_000**0.5)
    assert (sign * chosen.expected(beliefs)[0] >= sign * error).all()
    above = (drawn <= chosen.upper(beliefs, 0.975)).mean(axis=0)
    # The quantile takes a sum of two distances for normal.
    np.testing.assert_allclose(above, 0.975, atol=0.025)


def confusion_drop(alpha: np.ndarray, theta: np.ndarray) -> float:
    """Over the classes that a label may name: it adds one to that class's parameter."""
    before = stats.dirichlet.var(alpha).sum()
    return before - sum(
        probability * stats.dirichlet.var(alpha + np.eye(len(alpha))[j]).sum()
        for j, probability in enumerate(theta)
    )


def test_estimation_of_confusion_is_worth_the_drop_over_all_classes_a_label_may_name() -> None:
    means = DIRICHLET / DIRICHLET.sum(axis=1, keepdims=True)
    expected = SHARES * [confusion_drop(*pair) for pair in zip(DIRICHLET, means, strict=True)]
    beliefs = ConfusionBeliefs(DIRICHLET, 1)
    np.testing.assert_allclose(task("estimation", "confusion").expected(beliefs)[0], expected, rtol=1e-9)


def test_a_sampled_reward_of_confusion_is_that_of_the_drawn_probabilities() -> None:
    beliefs = ConfusionBeliefs(DIRICHLET, 1)
    rng, same = (np.random.default_rng(4) for _ in range(2))
    theta = beliefs.draw(same)[0]
    expected = SHARES * [confusion_drop(*pair) for pair in zip(DIRICHLET, theta, strict=True)]
    np.testing.assert_allclose(task("estimation", "confusion").sampled(beliefs, rng)[0], expected, rtol=1e-8)


@pytest.mark.parametrize(("extreme", "sign"), [("lowest", -1), ("highest", 1)])
def test_identification_by_cost_is_worth_the_expected_cost(extreme: str, sign: int) -> None:
    costs = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 9.0, 0.0]])
    chosen = task("identification", "cost", extreme=extreme, costs=costs)
    expected = sign * (DIRICHLET * costs).sum(axis=1) / DIRICHLET.sum(axis=1)
    np.testing.assert_allclose(chosen.expected(ConfusionBeliefs(DIRICHLET, 1))[0], expected, rtol=1e-10)


def test_comparison_is_worth_the_confidence_after_a_label_and_nothing_elsewhere() -> None:
    pair, region = np.array([2, 0]), 0.1
    found = task("comparison", "accuracy", pair=pair, region=region).expected(accuracy())[0]
    assert found[1] == 0
    for group in pair:
        chance = ALPHA[group] / (ALPHA[group] + BETA[group])
        confidence = 0.0
        for right, probability in ((1.0, chance), (0.0, 1 - chance)):
            alpha, beta = ALPHA.copy(), BETA.copy()
            alpha[group] += right
            beta[group] += 1 - right
            sides = [(alpha[g], beta[g]) for g in pair]
            three = comparison.rope_probabilities(*sides, region=region)
            confidence += probability * three.max()
        # Rewards are rounded, so that groups which promise the same tie.
        assert found[group] == pytest.approx(confidence, abs=2e-7)


def label(group: int, true_class: int, score_bin: int = 0) -> tuple[np.ndarray, np.ndarray, Outcomes]:
    runs = np.zeros(1, dtype=np.intp)
    outcomes = Outcomes(np.array([float(group == true_class)]), np.array([score_bin]), np.array([true_class]))
    return runs, np.array([group]), outcomes


MATRIX = np.array([[0.7, 0.2, 0.1], [0.05, 0.6, 0.35], [0.3, 0.0, 0.7]])


@pytest.mark.parametrize("prior", ["fixed", "learned"])
def test_beliefs_updated_by_true_classes_come_to_the_true_matrix(prior: str) -> None:
    beliefs = ConfusionBeliefs(np.full((3, 3), 1 / 3), 1)
    if prior == "learned":
        others = np.where(np.eye(3), 0.0, 0.5)
        beliefs = LearnedConfusion(LearnedCurve(), CELLS, others, np.arange(3), 1)
    rng = np.random.default_rng(6)
    for i in range(1_500):
        beliefs.observe(*label(i % 3, rng.choice(3, p=MATRIX[i % 3]), rng.integers(2)))
    # Four standard errors of 500 labels; the identity is 0.3 and more away.
    np.testing.assert_allclose(beliefs.mean()[0], MATRIX, atol=4 * 0.5 / 500**0.5)


def test_a_label_that_is_expected_leaves_the_means_of_all_kinds_of_beliefs() -> None:
    kinds = [
        accuracy(),
        BinBeliefs(CELLS, BIN_ALPHA, BIN_BETA, 1),
        ConfusionBeliefs(DIRICHLET, 1),
    ]
    read = [lambda b: b.mixture.mean(), lambda b: b.mean(), lambda b: b.mean()]
    for beliefs, mean in zip(kinds, read, strict=True):
        before = mean(beliefs).copy()
        beliefs.expect(np.array([1]))
        np.testing.assert_allclose(mean(beliefs), before, rtol=1e-12)
