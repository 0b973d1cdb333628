"""Tasks of performance, ensembles and challengers for models whose labels may be wrong, or self-selected."""

from __future__ import annotations

from typing import Any

import pytest

from service.config.model_validation import model_problems
from service.config.settings import Settings

TASKS: dict[str, dict[str, Any]] = {
    "performance": {"positive_class": "spam"},
    "ensemble": {"positive_class": "spam", "members": ["v2"]},
    "challenge": {"challenger": "v2"},
}
LABELS: list[dict[str, Any]] = [
    {"labels_per_item": {"most": 3}},
    {"labels_per_item": {"reliability": 0.9}},
    {"unrequested_labels": {"items": "unknown"}},
    {"unrequested_labels": {"items": "census"}},
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_every_task_accepts_labels_of_every_kind(task: str, labels: dict[str, Any]) -> None:
    asked = {"task": task, "budget": {"labels": 9}, **TASKS[task]}
    model = {"classes": ["ham", "spam"], "assessments": {"x": asked}, **labels}
    assert model_problems(Settings.model_validate({"models": {"m": model}}), "m") == []
