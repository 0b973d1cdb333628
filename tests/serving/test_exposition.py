"""What a scrape shows: all of the catalogue, in both formats, and nothing computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from labelled_models import labelling
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_classic
from rated_snapshots import error_rates
from snapshots import (
    CLASSES,
    NOW,
    challenge,
    drifting,
    ensemble,
    known,
    performance,
    recalled,
    snapshot,
    waiting,
)

from service.monitoring.group_index import AttributeTraffic
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.verdicts import LONGEST_SECONDS
from service.serving.prometheus import CATALOGUE, SPECS, SnapshotCollector
from service.statistics.estimate import Estimate
from service.statistics.label_errors import WrongLabels
from service.telemetry.instruments import PipelineMetrics, VendorMetrics

RENEWING = {"labels": 100, "per_days": 1}
POOLED = ensemble()
CHALLENGED = challenge()


@cache
def the_snapshot() -> ModelSnapshot:
    taken = replace(
        drifting(
            changed="cat",
            alerts={"min_accuracy": 0.8, "max_ece": 0.1, "min_reliability": 0.8},
            reference={"labels": 20},
            evidence={"alpha": 0.5},
            assessments={
                "worst": {"task": "identification", "grouping": "class", "budget": RENEWING},
                "compare": {
                    "task": "comparison",
                    "grouping": "class",
                    "between": ["dog", "cat"],
                    "budget": RENEWING,
                },
                "whole": {"metric": "overall_accuracy", "budget": RENEWING},
            },
        ),
        performances={"curve": performance()},
        ensembles={"votes": POOLED},
        challenges={"next": CHALLENGED},
        error_rates={"fair": error_rates()},
        waiting=waiting(items=3),
        labelling=labelling(gold=30),
        wrong_labels=WrongLabels((0.05,), 0.2, is_learned=True),
        selection_bias=Estimate.of(np.array([0.05, 0.06, 0.07]), 0.95),
        attributes={"region": AttributeTraffic(values=1_000, limit=1_000, other_share=0.12)},
    )
    grouping = taken.groupings["class"]
    evidence = grouping.evidence
    assert evidence is not None
    assert evidence.certificate is not None
    # As before the first label, so that every group is expected to meet the threshold.
    nothing = evidence.certificate.test.collected(*np.zeros((3, 1, len(grouping.groups))))
    evidence = replace(evidence, certificate=replace(evidence.certificate, collected=nothing))
    return replace(
        taken,
        groupings=taken.groupings
        | {"class": replace(grouping, missed=np.array([0.0, 0.25, 0.0]), evidence=evidence)},
    )


def registry_of(taken: ModelSnapshot, *, group_limit: int = 200) -> CollectorRegistry:
    """With every instrument used once."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken], group_limit=group_limit, clock=lambda: NOW))
    pipeline = PipelineMetrics(registry, lambda: NOW)
    pipeline.start_prediction_counters(["m"])
    pipeline.start_label_counters(["m"])
    pipeline.start_request_counters({"m": ["worst"]})
    pipeline.start_performance_counters(["m"])
    pipeline.start_unrequested_counters(["m"], ["joined"])
    pipeline.dead_lettered("predictions", ["malformed"])
    pipeline.consumer_paused.labels("predictions")
    pipeline.topic_unread.labels("predictions")
    pipeline.position("predictions", 0, offset=5, highwater=9, record_time=NOW - 7)
    pipeline.backoffs.labels("predictions", "redis")
    pipeline.records_lost.labels("predictions")
    pipeline.log_breaks.labels("predictions", "recreated")
    pipeline.flushes_refused.labels("predictions")
    pipeline.rounds_failed.labels("redis")
    vendors = VendorMetrics(registry)
    vendors.calls.labels("acme", "/models", "2xx")
    vendors.waits.labels("acme")
    vendors.claims.labels("acme", "m")
    vendors.labels.labels("acme", "m", "answer")
    return registry


