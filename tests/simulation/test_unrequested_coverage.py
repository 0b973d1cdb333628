"""Intervals hold with labels that nobody requested: the service's own path."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.unrequested_labels import Found, run_once

RUNS = 12


def held(found: list[Found], way: str) -> float:
    lower, upper = np.stack([getattr(each, way) for each in found], axis=1)
    truth = np.stack([each.truth for each in found])
    return float(((lower <= truth) & (truth <= upper)).mean())


def runs(way: str) -> list[Found]:
    return [run_once(way, 7, run) for run in range(RUNS)]


def width(found: list[Found], way: str) -> float:
    """Of the interval of all traffic."""
    return float(np.mean([ends[1, -1] - ends[0, -1] for ends in (getattr(each, way) for each in found)]))


@pytest.mark.parametrize(
    "way",
    [
        "census: 2,000 items, all with a label",
        "census: 1% absent, all of them incorrect",
        "sampled: 5% of the items",
    ],
)
def test_intervals_hold_with_a_census_and_with_a_sample(way: str) -> None:
    # Two standard errors of 72 intervals are 5 points.
    assert held(runs(way), "found") >= 0.93 - 0.05


def test_intervals_hold_that_would_not_if_labels_were_a_random_sample() -> None:
    found = runs("unknown: half absent, harder ones")
    assert held(found, "naive") < 0.1
    assert held(found, "found") >= 0.93 - 0.06


def test_self_selected_labels_of_half_of_the_items_save_half_of_the_requests() -> None:
    found = runs("unknown: half absent at random")
    # As many requests alone as give the same width, by the square of the ratio of widths.
    assert (width(found, "alone") / width(found, "found")) ** 2 > 1.8
    assert held(found, "found") >= 0.93 - 0.06
