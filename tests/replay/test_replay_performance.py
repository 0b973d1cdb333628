"""Runs of a study of performance: what they compare, with what, and that chance is theirs alone."""

from __future__ import annotations

import numpy as np
import pytest

from service.replay.performance import (
    RECALLS,
    BinaryScores,
    PerformanceStudy,
    Run,
    area,
    label_only_precision,
    run_once,
)
from service.replay.workers import Workers, workers
from service.statistics.binary.performance import Target


def pool(size: int = 80, *, unit: bool = True, seed: int = 0) -> BinaryScores:
    """Scores that tell something, on a grid, so that some are equal."""
    rng = np.random.default_rng(seed)
    positive = rng.random(size) < 0.3
    scores = np.round(np.where(positive, rng.beta(4, 2, size), rng.beta(2, 4, size)), 1)
    return BinaryScores(1, scores if unit else 8 * scores - 3, positive, unit)


def performance_study(labels: int = 12, runs: int = 1, threshold: float = 0.5) -> PerformanceStudy:
    return PerformanceStudy(pool(), (labels,), runs, threshold, Target(precision=0.5))


def counted_precision(scores: np.ndarray, positive: np.ndarray, recall: float) -> float:
    """By the highest threshold that reaches the recall, one after the other."""
    for threshold in np.unique(scores)[::-1]:
        called = scores >= threshold
        if positive[called].sum() >= recall * positive.sum() - 1e-9:
            return float(positive[called].mean())
    raise AssertionError("the lowest threshold reaches every recall")


def same(one: Run, other: Run) -> bool:
    return np.array_equal(one.band.median, other.band.median) and all(
        np.array_equal(value, other.measures[name], equal_nan=True) for name, value in one.measures.items()
    )


@pytest.fixture(scope="module")
def first() -> Run:
    return run_once(performance_study(), performance_study().mixture, 12, 0)


@pytest.fixture(scope="module")
def second() -> Run:
    return run_once(performance_study(), performance_study().mixture, 12, 1)


@pytest.fixture(scope="module")
def all_labelled() -> Run:
    return run_once(performance_study(80), performance_study(80).mixture, 80, 0)


def test_the_area_of_a_perfect_estimate_is_nothing() -> None:
    truth = pool().true_precision
    assert area(truth, truth) == 0
    assert area(truth - 0.1, truth) == pytest.approx(0.1)


@pytest.mark.parametrize("size", [3, 12, 80])
def test_the_curve_of_labels_alone_has_a_step_at_every_score(size: int) -> None:
    some = pool(size, seed=size)
    found = label_only_precision(some.scores, some.positive, RECALLS)
    expected = [counted_precision(some.scores, some.positive, recall) for recall in RECALLS]
    np.testing.assert_allclose(found, expected)


def test_recalls_that_are_counts_take_no_item_more() -> None:
    scores, positive = np.arange(10, 0, -1.0) / 10, np.ones(10, np.bool_)
    positive[3:] = [False, True, False, True, False, False, False]
    found = label_only_precision(scores, positive, np.array([0.2, 0.6, 0.8, 1.0]))
    np.testing.assert_allclose(found, [1, 1, 4 / 5, 5 / 7])


def test_without_a_positive_label_labels_alone_know_no_precision() -> None:
    found = label_only_precision(np.array([0.2, 0.9]), np.array([False, False]), RECALLS)
    np.testing.assert_array_equal(found, np.zeros_like(RECALLS))


def test_the_truth_is_that_of_all_items_of_the_pool() -> None:
    whole = pool()
    for threshold in (0.3, 0.5, 0.7):
        called = whole.scores >= threshold
        at = whole.position(whole.truth, threshold)
        assert whole.truth.precision[0, at] == pytest.approx(whole.positive[called].mean())
        reached = whole.truth.recall[0, at]
        assert reached == pytest.approx(whole.positive[called].sum() / whole.positive.sum())
        assert whole.truth.precision_at_recall(np.array([reached]))[0, 0] == pytest.approx(
            whole.positive[called].mean()
        )
    assert whole.truth.prevalence[0] == pytest.approx(whole.positive.mean())


