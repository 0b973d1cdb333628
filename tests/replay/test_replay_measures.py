"""Measures of replays: by hand on small examples, and what is said where nothing is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from replay_examples import believing, plain_pool, pool_of

from service.replay.engine import Method
from service.replay.measures import (
    AccuracyErrors,
    BinErrors,
    Comparisons,
    ConfusionErrors,
    Identification,
    Result,
    overall_accuracy,
)
from service.replay.study import Study
from service.replay.summary import comparison, crossing, identification
from service.statistics.beliefs import AccuracyBeliefs, LearnedAccuracy, Outcomes
from service.statistics.comparison import rope_probabilities
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.curves import LearnedCurve

METHOD = Method("uniform", "random")


def looked(measure: Any, *beliefs: Any) -> Result:
    """What a measure tells that was shown these beliefs after 0, 1, ... labels."""
    for used, belief in enumerate(beliefs):
        measure.record(used, belief)
    result: Result = measure.result()
    return result


def test_rmse_of_accuracy_is_weighed_by_the_pool() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6])
    result = looked(AccuracyErrors(pool, [0], 0.95), believing([1, 2], [1, 1]))
    # Truth 3/4 and 1/2, believed 1/2 and 2/3, shares 1/4 and 3/4.
    assert result.per_run["rmse"].tolist() == [[pytest.approx((0.25 / 16 + 0.75 / 36) ** 0.5)]]


def test_the_error_of_overall_accuracy_has_a_sign() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6])
    result = looked(AccuracyErrors(pool, [0], 0.95), believing([1, 2], [1, 1]))
    expected = (0.25 * 0.5 + 0.75 * 2 / 3) - 9 / 16
    assert result.per_run["overall_error"][0, 0] == pytest.approx(expected)


def test_overall_accuracy_has_the_variance_of_the_weighed_sum() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6])
    belief = overall_accuracy(believing([1, 2], [1, 1]), pool.cells.group_shares)
    assert belief.variance()[0, 0] == pytest.approx(0.25**2 / 12 + 0.75**2 / 18)


def test_coverage_counts_the_intervals_that_hold_the_truth() -> None:
    pool = plain_pool(right=[30, 30, 30, 30], wrong=[10, 10, 10, 10])
    # Wide; narrow where the truth is; narrow below; narrow above.
    beliefs = believing([3, 750, 500, 900], [1, 250, 500, 100])
    assert looked(AccuracyErrors(pool, [0], 0.95), beliefs).per_run["coverage"].tolist() == [[0.5]]


def test_an_interval_next_to_the_end_holds_an_accuracy_of_one() -> None:
    pool = plain_pool(right=[4, 4], wrong=[0, 4])
    assert looked(AccuracyErrors(pool, [0], 0.95), believing([5, 5], [1, 5])).per_run["coverage"] == 1


@pytest.mark.parametrize(("correct", "holds"), [(1.0, [1.0]), (0.0, [0.5])])
def test_the_interval_of_a_group_whose_labels_are_all_correct_ends_at_one(
    correct: float, holds: list[float]
) -> None:
    # 4,000 of 4,000 are right, and its equal-tailed interval ends at .97; that of the other group holds.
    pool = plain_pool(right=[4000, 10], wrong=[0, 10])
    beliefs = believing([900, 10], [50, 10])
    run, outcome = np.zeros(1, np.intp), np.array([correct])
    beliefs.observe(run, run, Outcomes(outcome, np.zeros(1, np.intp), np.zeros(1, np.intp)))
    assert looked(AccuracyErrors(pool, [0], 0.95), beliefs).per_run["coverage"][0].tolist() == holds


def test_narrower_intervals_hold_the_truth_less_often() -> None:
    pool = plain_pool(right=[30, 30], wrong=[10, 10])
    beliefs = believing([70, 75], [30, 25])
    found = [
        looked(AccuracyErrors(pool, [0], mass), beliefs).per_run["coverage"][0, 0] for mass in (0.95, 0.5)
    ]
    assert found == [1.0, 0.5]


def test_overall_coverage_asks_whether_the_truth_is_inside() -> None:
    pool = plain_pool(right=[300, 300], wrong=[100, 100])
    inside, outside = believing([750, 740], [250, 260]), believing([600, 600], [400, 400])
    result = looked(AccuracyErrors(pool, [0, 1], 0.95), inside, outside)
    assert result.per_run["overall_coverage"].tolist() == [[1.0, 0.0]]


def test_estimates_are_looked_at_after_exactly_the_labels_named() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6])
    shown = [believing([10 * used + 1, 1], [1, 1]) for used in range(6)]
    found = looked(AccuracyErrors(pool, [2, 5], 0.95), *shown).per_run["overall_error"][0]
    expected = [0.25 * (10 * used + 1) / (10 * used + 2) + 0.75 / 2 - 9 / 16 for used in (2, 5)]
    np.testing.assert_allclose(found, expected)


def test_the_error_of_the_ece_is_relative_to_it() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6], score=0.9)
    # True gaps .15 and .4, believed ones .4 and .15 on the other side of what is true.
    beliefs = believing([1, 3], [1, 1])
    truth, believed = 0.25 * 0.15 + 0.75 * 0.4, 0.25 * 0.4 + 0.75 * 0.15
    error = looked(BinErrors(pool, [0]), beliefs).per_run["ece_error_percent"][0, 0]
    assert error == pytest.approx(100 * (truth - believed) / truth)


def test_of_an_ece_of_zero_an_error_has_no_share() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 2], score=0.75)
    table = looked(BinErrors(pool, [0]), believing([1, 3], [1, 1]))
    assert np.isnan(table.per_run["ece_error_percent"]).all()


def test_known_bins_have_no_error() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6], score=0.9)
    result = looked(BinErrors(pool, [0]), believing([3e9, 6e9], [1e9, 6e9]))
    for measured in ("rmse", "ece_error_percent"):
        assert result.per_run[measured][0, 0] == pytest.approx(0, abs=1e-6)


def test_the_error_of_the_confusion_matrix_is_summed_over_classes_and_weighed_by_the_pool() -> None:
    pool = plain_pool(right=[3, 6], wrong=[1, 6], score=0.9)
    result = looked(ConfusionErrors(pool, [0]), ConfusionBeliefs(np.ones((2, 2)), 1))
    # Columns (3/4, 1/4) and (1/2, 1/2), all believed to be 1/2; scores alone say .9 and .1.
    rmse, alone = (0.25 * 2 / 16) ** 0.5, (0.25 * 2 * 0.15**2 + 0.75 * 2 * 0.4**2) ** 0.5
    assert result.per_run["rmse"][0, 0] == pytest.approx(rmse)
    assert result.per_run["relative_rmse"][0, 0] == pytest.approx(rmse / alone)


def identifying(
    merits: list[list[float]], truly: list[float], top_m: int, runs: int = 1, seed: int = 0
) -> Result:
    """After each of these merits [G], the same in every run."""
    measure = Identification(
        lambda merit: np.tile(np.array(merit, np.float64), (runs, 1)),
        np.array(truly),
        top_m,
        runs=runs,
        budget=len(merits) - 1,
        rng=np.random.default_rng(seed),
    )
    return looked(measure, *merits)


def reciprocal_rank(merit: list[float], truly: list[float], top_m: int, runs: int = 1) -> float:
    return float(identifying([merit], truly, top_m, runs).totals["reciprocal_rank"][0] / runs)


@pytest.mark.parametrize(
    ("merit", "top_m", "expected"),
    [
        ([4, 3, 2, 1], 1, 1),
        ([3, 4, 2, 1], 1, 1 / 2),
        ([1, 4, 3, 2], 1, 1 / 4),
        ([4, 3, 2, 1], 2, 1),
        ([3, 4, 2, 1], 2, 1),
        ([4, 2, 3, 1], 2, (1 + 1 / 2) / 2),
        ([1, 2, 3, 4], 2, (1 / 3 + 1 / 3) / 2),
        ([2, 3, 4, 1], 3, 1),
        ([1, 3, 4, 2], 3, (1 / 2 + 1 + 1) / 3),
    ],
)
def test_ranks_are_counted_among_the_other_groups_alone(
    merit: list[float], top_m: int, expected: float
) -> None:
    assert reciprocal_rank(merit, [4, 3, 2, 1], top_m) == pytest.approx(expected)


@pytest.mark.parametrize("others", [1, 2, 5, 9])
def test_ties_are_decided_by_chance_every_rank_as_likely(others: int) -> None:
    found = reciprocal_rank([0] * (1 + others), [1] + [0] * others, 1, runs=20_000)
    expected = float(np.mean(1 / np.arange(1, others + 2)))
    # Five standard errors: a reciprocal rank has a deviation of .3 at most.
    assert found == pytest.approx(expected, abs=5 * 0.3 / 20_000**0.5)


def test_where_all_is_tied_the_right_groups_are_found_as_often_as_by_drawing_lots() -> None:
    result = identifying([[0] * 6], [2, 1, 0, 0, 0, 0], 2, runs=20_000)
    found = float((result.per_run["first"] == 0).mean())
    # Two of six; five standard errors.
    assert found == pytest.approx(1 / 15, abs=5 * (14 / 225 / 20_000) ** 0.5)


@pytest.mark.parametrize(
    ("merit", "top_m", "expected"),
    [
        # The second and the third are truly alike.
        ([4, 3, 1, 0], 2, 1),
        ([4, 1, 3, 0], 2, 1),
        ([4, 0, 3, 1], 2, 1),
        ([4, 2, 2, 1], 2, 1),
        ([3, 4, 4, 1], 2, (1 / 2 + 1) / 2),
        ([4, 1, 2, 3], 2, (1 + 1 / 2) / 2),
        ([4, 1, 2, 3], 3, (1 + 1 / 2 + 1 / 2) / 3),
    ],
)
def test_of_groups_that_are_truly_alike_either_will_do(
    merit: list[float], top_m: int, expected: float
) -> None:
    assert reciprocal_rank(merit, [4, 2, 2, 1], top_m) == pytest.approx(expected)


def test_beliefs_are_left_as_they_are_where_groups_are_truly_alike() -> None:
    merit = np.array([[1.0, 2.0]])
    looked(
        Identification(lambda kept: kept, np.ones(2), 1, runs=1, budget=1, rng=np.random.default_rng(0)),
        merit,
    )
    assert merit.tolist() == [[1, 2]]


def test_a_run_stays_identified_after_its_last_failure() -> None:
    right, wrong = [2.0, 1.0], [1.0, 2.0]
    result = identifying([right, wrong, right, wrong, right, right], [2, 1], 1)
    assert result.per_run["stays"].tolist() == [4]
    assert result.per_run["first"].tolist() == [0]


def test_a_run_that_is_identified_from_the_start_needs_no_label() -> None:
    result = identifying([[2.0, 1.0]] * 4, [2, 1], 1)
    assert (result.per_run["stays"].tolist(), crossing(result)) == ([0], 0)


def test_a_run_that_is_never_identified_counts_as_beyond_the_budget() -> None:
    result = identifying([[1.0, 2.0]] * 4, [2, 1], 1)
    assert result.per_run["stays"].tolist() == [4]
    assert result.per_run["first"].tolist() == [4]


def curve(values: list[float]) -> Result:
    return Result({"stays": np.zeros(2)}, {"reciprocal_rank": 2 * np.array(values), "runs": np.array([2.0])})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 0.995, 0.98, 0.992, 1.0], 3),
        ([1.0, 0.5, 1.0], 2),
        ([0.5, 0.99, 1.0], 2),
        ([1.0, 1.0], 0),
        ([0.5, 1.0, 0.99], None),
    ],
)
def test_the_averaged_curve_crosses_where_it_stays_above(values: list[float], expected: float | None) -> None:
    assert crossing(curve(values)) == expected


STUDY = Study(plain_pool([3, 6], [1, 6]), "identification", "accuracy", runs=2, budget=3)


def test_what_is_never_identified_is_told() -> None:
    table = identification(STUDY, {METHOD: identifying([[1.0, 2.0]] * 4, [2, 1], 1, runs=2)})
    assert table.rows[0][1][:2] == (None, None)
    assert table.rows[0][1][2] == 4
    assert "uniform+random: 2 of 2 runs are not identified with all labels" in " ".join(table.notes)


def test_where_all_is_identified_nothing_is_told_of_failures() -> None:
    table = identification(STUDY, {METHOD: identifying([[2.0, 1.0]] * 4, [2, 1], 1, runs=2)})
    assert table.rows[0][1][0] == 0
    assert "not identified" not in " ".join(table.notes)


def test_batches_are_joined_run_by_run() -> None:
    first = identifying([[2.0, 1.0]] * 3, [2, 1], 1)
    second = identifying([[1.0, 2.0]] * 3, [2, 1], 1, runs=2)
    joined = first.joined(second)
    assert joined.per_run["stays"].tolist() == [0, 3, 3]
    assert joined.totals["runs"].tolist() == [3]
    assert joined.totals["reciprocal_rank"].tolist() == [2, 2, 2]


def comparing(*beliefs: AccuracyBeliefs, budget: int = 400) -> Result:
    """Of two groups with accuracies of .9 and .5, 100 items each: the first is better for certain."""
    pool = plain_pool(right=[90, 50], wrong=[10, 50])
    return looked(Comparisons(pool, np.array([[0, 1]]), 0.05, budget), *beliefs)


SETTLED = believing([91, 51], [11, 51])
REVERSED = believing([51, 91], [51, 11])
UNSURE = believing([3, 2], [1, 2])


def test_a_comparison_is_settled_once_region_and_confidence_are_right() -> None:
    assert comparing(UNSURE, SETTLED, SETTLED).per_run["first"].tolist() == [1]


def test_a_comparison_of_the_right_region_but_of_little_confidence_is_not_settled() -> None:
    unsure = rope_probabilities(
        *((UNSURE.mixture.alpha[:, 0, group], UNSURE.mixture.beta[:, 0, group]) for group in (0, 1)),
        region=0.05,
    )
    assert unsure[0].argmax() == 2
    assert comparing(UNSURE).per_run["never"].tolist() == [1]


def test_a_comparison_of_great_confidence_in_the_wrong_region_is_not_settled() -> None:
    assert comparing(REVERSED).per_run["never"].tolist() == [1]


def test_a_comparison_that_is_unsettled_again_is_not_settled_for_good() -> None:
    result = comparing(UNSURE, SETTLED, REVERSED, SETTLED, SETTLED)
    assert result.per_run["first"].tolist() == [1]
    assert result.per_run["stays"].tolist() == [3]


@pytest.mark.parametrize(("budget", "labels"), [(400, 200), (30, 30)])
def test_a_comparison_that_is_never_settled_counts_with_all_its_labels(budget: int, labels: int) -> None:
    pool = plain_pool(right=[90, 50], wrong=[10, 50])
    measure = Comparisons(pool, np.array([[0, 1]]), 0.05, budget)
    result = looked(measure, *[UNSURE] * (budget + 1))
    assert result.per_run["never"].tolist() == [1]
    assert result.per_run["first"].tolist() == [labels]
    assert result.per_run["stays"].tolist() == [labels]


def test_comparisons_that_are_never_settled_are_told() -> None:
    pool = plain_pool(right=[90, 50], wrong=[10, 50])
    measure = Comparisons(pool, np.array([[0, 1], [1, 0]]), 0.05, 2)
    result = looked(measure, *[believing([3, 2], [1, 2], runs=2)] * 3)
    study = Study(pool, "comparison", "accuracy", runs=2, budget=2)
    table = comparison(study, {METHOD: result})
    assert table.rows == [("uniform+random", (2.0, 2.0, 100.0))]
    assert any("never settled counts with all its labels" in note for note in table.notes)


def test_under_the_learned_prior_the_overall_accuracy_is_the_curves() -> None:
    pool = pool_of([20, 30])
    beliefs = LearnedAccuracy(LearnedCurve(), pool.cells, 2)
    found = overall_accuracy(beliefs, pool.cells.group_shares)
    np.testing.assert_allclose(found.mean(), beliefs.overall().mean())
