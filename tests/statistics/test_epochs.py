"""Traffic by epochs: what comes now, and how densely labels were drawn from the traffic of their time."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.epochs import (
    Draws,
    Margin,
    epoch_label_densities,
    epoch_shares,
    recent_weights,
    retention_by_region,
    share_ratios,
)

REGIONS, CLASSES = 3, 2
REGION, CLASS = np.divmod(np.arange(REGIONS * CLASSES), CLASSES)
OF_CLASS = np.array([[0.7, 0.3], [0.4, 0.6], [0.1, 0.9]])
SHARES = np.array([[0.1, 0.4, 0.5], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]])
"""Of regions, by epoch, newest first."""

JOINT = (SHARES[:, :, None] * OF_CLASS).reshape(3, -1)


def margins() -> list[Margin]:
    of_class = (SHARES[:, :, None] * OF_CLASS).sum(axis=1)
    return [Margin(REGION, SHARES), Margin(CLASS, of_class)]


def test_recent_traffic_is_that_of_the_newest_epochs_with_enough_of_a_group() -> None:
    epochs = np.array([[[900, 300], [3, 1]], [[10, 10], [500, 700]], [[0, 5000], [0, 5000]]], np.float64)
    found = recent_weights(epochs)
    within = found / found.sum(axis=1, keepdims=True)
    assert within == pytest.approx(np.array([[900 / 1_200, 300 / 1_200], [503 / 1_204, 701 / 1_204]]))
    # Their shares take more predictions, as many as tell every group.
    assert found.sum(axis=1) == pytest.approx([1_220, 1_204])


def test_groups_without_recent_predictions_keep_a_little_weight() -> None:
    epochs = np.array([[[5_000.0], [0.0]], [[5_000.0], [40.0]]])
    found = recent_weights(epochs)
    assert 0 < found[1, 0] < 1


def test_cells_follow_the_margins_that_have_moved() -> None:
    found = share_ratios(JOINT[0], margins())
    assert found == pytest.approx(JOINT / JOINT[0], rel=0.02)


def test_labels_may_tell_cells_roughly() -> None:
    rough = JOINT[0] * np.array([1.3, 0.8, 1.2, 0.9, 0.7, 1.1])
    assert share_ratios(rough, margins()) == pytest.approx(JOINT / JOINT[0], rel=0.25)


def test_where_the_groups_that_are_asked_move_densities_are_labels_over_the_share_now() -> None:
    labels = np.array([[4, 5, 6], [7, 8, 9], [1, 2, 3], [0, 0, 0]], np.float64)
    drawn = Draws(REGION, labels, SHARES)
    found = epoch_label_densities([drawn], np.ones((6, 3)), JOINT / JOINT[0])
    assert found == pytest.approx((labels.sum(axis=1)[:-1] / SHARES[0])[REGION])


def test_weighted_labels_by_class_have_the_regions_of_now() -> None:
    of_class = (SHARES[:, :, None] * OF_CLASS).sum(axis=1)
    labels = np.full((CLASSES + 1, 3), 100.0)
    labels[-1] = 0
    # How many labels of each cell there are, by epoch.
    expected = 100 * JOINT / of_class[:, CLASS]
    density = epoch_label_densities([Draws(CLASS, labels, of_class)], np.ones((6, 3)), JOINT / JOINT[0])
    mass = expected.sum(axis=0) / density
    assert mass == pytest.approx(JOINT[0])


def test_a_group_with_few_stale_labels_counts_as_having_one() -> None:
    labels = np.array([[1.0], [0.0], [0.0]])
    drawn = Draws(np.array([0, 1, 2]), labels, np.array([[0.5, 0.5]]))
    found = epoch_label_densities([drawn], np.full((3, 1), 1e-3), np.ones((1, 3)))
    assert found == pytest.approx([2.0, 0.0, 0.0])


def test_of_cells_that_changed_alike_as_much_is_left_in_every_epoch() -> None:
    whole = np.array([[2, 4], [2, 0], [5, 0]], np.float64)
    left = np.array([[2, 1], [1, 0], [4, 0]], np.float64)
    found = retention_by_region(np.array([0, 0, 1]), whole, left)
    assert found == pytest.approx(np.array([[0.75, 0.25], [0.75, 0.25], [0.8, 0.8]]))


def test_shares_of_epochs_are_never_0() -> None:
    found = epoch_shares(np.array([[100.0, 0.0], [0.0, 1_000.0]]), np.array([1.0, 0.0]))
    assert (found > 0).all()
    assert found.sum(axis=1) == pytest.approx(1)
