"""The design-based check of the performance of a binary classifier, from facts."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from snapshots import NOW, PERFORMANCE, mail, performance

from service.config.assessments import PerformanceSettings
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.design_check import AtThreshold, at_every_threshold
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.positive_items import UnclearItems
from service.serving.documents.performances import performance_state, performance_summaries
from service.serving.documents.words import LABELS_CONTRADICT
from service.statistics.binary.performance import Performance
from service.statistics.estimate import MedianEstimate

EDGES = tuple(i / 10 for i in range(1, 10))
STEPS = np.array([0.02, 0.9, 0.9, 0.02, 0.02, 0.02, 0.9, 0.9, 0.02, 0.02])


def assessed(unclear: UnclearItems | None = None) -> PerformanceSnapshot:
    """Labels of a classifier whose scores do not rise with the positive share."""
    rng = np.random.default_rng(2)
    scores = rng.random(600)
    labels = (rng.random(600) < STEPS[(10 * scores).astype(int)]).astype(np.int64)
    facts = PerformanceFacts(scores, np.ones(600), labels, np.ones(600), EDGES, unclear=unclear)
    settings = PerformanceSettings.model_validate({**PERFORMANCE, "policy": "random"})
    return assess_performance(facts, settings, rng, interval=0.95, now=NOW)


@cache
def contradicted() -> PerformanceSnapshot:
    return assessed()


def drawn(wrong: np.ndarray, missed: np.ndarray) -> Performance:
    """Draws of a classifier with 40 right positive predictions among 10,000 items; arrays are [S]."""
    right, everything = np.full(len(wrong), 40.0), np.full(len(wrong), 10_000.0)
    called = np.column_stack((everything, right + wrong, 0 * wrong))
    return Performance(
        thresholds=np.array([0.0, 0.5, np.inf]),
        called=called,
        right=np.column_stack((right + missed, right, 0 * wrong)),
        positives=right + missed,
        items=everything,
    )


def at_threshold(draws: Performance) -> AtThreshold:
    return AtThreshold.of(draws, at_every_threshold(draws, 0.95), 1, {}, 0.95)


def test_an_estimate_is_the_median_of_its_skewed_posterior() -> None:
    # Most draws have few missed items, and some have hundreds.
    missed = np.random.default_rng(0).lognormal(1.0, 2.0, 1_001)
    draws = drawn(np.full(1_001, 10.0), missed)
    middle = float(np.median(missed))
    shown = at_threshold(draws).measures
    assert shown["recall"].median == pytest.approx(40 / (40 + middle))
    assert shown["f1"].median == pytest.approx(80 / (50 + 40 + middle))
    assert shown["prevalence"].median == pytest.approx((40 + middle) / 10_000)
    assert shown["recall"].median - draws.recall[:, 1].mean() > 0.05
    assert draws.prevalence.mean() > 1.2 * shown["prevalence"].median


def test_a_threshold_of_certain_recall_is_on_the_curve() -> None:
    wrong = np.random.default_rng(0).lognormal(1.0, 2.0, 1_001)
    draws = drawn(wrong, np.full(1_001, 10.0))
    shown = at_threshold(draws).measures
    curve = MedianEstimate.of(draws.precision_at_recall(shown["recall"].median[None]), 0.95)
    assert shown["recall"].median == pytest.approx(0.8)
    assert shown["precision"].median == pytest.approx(curve.median[0])


def test_labels_that_agree_with_the_score_model_leave_its_estimates() -> None:
    there = performance()
    assert not there.design.disagrees
    assert there.measures["recall"].median != there.design.estimate.measures["recall"].median


def test_where_labels_contradict_the_score_model_the_design_based_estimate_counts() -> None:
    there = contradicted()
    assert there.design.disagrees
    assert there.measures == there.design.estimate.measures
    assert there.missed == there.design.estimate.missed
    # Four of ten bins are mostly positive, two of them among those called positive.
    assert there.measures["recall"].lower < 0.5 < there.measures["recall"].upper


def test_the_threshold_in_use_is_reported_alike_among_all_thresholds() -> None:
    there = contradicted()
    at = int(np.searchsorted(there.thresholds.thresholds, there.threshold))
    for name, estimate in there.at_thresholds.items():
        assert estimate.lower[at] == there.measures[name].lower, name


def test_items_of_any_class_widen_design_based_intervals() -> None:
    unclear = UnclearItems(np.array(EDGES), np.full(10, 1_000.0), np.full(10, 300.0))
    wide, usual = (
        there.design.estimate.measures["precision"] for there in (assessed(unclear), contradicted())
    )
    assert wide.upper - wide.lower > usual.upper - usual.lower + 0.2


def test_a_contradiction_is_a_note_that_no_alert_fires_about() -> None:
    noted = mail(contradicted())
    assert "performance_design_disagrees" in {note.kind for note in noted.notes}
    assert "performance_design_disagrees" not in {problem.kind for problem in noted.problems}


def test_documents_say_that_estimates_come_from_labels_alone() -> None:
    noted = mail(contradicted())
    (summary,) = performance_summaries(noted)
    assert summary.design_disagrees
    assert LABELS_CONTRADICT in summary.sentence
    state = performance_state(noted, "curve")
    assert state.design_disagrees
    assert state.design_log10_factor == pytest.approx(contradicted().design.log_factor / np.log(10))
    assert all(measure.design == measure.value for measure in state.measures)


def test_both_estimates_are_reported_where_they_agree() -> None:
    there = performance()
    (summary,) = performance_summaries(mail(there))
    assert not summary.design_disagrees
    assert LABELS_CONTRADICT not in summary.sentence
    assert all(measure.design != measure.value for measure in summary.measures)


def test_a_factor_of_ten_is_a_contradiction() -> None:
    check = performance().design
    assert not dataclasses.replace(check, log_factor=float(np.log(9.9))).disagrees
    assert dataclasses.replace(check, log_factor=float(np.log(10))).disagrees
