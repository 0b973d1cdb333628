"""Labels asked for one grouping tell of another without bias."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.assessment.weights import Asked, balance_weights, effective_counts


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_for_one_assessment_the_counts_of_its_groups_are_plain(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    cell_groups = np.array([0, 0, 1, 1, 2])
    cells = rng.integers(0, 5, count)
    correct = rng.integers(0, 2, count).astype(float)
    ones = np.ones(count)
    weights = balance_weights(
        cells=cells,
        freshness=ones,
        traffic=rng.uniform(0.1, 1, 5),
        asked=[Asked(cell_groups, np.arange(count))],
    )
    groups = cell_groups[cells]
    labels, right = effective_counts(
        groups=groups, group_count=3, weights=weights, freshness=ones, correct=correct
    )
    np.testing.assert_allclose(labels, np.bincount(groups, minlength=3), rtol=1e-12)
    np.testing.assert_allclose(right, np.bincount(groups, correct, minlength=3), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**32), st.floats(1e-6, 1e6))
def test_only_the_proportions_of_weights_matter(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 3, 40), rng.uniform(0.1, 5, 40)
    rest = {"group_count": 3, "freshness": rng.uniform(0.1, 1, 40), "correct": rng.integers(0, 2, 40) * 1.0}
    plain = effective_counts(groups=groups, weights=weights, **rest)
    scaled = effective_counts(groups=groups, weights=weights * scale, **rest)
    np.testing.assert_allclose(plain, scaled, rtol=1e-9)


@given(st.integers(0, 2**32))
def test_the_order_of_labels_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 3, 40), rng.uniform(0.1, 5, 40)
    freshness, correct = rng.uniform(0.1, 1, 40), rng.integers(0, 2, 40) * 1.0
    order = rng.permutation(40)
    there = effective_counts(
        groups=groups, group_count=3, weights=weights, freshness=freshness, correct=correct
    )
    then = effective_counts(
        groups=groups[order],
        group_count=3,
        weights=weights[order],
        freshness=freshness[order],
        correct=correct[order],
    )
    np.testing.assert_allclose(there, then, rtol=1e-9)


def test_unequal_weights_count_as_kish_says() -> None:
    weights = np.array([1.0, 1.0, 4.0])
    labels, _ = effective_counts(
        groups=np.zeros(3, np.intp),
        group_count=1,
        weights=weights,
        freshness=np.ones(3),
        correct=np.ones(3),
    )
    assert labels[0] == weights.sum() ** 2 / (weights**2).sum()


def test_labels_that_are_all_old_lose_their_say() -> None:
    labels, right = effective_counts(
        groups=np.zeros(8, np.intp),
        group_count=1,
        weights=np.ones(8),
        freshness=np.full(8, 0.25),
        correct=np.ones(8),
    )
    assert labels[0] == 2.0
    assert right[0] == 2.0


def test_labels_asked_by_class_do_not_bias_the_accuracy_of_regions() -> None:
    rng = np.random.default_rng(5)
    # Two classes by two regions; the classes differ in accuracy, and regions in their mix of classes.
    traffic = np.array([0.45, 0.05, 0.1, 0.4])
    accuracy = np.array([0.95, 0.95, 0.6, 0.6])
    by_class, by_region = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    truth = np.array(
        [(traffic * accuracy)[by_region == r].sum() / traffic[by_region == r].sum() for r in (0, 1)]
    )
    plain, weighted = [], []
    for _ in range(300):
        # Class 1 is asked nine times as often as class 0.
        asked_class = (rng.random(200) < 0.9).astype(int)
        cells = np.array(
            [
                rng.choice(4, p=np.where(by_class == c, traffic, 0) / traffic[by_class == c].sum())
                for c in asked_class
            ]
        )
        correct = (rng.random(200) < accuracy[cells]).astype(float)
        ones = np.ones(200)
        weights = balance_weights(
            cells=cells, freshness=ones, traffic=traffic, asked=[Asked(by_class, np.arange(200))]
        )
        for estimates, used in ((plain, ones), (weighted, weights)):
            n, r = effective_counts(
                groups=by_region[cells], group_count=2, weights=used, freshness=ones, correct=correct
            )
            estimates.append(r / n)
    # Standard error of the mean of 300 runs is about 0.003.
    np.testing.assert_allclose(np.mean(weighted, axis=0), truth, atol=0.012)
    assert abs(np.mean(plain, axis=0)[0] - truth[0]) > 0.1
