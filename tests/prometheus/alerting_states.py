"""A state for every alert about a model or the pipeline, and the series that Prometheus has scraped of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labelled_models import annotated
from msgspec.structs import replace as changed_report
from pipelines import REFUSED, consumer, intake
from pipelines import state as pipeline
from prometheus_client import CollectorRegistry
from rated_snapshots import rated
from snapshots import NOW, challenged, drifting, mail, performance, pooled, snapshot

from service.monitoring.count_trends import count_trends, due_history
from service.monitoring.group_index import AttributeTraffic
from service.monitoring.outcome_aggregates import SKIPPED_CLASS
from service.monitoring.pipeline import PipelineState
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.week_ago import WeekAgo
from service.serving.prometheus import SnapshotCollector
from service.store.count_histories import CountHistory, CountsAt
from service.store.recent_reports import Loss, VendorCalls
from service.store.resets import RedisReset
from service.telemetry.instruments import PipelineMetrics, VendorMetrics

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
WELL: Any = {"min_accuracy": 0.5}
# Labels come class by class, so score bins seem to change; nothing is to be forgotten for that.
WATCHED: Any = {"reference": {"labels": 20}, "forgetting": {"after_change": False}}

Series = tuple[str, frozenset[tuple[str, str]]]
"""Name and labels."""


@dataclass(frozen=True)
class State:
    """A model, and a pipeline, about which an alert fires.

    Attributes:
        taken: the model's snapshot.
        pipeline: its state; None where the alert is about the model.
        counted: sets what processes measure of the pipeline.
        rises: what counters have gained a second, by name and some of the labels.
        before: values of a week ago, by name and some of the labels.
        step: between two scrapes, seconds.
        silent: for how long the process has taken no snapshot, seconds.
    """

    taken: ModelSnapshot
    pipeline: PipelineState | None = None
    counted: Callable[[PipelineMetrics, VendorMetrics], object] = lambda _, __: None
    rises: Mapping[tuple[str, str], float] = field(default_factory=dict)
    before: Mapping[tuple[str, str], float] = field(default_factory=dict)
    step: float = MINUTE
    silent: float = 0.0

    @property
    def now(self) -> float:
        """When people look."""
        return NOW + self.silent

    @property
    def steps(self) -> int:
        """Number of scrapes: of four hours, or of eight days."""
        return 240 if self.step == MINUTE else 8 * 24

    def series(self) -> Iterator[tuple[str, dict[str, str], str]]:
        """Name, labels and values of every series, as promtool wants them; time begins with 0."""
        end = self.steps * self.step
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(lambda: [self.taken], group_limit=200, clock=lambda: self.now))
        metrics = PipelineMetrics(registry, lambda: NOW)
        metrics.start_prediction_counters(["m"])
        metrics.start_request_counters({"m": self.taken.assessments})
        metrics.leader.set(1)
        self.counted(metrics, VendorMetrics(registry))
        for family in registry.collect():
            for sample in family.samples:
                if sample.name.endswith("_created") or not math.isfinite(sample.value):
                    continue
                value = sample.value
                if sample.name.endswith("timestamp_seconds"):
                    value += end - self.now
                yield (
                    sample.name,
                    {"job": "credence", "instance": "a", **sample.labels},
                    self._values(sample.name, sample.labels, value),
                )

    def _values(self, name: str, labels: Mapping[str, str], value: float) -> str:
        rise = _of(self.rises, name, labels)
        before = _of(self.before, name, labels)
        if name == "credence_snapshot_timestamp_seconds" and not self.silent:
            rise, value = 1.0, self.steps * self.step
        if rise is not None:
            begin = value - rise * self.step * self.steps
            return f"{begin!r}+{rise * self.step!r}x{self.steps}"
        if before is not None:
            # Until half a day ago: the day before is a week after that.
            return f"{before!r}x{self.steps - 13} {value!r}x12"
        return f"{value!r}x{self.steps}"


def _of(values: Mapping[tuple[str, str], float], name: str, labels: Mapping[str, str]) -> float | None:
    return next(
        (value for (of, label), value in values.items() if of == name and label in labels.values()), None
    )


def lived(taken: ModelSnapshot, hours: float, **rates: Any) -> ModelSnapshot:
    """A snapshot whose counts have risen for so long, as the leader kept them; `rates` are a second."""
    history: CountHistory = ()
    seconds = 300 * round(12 * hours)
    for age in range(seconds, -1, -300):
        done = seconds - age
        counts = CountsAt(
            at=taken.taken_at - age,
            predictions=round(done * rates.get("predictions", 0.0)),
            clipped={direction: round(done * rate) for direction, rate in rates.get("clipped", {}).items()},
            issued=round(done * rates.get("issued", 0.0)),
            expired={name: round(done * rate) for name, rate in rates.get("expired", {}).items()},
            answered={},
            short={name: round(done * rate) for name, rate in rates.get("short", {}).items()},
            traffic_at=taken.taken_at - age,
            asked_at=taken.taken_at - age,
        )
        if age:
            history = due_history(history, counts) or history
    return replace(taken, trends=count_trends(history, counts))


def unlabelled_for_a_day() -> ModelSnapshot:
    taken = snapshot(8, alerts=WELL)
    whole = replace(taken.assessments["whole"], oldest_request_at=NOW - 30 * HOUR)
    return replace(taken, last_label_at=NOW - 2 * DAY, assessments=taken.assessments | {"whole": whole})


def without_labels_left() -> ModelSnapshot:
    taken = snapshot(8, alerts=WELL)
    worst = taken.assessments["worst"]
    spent = replace(worst, budget=replace(worst.budget, remaining=0, is_exhausted=True))
    return replace(taken, assessments=taken.assessments | {"worst": spent})


def less_accurate(grouping: str, group: str) -> State:
    """Since a few hours, than a week ago; now and then there are labels enough."""
    taken = snapshot(100, alerts=WELL)
    then = WeekAgo(NOW - 7 * DAY, {grouping: {group: 0.97}})
    before = {("credence_group_accuracy_lower_ratio", group): 0.97}
    return State(replace(taken, week_ago=then), before=before, step=HOUR)


def misfit() -> ModelSnapshot:
    there = performance()
    mixture = dataclasses.replace(there.mixture, misfit_p_value=0.001, distance=0.5)
    return mail(dataclasses.replace(there, mixture=mixture))


def changed() -> ModelSnapshot:
    return snapshot(200, changed="owl", alerts={"min_accuracy": 0.8}, **WATCHED)


WAITING = "kafka is unavailable (KafkaConnectionError)"
LOST = Loss("predictions", "deleted", "credence.predictions", 0, 1_200, NOW - 600)


def of_pipeline(
    found: PipelineState,
    counted: Callable[[PipelineMetrics, VendorMetrics], object],
    **rises: float,
) -> State:
    """A pipeline that is not well, and a model that is; counters rise by so much a second."""
    return State(
        snapshot(8, alerts=WELL),
        pipeline=found,
        counted=counted,
        rises={
            (f"credence_{name}_total", label): rise for name, rise in rises.items() for label in OF_SERIES
        },
    )


OF_SERIES = ("predictions", "5xx")
"""A label of every counter of the pipeline that rises."""


def pipeline_states() -> dict[str, State]:
    """A state for every alert about the pipeline that a surface can show."""
    refused = intake("predictions", 1_000, changed_report(REFUSED, count=40))
    return {
        "CredenceDependencyDown": of_pipeline(
            pipeline(consumer("predictions", state="waiting", cause=WAITING, state_since=NOW - 900)),
            lambda metrics, _: metrics.backoffs.labels("predictions", "kafka").inc(),
            consumer_backoffs=0.1,
        ),
        "CredenceNoLeader": of_pipeline(pipeline(leader=None), lambda metrics, _: metrics.leader.set(0)),
        "CredenceConsumerLagging": of_pipeline(
            pipeline(consumer("predictions", lag_records=9_000, lag_seconds=1_200.0)),
            lambda metrics, _: metrics.position(
                "predictions", 0, offset=1, highwater=9_001, record_time=NOW - 1_200
            ),
        ),
        "CredenceConsumerPaused": of_pipeline(
            pipeline(
                consumer("predictions", state="paused", refused=(REFUSED,)),
                intake=[intake("predictions", 1_000, REFUSED)],
            ),
            lambda metrics, _: metrics.consumer_paused.labels("predictions").set(1),
        ),
        "CredenceTopicUnread": of_pipeline(
            pipeline(consumer("predictions", written_at=NOW - 600)),
            lambda metrics, _: metrics.topic_unread.labels("predictions").set(1),
        ),
        "CredenceDeadLetters": of_pipeline(
            pipeline(intake=[refused]),
            lambda metrics, _: metrics.dead_lettered("predictions", ["invalid_field"]),
            dead_letters=0.1,
        ),
        "CredenceRedisReset": of_pipeline(
            pipeline(reset=RedisReset(NOW - 600, "emptied", 1_500, 0)),
            lambda metrics, _: metrics.redis_lost_data(True),
        ),
        "CredenceRecordsLost": of_pipeline(
            pipeline(losses=[LOST]),
            lambda metrics, _: metrics.records_lost.labels("predictions").inc(1_200),
            records_lost=1.0,
        ),
        "CredenceLogBroken": of_pipeline(
            pipeline(losses=[changed_report(LOST, kind="recreated", records=0)]),
            lambda metrics, _: metrics.log_breaks.labels("predictions", "recreated").inc(),
            log_breaks=0.01,
        ),
        "CredenceVendorApiFailing": of_pipeline(
            pipeline(vendor_calls=[VendorCalls("acme", "a", 20, 20, NOW - 60)]),
            lambda _, metrics: metrics.calls.labels("acme", "/claims", "5xx").inc(20),
            vendor_api_calls=0.1,
        ),
    }


def states() -> dict[str, State]:
    """A state for every alert that a surface can show."""
    return {**model_states(), **pipeline_states()}


def model_states() -> dict[str, State]:
    """A state for every alert about a model."""
    low = State(snapshot(100, alerts={"min_accuracy": 0.8}))
    miscalibrated = State(snapshot(100, alerts={"max_ece": 0.1}))
    missed = dataclasses.replace(performance(), missed={"precision": 0.0, "recall": 0.9995})
    late = dataclasses.replace(performance(), taken_at=NOW - HOUR)
    folded = {"region": AttributeTraffic(values=1_000, limit=1_000, other_share=0.12)}
    well = snapshot(8, alerts=WELL)
    skipped = replace(well.unanswered, ended=100, skipped=20, worst_case=frozenset({SKIPPED_CLASS}))
    short, counted = "credence_draws_short_total", "credence_traffic_predictions_total"
    clipped, consumed = "credence_prediction_times_clipped_total", "credence_predictions_consumed_total"
    return {
        "CredenceModelAccuracyLow": State(snapshot(100, alerts={"min_accuracy": 0.95})),
        "CredenceModelMiscalibrated": miscalibrated,
        "CredenceModelAccuracyDropped": less_accurate("all", "all"),
        "CredenceModelDrift": State(drifting()),
        "CredenceGroupAccuracyLow": low,
        "CredenceWeakestGroupAccuracyLow": low,
        "CredenceGroupMiscalibrated": miscalibrated,
        "CredenceGroupDrift": State(drifting()),
        "CredenceGroupAccuracyDropped": less_accurate("class", "dog"),
        "CredenceGroupAccuracyLowConfirmed": State(snapshot(200, alerts={"min_accuracy": 0.8}, **WATCHED)),
        "CredenceGroupDeclineConfirmed": State(changed()),
        "CredenceGroupMiscalibrationConfirmed": State(snapshot(100, alerts={"max_ece": 0.25}, **WATCHED)),
        "CredenceGroupChanged": State(changed()),
        "CredenceEnsembleMemberTargetMissed": State(pooled()),
        "CredenceChallengerBetter": State(challenged()),
        "CredenceChallengerWorse": State(challenged()),
        "CredenceErrorRateViolated": State(rated()),
        "CredenceErrorRatesDiffer": State(rated()),
        "CredencePerformanceTargetMissed": State(mail(missed)),
        "CredencePerformanceStale": State(mail(late)),
        "CredencePerformanceMisfit": State(misfit()),
        "CredenceVendorReliabilityLow": State(annotated()),
        "CredenceLabelsStale": State(unlabelled_for_a_day()),
        "CredenceRequestsUnanswered": State(
            lived(well, 40, predictions=1.0, issued=0.001, expired={"worst": 0.001}),
            rises={("credence_requests_total", "expired"): 0.001},
            step=HOUR,
        ),
        "CredenceAnswersMissing": State(replace(well, unanswered=skipped)),
        "CredenceBudgetExhausted": State(without_labels_left()),
        "CredencePoolExhausted": State(
            lived(well, 4, predictions=1.0, short={"worst": 0.1}),
            rises={(short, "worst"): 0.1, (counted, "m"): 1.0},
        ),
        "CredencePredictionTimesClipped": State(
            lived(well, 4, predictions=1.0, clipped={"past": 0.05}),
            rises={(clipped, "past"): 0.05, (consumed, "m"): 1.0},
        ),
        "CredenceAttributeValuesFolded": State(replace(well, attributes=folded)),
        "CredenceSnapshotStale": State(well, silent=900.0),
    }
