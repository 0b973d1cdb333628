"""The weakest group of a grouping, and intervals of groups chosen by their estimates."""

from __future__ import annotations

import numpy as np
from snapshots import snapshot

from service.monitoring.snapshot import ModelSnapshot

MANY = [f"c{i:02d}" for i in range(38)] + ["cat", "dog"]
NAME = "CredenceWeakestGroupAccuracyLow"


def alerts(taken: ModelSnapshot) -> dict[str, tuple[str, ...]]:
    """Alerts about low accuracy by group."""
    return {one.group: one.alerts for one in taken.problems if one.kind == "accuracy_low"}


def test_an_adjusted_interval_is_one_whose_tails_are_divided_by_the_number_of_groups() -> None:
    grouping = snapshot(30, classes=MANY).groupings["class"]
    lower, upper = grouping.beliefs.accuracy_interval(1 - 0.05 / 40)
    np.testing.assert_array_equal(grouping.adjusted.lower, lower)
    np.testing.assert_array_equal(grouping.adjusted.upper, upper)
    assert (grouping.adjusted.lower < grouping.accuracy.lower).all()


def test_a_single_group_needs_no_adjustment_and_has_no_weakest() -> None:
    everything = snapshot(30).groupings["all"]
    np.testing.assert_array_equal(everything.adjusted.lower, everything.accuracy.lower)
    assert everything.weakest is None


def test_the_weakest_group_may_be_another_than_the_lowest_but_is_no_better_than_any_may_be() -> None:
    grouping = snapshot(30, classes=MANY).groupings["class"]
    weakest = grouping.weakest
    assert weakest is not None
    assert grouping.groups[weakest.group] == "dog"
    assert weakest.lower <= grouping.accuracy.lower.min()
    assert weakest.upper == grouping.adjusted.upper.min()


def test_score_bins_have_no_weakest() -> None:
    assert snapshot(30).groupings["score_bin"].weakest is None


def test_the_more_groups_there_are_the_more_proof_the_alert_about_the_weakest_needs() -> None:
    few = alerts(snapshot(112, alerts={"min_accuracy": 0.85}))
    many = alerts(snapshot(112, alerts={"min_accuracy": 0.85}, classes=MANY))
    assert "CredenceGroupAccuracyLow" in few["dog"]
    assert "CredenceGroupAccuracyLow" in many["dog"]
    assert NAME in few["dog"]
    assert NAME not in many["dog"]


def test_groups_with_few_labels_say_nothing_of_a_threshold() -> None:
    few = snapshot(8, alerts={"min_accuracy": 0.8}).groupings["class"].weakest
    assert few is not None
    assert few.below is None


def test_the_interval_in_a_problem_is_the_adjusted_one() -> None:
    taken = snapshot(100, alerts={"min_accuracy": 0.8})
    (problem,) = (one for one in taken.problems if one.kind == "accuracy_low")
    grouping = taken.groupings["class"]
    dog = grouping.groups.index("dog")
    assert problem.value is not None
    assert problem.value[2] == grouping.adjusted.upper[dog]
    assert problem.groups == len(grouping.groups)
