"""Intervals hold if the labels of hard items are missing: the service's own path."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.missing_answers import Found, run_once

RUNS, LABELS = 20, 60


def held(found: list[Found], way: str) -> float:
    lower, upper = np.stack([getattr(each, way) for each in found], axis=1)
    truth = np.stack([each.truth for each in found])
    return float(((lower <= truth) & (truth <= upper)).mean())


@pytest.mark.parametrize("way", ["the hardest 30% are skipped", "the hardest 30% expire"])
def test_intervals_hold_that_would_not_if_labels_were_missing_at_random(way: str) -> None:
    found = [run_once(way, LABELS, 7, run) for run in range(RUNS)]
    assert held(found, "random") < 0.2
    # Two standard errors of 120 intervals are 0.05.
    assert held(found, "default") >= 0.93 - 0.05


def test_requests_that_expire_at_random_cost_nothing() -> None:
    found = [run_once("30% expire at random", LABELS, 7, run) for run in range(RUNS)]
    assert held(found, "default") >= 0.93 - 0.05
    # In one of twenty runs chance looks like dependence.
    assert sum(each.worst_case > 0 for each in found) <= 4
