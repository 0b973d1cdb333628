"""The README's configuration spends its labels evenly, and finds a fault within the announced time."""

from __future__ import annotations

import pytest

from benchmarks.first_try import FACTOR, Case, announced, run
from service.demo.servers import EmbeddedRedis

CASE = Case(days_before=4, days_after=36, hours=4)
"""Rounds every four hours find a fault half an interval later, which is nothing in days."""


@pytest.mark.parametrize("seed", [100, 101])
def test_a_region_that_falls_is_named_within_the_announced_time_and_labels_are_left_for_it(
    redis_server: EmbeddedRedis, seed: int
) -> None:
    found, said = run(CASE, redis_server.url, seed), announced(CASE)
    assert found.gini < 0.2
    assert found.left > 0.2
    # Drift is visible half a window after the fault.
    assert found.drift is not None
    assert found.drift <= 1
    assert found.confirmed is not None
    assert found.confirmed <= FACTOR * said["confirmed"].late
    # One run in ten may take longer than announced, and hardly any half as long again.
    assert found.estimate is not None
    assert found.estimate <= FACTOR * said["estimate"].late
