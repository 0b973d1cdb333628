"""What is believed of the performance where scores are few, or positives are forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from snapshots import NOW, PERFORMANCE

from service.config.assessments import PerformanceSettings
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.positive_items import UnclearItems
from service.statistics.binary.score_bins import UNLABELLED

EDGES = tuple(i / 10 for i in range(1, 10))


def assessed(facts: PerformanceFacts) -> PerformanceSnapshot:
    settings = PerformanceSettings.model_validate(PERFORMANCE)
    return assess_performance(facts, settings, np.random.default_rng(0), interval=0.95, now=NOW)


def with_old_positives(weight: float, unclear: UnclearItems | None = None) -> PerformanceFacts:
    """Five items that were predicted positive, all labelled negative, among 1,000 that were not."""
    rng = np.random.default_rng(0)
    scores = np.append(rng.beta(0.3, 1.0, 1_000) / 2, np.full(5, 0.9))
    labels = np.full(1_005, UNLABELLED)
    labels[:40] = rng.random(40) < scores[:40]
    labels[1_000:] = 0
    weights = np.append(np.ones(1_000), np.full(5, weight))
    return PerformanceFacts(scores, weights, labels, weights, EDGES, unclear=unclear)


@pytest.mark.parametrize("weight", [1.0, 1e-4, 1e-8, 1e-15, 1e-20, 1e-40])
def test_positives_that_are_nearly_forgotten_leave_estimates_and_no_sure_precision(weight: float) -> None:
    found = assessed(with_old_positives(weight))
    for name in ("recall", "f1", "false_positive_rate", "prevalence"):
        shown = found.measures[name]
        assert 0 <= shown.lower <= shown.median <= shown.upper <= 1
    assert np.isfinite(found.curve.median).any()
    precision = found.measures["precision"]
    assert np.isnan(precision.median) or precision.upper - precision.lower > 0.2
    assert ("precision" in found.missed) == bool(np.isfinite(precision.median))


def test_a_threshold_that_calls_nothing_has_no_precision() -> None:
    found = assessed(with_old_positives(1.0))
    assert np.isnan(found.at_thresholds["precision"].median[-1])


def test_no_measure_leaves_the_unit_interval_if_any_item_may_have_any_class() -> None:
    everything = np.full(len(EDGES) + 1, 9.0)
    found = assessed(with_old_positives(1.0, UnclearItems(np.array(EDGES), everything, everything)))
    for estimate in (*found.at_thresholds.values(), found.roc):
        assert np.nanmin(estimate.lower) >= 0
        assert np.nanmax(estimate.upper) <= 1


def test_scores_of_many_items_are_learned_apart_if_labels_are_requested_at_other_rates() -> None:
    scores, labels, positives = [], [], 0.0
    groups = [(0.9, 600, 0.9, 100), (0.45, 3_000, 0.2, 1_000), (0.3, 1_500, 0.05, 60)]
    for score, count, share, labelled in [*groups, (0.2, 1_500, 0.05, 60), (0.02, 9_000, 0.01, 300)]:
        answers = np.full(count, UNLABELLED)
        answers[:labelled] = np.arange(labelled) < round(share * labelled)
        scores.append(np.full(count, score))
        labels.append(answers)
        positives += share * count
    every = np.concatenate(scores)
    ones = np.ones(len(every))
    found = assessed(PerformanceFacts(every, ones, np.concatenate(labels), ones, EDGES))
    recall, prevalence = found.measures["recall"], found.measures["prevalence"]
    assert recall.median == pytest.approx(0.9 * 600 / positives, abs=0.02)
    assert prevalence.median == pytest.approx(positives / len(every), abs=0.003)
