"""Snapshots as Prometheus samples; nothing is computed at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.grouping_snapshot import GroupingSnapshot
from service.metrics import SPECS
from service.snapshot import ModelSnapshot

Samples = dict[str, list[tuple[tuple[str, ...], float]]]


class SnapshotCollector(Collector):
    """Shows the latest snapshots; computes nothing at a scrape.

    Args:
        snapshots: gives the latest snapshots.
    """

    def __init__(self, snapshots: Callable[[], Iterable[ModelSnapshot]]) -> None:
        self._snapshots = snapshots

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry must not ask for a snapshot at registration."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """One family per metric that has samples."""
        samples: Samples = {}
        for snapshot in self._snapshots():
            _model_samples(samples, snapshot)
        for name, rows in samples.items():
            spec = SPECS[name]
            family: Any = (
                CounterMetricFamily(name.removesuffix("_total"), spec.meaning, labels=spec.labels)
                if spec.kind == "counter"
                else GaugeMetricFamily(name, spec.meaning, labels=spec.labels)
            )
            for labels, value in rows:
                family.add_metric(labels, value)
            yield family


def _model_samples(samples: Samples, snapshot: ModelSnapshot) -> None:
    model = snapshot.model
    single: dict[str, float | None] = {
        "credence_traffic_predictions_total": snapshot.predictions,
        "credence_attribute_combinations": snapshot.combinations,
        "credence_attribute_combinations_limit": snapshot.combination_limit,
        "credence_pool_items": snapshot.pool_items,
        "credence_outbox_requests": snapshot.outbox_size,
        "credence_outcomes": snapshot.outcomes,
        "credence_last_label_timestamp_seconds": snapshot.last_label_at,
        "credence_snapshot_timestamp_seconds": snapshot.taken_at,
    }
    for name, value in single.items():
        if value is not None:
            samples.setdefault(name, []).append(((model,), value))
    for grouping_name, grouping in snapshot.groupings.items():
        for name, values in _group_columns(grouping).items():
            if values is not None:
                samples.setdefault(name, []).extend(
                    ((model, grouping_name, group), float(value))
                    for group, value in zip(grouping.groups, values, strict=True)
                )
    for assessment_name, state in snapshot.assessments.items():
        at = (model, assessment_name)
        samples.setdefault("credence_assessment_budget_remaining_labels", []).append(
            (at, state.budget_remaining)
        )
        samples.setdefault("credence_requests_open", []).append((at, state.open_requests))
        samples.setdefault("credence_requests_total", []).extend(
            ((*at, event), count) for event, count in state.events.items()
        )
        if state.extreme is not None:
            samples.setdefault("credence_assessment_group_extreme_probability_ratio", []).extend(
                ((*at, group), float(p)) for group, p in zip(state.groups, state.extreme, strict=True)
            )
        if state.compared is not None:
            between = (*at, state.compared.first, state.compared.second)
            for name, probability in {
                "credence_assessment_comparison_below_probability_ratio": state.compared.below,
                "credence_assessment_comparison_within_probability_ratio": state.compared.within,
                "credence_assessment_comparison_above_probability_ratio": state.compared.above,
            }.items():
                samples.setdefault(name, []).append((between, probability))


def _group_columns(grouping: GroupingSnapshot) -> dict[str, np.ndarray[Any, Any] | None]:
    beliefs = grouping.beliefs
    cost = grouping.confusion.cost.estimate if grouping.confusion and grouping.confusion.cost else None
    return {
        "credence_group_accuracy_lower_ratio": grouping.accuracy_lower,
        "credence_group_accuracy_mean_ratio": grouping.accuracy_mean,
        "credence_group_accuracy_upper_ratio": grouping.accuracy_upper,
        "credence_group_accuracy_below_threshold_probability_ratio": grouping.accuracy_below,
        "credence_group_ece_lower_ratio": grouping.ece_lower,
        "credence_group_ece_mean_ratio": grouping.ece_mean,
        "credence_group_ece_upper_ratio": grouping.ece_upper,
        "credence_group_ece_above_threshold_probability_ratio": grouping.ece_above,
        "credence_group_cost_lower": cost.lower if cost else None,
        "credence_group_cost_mean": cost.mean if cost else None,
        "credence_group_cost_upper": cost.upper if cost else None,
        "credence_group_score_mean_ratio": beliefs.scores,
        "credence_group_traffic_share_ratio": beliefs.shares,
        "credence_group_labels": beliefs.labels_counted,
        "credence_group_effective_labels": beliefs.labels,
    }