def series(registry: CollectorRegistry) -> dict[str, set[frozenset[str]]]:
    """Labels of all samples by the metric's full name; of a histogram, those of its count."""
    shown: dict[str, set[frozenset[str]]] = {}
    for family in registry.collect():
        end = {"histogram": "_count", "counter": "_total"}.get(family.type, "")
        for sample in family.samples:
            if sample.name == family.name + end:
                name = family.name if family.type == "histogram" else sample.name
                shown.setdefault(name, set()).add(frozenset(sample.labels))
    return shown


def values(families: Iterable[Metric]) -> dict[Any, float]:
    """All samples but those that tell when a counter was made."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_every_metric_of_the_catalogue_is_shown_and_no_other() -> None:
    assert set(series(registry_of(the_snapshot()))) == set(SPECS)


def test_every_metric_has_the_labels_of_the_catalogue() -> None:
    for name, labels in series(registry_of(the_snapshot())).items():
        assert labels == {frozenset(SPECS[name].labels)}, name


def test_a_measure_of_performance_has_its_interval_and_its_target() -> None:
    shown = values(registry_of(the_snapshot()).collect())

    def sample(name: str, **labels: str) -> float:
        at = {"model": "m", "assessment": "curve", **labels}
        return shown[f"credence_performance_{name}", frozenset(at.items())]

    for measure, estimate in performance().measures.items():
        assert sample("lower_ratio", measure=measure) == pytest.approx(float(estimate.lower))
        assert sample("median_ratio", measure=measure) == pytest.approx(float(estimate.median))
        assert sample("upper_ratio", measure=measure) == pytest.approx(float(estimate.upper))
    assert sample("target_ratio", measure="recall") == 0.9
    missed = sample("target_missed_probability", measure="recall")
    assert missed == pytest.approx(performance().missed["recall"])
    assert (
        sample("best_threshold_ratio") == performance().thresholds.thresholds[performance().thresholds.best]
    )
    assert sample("labels") == 100


def test_vendors_have_their_reliability_and_no_person_is_named() -> None:
    shown = values(registry_of(the_snapshot()).collect())
    reliability = "credence_vendor_reliability_mean_ratio"
    vendors = {
        dict(labels)["vendor"]: value for (metric, labels), value in shown.items() if metric == reliability
    }
    assert vendors == {each.vendor: each.mean for each in labelling(gold=30).vendors}
    people = {each.annotator for each in labelling(gold=30).annotators}
    assert not any(value in people for _, labels in shown for _, value in labels)


def test_a_vendor_without_a_threshold_has_no_probability_of_being_below_it() -> None:
    shown = values(registry_of(replace(the_snapshot(), labelling=labelling(min_reliability=None))).collect())
    assert not any(name.endswith("_below_threshold_probability") and "vendor" in name for name, _ in shown)


def test_every_member_of_an_ensemble_has_its_precision_and_what_sharing_saved() -> None:
    shown = values(registry_of(the_snapshot()).collect())

    def sample(name: str, **labels: str) -> float:
        at = {"model": "m", "assessment": "votes", **labels}
        return shown[f"credence_ensemble_{name}", frozenset(at.items())]

    for position, member in enumerate(POOLED.members):
        mean = sample("member_precision_mean_ratio", member=member)
        assert mean == pytest.approx(POOLED.beliefs.mean[position])
    assert sample("member_target_missed_probability", member="second") == 0.9
    assert sample("saving_ratio") == pytest.approx(1 - 65 / 140)
    assert sample("needed_labels") == POOLED.plan.sum()
    assert (sample("wanted_labels"), sample("labels")) == (50, 65)


def test_a_challenger_is_reported_over_all_traffic_and_in_every_group() -> None:
    shown = values(registry_of(the_snapshot()).collect())

    def sample(name: str, **labels: str) -> float:
        at = {"model": "m", "assessment": "next", **labels}
        return shown[f"credence_challenge_{name}", frozenset(at.items())]

    overall = sample("difference_mean_ratio", grouping="all", group="all")
    assert overall == pytest.approx(CHALLENGED.difference.mean[0])
    for position, group in enumerate(CHALLENGED.groups[1:], 1):
        for name, column in (
            ("better_probability", CHALLENGED.better),
            ("worse_probability", CHALLENGED.worse),
            ("better_evidence", CHALLENGED.evidence_better),
            ("worse_evidence", CHALLENGED.evidence_worse),
        ):
            assert sample(name, grouping="class", group=group) == pytest.approx(column[position])
    assert (sample("margin_ratio"), sample("known_ratio"), sample("groups")) == (0.01, 0.9, 3)


def test_attributes_tell_how_many_values_have_groups_and_how_much_traffic_has_none() -> None:
    shown = values(registry_of(the_snapshot()).collect())
    at = frozenset({"model": "m", "attribute": "region"}.items())
    assert shown["credence_attribute_values", at] == 1_000
    assert shown["credence_attribute_other_ratio", at] == 0.12
    assert shown["credence_attribute_values_limit", frozenset({("model", "m")})] == 1_000


def test_only_groups_that_may_miss_traffic_say_how_much() -> None:
    shown = values(registry_of(the_snapshot()).collect())
    missed = {
        dict(at)["group"]: v for (name, at), v in shown.items() if name.endswith("missed_traffic_ratio")
    }
    assert missed == {"dog": 0.25}


def test_every_metric_has_the_type_of_the_catalogue() -> None:
    kinds = {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in registry_of(the_snapshot()).collect()
    }
    assert kinds == {spec.name: spec.kind for spec in CATALOGUE}


@pytest.mark.parametrize("spec", CATALOGUE, ids=lambda spec: spec.name)
def test_names_follow_the_conventions(spec: Any) -> None:
    assert spec.name.startswith("credence_")
    assert spec.name.endswith("_total") == (spec.kind == "counter")
    if spec.unit in {"ratio", "seconds"}:
        assert spec.name.endswith(f"_{spec.unit}")
    assert spec.meaning.endswith(".")


def test_both_text_formats_tell_the_same() -> None:
    registry = registry_of(the_snapshot())
    classic = parse_classic(generate_latest(registry).decode())
    modern = parse_openmetrics(openmetrics.generate_latest(registry).decode())
    assert values(modern) == values(classic)


class Untouchable:
    """Stands for beliefs; whoever looks at it fails."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"a scrape looked at beliefs: {name}")


