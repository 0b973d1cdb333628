"""Days until a fault is found: what makes them more, and fewer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.statistics.detection_time import Detection, Fault, Labelling, Rules, days_to_detection

FAULT = Fault(before=0.95, drop=0.15)
RULES = Rules(threshold=0.88)


def labelling(groups: int = 8, per_day: float = 100.0, **more: Any) -> Labelling:
    return Labelling(np.full(groups, 1 / groups), per_day, **more)


def detection(fault: Fault = FAULT, rules: Rules = RULES, **more: Any) -> Detection:
    return days_to_detection(fault, labelling(**more), rules)


def test_nine_runs_of_ten_take_longer_than_half_of_them() -> None:
    days = detection()
    assert 0 < days.alert.median < days.alert.late
    assert 0 < days.confirmed.median < days.confirmed.late


def test_evidence_that_may_be_looked_at_any_time_takes_longer_than_the_alert() -> None:
    assert detection().confirmed.median > detection().alert.median


def test_more_labels_a_day_find_a_fault_sooner() -> None:
    days = [detection(per_day=rate) for rate in (30.0, 100.0, 300.0)]
    assert days[0].alert.median > days[1].alert.median > days[2].alert.median
    assert days[0].confirmed.median > days[1].confirmed.median > days[2].confirmed.median


def test_a_large_drop_is_found_sooner_than_a_small_one() -> None:
    days = [detection(Fault(0.95, drop)).alert.median for drop in (0.1, 0.15, 0.25)]
    assert days[0] > days[1] > days[2]


def test_among_more_groups_a_fault_takes_longer() -> None:
    days = [detection(groups=groups).confirmed.median for groups in (2, 8, 20)]
    assert days[0] < days[1] < days[2]


def test_a_policy_that_seeks_the_weakest_group_finds_it_sooner() -> None:
    assert detection(groups=20, policy="adaptive").alert.median < 0.5 * detection(groups=20).alert.median


def test_by_traffic_a_rare_group_takes_longer_than_a_frequent_one() -> None:
    plan = Labelling(np.array([0.6, 0.3, 0.1]), 100.0, "traffic")
    days = [days_to_detection(replace(FAULT, group=group), plan, RULES).alert.median for group in range(3)]
    assert days[0] < days[1] < days[2]


def test_a_reserve_for_suspected_groups_finds_a_fault_sooner_among_many() -> None:
    assert detection(groups=20, reserve=0.3).confirmed.median < detection(groups=20).confirmed.median


def test_change_points_find_a_fault_sooner_than_a_long_half_life_alone() -> None:
    alone = detection(half_life_days=30.0, run_length=None)
    assert detection(half_life_days=30.0).alert.median < alone.alert.median


def test_draws_of_recent_items_find_a_fault_sooner() -> None:
    days = [detection(per_day=500.0, draw_half_life_hours=hours).alert.median for hours in (None, 24.0, 96.0)]
    assert days[0] < days[1] < days[2]


def test_a_half_life_that_leaves_too_few_labels_never_alerts() -> None:
    days = detection(per_day=20.0, half_life_days=1.0)
    assert days.alert.median == np.inf
    assert np.isfinite(days.confirmed.median)


def test_a_fault_that_stays_above_the_threshold_never_alerts() -> None:
    assert detection(Fault(0.95, 0.05)).alert.median == np.inf


def test_a_group_without_traffic_is_never_labelled_by_traffic() -> None:
    plan = Labelling(np.array([0.0, 1.0]), 100.0, "traffic")
    assert days_to_detection(FAULT, plan, RULES).alert.median == np.inf


@pytest.mark.parametrize("groups", [1, 1_000])
@pytest.mark.parametrize("per_day", [0.1, 1e6])
@pytest.mark.parametrize("days_before", [0.0, 3_000.0])
@pytest.mark.parametrize("run_length", [None, 500.0])
@pytest.mark.filterwarnings("error")
def test_extremes_have_days_too(
    groups: int, per_day: float, days_before: float, run_length: float | None
) -> None:
    more = {"days_before": days_before, "run_length": run_length, "policy": "adaptive", "half_life_days": 0.1}
    for delay in vars(detection(groups=groups, per_day=per_day, **more)).values():
        assert 0 < delay.median <= delay.late


@pytest.mark.parametrize("more", [{"per_day": 0.0}, {"reserve": 1.0}])
def test_labels_that_find_nothing_are_refused(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"reserve|find nothing"):
        detection(**more)


@pytest.mark.parametrize("fault", [Fault(0.95, 0.95), Fault(1.0, 0.1), Fault(0.9, -0.1)])
def test_accuracies_outside_zero_and_one_are_refused(fault: Fault) -> None:
    with pytest.raises(ValueError, match="not strictly within 0 and 1"):
        detection(fault)


@pytest.mark.parametrize("policy", ["even", "adaptive"])
def test_it_takes_less_than_a_tenth_of_a_second(policy: str) -> None:
    detection(policy=policy)
    begin = time.process_time()
    detection(policy=policy)
    # 40 ms are typical; others may use the machine.
    assert time.process_time() - begin < 0.15
