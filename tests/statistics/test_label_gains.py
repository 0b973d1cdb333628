"""Which scores to label next, so that a measure at the threshold gets known soonest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.binary.label_gains import AIMS, LabelledStrata, expected_gains, next_labels

NOTHING = np.zeros(3)


def strata(*, counts: tuple[float, ...] = (5_000, 100, 30), labels: np.ndarray = NOTHING) -> LabelledStrata:
    return LabelledStrata(np.array([0.0, 0.0, 1.0]), np.array(counts), np.zeros(3), labels)


def beta(*parameters: tuple[float, float], draws: int = 200_000) -> np.ndarray:
    """Independent draws of theta of every stratum."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.beta(a, b, draws) for a, b in parameters])


@pytest.mark.parametrize("aim", sorted(AIMS))
def test_a_gain_is_the_fall_of_the_variance_that_labels_show(aim: str) -> None:
    """Against the linear predictor from simulated labels of ten items, of which one is known."""
    some = LabelledStrata(np.array([0.0, 1.0]), np.array([10.0, 10.0]), np.zeros(2), np.zeros(2))
    theta = beta((4, 6), (7, 3))
    rng = np.random.default_rng(1)
    positive = rng.random((*theta.shape, 10)) < theta[..., None]
    right, positives = positive[:, 1].sum(axis=1), positive.sum(axis=(1, 2))
    truth = {
        "precision": right / 10,
        "recall": right / np.maximum(positives, 1),
        "f1": 2 * right / (10 + positives),
        "false_positive_rate": (10 - right) / np.maximum(20 - positives, 1),
    }[aim]
    found = expected_gains(some, theta, aim)
    for stratum in range(2):
        label = positive[:, stratum, 0].astype(float)
        fall = np.cov(truth, label)[0, 1] ** 2 / label.var()
        assert found[stratum] == pytest.approx(fall, rel=0.25, abs=2e-5)


def test_the_curve_needs_labels_where_positive_items_may_be_and_of_what_is_called_positive() -> None:
    found = expected_gains(strata(), beta((1, 50), (1, 9), (3, 1), draws=400), "curve")
    assert np.all(found > 0)
    sure = expected_gains(strata(), beta((1, 50), (1, 9), (3_000, 1_000), draws=400), "curve")
    assert sure[2] < 0.2 * found[2]


def test_precision_needs_no_label_of_what_is_not_called_positive() -> None:
    found = expected_gains(strata(), beta((1, 9), (1, 3), (3, 1)), "precision")
    assert found[2] > 0
    assert found[:2] == pytest.approx(0, abs=1e-5)


def test_where_missed_positive_items_may_be_is_worth_most_for_recall() -> None:
    found = expected_gains(strata(), beta((1, 50), (1, 9), (30, 1)), "recall")
    assert found[0] > found[1] > found[2]


def test_what_is_labelled_completely_is_worth_nothing() -> None:
    found = expected_gains(strata(labels=np.array([0.0, 0.0, 30.0])), beta((1, 9), (1, 3), (3, 1)), "f1")
    assert found[2] == 0


@given(
    gains=st.lists(st.floats(0, 10), min_size=3, max_size=3),
    counts=st.lists(st.integers(0, 8), min_size=3, max_size=3),
    wanted=st.integers(0, 30),
)
def test_as_many_labels_are_chosen_as_are_wanted_and_can_be_had(
    gains: list[float], counts: list[int], wanted: int
) -> None:
    some = strata(counts=tuple(map(float, counts)))
    chosen = next_labels(some, np.array(gains), wanted, np.random.default_rng(0))
    assert chosen.sum() == min(wanted, sum(counts))
    assert np.all(chosen <= counts)


def test_labels_go_where_the_gain_is_until_others_gain_more() -> None:
    some = strata(counts=(1_000.0, 1_000.0, 1_000.0))
    chosen = next_labels(some, np.array([4.0, 1.0, 0.0]), 60, np.random.default_rng(0))
    assert chosen[0] == pytest.approx(2 * chosen[1], rel=0.3)
    assert chosen[2] < 8