def test_a_scrape_computes_no_posterior() -> None:
    groupings = {}
    for name, grouping in the_snapshot().groupings.items():
        beliefs = replace(
            grouping.beliefs,
            **dict.fromkeys(("accuracy", "overall", "bins", "ece", "fit", "cells"), Untouchable()),
        )
        groupings[name] = replace(grouping, beliefs=beliefs)
    registry = registry_of(replace(the_snapshot(), groupings=groupings))
    assert values(registry.collect()) == values(registry_of(the_snapshot()).collect())


def test_a_time_that_never_comes_has_no_sample() -> None:
    forgetful = snapshot(
        5,
        alerts={"min_accuracy": 0.8},
        assessments={"whole": {"metric": "overall_accuracy", "budget": {"labels": 1, "per_days": 30}}},
        label_half_life_days=1,
    )
    registry = registry_of(forgetful)
    group = {"model": "m", "grouping": "class", "group": "owl"}
    assert registry.get_sample_value("credence_group_labels_to_decision", group)
    assert registry.get_sample_value("credence_group_time_to_decision_seconds", group) is None


def test_a_time_beyond_ten_years_has_no_sample() -> None:
    def sample(labels: int) -> float | None:
        budget = {"labels": labels, "per_days": 365}
        assessments = {"whole": {"metric": "overall_accuracy", "budget": budget}}
        taken = snapshot(5, alerts={"min_accuracy": 0.8}, assessments=assessments)
        group = {"model": "m", "grouping": "class", "group": "owl"}
        return registry_of(taken).get_sample_value("credence_group_time_to_decision_seconds", group)

    shorter = sample(100)
    assert shorter is not None
    assert shorter < LONGEST_SECONDS
    # The time is proportional to the budget.
    assert shorter * 100 > LONGEST_SECONDS
    assert sample(1) is None


