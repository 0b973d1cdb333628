"""Evidence that a group changed, and when it did."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from benchmarks.change_evidence import log_e_changed
from service.statistics.e_detector import (
    advance_bets,
    change_point,
    log_wealth_of_bets,
    no_bets,
)

ODDS = np.array([1.6, 2.5, 4.0, 8.0])
"""By how much the odds of an error grow in the declines that are mixed."""


def unstaked(labels: int) -> float:
    """Share of the stake that is left after so many labels."""
    return float((1 + labels / 100) ** -0.5)


def evidence_of(labels: np.ndarray, accuracy: float) -> float:
    """Log e-value of a decline of one group after all its labels."""
    groups, none = np.zeros(len(labels), np.intp), np.zeros(1, np.intp)
    sums = advance_bets(no_bets(1), labels, groups, np.array([accuracy]), none)
    return float(log_wealth_of_bets(sums, np.array([float(len(labels))]))[0])


def lower(accuracy: float) -> np.ndarray:
    return np.asarray(special.expit(special.logit(accuracy) - np.log(ODDS)))


@given(labels=st.lists(st.booleans(), min_size=1, max_size=30), accuracy=st.floats(0.1, 0.98))
def test_at_each_label_a_share_of_the_stake_is_bet_on_a_decline(labels: list[bool], accuracy: float) -> None:
    sums = np.zeros(len(ODDS))
    for number, label in enumerate(labels):
        ratio = lower(accuracy) / accuracy if label else (1 - lower(accuracy)) / (1 - accuracy)
        sums = (sums + unstaked(number) - unstaked(number + 1)) * ratio
        expected = np.log(sums.mean() + unstaked(number + 1))
        assert evidence_of(np.array(labels[: number + 1]), accuracy) == pytest.approx(expected)


@given(labels=st.lists(st.booleans(), max_size=20), accuracy=st.floats(0.1, 0.98))
def test_one_more_label_leaves_evidence_as_it_is_on_average(labels: list[bool], accuracy: float) -> None:
    def evidence(more: bool) -> float:
        return float(np.exp(evidence_of(np.array([*labels, more], np.bool_), accuracy)))

    before = float(np.exp(evidence_of(np.array(labels, np.bool_), accuracy)))
    assert accuracy * evidence(True) + (1 - accuracy) * evidence(False) == pytest.approx(before)


def test_healthy_groups_are_seldom_ever_found_to_have_changed() -> None:
    rng = np.random.default_rng(3)
    groups, sums, ever = np.arange(300), no_bets(300), np.zeros(300, np.bool_)
    for number in range(2_000):
        labels, seen = rng.random(300) < 0.9, np.full(300, number)
        sums = advance_bets(sums, labels, groups, np.full(300, 0.9), seen)
        ever |= log_wealth_of_bets(sums, seen + 1.0) >= np.log(20)
    # Ville's inequality; the mean of so many is far below the bound, as the path ends.
    assert np.mean(ever) <= 0.05


@given(labels=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=40), cut=st.integers(0, 40))
def test_bets_on_many_groups_advance_as_each_by_itself(labels: list[tuple[bool, int]], cut: int) -> None:
    accuracy = np.array([0.6, 0.8, 0.95])
    sums, seen = no_bets(3), np.zeros(3, dtype=np.intp)
    for part in (labels[:cut], labels[cut:]):
        in_order = sorted(part, key=lambda label: label[1])
        correct = np.array([c for c, _ in in_order], dtype=np.bool_)
        groups = np.array([g for _, g in in_order], dtype=np.intp)
        sums = advance_bets(sums, correct, groups, accuracy, seen)
        seen = seen + np.bincount(groups, minlength=3)
    found = log_wealth_of_bets(sums, seen.astype(np.float64))
    for group in range(3):
        own = np.array([c for c, g in labels if g == group], dtype=np.bool_)
        assert found[group] == pytest.approx(evidence_of(own, accuracy[group]))


@given(labels=st.lists(st.booleans(), max_size=30), accuracy=st.floats(0.1, 0.98))
def test_benchmarks_compute_the_same_evidence_after_every_label(labels: list[bool], accuracy: float) -> None:
    outcomes = np.array(labels, np.bool_)
    after_each = [evidence_of(outcomes[: number + 1], accuracy) for number in range(len(outcomes))]
    assert log_e_changed(outcomes, accuracy) == pytest.approx(after_each)


def test_a_decline_is_dated() -> None:
    rng = np.random.default_rng(0)
    labels = np.concatenate((rng.random(400) < 0.95, rng.random(150) < 0.6))
    estimated = change_point(labels, 0.95, 0.95)
    assert estimated.earliest <= 400 <= estimated.latest
    assert abs(estimated.after - 400) < 10


def test_the_likeliest_beginning_is_inside_its_interval() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        estimated = change_point(rng.random(60) < 0.8, 0.9, 0.9)
        assert 0 <= estimated.earliest <= estimated.latest < 60


def test_labels_that_are_all_wrong_declined_before_the_first() -> None:
    estimated = change_point(np.zeros(20, np.bool_), 0.9, 0.9)
    assert estimated.after == estimated.earliest == 0


def test_no_labels_date_nothing() -> None:
    with pytest.raises(ValueError, match="without a label"):
        change_point(np.zeros(0, np.bool_), 0.9, 0.9)


def test_no_labels_are_no_evidence() -> None:
    assert evidence_of(np.zeros(0, np.bool_), 0.9) == 0


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_an_accuracy_that_no_label_can_refute_is_refused(accuracy: float) -> None:
    with pytest.raises(ValueError, match="strictly within 0 and 1"):
        evidence_of(np.ones(3, np.bool_), accuracy)
