"""Weights after change points: intervals hold after a drop, at a price where nothing changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

from service.statistics.change_points import DETECTED, change_point_weights

RUN_LENGTH = 500
NOMINAL = 0.95
ALLOWED = NOMINAL - 0.02
GROUPS = 400


class Beliefs(NamedTuple):
    """Of every look and group: whether a change is detected, the mean's error, whether the interval holds."""

    detected: np.ndarray
    error: np.ndarray
    held: np.ndarray


def streams(before: float, after: float, *, first: int, then: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate((rng.random((GROUPS, first)) < before, rng.random((GROUPS, then)) < after), axis=1)


def believed(labels: np.ndarray, truth: float, looks: range, *, forgetting: bool = True) -> Beliefs:
    """By the labels up to every look, under Jeffreys' prior."""
    estimated = []
    for look in looks:
        seen, detected, kept = labels[:, :look], np.zeros(len(labels), np.bool_), 1.0
        if forgetting:
            sizes = np.full(len(seen), look)
            remains = change_point_weights(correct=seen.ravel(), sizes=sizes, run_length=RUN_LENGTH)
            detected, kept = remains.changed >= DETECTED, remains.factors.reshape(seen.shape)
        right, wrong = (kept * seen).sum(axis=1) + 0.5, (kept * ~seen).sum(axis=1) + 0.5
        ends = [special.betaincinv(right, wrong, tail) for tail in ((1 - NOMINAL) / 2, (1 + NOMINAL) / 2)]
        mean = right / (right + wrong)
        estimated.append((detected, mean - truth, (ends[0] <= truth) & (truth <= ends[1])))
    return Beliefs(*(np.array(column) for column in zip(*estimated, strict=True)))


@pytest.mark.parametrize(("before", "after"), [(0.92, 0.82), (0.92, 0.72), (0.8, 0.95), (0.6, 0.9)])
def test_intervals_hold_the_new_accuracy_once_the_change_is_detected(before: float, after: float) -> None:
    labels = streams(before, after, first=300, then=300, seed=0)
    # Looks are so much alike that more of them would have the same standard error, 0.4 points.
    found = believed(labels, after, range(320, 601, 40))
    assert found.detected.any(axis=0).mean() > 0.5
    assert found.held[found.detected].mean() >= ALLOWED


@pytest.mark.parametrize("drop", [0.1, 0.2, 0.3])
def test_intervals_hold_most_accuracies_from_the_hundredth_label_after_a_drop(drop: float) -> None:
    labels = streams(0.92, 0.92 - drop, first=600, then=400, seed=4)
    found = believed(labels, 0.92 - drop, range(700, 1_001, 100))
    # docs/forgetting.md has the coverage of fewer labels, and what no interval can hold.
    assert found.held.mean(axis=1).min() >= 0.88
    assert found.held.mean() >= ALLOWED


def test_where_nothing_changes_intervals_hold_and_the_error_is_less_than_half_as_large_again() -> None:
    labels = streams(0.92, 0.92, first=300, then=300, seed=1)
    found = believed(labels, 0.92, range(100, 601, 50))
    plain = believed(labels, 0.92, range(100, 601, 50), forgetting=False)
    assert found.held.mean() >= ALLOWED
    assert np.mean(found.error**2) <= 1.5**2 * np.mean(plain.error**2)


def test_changes_that_never_were_are_as_rare_as_the_run_length_says() -> None:
    labels = streams(0.92, 0.92, first=500, then=500, seed=2)
    found = believed(labels, 0.92, range(40, 1_001, 40))
    # Of a Poisson process the number has its mean as variance; three deviations are allowed.
    expected = labels.size / (10 * RUN_LENGTH)
    assert found.detected.any(axis=0).sum() <= expected + 3 * np.sqrt(expected)


def test_after_a_change_the_mean_is_closer_than_without_forgetting() -> None:
    labels = streams(0.92, 0.72, first=300, then=150, seed=3)
    found = believed(labels, 0.72, range(310, 451, 20))
    plain = believed(labels, 0.72, range(310, 451, 20), forgetting=False)
    assert np.mean(found.error**2) < 0.6 * np.mean(plain.error**2)