@pytest.mark.parametrize("half_life_days", [None, 10.0])
def test_the_time_to_a_verdict_is_that_of_labels_that_come_and_fade(half_life_days: float | None) -> None:
    """Beside small steps of n' = r - d n; a thousand of them are 0.5% off."""
    taken = snapshot(
        20,
        alerts={"min_accuracy": 0.8},
        assessments={"whole": {"metric": "overall_accuracy", "budget": {"labels": 100, "per_days": 1}}},
        label_half_life_days=half_life_days,
    )
    grouping = taken.groupings["class"]
    assert grouping.verdict_labels is not None
    assert grouping.verdict_seconds is not None
    group = int(grouping.verdict_labels.argmax())
    rate = 100 / 86_400 * (20 + 1 / 3) / 61
    decay = taken.settings.label_decay_per_second
    before = labels = float(grouping.beliefs.labels[group])
    step, seconds = grouping.verdict_seconds[group] / 1_000, 0.0
    while labels < before + grouping.verdict_labels[group]:
        labels += (rate - decay * labels) * step
        seconds += step
    assert seconds == pytest.approx(grouping.verdict_seconds[group], rel=0.01)


def test_two_labels_of_every_item_double_the_time_that_a_label_of_the_verdict_takes() -> None:
    def seconds_per_label(**rule: Any) -> float:
        asked = {"whole": {"metric": "overall_accuracy", "budget": {"labels": 100, "per_days": 1}}}
        taken = snapshot(20, alerts={"min_accuracy": 0.8}, assessments=asked, labels_per_item=rule)
        grouping = taken.groupings["class"]
        assert grouping.verdict_labels is not None
        assert grouping.verdict_seconds is not None
        group = int(grouping.verdict_labels.argmax())
        return float(grouping.verdict_seconds[group] / grouping.verdict_labels[group])

    assert seconds_per_label(least=2, most=2) == pytest.approx(2 * seconds_per_label())


def test_shares_of_traffic_that_fails_and_meets_are_of_all_groups() -> None:
    many = [f"c{i:02d}" for i in range(38)] + ["cat", "dog"]
    taken = snapshot(300, classes=many, alerts={"min_accuracy": 0.8})
    some, every = registry_of(taken, group_limit=5), registry_of(taken)
    at = {"model": "m", "grouping": "class"}
    for name in ("failing", "meeting"):
        shown = [
            registry.get_sample_value(f"credence_grouping_traffic_share_{name}_ratio", at)
            for registry in (some, every)
        ]
        assert shown[0] == shown[1]
        assert shown[0]
    scores = {"model": "m", "grouping": "score_bin"}
    assert some.get_sample_value("credence_grouping_traffic_share_failing_ratio", scores) is None


def test_score_bins_are_not_measured_by_the_accuracy_that_groups_must_have() -> None:
    name = "credence_group_accuracy_below_threshold_probability"
    labels = {"model": "m", "grouping": "score_bin", "group": "[0,0.5)"}
    assert registry_of(the_snapshot()).get_sample_value(name, labels) is None


def test_labels_are_reported_by_outcome() -> None:
    by_outcome = {
        outcome: registry_of(the_snapshot()).get_sample_value(
            "credence_group_labels",
            {"model": "m", "grouping": "class", "group": "dog", "outcome": outcome},
        )
        for outcome in ("correct", "incorrect")
    }
    correct = the_snapshot().groupings["class"].beliefs.labels_correct[1]
    assert by_outcome == {"correct": correct, "incorrect": 100 - correct}


def test_a_lag_in_seconds_grows_while_records_wait() -> None:
    registry, now = CollectorRegistry(), [NOW]
    pipeline = PipelineMetrics(registry, lambda: now[0])
    labels = {"topic": "predictions", "partition": "0"}
    pipeline.position("predictions", 0, offset=5, highwater=9, record_time=NOW - 7)
    assert registry.get_sample_value("credence_consumer_lag_seconds", labels) == 7
    now[0] += 60
    assert registry.get_sample_value("credence_consumer_lag_seconds", labels) == 67
    pipeline.position("predictions", 0, offset=9, highwater=9, record_time=NOW)
    assert registry.get_sample_value("credence_consumer_lag_seconds", labels) == 0


