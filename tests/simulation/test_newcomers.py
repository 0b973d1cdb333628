"""Healthy groups are seldom confirmed, though they arrive one by one, or wrong answers come late."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.late_answers import Delays, Requests, run, settings_of
from benchmarks.newcomers import ALPHA, LABELS, THRESHOLD, false_changes, newcomers, paths, suspicions
from benchmarks.rebuilt_evidence import confirmed, evaluated
from service.statistics.e_processes import log_arrival_weights

RUNS = 100


@pytest.fixture(scope="module")
def ever() -> dict[str, np.ndarray]:
    """Runs in which any of 50 groups is ever confirmed, of any kind, %: by arrival, by today's number."""
    return newcomers(50, RUNS, seed=3)


def test_runs_have_the_evidence_that_the_service_has() -> None:
    correct = np.random.default_rng(5).random((12, LABELS)) < THRESHOLD - 0.05
    there = evaluated(correct)
    log_e = np.stack(list(there.log_e.values()), axis=1)
    log_e[:, 3] -= np.log(2)  # what pays for baselines
    assert suspicions(correct).any()
    assert np.isnan(log_e).any()  # of groups whose references are not complete, as they were suspected
    log_e = np.where(np.isnan(log_e), -np.inf, log_e)
    order = [int(group) for group in there.groups]
    np.testing.assert_allclose(paths(correct)[order, -1], log_e, rtol=1e-9)


@pytest.mark.parametrize("accuracy", [THRESHOLD, THRESHOLD - 0.2])
def test_a_rebuild_confirms_what_was_confirmed_before(accuracy: float) -> None:
    rng = np.random.default_rng(6)
    found = confirmed(rng.random((10, LABELS)) < accuracy, rng, LABELS)
    assert found == [accuracy < THRESHOLD] * len(found)


@pytest.mark.parametrize("how", ["from the start", "one by one", "one by one, then rebuilt"])
def test_few_runs_ever_confirm_a_healthy_group_however_groups_arrive(
    ever: dict[str, np.ndarray], how: str
) -> None:
    assert ever[how][0] <= 100 * ALPHA


def test_by_the_number_of_groups_at_the_moment_each_newcomer_has_a_chance_of_its_own(
    ever: dict[str, np.ndarray],
) -> None:
    # What fixed shares are for.
    assert ever["one by one"][1] > 150 * ALPHA


@pytest.mark.parametrize("accuracy", [0.93, 0.95])
def test_wrong_answers_that_come_later_than_right_ones_make_no_change(accuracy: float) -> None:
    assert false_changes(accuracy, 20, in_order=True, days=40) <= 100 * ALPHA


def test_the_service_confirms_no_change_when_wrong_predictions_are_labelled_late() -> None:
    requests = Requests.drawn(0.93, Delays(right=1.0, wrong=7.0), np.random.default_rng(2))
    assert not any(day.confirmed for day in run(requests, settings_of(0.93)))


def test_in_the_order_of_answers_they_make_one() -> None:
    # What the order of requests is for.
    assert false_changes(0.95, 5, in_order=False, days=40) == 100


def test_all_weights_of_groups_that_ever_arrive_sum_to_one_at_the_most() -> None:
    weights = np.exp(log_arrival_weights(np.arange(1, 1_000_001)))
    assert 0.99 < weights.sum() <= 1
    assert (np.diff(weights) < 0).all()
