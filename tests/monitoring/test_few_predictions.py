"""Groups of which almost nothing is predicted ask for no labels, unless there are no others."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from snapshots import BUDGET, snapshot

from service.domain.assessments import Policy
from service.monitoring.acquisition import FEWEST_PREDICTIONS

FEW = FEWEST_PREDICTIONS - 1


def next_classes(predictions: list[int], **settings: Any) -> set[str]:
    """Classes that may be asked next, without any label; predictions are by class and score bin."""
    task = {"grouping": "class", "budget": BUDGET} | settings
    state = snapshot(0, predictions=predictions, assessments={"ask": task}).assessments["ask"]
    assert state.next is not None
    return {group for group, chance in zip(state.groups, state.next, strict=True) if chance > 0}


@pytest.mark.parametrize("policy", [each for each in get_args(Policy) if each != "adaptive"])
@pytest.mark.parametrize("task", ["estimation", "identification"])
def test_a_group_of_few_predictions_is_not_asked(policy: str, task: str) -> None:
    assert "cat" not in next_classes([FEW, 0, 10, 30, 10, 30], policy=policy, task=task)


@pytest.mark.parametrize("task", ["estimation", "identification"])
def test_a_group_is_asked_as_soon_as_it_has_enough_predictions(task: str) -> None:
    assert "cat" in next_classes([FEW, 1, 4, 1, 5, 0], policy="random", task=task)


def test_where_all_groups_have_few_predictions_all_are_asked() -> None:
    assert next_classes([1, 0, FEW, 0, 2, 0], policy="random") == {"cat", "dog", "owl"}


def test_of_two_compared_groups_with_few_predictions_both_are_asked() -> None:
    compared = {"task": "comparison", "between": ["cat", "dog"], "policy": "random"}
    assert next_classes([1, 0, FEW, 0, 50, 50], **compared) == {"cat", "dog"}