def test_a_partition_that_went_to_another_process_is_not_reported_any_more() -> None:
    registry = CollectorRegistry()
    pipeline = PipelineMetrics(registry, lambda: NOW)
    pipeline.position("predictions", 0, offset=5, highwater=9, record_time=NOW - 7)
    pipeline.partition_lost("predictions", 0)
    pipeline.partition_lost("predictions", 0)
    labels = {"topic": "predictions", "partition": "0"}
    assert registry.get_sample_value("credence_consumer_lag_records", labels) is None
    assert registry.get_sample_value("credence_consumer_lag_seconds", labels) is None


def test_what_was_estimated_earlier_is_what_its_labels_say() -> None:
    times = (NOW - 3_000, NOW)
    there = known(60, given=times)
    before = snapshot(60, given=times)
    moment = recalled(there, before, NOW - 1_000)
    there_then = moment.groupings["class"]
    assert there_then.labels.tolist() == [30, 30, 30]
    assert before.groupings["class"].beliefs.labels_counted.tolist() == [60, 60, 60]
    now, then = before.groupings["class"], there_then.accuracy
    assert (then.upper - then.lower > now.accuracy.upper - now.accuracy.lower).all()


def test_what_a_process_counts_begins_at_zero_before_the_first_event() -> None:
    registry = CollectorRegistry()
    pipeline = PipelineMetrics(registry, lambda: NOW)
    pipeline.start_prediction_counters(["m"])
    pipeline.start_label_counters(["m"])
    pipeline.start_request_counters({"m": ["worst"]})
    pipeline.start_performance_counters(["m"])
    for name, labels in {
        "credence_predictions_consumed_total": {"model": "m"},
        "credence_prediction_times_clipped_total": {"model": "m", "direction": "past"},
        "credence_labels_consumed_total": {"result": "applied"},
        "credence_flush_duration_seconds_count": {"topic": "labels"},
        "credence_label_delay_seconds_count": {"model": "m"},
        "credence_requests_published_total": {"model": "m"},
        "credence_draws_short_total": {"model": "m", "assessment": "worst"},
        "credence_performance_failures_total": {"model": "m"},
    }.items():
        assert registry.get_sample_value(name, labels) == 0


def test_a_group_that_changed_shows_since_when_it_is_estimated_again() -> None:
    registry = registry_of(the_snapshot())
    group = {"model": "m", "grouping": "class", "group": "cat"}
    assert registry.get_sample_value("credence_group_change_point_timestamp_seconds", group) == pytest.approx(
        NOW - 9
    )
    assert registry.get_sample_value("credence_group_effective_labels", group) < 50
    other = {**group, "group": "owl"}
    assert registry.get_sample_value("credence_group_change_point_timestamp_seconds", other) is None


def thresholds(taken: Any, name: str, **options: Any) -> dict[str, float | None]:
    """The threshold of every class, and of `other`."""
    registry, at = registry_of(taken, **options), {"model": "m", "grouping": "class"}
    return {
        group: registry.get_sample_value(name, {**at, "group": group})
        for group in ("cat", "dog", "owl", "other")
    }


def test_every_group_shows_its_own_thresholds() -> None:
    groups = {"dog": {"min_accuracy": 0.6}, "owl": {"min_accuracy": None, "max_ece": 0.3}}
    taken = snapshot(
        30, alerts={"min_accuracy": 0.8, "max_ece": 0.1, "groupings": {"class": {"groups": groups}}}
    )
    accuracy, error = (
        thresholds(taken, f"credence_group_{name}_ratio") for name in ("min_accuracy", "max_ece")
    )
    assert accuracy == {"cat": 0.8, "dog": 0.6, "owl": None, "other": None}
    assert error == {"cat": 0.1, "dog": 0.1, "owl": 0.3, "other": None}


def test_other_has_the_threshold_of_its_groups_if_they_share_one() -> None:
    name = "credence_group_min_accuracy_ratio"
    alike = snapshot(30, alerts={"min_accuracy": 0.8})
    assert thresholds(alike, name, group_limit=1)["other"] == 0.8
    unlike = {"class": {"groups": {group: {"min_accuracy": 0.1 * i} for i, group in enumerate(CLASSES)}}}
    taken = snapshot(30, alerts={"groupings": unlike})
    assert thresholds(taken, name, group_limit=1)["other"] is None
