"""Studies: batches, processes, what is truly so, and how few labels it takes to know it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from replay_examples import pool_of, recording
from rich.progress import Progress

from service.replay.digits import digits_recordings
from service.replay.engine import Method
from service.replay.grouping import Grouper
from service.replay.measures import Result
from service.replay.recording import Recording
from service.replay.study import RUNS_AT_ONCE, Study, _pairs, run_batch, true_metric
from service.replay.workers import Workers, batches, workers

STUDY = Study(pool_of([15, 20, 10]), "identification", "accuracy", runs=230, budget=12)
INFORMED = Method("informed", "thompson")


def test_batches_joined_are_the_batches_one_after_the_other() -> None:
    whole = STUDY.run(INFORMED, Workers())
    parts = [run_batch(STUDY, INFORMED, first, runs) for first, runs in batches(STUDY.runs, RUNS_AT_ONCE)]
    assert batches(STUDY.runs, RUNS_AT_ONCE) == [(0, 100), (100, 100), (200, 30)]
    for name, rows in whole.per_run.items():
        np.testing.assert_array_equal(rows, np.concatenate([part.per_run[name] for part in parts]))
    for name, total in whole.totals.items():
        np.testing.assert_allclose(total, sum(part.totals[name] for part in parts))


def test_batches_are_not_alike() -> None:
    first, second = (run_batch(STUDY, INFORMED, start, 100).per_run["stays"] for start in (0, 100))
    assert (first != second).any()


def test_progress_is_told_of_every_run() -> None:
    bars = Progress(disable=True)
    STUDY.run(INFORMED, Workers(bars=bars), "informed")
    assert [(bar.description, bar.completed, bar.total) for bar in bars.tasks] == [("informed", 230, 230)]


def test_several_processes_find_what_one_finds() -> None:
    with workers(2) as crew:
        shared = STUDY.run(INFORMED, crew)
    alone = STUDY.run(INFORMED, Workers())
    for name in alone.per_run:
        np.testing.assert_array_equal(shared.per_run[name], alone.per_run[name])
    for name in alone.totals:
        np.testing.assert_array_equal(shared.totals[name], alone.totals[name])


def test_methods_see_the_same_orders_of_items() -> None:
    made = recording([9, 8])
    pool = Grouper(1).all(made)
    study = Study(pool, "estimation", "accuracy", runs=8, budget=5, at=(1, 2, 3, 4, 5))
    found = [
        study.run(Method("uniform", policy), Workers()).per_run["rmse"] for policy in ("random", "thompson")
    ]
    np.testing.assert_array_equal(*found)


def test_comparisons_are_of_all_pairs_in_turn_whatever_the_batch() -> None:
    study = Study(pool_of([5, 5, 5]), "comparison", "accuracy", runs=7, budget=10)
    assert _pairs(study, 0, 4).tolist() == [[0, 1], [0, 2], [1, 2], [0, 1]]
    assert _pairs(study, 4, 3).tolist() == [[0, 2], [1, 2], [0, 1]]


def test_the_true_cost_weighs_the_true_classes_of_a_predicted_one() -> None:
    pool = pool_of([15, 20, 10])
    costs = np.arange(9.0).reshape(3, 3)
    study = Study(pool, "identification", "cost", runs=1, budget=5, costs=costs)
    labels, predicted = pool.recording.labels, pool.recording.predicted
    expected = [costs[group][labels[predicted == group]].mean() for group in range(3)]
    np.testing.assert_allclose(true_metric(study), expected)


def test_a_study_of_costs_needs_costs() -> None:
    with pytest.raises(ValueError, match="needs a cost matrix"):
        true_metric(Study(pool_of([5, 5]), "identification", "cost", runs=1, budget=5))


@pytest.mark.parametrize("extreme", ["lowest", "highest"])
def test_with_all_labels_the_extreme_group_is_found_at_either_end(extreme: Any) -> None:
    study = Study(pool_of([60, 70, 80]), "identification", "accuracy", runs=20, budget=210, extreme=extreme)
    assert (study.run(INFORMED, Workers()).per_run["stays"] <= 210).all()


@pytest.fixture(scope="module")
def digits() -> Recording:
    """The moderately confident classifier."""
    return digits_recordings()[0]


RUNS = 40
"""Runs of every method; what is asserted is several standard errors away from what is found."""


def measured(digits: Recording, task: str, metric: str, method: Method, **options: Any) -> Result:
    pool = Grouper(10, "equal_size").by_predicted_class(digits)
    return Study(pool, task, metric, runs=RUNS, **options).run(method, Workers())


def after_100_labels(digits: Recording, metric: str, method: str) -> Result:
    prior, policy = method.split("+")
    return measured(digits, "estimation", metric, Method(prior, policy), budget=100, at=(100,))


def test_the_learned_prior_errs_less_than_the_informed_one(digits: Recording) -> None:
    # .040 and .058 are found, within .001 whatever the seed.
    learned, informed = (
        float(after_100_labels(digits, "accuracy", f"{prior}+thompson").per_run["rmse"].mean())
        for prior in ("learned", "informed")
    )
    assert learned < 0.8 * informed


def test_intervals_of_the_learned_prior_hold_the_truth(digits: Recording) -> None:
    # 95% to 97% are found, whatever the seed; 40 runs of 10 groups.
    coverage = after_100_labels(digits, "accuracy", "learned+random").per_run["coverage"]
    assert coverage.mean() >= 0.9


def test_the_learned_prior_knows_the_confusion_better(digits: Recording) -> None:
    # .054 and .087 are found, within .001 whatever the seed.
    learned, informed = (
        float(after_100_labels(digits, "confusion", f"{prior}+thompson").per_run["rmse"].mean())
        for prior in ("learned", "informed")
    )
    assert learned < 0.8 * informed


def test_the_least_accurate_digit_is_found_with_fewer_labels(digits: Recording) -> None:
    # About 175 and 275 labels of 400 are found.
    learned, plain = (
        float(measured(digits, "identification", "accuracy", method, budget=400).per_run["stays"].mean())
        for method in (Method("learned", "thompson"), Method("uniform", "random"))
    )
    assert learned < 0.75 * plain
