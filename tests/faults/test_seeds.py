"""One seed is one composition of a workload and of two to four faults of different kinds.

A seed that fails is run alone again by `pytest tests/faults/test_seeds.py --seed N`; what it printed first
is its schedule, and where its logs are.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from findings import Findings
from kinds import schedule_of

STRIKING_SECONDS = 2.2
"""Faults begin within this time."""


def test_nothing_is_lost_and_nothing_counted_twice(
    seed: int, endure: Callable[..., Findings], request: pytest.FixtureRequest
) -> None:
    faults = schedule_of(seed, seconds=STRIKING_SECONDS, brokers=request.config.getoption("--brokers"))
    endure(faults, seed=seed, seconds=STRIKING_SECONDS)
