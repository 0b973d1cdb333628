"""Groups of which almost nothing is predicted ask for no labels, unless something needs them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from snapshots import BUDGET, snapshot

from service.domain.assessments import Policy
from service.monitoring.acquisition import FEWEST_PREDICTIONS, next_label_probabilities

FEW = FEWEST_PREDICTIONS - 1
NEEDED = {"alerts": {"min_accuracy": 0.8}, "reference": {"label_share": 0.0}}


def next_classes(predictions: list[int], *, model: dict[str, Any] | None = None, **settings: Any) -> set[str]:
    """Classes that may be asked next, without any label; predictions are by class and score bin."""
    task = {"grouping": "class", "budget": BUDGET} | settings
    state = snapshot(0, predictions=predictions, assessments={"ask": task}, **(model or {})).assessments[
        "ask"
    ]
    assert state.next is not None
    return {group for group, chance in zip(state.groups, state.next, strict=True) if chance > 0}


@pytest.mark.parametrize("policy", [each for each in get_args(Policy) if each not in {"adaptive", "certify"}])
@pytest.mark.parametrize("task", ["estimation", "identification"])
def test_a_group_of_few_predictions_is_not_asked(policy: str, task: str) -> None:
    assert "cat" not in next_classes([FEW, 0, 10, 30, 10, 30], policy=policy, task=task)


def test_certify_asks_a_group_of_few_predictions_because_the_certificate_needs_it() -> None:
    assert "cat" in next_classes([FEW, 0, 10, 30, 10, 30], policy="certify", model=NEEDED)


def test_certify_asks_no_group_that_certificates_leave_out() -> None:
    task = {"grouping": "class", "budget": BUDGET, "policy": "certify"}
    taken = snapshot(0, assessments={"ask": task}, **NEEDED)
    grouping = replace(taken.groupings["class"], in_certificate=np.array([False, True, True]))
    settings, rng = taken.assessments["ask"].settings, np.random.default_rng(1)
    chances = next_label_probabilities(settings, grouping, np.zeros(3), rng)
    assert chances is not None
    assert [chance > 0 for chance in chances] == [False, True, True]


@pytest.mark.parametrize("task", ["estimation", "identification"])
def test_a_group_is_asked_as_soon_as_it_has_enough_predictions(task: str) -> None:
    assert "cat" in next_classes([FEW, 1, 4, 1, 5, 0], policy="random", task=task)


def test_where_all_groups_have_few_predictions_all_are_asked() -> None:
    assert next_classes([1, 0, FEW, 0, 2, 0], policy="random") == {"cat", "dog", "owl"}


def test_of_two_compared_groups_with_few_predictions_both_are_asked() -> None:
    compared = {"task": "comparison", "between": ["cat", "dog"], "policy": "random"}
    assert next_classes([1, 0, FEW, 0, 50, 50], **compared) == {"cat", "dog"}
