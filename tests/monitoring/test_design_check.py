"""The design-based check of the performance of a binary classifier, from facts."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from snapshots import NOW, PERFORMANCE, mail, performance

from service.config.assessments import PerformanceSettings
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.positive_items import UnclearItems
from service.serving.documents.performances import performance_state, performance_summaries
from service.serving.documents.words import LABELS_CONTRADICT

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


def test_labels_that_agree_with_the_score_model_leave_its_estimates() -> None:
    there = performance()
    assert not there.design.disagrees
    assert there.measures["recall"].mean != there.design.estimate.measures["recall"].mean


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
