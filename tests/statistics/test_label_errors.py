"""How often labels are wrong at most, learned from gold items, and what evidence makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.e_processes import log_e_below
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence
from service.statistics.label_errors import (
    ALPHA_SHARE,
    ERROR_BOUNDS,
    NEVER_WRONG,
    GoldCounts,
    WrongLabels,
    error_bound,
    learned,
    stated,
)

LEVEL = 0.005


def test_without_labels_no_bound_is_known() -> None:
    assert error_bound(0, 0, LEVEL) is None
    found = learned(GoldCounts(), 0.05)
    assert (found.of_correct, found.most_of_correct, found.most_of_incorrect) == ((), None, None)


def test_the_bound_comes_down_to_the_share_of_wrong_labels() -> None:
    bounds = [error_bound(labels, labels // 50, LEVEL) for labels in (50, 100, 400, 1_000, 10_000)]
    assert bounds == [0.18, 0.11, 0.0575, 0.0425, 0.0275]


@pytest.mark.parametrize("share", [0.012, 0.05, 0.2])
def test_the_bound_is_hardly_ever_too_low_however_often_it_is_looked_at(share: float) -> None:
    rng = np.random.default_rng(1)
    wrong = np.cumsum(rng.random((2_000, 600)) < share, axis=1)
    labels = np.arange(1, 601)
    below = [bound for bound in ERROR_BOUNDS if bound <= share]
    # It is too low once the highest bound that is no more than the share is rejected, whatever the others do.
    rejected = log_e_below(wrong, labels - wrong, np.full(wrong.shape, below[-1])) >= -np.log(LEVEL)
    assert rejected.any(axis=1).mean() <= LEVEL
    some = rng.integers(0, 2_000, 20)
    assert all(
        (error_bound(int(n), int(wrong[run, n - 1]), LEVEL) or 1.0) >= share
        for run in some
        for n in range(50, 601, 50)
    )


def test_both_bounds_are_paid_by_a_fifth_of_alpha() -> None:
    found = learned(GoldCounts(400, 8, 40, 4), 0.05)
    assert found.most_of_correct == error_bound(400, 8, 0.05 * ALPHA_SHARE / 2)
    assert found.most_of_incorrect == error_bound(40, 4, 0.05 * ALPHA_SHARE / 2)
    assert found.left_of(0.05) == pytest.approx(0.04)
    assert stated(0.1).left_of(0.05) == 0.05


def evidence_of(correct: int, wrong: int, wrong_labels: WrongLabels) -> GroupEvidence:
    count = correct + wrong
    yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    labels = GroupedLabels(
        np.zeros(count, np.intp), np.full(count, 0.9), np.arange(count) < correct, no, no, no, yes
    )
    return assess_evidence(
        labels,
        seen=np.zeros(1, np.intp),
        before=GroupEvidence.none(1),
        thresholds=np.array([0.88]),
        alpha=0.05,
        baseline_alpha=np.full(1, 0.001),
        fixed=False,
        base=GroupEvidence.none(1),
        wrong_labels=wrong_labels,
    )


def test_evidence_is_no_more_than_that_of_any_tried_bound() -> None:
    allowed = learned(GoldCounts(1_000, 20, 100, 5), 0.05)
    found = evidence_of(140, 60, allowed).below[0]
    each = [evidence_of(140, 60, stated(bound)).below[0] for bound in allowed.of_correct]
    assert found == min(each) == each[-1] > 0


def test_without_a_bound_there_is_no_evidence_and_any_accuracy_is_possible() -> None:
    found = evidence_of(10, 190, learned(GoldCounts(), 0.05))
    assert np.isnan(found.below[0])
    assert (found.lower[0], found.upper[0]) == (0.0, 1.0)


def test_each_end_of_the_confidence_sequence_has_its_own_bound() -> None:
    trusted = evidence_of(160, 40, NEVER_WRONG)
    found = evidence_of(160, 40, WrongLabels((0.05, 0.1), 0.2, is_learned=True))
    assert found.lower[0] == pytest.approx((trusted.lower[0] - 0.2) / 0.8)
    assert found.upper[0] == pytest.approx(trusted.upper[0] / 0.9)
