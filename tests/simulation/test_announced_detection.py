"""Announced days until a fault is found are those that runs through the service's own statistics take."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.detection import Case, quantile

RUNS = 24
FACTOR = 1.5

ALERTS = (
    Case(0.90, 0.10, 2, 50, 30),
    Case(0.80, 0.20, 8, 100, 7),
    Case(0.90, 0.20, 2, 200, 1),
    Case(0.96, 0.14, 8, 50),
    Case(0.90, 0.20, 8, 50, None, "adaptive"),
)


@pytest.mark.parametrize("case", ALERTS, ids=str)
def test_half_of_the_runs_find_the_fault_within_the_announced_days(case: Case) -> None:
    announced, found = case.announced(), case.simulated(RUNS)
    for said, days in ((announced.alert, found.alert), (announced.confirmed, found.confirmed)):
        ratio = said.median / quantile(days, 0.5)
        assert 1 / FACTOR <= ratio <= FACTOR
        # Of 24 runs about three are expected beyond the announced 90% quantile.
        assert np.mean(days <= FACTOR * said.late) >= 0.8
