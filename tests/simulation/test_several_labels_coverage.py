"""Intervals of groups hold if people err and some items get further labels: the service's own path."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.several_labels import WORLDS, Found, run_once

RUNS = 16


def held(found: list[Found], way: str, which: slice) -> float:
    ends = np.stack([getattr(each, way) for each in found])
    truth = np.stack([each.truth for each in found])
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1]))[:, which].mean())


@pytest.mark.parametrize("world", ["usual", "a sixth of the people guess"])
def test_intervals_hold_that_would_not_if_labels_were_the_truth(world: str) -> None:
    found = [run_once(WORLDS[world], 7, run) for run in range(RUNS)]
    others, everything = slice(1, -1), slice(-1, None)
    # Two standard errors are 0.06 of regions, and 0.13 of all traffic.
    assert held(found, "people", others) >= 0.93 - 0.06
    assert held(found, "people", everything) >= 0.93 - 0.13
    assert held(found, "first", others) < 0.8
    # The region that is far worse is as hard to estimate from true classes.
    worst = slice(0, 1)
    assert held(found, "people", worst) >= held(found, "clean", worst) - 0.13
