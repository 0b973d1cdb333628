"""Evidence from facts: which labels say something, what is compared with what, and since when it declined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from snapshots import known
from traffic_tables import JointCell, traffic_of

from benchmarks.lone_grouping import grouping_evidence, lone_groups
from service.config.model import ModelSettings
from service.domain.request_order import request_places, requested_at
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.evidence_base import KINDS
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_aggregates import mixed
from service.monitoring.outcome_table import LabelSequence
from service.statistics.e_detector import advance_bets, change_point, log_wealth_of_bets, no_bets
from service.statistics.e_processes import (
    confidence_sequence,
    discoveries,
    log_arrival_weights,
    log_e_below,
    log_e_declined,
    log_e_miscalibrated,
    log_gains,
)
from service.store.references import ReferenceWindow

THRESHOLD, REFERENCE, GROUPS = 0.8, 30, ["a", "b", "c"]
MODEL = ModelSettings.model_validate(
    {"classes": ["x", "y"], "alerts": {"min_accuracy": THRESHOLD}, "reference": {"labels": REFERENCE}}
)


def sequence(correct: np.ndarray, seed: int = 0) -> LabelSequence:
    """Labels that were requested one after another, half a second after their predictions."""
    at = np.arange(len(correct), dtype=np.float64)
    scores = np.random.default_rng(seed).beta(4, 1, len(correct))
    marks = mixed(np.arange(len(correct)) << 1 | correct)
    places = request_places((requested, "") for requested in (at + 0.5).tolist())
    no = np.zeros(len(correct), np.bool_)
    return LabelSequence(marks, np.zeros(len(correct), np.intp), scores, correct, no, at, places, no, ~no)


def evidence(
    labels: LabelSequence,
    groups: np.ndarray,
    *,
    model: ModelSettings = MODEL,
    reference: ReferenceWindow | None = None,
    before: GroupingEvidence | None = None,
) -> GroupingEvidence:
    watched = lone_groups(GROUPS, min_accuracy=model.alerts.min_accuracy)
    return grouping_evidence(watched, labels, groups, settings=model, reference=reference, before=before)


def drawn(
    count: int = 600, accuracy: tuple[float, ...] = (0.9, 0.7, 0.85)
) -> tuple[LabelSequence, np.ndarray]:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, len(GROUPS), count)
    return sequence(rng.random(count) < np.array(accuracy)[groups]), groups


def assert_same(found: GroupingEvidence, expected: GroupingEvidence) -> None:
    for name, column in vars(found.state).items():
        assert column == pytest.approx(getattr(expected.state, name), nan_ok=True), name
    assert found.changes == expected.changes


@settings(deadline=None, max_examples=40)
@given(
    labels=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=90),
    looks=st.lists(st.integers(1, 90), max_size=4),
    changed=st.integers(0, 89),
    window=st.sampled_from([None, ReferenceWindow(5.0, 20.0, 0.0)]),
)
def test_looks_on_the_way_change_nothing(
    labels: list[tuple[bool, int]], looks: list[int], changed: int, window: ReferenceWindow | None
) -> None:
    model = MODEL.model_copy(update={"reference": MODEL.reference.model_copy(update={"labels": 5})})
    correct, groups = np.array([c for c, _ in labels]), np.array([g for _, g in labels])
    before = None
    for look in sorted(looks):
        there = sequence(correct).part(np.arange(len(correct)) < look)
        before = evidence(there, groups[:look], model=model, reference=window, before=before)
    # One of the labels is corrected before the last look.
    correct[changed % len(correct)] ^= True
    in_one_go = evidence(sequence(correct), groups, model=model, reference=window)
    assert_same(evidence(sequence(correct), groups, model=model, reference=window, before=before), in_one_go)


def test_a_label_that_is_gone_says_nothing_any_more() -> None:
    labels, groups = drawn()
    kept = np.arange(len(groups)) != 17
    there = labels.part(kept), groups[kept]
    assert_same(evidence(*there, before=evidence(labels, groups)), evidence(*there))


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_of_each_group_its_own_labels_speak(group: int) -> None:
    labels, groups = drawn()
    estimated = evidence(labels, groups)
    own = labels.part(groups == group)
    right, wrong = own.correct.sum(), (~own.correct).sum()
    then, now = own.correct[:REFERENCE], own.correct[REFERENCE:]
    assert estimated.state.labels[group] == len(own.correct)
    assert estimated.state.reference_labels[group] == REFERENCE
    assert estimated.log_e["below_threshold"][group] == pytest.approx(
        log_e_below(right, wrong, np.array(THRESHOLD))
    )
    assert estimated.log_e["declined"][group] == pytest.approx(
        log_e_declined(now.sum(), (~now).sum(), then.sum(), (~then).sum())
    )
    assert estimated.log_e["miscalibrated"][group] == pytest.approx(
        log_e_miscalibrated(log_gains(own.scores, own.correct, np.zeros(len(own.correct), np.intp), 1))[0]
    )
    bounds = confidence_sequence(right, wrong, 1 - MODEL.evidence.alpha)
    assert (estimated.state.lower[group], estimated.state.upper[group]) == pytest.approx(bounds)


@pytest.mark.parametrize("window", [None, ReferenceWindow(-np.inf, 150.0, 0.0)])
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_a_change_is_looked_for_from_the_references_lower_bound(
    group: int, window: ReferenceWindow | None
) -> None:
    model = MODEL.model_copy(update={"alerts": MODEL.alerts.model_copy(update={"min_accuracy": None})})
    labels, groups = drawn()
    estimated = evidence(labels, groups, model=model, reference=window)
    own = labels.part(groups == group)
    then = np.arange(len(own.correct)) < REFERENCE if window is None else own.predicted_at < window.until
    right, wrong = int(own.correct[then].sum()), int((~own.correct[then]).sum())
    # Without a threshold there are three kinds of evidence; half of a change's share is for its baseline.
    alpha = MODEL.evidence.alpha * float(np.exp(log_arrival_weights(np.array(group + 1)))) / 3 / 2
    if window is None:
        lower = stats.binomtest(right, right + wrong).proportion_ci(1 - 2 * alpha, method="exact").low
    else:
        lower = confidence_sequence(np.array(right), np.array(wrong), 1 - alpha)[0]
    assert estimated.state.baseline[group] == pytest.approx(lower)
    count = int((~then).sum())
    none = np.zeros(1, np.intp)
    bets = advance_bets(no_bets(1), own.correct[~then], np.zeros(count, np.intp), np.array([lower]), none)
    found = log_wealth_of_bets(bets, np.array([float(count)]))
    assert estimated.log_e["changed"][group] == pytest.approx(found[0])


def test_a_group_that_reached_the_threshold_in_the_reference_is_held_to_it() -> None:
    groups = np.repeat([0, 1], REFERENCE)
    labels = sequence(np.concatenate((np.arange(REFERENCE) % 6 > 0, np.arange(REFERENCE) % 4 > 0)))
    baseline = evidence(labels, groups).state.baseline
    assert baseline[0] == THRESHOLD
    assert baseline[1] < 0.75
    assert np.isnan(baseline[2])


def test_what_is_confirmed_is_what_weighted_e_bh_takes_of_all_kinds_together() -> None:
    labels, groups = drawn(2_000)
    estimated = evidence(labels, groups)
    weights = log_arrival_weights(np.arange(1, len(GROUPS) + 1)) - np.log(len(KINDS))
    of_kinds = [weights, weights, weights, weights - np.log(2)]
    expected = discoveries(
        np.concatenate([estimated.log_e[kind] for kind in KINDS]),
        MODEL.evidence.alpha,
        np.concatenate(of_kinds),
    )
    assert np.concatenate([estimated.confirmed[kind] for kind in KINDS]).tolist() == expected.tolist()
    assert estimated.confirmed["below_threshold"].tolist() == [False, True, False]


def test_a_decline_is_found_and_dated() -> None:
    rng = np.random.default_rng(2)
    groups = np.tile(np.arange(3), 300)
    late = np.arange(900) >= 600
    accuracy = np.where(late & (groups == 1), 0.2, 0.95)
    labels = sequence(rng.random(900) < accuracy)
    estimated = evidence(labels, groups)
    assert estimated.changed.tolist() == [False, True, False]
    found = estimated.changes[1]
    own = labels.part(groups == 1).part(np.arange(300) >= REFERENCE)
    rate = (labels.correct[groups == 1][:REFERENCE].sum() + 0.5) / (REFERENCE + 1)
    point = change_point(own.correct, rate, 0.9)
    assert found.at == requested_at(int(own.places[point.after]))
    assert found.predicted_at == own.predicted_at[point.after]
    assert found.earliest <= 600.5 <= found.latest
    assert found.labels == len(own.correct) - point.after


def test_with_a_window_evidence_begins_anew_after_it() -> None:
    labels, groups = drawn()
    window = ReferenceWindow(100.0, 200.0, 0.0)
    estimated = evidence(labels, groups, reference=window, before=evidence(labels, groups))
    of_window = (labels.predicted_at >= window.since) & (labels.predicted_at < window.until)
    after = labels.predicted_at >= window.until
    assert estimated.state.reference_labels.tolist() == np.bincount(groups[of_window]).tolist()
    assert estimated.state.labels.tolist() == np.bincount(groups[after]).tolist()
    right, wrong = (np.bincount(groups[after & flags]) for flags in (labels.correct, ~labels.correct))
    expected = log_e_below(right, wrong, np.full(len(GROUPS), THRESHOLD))
    assert estimated.log_e["below_threshold"] == pytest.approx(expected)


def test_before_its_reference_is_complete_a_group_has_not_declined() -> None:
    labels, groups = drawn(60)
    estimated = evidence(labels, groups)
    assert np.isnan(estimated.log_e["declined"]).all()
    assert np.isnan(estimated.log_e["changed"]).all()
    assert np.isfinite(estimated.log_e["below_threshold"]).all()


@pytest.mark.parametrize("least", [None, 0.0, 1.0])
def test_without_a_threshold_that_can_be_tried_nothing_is_below_it(least: float | None) -> None:
    model = MODEL.model_copy(update={"alerts": MODEL.alerts.model_copy(update={"min_accuracy": least})})
    estimated = evidence(*drawn(), model=model)
    assert np.isnan(estimated.log_e["below_threshold"]).all()
    assert not estimated.confirmed["below_threshold"].any()


def test_only_labels_that_the_grouping_asked_for_say_something() -> None:
    there = known(100)
    found = model_evidence(
        settings=there.settings,
        index=there.index,
        ledger=there.ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        before={},
    )
    assert set(found) == {"class", "score_bin"}
    # Half of the labels were asked by predicted class, the others by score bin.
    assert found["class"].state.labels.sum() == found["score_bin"].state.labels.sum() == len(there.ledger) / 2
    assert found["class"].state.labels.tolist() == [50, 50, 50]


def test_a_group_without_traffic_has_no_evidence() -> None:
    there = known(40)
    cells = [JointCell((), predicted, 0, 10, 1.0, 0.3) for predicted in (1, 2)]
    index = GroupIndex(there.space, traffic_of(there.space, cells), there.ledger.cells)
    found = model_evidence(
        settings=there.settings,
        index=index,
        ledger=there.ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        before={},
    )
    assert found["class"].groups == ["dog", "owl"]
    assert found["class"].state.labels.tolist() == [20, 20]
