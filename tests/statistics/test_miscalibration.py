"""Evidence that scores are not right as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.e_processes import log_e_miscalibrated, log_gains


def log_e_value(scores: list[float], correct: list[bool]) -> float:
    groups = np.zeros(len(scores), np.intp)
    return float(log_e_miscalibrated(log_gains(np.array(scores), np.array(correct), groups, 1))[0])


@given(
    before=st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), max_size=20),
    score=st.floats(0.001, 0.999),
)
def test_where_scores_are_right_a_label_leaves_evidence_the_same_on_average(
    before: list[tuple[float, bool]], score: float
) -> None:
    scores, correct = [each[0] for each in before], [each[1] for each in before]
    now = log_e_value(scores, correct)
    after = [log_e_value([*scores, score], [*correct, label]) - now for label in (True, False)]
    assert score * np.exp(after[0]) + (1 - score) * np.exp(after[1]) == pytest.approx(1)


def test_groups_are_reported_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    scores, correct, groups = rng.random(60), rng.random(60) < 0.5, rng.integers(0, 3, 60)
    together = log_e_miscalibrated(log_gains(scores, correct, groups, 4))
    for group in range(3):
        of = groups == group
        assert together[group] == pytest.approx(log_e_value(scores[of].tolist(), correct[of].tolist()))
    assert together[3] == pytest.approx(0)


@pytest.mark.parametrize("slope", [0.4, 2.0])
def test_scores_that_are_wrong_are_found(slope: float) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(2, 1, 500)
    correct = rng.random(500) < special.expit(slope * logits)
    assert log_e_value(special.expit(logits).tolist(), correct.tolist()) > np.log(100)


def test_one_error_of_a_model_that_is_quite_sure_proves_nothing() -> None:
    assert log_e_value([1.0] * 200, [False] + [True] * 199) < np.log(20)


@pytest.mark.parametrize("score", [0.0, 1e-5, 0.9995, 0.99999, 1.0])
def test_scores_near_an_end_that_are_right_win_nothing(score: float) -> None:
    after = [log_e_value([score], [label]) for label in (True, False)]
    assert score * np.exp(after[0]) + (1 - score) * np.exp(after[1]) <= 1 + 1e-12


def test_a_model_that_is_sure_and_always_right_is_not_miscalibrated() -> None:
    assert log_e_value([1.0] * 100_000, [True] * 100_000) < 0


def test_scores_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        log_e_value([1.2], [True])
