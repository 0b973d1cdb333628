"""Verdicts, problems and statements about groups with thresholds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from snapshots import snapshot

from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.suspected_groups import find_suspects

HIGH = {"min_accuracy": 0.9}


def taken(count: int = 200, *, groups: dict[str, Any] | None = None, **alerts: Any) -> ModelSnapshot:
    """A snapshot of classes of which dogs are right in 60%; some have thresholds of their own."""
    thresholds = {"class": {"groups": groups or {}}}
    return snapshot(count, alerts={"groupings": thresholds, **alerts})


def low(found: ModelSnapshot) -> dict[str, float | None]:
    """Classes with a problem of accuracy, and the threshold that it names."""
    return {
        one.group: one.limit
        for one in found.problems
        if one.kind == "accuracy_low" and one.grouping == "class"
    }


def test_a_group_with_a_lower_threshold_meets_it_where_that_of_the_model_is_missed() -> None:
    assert low(taken(min_accuracy=0.8)) == {"dog": 0.8}
    lenient = taken(min_accuracy=0.8, groups={"dog": {"min_accuracy": 0.5}})
    assert low(lenient) == {}
    assert lenient.groupings["class"].meets.all()


def test_of_two_groups_alike_the_one_with_the_higher_threshold_is_a_problem() -> None:
    found = taken(groups={"cat": {"min_accuracy": 0.7}, "owl": {"min_accuracy": 0.99}})
    assert low(found) == {"owl": 0.99}


def test_a_group_without_a_threshold_has_no_verdict_and_needs_no_labels() -> None:
    grouping = taken(min_accuracy=0.8, groups={"dog": {"min_accuracy": None}}).groupings["class"]
    dog = grouping.groups.index("dog")
    assert not grouping.low[dog]
    assert not grouping.undecided[dog]
    assert not grouping.in_certificate[dog]
    for numbers in (grouping.accuracy_below, grouping.verdict_labels):
        assert numbers is not None
        assert np.isnan(numbers[dog])
        assert np.isfinite(np.delete(numbers, dog)).all()


def test_evidence_is_against_the_threshold_of_the_group() -> None:
    of_model = taken(min_accuracy=0.8).groupings["class"].evidence
    of_group = taken(min_accuracy=0.8, groups={"dog": {"min_accuracy": 0.5}}).groupings["class"].evidence
    assert of_model is not None
    assert of_group is not None
    dog = of_model.groups.index("dog")
    assert of_model.confirmed["below_threshold"][dog]
    assert not of_group.confirmed["below_threshold"].any()
    others = np.arange(3) != dog
    np.testing.assert_array_equal(
        of_model.log_e["below_threshold"][others], of_group.log_e["below_threshold"][others]
    )


def test_a_group_is_suspected_if_it_misses_its_own_threshold() -> None:
    def suspected(**thresholds: Any) -> list[bool]:
        grouping = taken(min_accuracy=0.8, **thresholds).groupings["class"]
        return find_suspects(grouping, None, since=np.inf).groups.tolist()

    assert suspected() == [False, True, False]
    assert suspected(groups={"dog": {"min_accuracy": 0.4}}) == [False, False, False]


def test_the_weakest_group_is_one_of_those_with_a_threshold_and_compared_with_its_own() -> None:
    def below(**thresholds: Any) -> float | None:
        weakest = taken(**thresholds).groupings["class"].weakest
        return None if weakest is None else weakest.below

    assert below() is None
    high, lenient = below(min_accuracy=0.8), below(min_accuracy=0.8, groups={"dog": {"min_accuracy": 0.4}})
    assert high is not None
    assert lenient is not None
    assert high > 0.99
    assert lenient < 0.05


def test_a_grouping_can_have_thresholds_where_the_model_has_none() -> None:
    found = snapshot(200, alerts={"groupings": {"class": {"min_accuracy": 0.8}}})
    assert low(found) == {"dog": 0.8}
    assert found.groupings["all"].accuracy_below is None


def test_labels_to_a_verdict_are_those_of_the_threshold_of_the_group() -> None:
    alike = taken(30, min_accuracy=0.7).groupings["class"].verdict_labels
    unlike = taken(30, min_accuracy=0.7, groups={"dog": {"min_accuracy": 0.62}}).groupings["class"]
    assert alike is not None
    assert unlike.verdict_labels is not None
    dog = unlike.groups.index("dog")
    assert unlike.verdict_labels[dog] > alike[dog]
    np.testing.assert_array_equal(np.delete(unlike.verdict_labels, dog), np.delete(alike, dog))


@pytest.mark.parametrize(("limit", "expected"), [(0.01, {"dog"}), (0.9, set())])
def test_a_group_can_have_a_limit_of_its_calibration_error(limit: float, expected: set[str]) -> None:
    found = taken(groups={"dog": {"max_ece": limit}})
    named = {
        one.group: one.limit
        for one in found.problems
        if one.kind == "miscalibrated" and one.grouping == "class" and one.alerts
    }
    assert named == dict.fromkeys(expected, limit)
