"""Confusion and cost: beliefs about the true class, from labels and the model's own probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.statistics.confusion import Confusion, assess_confusion
from service.statistics.groups import CellTraffic, Labels, assess_grouping
from service.statistics.mixture import BetaMixture

CLASSES, BINS = 4, 3
GROUPS = np.repeat(np.arange(CLASSES), BINS)
PRIORS = ["learned", "informed", "informed_jeffreys", "uniform", "vague"]
MATRIX = np.array([[0.8, 0.1, 0.05, 0.05], [0.3, 0.6, 0.1, 0.0], [0.0, 0.0, 0.9, 0.1], [0.2, 0.2, 0.2, 0.4]])


def labelled(count: int, seed: int = 1, matrix: np.ndarray = MATRIX) -> Labels:
    """So many labels of every predicted class."""
    rng = np.random.default_rng(seed)
    predicted = np.repeat(np.arange(CLASSES), count)
    true = np.concatenate([rng.choice(CLASSES, count, p=row) for row in matrix]).astype(np.intp)
    cells = predicted * BINS + rng.integers(0, BINS, len(predicted))
    every = np.ones(len(cells))
    return Labels(cells, (predicted == true).astype(float), every, every, true)


def confusion(
    labels: Labels, prior: str = "learned", sums: list[np.ndarray | None] | None = None
) -> Confusion:
    scores = np.tile([0.5, 0.7, 0.9], CLASSES)
    beliefs = assess_grouping(
        cell_groups=GROUPS,
        cell_bins=np.tile(np.arange(BINS), CLASSES),
        group_count=CLASSES,
        bin_count=BINS,
        traffic=CellTraffic(np.ones(len(GROUPS)), scores),
        labels=labels,
        prior=prior,
    )
    return assess_confusion(
        beliefs,
        cell_groups=GROUPS,
        labels=labels,
        predicted=np.arange(CLASSES),
        probability_sums=sums or [None] * CLASSES,
        class_count=CLASSES,
        prior=prior,
    )


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("count", [0, 1, 30])
def test_the_classes_probabilities_sum_to_one(prior: str, count: int) -> None:
    mean = confusion(labelled(count), prior).mean()
    assert (mean >= 0).all()
    np.testing.assert_allclose(mean.sum(axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
def test_many_labels_tell_the_true_matrix(prior: str) -> None:
    # Four standard errors of 4,000 labels.
    np.testing.assert_allclose(confusion(labelled(4_000), prior).mean(), MATRIX, atol=4 * 0.5 / 4_000**0.5)


def test_the_models_own_probabilities_speak_until_labels_do() -> None:
    sums = np.array([[7, 2, 1, 0], [0, 8, 0, 2], [1, 1, 8, 0], [0, 0, 1, 9.0]])
    result = confusion(labelled(0), sums=list(sums)).mean()
    assert result[0, 1] > 1.5 * result[0, 2] > 1.5 * result[0, 3]
    plain = confusion(labelled(0)).mean()
    np.testing.assert_allclose(plain[0, 1:], (1 - plain[0, 0]) / 3, rtol=1e-6)
    # The labels say otherwise: then the model's word counts for little.
    doubted = confusion(labelled(4_000), sums=list(sums)).mean()
    np.testing.assert_allclose(doubted, MATRIX, atol=4 * 0.5 / 4_000**0.5)


def test_a_label_of_a_class_that_the_model_no_longer_has_is_wrong_all_the_same() -> None:
    labels = labelled(30)
    gone = Labels(
        labels.cells,
        np.zeros(len(labels.cells)),
        labels.weights,
        labels.freshness,
        np.full(len(labels.cells), -1),
    )
    assert (np.diag(confusion(gone).mean()) < 0.2).all()


def test_accuracy_is_that_of_the_groups() -> None:
    found = confusion(labelled(20))
    assert found.accuracy is not None
    np.testing.assert_allclose(np.diag(found.mean()), found.accuracy.mean(), rtol=1e-12)


TREE = Confusion(
    predicted=np.array([0, 2]),
    shares=np.array([0.5, 0.5]),
    labels=np.zeros(2),
    alpha=np.array([[1e-9, 2.0, 5.0], [0.7, 1.3, 1e-9]]),
    accuracy=BetaMixture(
        np.array([0.4, 0.6]), np.array([[8.0, 3.0], [5.0, 4.0]]), np.array([[2.0, 3.0], [4.0, 1.5]])
    ),
)
COSTS = np.array([[0.0, 1.0, 10.0], [3.0, 0.5, 0.0]])


def drawn(size: int) -> np.ndarray:
    """True-class probabilities of the tree [size, 2, 3]."""
    rng = np.random.default_rng(7)
    right = TREE.accuracy.sample(rng, size)
    wrong = np.stack([rng.dirichlet(alpha, size) for alpha in TREE.alpha], axis=1)
    theta = wrong * (1 - right)[:, :, None]
    theta[:, [0, 1], [0, 2]] = right
    return theta


def test_moments_of_costs_are_those_of_draws() -> None:
    costs = (drawn(400_000) * COSTS).sum(axis=2)
    found = TREE.cost_beliefs(COSTS)
    estimated = found.estimate(mass=0.95, kind="equal_tailed")
    np.testing.assert_allclose(estimated.mean, costs.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(
        found.sample(np.random.default_rng(1), 400_000).std(axis=0), costs.std(axis=0), rtol=0.02
    )
    inside = ((estimated.lower <= costs) & (costs <= estimated.upper)).mean(axis=0)
    # The cost is taken for a Beta of its moments.
    np.testing.assert_allclose(inside, 0.95, atol=0.015)


def test_the_shortest_interval_of_costs_is_shorter() -> None:
    tails, shortest = (
        TREE.cost_beliefs(COSTS).estimate(mass=0.9, kind=kind) for kind in ("equal_tailed", "highest_density")
    )
    assert (shortest.upper - shortest.lower < tails.upper - tails.lower).all()
    np.testing.assert_array_equal(shortest.mean, tails.mean)


def test_costs_that_are_all_alike_are_certain() -> None:
    found = TREE.cost_beliefs(np.zeros((2, 3))).estimate(mass=0.95, kind="equal_tailed")
    assert found.lower.tolist() == found.mean.tolist() == found.upper.tolist() == [0, 0]


def test_entries_hold_their_mass_of_draws() -> None:
    groups, classes = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 2])
    theta = drawn(200_000)[:, groups, classes]
    found = TREE.entries(groups, classes, mass=0.95, kind="equal_tailed")
    np.testing.assert_allclose(found.mean, theta.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(found.mean, TREE.mean()[groups, classes], rtol=1e-9)
    inside = ((found.lower <= theta) & (theta <= found.upper)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.95, atol=0.015)


def test_entries_under_a_fixed_prior_are_the_marginal_betas() -> None:
    labels = labelled(12)
    found = confusion(labels, "uniform")
    entry = found.entries(np.array([1]), np.array([2]), mass=0.9, kind="equal_tailed")
    alpha = found.alpha[1]
    expected = stats.beta.ppf([0.05, 0.95], alpha[2], alpha.sum() - alpha[2])
    np.testing.assert_allclose([entry.lower[0], entry.upper[0]], expected, rtol=1e-9)


def test_the_most_frequent_confusions_are_no_right_predictions() -> None:
    groups, classes = confusion(labelled(500)).most_frequent(3)
    assert (groups[0], classes[0]) == (1, 0)
    assert (groups != classes).all()


def test_all_confusions_are_as_many_as_there_are() -> None:
    groups, classes = TREE.most_frequent(100)
    assert sorted(zip(groups.tolist(), classes.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (1, 1)]


def test_beliefs_for_a_task_have_the_same_means_and_are_a_copy() -> None:
    beliefs = TREE.confusion_beliefs()
    np.testing.assert_allclose(beliefs.mean()[0], TREE.mean(), rtol=1e-6)
    np.testing.assert_allclose(
        beliefs.parameters()[0] / beliefs.parameters()[0].sum(axis=1, keepdims=True),
        TREE.mean(),
        rtol=1e-6,
    )
    beliefs.expect(np.array([0]))
    np.testing.assert_allclose(beliefs.mean()[0], TREE.mean(), rtol=1e-6)
    assert TREE.alpha[0, 2] == 5.0


def test_draws_of_beliefs_for_a_task_have_their_means() -> None:
    beliefs, rng = TREE.confusion_beliefs(), np.random.default_rng(2)
    draws = np.stack([beliefs.draw(rng)[0] for _ in range(4_000)])
    np.testing.assert_allclose(draws.mean(axis=0), TREE.mean(), atol=4 * 0.5 / 4_000**0.5)
    np.testing.assert_allclose(draws.sum(axis=2), 1, rtol=1e-9)