def test_a_threshold_below_all_scores_calls_all_positive() -> None:
    high = BinaryScores(0, np.array([0.7, 0.8, 0.9]), np.array([False, True, True]))
    at = high.position(high.truth, 0.5)
    assert high.truth.called[0, at] == 3
    assert high.truth.precision[0, at] == pytest.approx(2 / 3)


def test_margins_have_the_curve_of_their_order() -> None:
    np.testing.assert_allclose(pool(unit=False).true_precision, pool().true_precision)


def test_margins_are_estimated_from() -> None:
    study = PerformanceStudy(pool(unit=False), (40,), 1, 0.0)
    found = run_once(study, study.mixture, 40, 0)
    assert found.measures["area"] < 0.2
    assert "target_met" not in found.measures


def test_the_band_goes_around_its_mean(first: Run) -> None:
    assert (first.band.lower <= first.band.median + 1e-9).all()
    assert (first.band.median <= first.band.upper + 1e-9).all()
    assert first.measures["band_width"] == pytest.approx((first.band.upper - first.band.lower).mean())


def test_measures_are_held_against_the_pool(first: Run) -> None:
    truth = pool().true_precision
    assert first.measures["area"] == pytest.approx(np.abs(first.band.median - truth).mean())
    inside = (first.band.lower - 1e-9 <= truth) & (truth <= first.band.upper + 1e-9)
    assert first.measures["band_coverage"] == pytest.approx(inside.mean())


def test_areas_are_told_apart_by_whether_a_label_is_positive(first: Run) -> None:
    assert first.measures["positive_label"] == 1
    assert first.measures["area_if_positive"] == first.measures["area"]
    rare = BinaryScores(1, pool().scores, np.arange(80) == 41)
    study = PerformanceStudy(rare, (2,), 1, 0.5)
    without = run_once(study, study.mixture, 2, 0).measures
    assert without["positive_label"] == 0
    assert np.isnan(without["area_if_positive"])
    assert without["label_only_area"] == pytest.approx(rare.true_precision.mean())


def test_weights_of_the_ways_sum_to_one(first: Run) -> None:
    weights = [value for name, value in first.measures.items() if name.startswith("weight_")]
    assert len(weights) == 4
    assert sum(weights) == pytest.approx(1)


def test_when_all_items_are_labelled_nothing_is_uncertain(all_labelled: Run) -> None:
    found = all_labelled.measures
    assert found["area"] == pytest.approx(0, abs=1e-9)
    assert found["band_width"] == pytest.approx(0, abs=1e-9)
    assert all(value == 1 for name, value in found.items() if name.endswith("coverage"))


def test_what_all_labels_promise_of_a_threshold_is_kept(all_labelled: Run) -> None:
    for name in ("target_promised", "target_met", "target_possible"):
        assert all_labelled.measures[name] == 1


def test_where_nothing_is_called_positive_there_is_no_precision_to_hold() -> None:
    found = run_once(
        performance_study(threshold=1.0), performance_study(threshold=1.0).mixture, 12, 0
    ).measures
    assert pool().scores.max() < 1
    assert np.isnan(found["precision_coverage"])
    assert found["recall_coverage"] == 1


def test_a_run_is_decided_by_the_seed_its_labels_and_its_number(first: Run) -> None:
    (again,) = performance_study().run(12, Workers())
    assert same(again, first)


def test_runs_draw_other_items(first: Run, second: Run) -> None:
    assert not same(first, second)


def test_two_processes_find_what_one_finds(first: Run, second: Run) -> None:
    with workers(2) as crew:
        shared = performance_study(runs=2).run(12, crew)
    assert same(shared[0], first)
    assert same(shared[1], second)
