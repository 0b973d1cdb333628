"""Prometheus instruments of a process; the catalogue describes each metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service import __version__
from service.telemetry.catalogue import PROCESS_METRICS

_SPECS = {spec.name: spec for spec in PROCESS_METRICS}
_DURATIONS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DELAYS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0)


def _counter(name: str, registry: CollectorRegistry) -> Counter:
    spec = _SPECS[name]
    return Counter(name, spec.meaning, spec.labels, registry=registry)


def _gauge(name: str, registry: CollectorRegistry) -> Gauge:
    spec = _SPECS[name]
    return Gauge(name, spec.meaning, spec.labels, registry=registry)


def _histogram(name: str, registry: CollectorRegistry, buckets: Sequence[float] = _DURATIONS) -> Histogram:
    spec = _SPECS[name]
    return Histogram(name, spec.meaning, spec.labels, registry=registry, buckets=buckets)


class PipelineMetrics:
    """The instruments of this process's part of the pipeline.

    Args:
        registry: that they belong to.
        clock: seconds since the epoch; a lag in seconds grows between two readings of a partition.
    """

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.predictions_consumed = _counter("credence_predictions_consumed_total", registry)
        self.times_clipped = _counter("credence_prediction_times_clipped_total", registry)
        self.labels_consumed = _counter("credence_labels_consumed_total", registry)
        self.unrequested_labels = _counter("credence_unrequested_labels_total", registry)
        self.label_delay = _histogram("credence_label_delay_seconds", registry, _DELAYS)
        self.dead_letters = _counter("credence_dead_letters_total", registry)
        self.consumer_paused = _gauge("credence_consumer_paused", registry)
        self.backoffs = _counter("credence_consumer_backoffs_total", registry)
        self.records_lost = _counter("credence_records_lost_total", registry)
        self.log_breaks = _counter("credence_log_breaks_total", registry)
        self.flush_duration = _histogram("credence_flush_duration_seconds", registry)
        self.flushes_refused = _counter("credence_flushes_refused_total", registry)
        self.snapshot_duration = _histogram("credence_snapshot_duration_seconds", registry)
        self.rounds_failed = _counter("credence_rounds_failed_total", registry)
        self.leader = _gauge("credence_leader", registry)
        self._redis_reset = _gauge("credence_redis_reset", registry)
        self.topic_unread = _gauge("credence_topic_unread", registry)
        self.requests_published = _counter("credence_requests_published_total", registry)
        self.performance_failures = _counter("credence_performance_failures_total", registry)
        self.draws_short = _counter("credence_draws_short_total", registry)
        self.requests_chosen = _counter("credence_requests_chosen_total", registry)
        self._lag = _gauge("credence_consumer_lag_records", registry)
        self._lag_time = _gauge("credence_consumer_lag_seconds", registry)
        self._record_time = _gauge("credence_consumer_record_timestamp_seconds", registry)
        _gauge("credence_build_info", registry).labels(__version__).set(1)

    def start_prediction_counters(self, models: Iterable[str]) -> None:
        """Start the counters of a process that reads predictions.

        Counters start at zero and not at the first event, here and below: Prometheus sees no increase in a
        series that did not exist before.
        """
        self.flush_duration.labels("predictions")
        for model in models:
            self.predictions_consumed.labels(model)
            for direction in ("future", "past"):
                self.times_clipped.labels(model, direction)

    def start_label_counters(self, models: Iterable[str]) -> None:
        """Start the counters of a process that reads labels."""
        self.flush_duration.labels("labels")
        for result in ("applied", "duplicate"):
            self.labels_consumed.labels(result)
        for model in models:
            self.label_delay.labels(model)

    def start_unrequested_counters(self, models: Iterable[str], results: Iterable[str]) -> None:
        """Start the counters of labels without a request, of the models that take them."""
        for model in models:
            for result in results:
                self.unrequested_labels.labels(model, result)

    def start_request_counters(self, assessments: Mapping[str, Iterable[str]]) -> None:
        """Start the counters of a process that may lead, for these assessments of every model."""
        for model, names in assessments.items():
            self.requests_published.labels(model)
            for assessment in names:
                self.draws_short.labels(model, assessment)
                for reason in ("policy", "drift", "reference", "gold"):
                    self.requests_chosen.labels(model, assessment, reason)

    def redis_lost_data(self, lost: bool) -> None:
        """Whether Redis lost data, and no operator has acknowledged it."""
        self._redis_reset.set(lost)

    def start_performance_counters(self, models: Iterable[str]) -> None:
        """Start the counters of a process that learns the performance of these models."""
        for model in models:
            self.performance_failures.labels(model)

    def dead_lettered(self, topic: str, reasons: Sequence[str]) -> None:
        """Count messages that went to the dead-letter topic."""
        for reason in reasons:
            self.dead_letters.labels(topic, reason).inc()

    def position(
        self, topic: str, partition: int, *, offset: int, highwater: int, record_time: float
    ) -> None:
        """Set the lag of a partition that was read up to an offset."""
        behind = max(0, highwater - offset)
        self._lag.labels(topic, str(partition)).set(behind)
        self._record_time.labels(topic, str(partition)).set(record_time)
        self._lag_time.labels(topic, str(partition)).set_function(
            lambda: max(0.0, self._clock() - record_time) if behind else 0.0
        )

    def partition_held(self, topic: str, partition: int, *, records: int, record_time: float) -> None:
        """Set the lag of a partition with unprocessed records; `record_time` is that of the first one."""
        self._lag.labels(topic, str(partition)).set(records)
        self._lag_time.labels(topic, str(partition)).set_function(
            lambda: max(0.0, self._clock() - record_time)
        )

    def partition_lost(self, topic: str, partition: int) -> None:
        """Stop exporting the lag of a partition that another process owns now."""
        for gauge in (self._lag, self._lag_time, self._record_time):
            with suppress(KeyError):  # nothing was read of it
                gauge.remove(topic, str(partition))


class VendorMetrics:
    """The instruments of the vendor API."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = _counter("credence_vendor_api_calls_total", registry)
        self.logins_refused = _counter("credence_vendor_api_logins_refused_total", registry)
        self.waits = _gauge("credence_vendor_api_waits", registry)
        self.claims = _counter("credence_vendor_claims_total", registry)
        self.labels = _counter("credence_vendor_labels_total", registry)
