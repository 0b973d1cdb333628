"""Intervals hold the accuracy of the next predictions, while a model or the mix of its traffic changes.

Through the service's own path (`benchmarks/estimand.py`); docs/forgetting.md has figures of more streams.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.estimand import CLASS, REGION, Scenario, measure

RUNS = 24
RUN_LENGTH = 500


def coverage(scenario: Scenario, looks: range) -> dict[str, np.ndarray]:
    """Of every kind of groups: intervals that hold the truth, that lie above it, and below, as shares."""
    found = measure(scenario, RUNS, looks, seed=7)
    totals = {kind: sum(of_look.values()) for kind, of_look in found.items()}
    return {kind: np.asarray(total)[1:4] / np.asarray(total)[0] for kind, total in totals.items()}


@pytest.mark.parametrize("askers", [(REGION,), (CLASS,), (REGION, CLASS)])
def test_intervals_hold_while_the_mix_of_traffic_moves(askers: tuple[str, ...]) -> None:
    # Changes are hardly looked for, so that intervals are as narrow as labels allow.
    moving = Scenario("mix", askers=askers, run_length=1_000_000, after=600)
    found = coverage(moving, range(200, 601, 200))
    # Two standard errors of the coverage of as many streams are 0.05 of classes, and 0.09 of all traffic.
    for kind in ("changed", "others", "classes"):
        assert found[kind][0] >= 0.93 - 0.05, kind
    assert found["all"][0] >= 0.93 - 0.09


def test_intervals_hold_again_after_a_change() -> None:
    dropped = Scenario("abrupt", drop=0.3, run_length=RUN_LENGTH, after=700, draw_half_life_hours=6.0)
    found = coverage(dropped, range(500, 701, 100))
    assert found["changed"][0] >= 0.85
    assert found["classes"][0] >= 0.93 - 0.05
    assert found["others"][0] >= 0.93 - 0.05


def test_scores_that_move_need_no_labels() -> None:
    # The accuracy of every score stays what it was, and traffic tells the scores.
    harder = Scenario("inputs", drop=0.2, run_length=RUN_LENGTH, after=100, draw_half_life_hours=6.0)
    found = coverage(harder, range(50, 101, 50))
    for kind in ("changed", "classes", "all"):
        assert found[kind][0] >= 0.93 - 0.09, kind
