"""Which groups keep metrics of their own, and what `other` says."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from snapshots import NOW, snapshot

from service.monitoring.prominence import OTHER, first_places
from service.monitoring.snapshot import ModelSnapshot
from service.serving.metric_selection import ShownGroups, shown_groups
from service.serving.prometheus import SnapshotCollector

MANY = [f"c{i:02d}" for i in range(38)] + ["cat", "dog"]
FLAT = {
    "mean": np.full(40, 0.9),
    "uncertainty": np.full(40, 0.1 / 40),
    "alerts": np.zeros(40, dtype=np.bool_),
}


def selected(names: list[str] = MANY, limit: int = 10, before: Any = (), **changes: Any) -> set[str]:
    chosen = first_places(names, **(FLAT | changes), limit=limit, before=before)
    return {names[g] for g in chosen}


def with_one(column: str, group: int, value: Any) -> dict[str, Any]:
    changed = FLAT[column].copy()
    changed[group] = value
    return {column: changed}


def value(taken: ModelSnapshot, name: str, *, group_limit: int = 10, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken], group_limit=group_limit, clock=lambda: NOW))
    return registry.get_sample_value(f"credence_{name}", {"model": "m", **labels})


@cache
def large() -> ModelSnapshot:
    return snapshot(20, classes=MANY, alerts={"min_accuracy": 0.8, "max_ece": 0.3})


@cache
def shown() -> ShownGroups:
    return shown_groups(large(), limit=10, before={})["class"]


def test_few_groups_are_all_reported() -> None:
    assert shown_groups(large(), limit=40, before={})["class"].names == large().groupings["class"].groups


@pytest.mark.parametrize("change", [with_one("alerts", 33, True), with_one("mean", 33, 0.2)])
def test_a_group_that_alerts_or_is_the_worst_is_reported(change: dict[str, Any]) -> None:
    assert MANY[33] in selected(**change)


def test_a_group_that_is_most_uncertain_for_its_traffic_is_reported() -> None:
    assert MANY[33] in selected(**with_one("uncertainty", 33, 0.05))


def test_of_more_groups_that_alert_than_have_a_place_the_worst_are_reported() -> None:
    mean = np.linspace(0.7, 0.5, 40)
    assert set(MANY[-5:]) < selected(mean=mean, alerts=np.ones(40, dtype=np.bool_))


def test_groups_that_were_reported_are_reported_again_when_little_has_changed() -> None:
    mean = np.linspace(0.95, 0.8, 40)
    first = selected(limit=16, mean=mean)
    mean[[31, 32]] = mean[[32, 31]]  # the last one exported, and the first one that is not
    assert selected(limit=16, mean=mean) != first
    assert selected(limit=16, mean=mean, before=first) == first


def test_a_group_that_begins_to_alert_takes_a_place_at_once() -> None:
    assert MANY[33] in selected(**with_one("alerts", 33, True), before=set(MANY[:10]))


def test_a_group_that_bears_the_name_of_the_others_is_one_of_them() -> None:
    names = [OTHER, *MANY[1:]]
    assert OTHER not in selected(names, **with_one("alerts", 0, True))


@given(limit=st.integers(1, 39), seed=st.integers(0, 99))
def test_never_more_are_reported_than_the_bound(limit: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = {name: rng.random(40) for name in FLAT} | {"alerts": rng.random(40) < 0.3}
    assert len(selected(limit=limit, **columns)) == limit


def test_what_was_left_out_is_a_metric() -> None:
    assert value(large(), "grouping_groups", grouping="class") == 40
    assert value(large(), "grouping_groups_in_other", grouping="class") == 30
    assert value(large(), "grouping_groups_in_other", group_limit=40, grouping="class") == 0


@pytest.mark.parametrize("name", ["group_traffic_share_ratio", "group_effective_labels"])
def test_with_the_others_nothing_is_missing(name: str) -> None:
    parts = [value(large(), name, grouping="class", group=group) for group in [*shown().names, OTHER]]
    whole = [value(large(), name, group_limit=40, grouping="class", group=group) for group in MANY]
    assert sum(p for p in parts if p is not None) == pytest.approx(sum(w for w in whole if w is not None))


def test_the_others_alert_when_one_of_them_would() -> None:
    below = large().groupings["class"].accuracy_below
    assert below is not None
    assert shown().other is not None
    name = "group_accuracy_below_threshold_probability"
    assert value(large(), name, grouping="class", group=OTHER) == max(below[shown().other.members])


def test_the_others_do_not_alert_for_scores_alone() -> None:
    unlabelled = snapshot(0, classes=MANY, alerts={"min_accuracy": 0.99})
    grouping = unlabelled.groupings["class"]
    assert grouping.accuracy_below is not None
    assert grouping.accuracy_below.min() > 0.9
    name = "group_accuracy_below_threshold_probability"
    assert value(unlabelled, name, grouping="class", group=OTHER) == 0


def test_the_accuracy_of_the_others_is_that_of_their_traffic() -> None:
    grouping = large().groupings["class"]
    assert shown().other is not None
    rest = shown().other.members
    accuracy = shown().other.accuracy
    assert accuracy.mean.item() == pytest.approx(
        np.average(grouping.accuracy.mean[rest], weights=grouping.beliefs.shares[rest])
    )
    assert accuracy.lower < accuracy.mean < accuracy.upper


def test_the_injected_weak_group_keeps_metrics_of_its_own() -> None:
    assert value(large(), "group_accuracy_mean_ratio", grouping="class", group="dog") is not None


def test_groups_keep_their_series_from_one_snapshot_to_the_next() -> None:
    latest = [large()]
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: latest, group_limit=10, clock=lambda: NOW))
    assert _shown(registry) == set(shown().names)
    for labels in range(21, 60):
        latest[:] = [snapshot(labels, classes=MANY, alerts={"min_accuracy": 0.8, "max_ece": 0.3})]
        afresh, kept = (
            shown_groups(latest[0], limit=10, before=before)["class"] for before in ({}, {"class": shown()})
        )
        if afresh.names != kept.names:
            break
    assert afresh.names != kept.names
    assert _shown(registry) == set(kept.names)


def _shown(registry: CollectorRegistry) -> set[str]:
    (family,) = (one for one in registry.collect() if one.name == "credence_group_accuracy_mean_ratio")
    groups = (sample.labels["group"] for sample in family.samples if sample.labels["grouping"] == "class")
    return set(groups) - {OTHER}
