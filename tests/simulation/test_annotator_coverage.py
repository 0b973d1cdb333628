"""Intervals of the accuracy hold although people err, in worlds that are not those of the model."""

from __future__ import annotations

import pytest

from benchmarks.annotators import WORLDS, held

RUNS = 10
ITEMS = 150


@pytest.mark.parametrize(
    "name",
    [
        "a tenth of the items known to nobody",
        "wrong answers mostly the same class",
    ],
)
def test_intervals_hold_although_people_err(name: str) -> None:
    found = held(WORLDS[name], ITEMS, RUNS)
    # If 95% hold, more than two of ten miss in one world of 90.
    assert found.people >= 1 - 2 / RUNS
    assert found.times < 5
