"""Evidence that a group changed, and when it did."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.e_detector import (
    advance_bets,
    change_point,
    log_e_changed,
    log_wealth_of_bets,
    no_bets,
)

ODDS = np.array([1.6, 2.5, 4.0, 8.0])
"""By how much the odds of an error grow in the declines that are mixed."""


def unstaked(labels: int) -> float:
    """Share of the stake that is left after so many labels."""
    return float((1 + labels / 100) ** -0.5)


def lower(accuracy: float) -> np.ndarray:
    return np.asarray(special.expit(special.logit(accuracy) - np.log(ODDS)))


@given(labels=st.lists(st.booleans(), min_size=1, max_size=30), accuracy=st.floats(0.1, 0.98))
def test_at_each_label_a_share_of_the_stake_is_bet_on_a_decline(labels: list[bool], accuracy: float) -> None:
    sums, told = np.zeros(len(ODDS)), []
    for number, label in enumerate(labels):
        ratio = lower(accuracy) / accuracy if label else (1 - lower(accuracy)) / (1 - accuracy)
        sums = (sums + unstaked(number) - unstaked(number + 1)) * ratio
        told.append(np.log(sums.mean() + unstaked(number + 1)))
    assert log_e_changed(np.array(labels), accuracy) == pytest.approx(told)


@given(labels=st.lists(st.booleans(), max_size=20), accuracy=st.floats(0.1, 0.98))
def test_one_more_label_leaves_evidence_as_it_is_on_average(labels: list[bool], accuracy: float) -> None:
    def evidence(more: bool) -> float:
        return float(np.exp(log_e_changed(np.array([*labels, more]), accuracy)[-1]))

    before = float(np.exp(log_e_changed(np.array(labels), accuracy)[-1])) if labels else 1.0
    assert accuracy * evidence(True) + (1 - accuracy) * evidence(False) == pytest.approx(before)


def test_healthy_groups_are_seldom_ever_found_to_have_changed() -> None:
    rng = np.random.default_rng(3)
    ever = [log_e_changed(rng.random(2_000) < 0.9, 0.9).max() >= np.log(20) for _ in range(300)]
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
        told = log_e_changed(own, accuracy[group])
        assert found[group] == pytest.approx(told[-1] if len(own) else 0.0)


def test_a_decline_is_dated() -> None:
    rng = np.random.default_rng(0)
    labels = np.concatenate((rng.random(400) < 0.95, rng.random(150) < 0.6))
    told = change_point(labels, 0.95, 0.95)
    assert told.earliest <= 400 <= told.latest
    assert abs(told.after - 400) < 10


def test_the_likeliest_beginning_is_inside_its_interval() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        told = change_point(rng.random(60) < 0.8, 0.9, 0.9)
        assert 0 <= told.earliest <= told.latest < 60


def test_labels_that_are_all_wrong_declined_before_the_first() -> None:
    told = change_point(np.zeros(20, np.bool_), 0.9, 0.9)
    assert told.after == told.earliest == 0


def test_no_labels_date_nothing() -> None:
    with pytest.raises(ValueError, match="without a label"):
        change_point(np.zeros(0, np.bool_), 0.9, 0.9)


def test_no_labels_are_no_evidence() -> None:
    assert len(log_e_changed(np.zeros(0, np.bool_), 0.9)) == 0


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_an_accuracy_that_no_label_can_refute_is_refused(accuracy: float) -> None:
    with pytest.raises(ValueError, match="strictly within 0 and 1"):
        log_e_changed(np.ones(3, np.bool_), accuracy)
