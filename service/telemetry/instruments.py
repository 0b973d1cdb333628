"""Instruments of a process: of the pipeline and of the vendor API."""

from __future__ import annotations

from collections import Counter as Tally
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
        self._consumed = _counter("credence_predictions_consumed_total", registry)
        self._clipped = _counter("credence_prediction_times_clipped_total", registry)
        self._labels = _counter("credence_labels_consumed_total", registry)
        self._delay = _histogram("credence_label_delay_seconds", registry, _DELAYS)
        self._dead_letters = _counter("credence_dead_letters_total", registry)
        self._paused = _gauge("credence_consumer_paused", registry)
        self._lag = _gauge("credence_consumer_lag_records", registry)
        self._lag_time = _gauge("credence_consumer_lag_seconds", registry)
        self._record_time = _gauge("credence_consumer_record_timestamp_seconds", registry)
        self._backoffs = _counter("credence_consumer_backoffs_total", registry)
        self._lost = _counter("credence_records_lost_total", registry)
        self._breaks = _counter("credence_log_breaks_total", registry)
        self._flush = _histogram("credence_flush_duration_seconds", registry)
        self._refused = _counter("credence_flushes_refused_total", registry)
        self._snapshot = _histogram("credence_snapshot_duration_seconds", registry)
        self._rounds_failed = _counter("credence_rounds_failed_total", registry)
        self._leader = _gauge("credence_leader", registry)
        self._published = _counter("credence_requests_published_total", registry)
        self._performance_failures = _counter("credence_performance_failures_total", registry)
        self._short = _counter("credence_draws_short_total", registry)
        self._chosen = _counter("credence_requests_chosen_total", registry)
        _gauge("credence_build_info", registry).labels(__version__).set(1)

    def takes_predictions(self, models: Iterable[str]) -> None:
        """This process reads predictions.

        Its counters start at zero, here and below, and not at the first event: Prometheus sees no increase in
        a series that did not exist before.
        """
        self._flush.labels("predictions")
        for model in models:
            self.consumed(model, 0)
            self.times_clipped(model, future=0, past=0)

    def takes_labels(self, models: Iterable[str]) -> None:
        """This process reads labels."""
        self._flush.labels("labels")
        self.labels_taken(applied=0, duplicate=0)
        for model in models:
            self._delay.labels(model)

    def may_lead(self, assessments: Mapping[str, Iterable[str]]) -> None:
        """This process requests labels when it leads.

        Args:
            assessments: of every model.
        """
        for model, names in assessments.items():
            self.published(model, 0)
            for assessment in names:
                self.draws_short(model, assessment, 0)
                self.requests_chosen(model, assessment, policy=0, drift=0)

    def learns_performance(self, models: Iterable[str]) -> None:
        """This process learns the performance of these models."""
        for model in models:
            self._performance_failures.labels(model)

    def consumed(self, model: str, count: int) -> None:
        """Predictions were ingested."""
        self._consumed.labels(model).inc(count)

    def times_clipped(self, model: str, *, future: int, past: int) -> None:
        """Predictions claimed a time too far ahead of, or behind, that of their record."""
        self._clipped.labels(model, "future").inc(future)
        self._clipped.labels(model, "past").inc(past)

    def labels_taken(self, *, applied: int, duplicate: int) -> None:
        """Labels were processed."""
        self._labels.labels("applied").inc(applied)
        self._labels.labels("duplicate").inc(duplicate)

    def label_delayed(self, model: str, seconds: float) -> None:
        """A label closed its request so long after the request was first issued."""
        self._delay.labels(model).observe(seconds)

    def dead_lettered(self, topic: str, reasons: Sequence[str]) -> None:
        """Messages went to the dead-letter topic."""
        for reason, count in Tally(reasons).items():
            self._dead_letters.labels(topic, reason).inc(count)

    def consumer_paused(self, topic: str) -> None:
        """A consumer is paused because too many messages are bad."""
        self._paused.labels(topic).set(1)

    def position(
        self, topic: str, partition: int, *, offset: int, highwater: int, record_time: float
    ) -> None:
        """A partition was read up to an offset."""
        behind = max(0, highwater - offset)
        self._lag.labels(topic, str(partition)).set(behind)
        self._record_time.labels(topic, str(partition)).set(record_time)
        self._lag_time.labels(topic, str(partition)).set_function(
            lambda: max(0.0, self._clock() - record_time) if behind else 0.0
        )

    def partition_held(self, topic: str, partition: int, *, records: int, record_time: float) -> None:
        """Records of a partition were read but cannot be processed yet.

        Args:
            topic: kind of topic.
            partition: its number.
            records: behind the partition's end, those held included.
            record_time: of the first one held, seconds since the epoch.
        """
        self._lag.labels(topic, str(partition)).set(records)
        self._lag_time.labels(topic, str(partition)).set_function(
            lambda: max(0.0, self._clock() - record_time)
        )

    def partition_lost(self, topic: str, partition: int) -> None:
        """Another process owns the partition, and exports its lag from now on."""
        for gauge in (self._lag, self._lag_time, self._record_time):
            with suppress(KeyError):  # nothing was read of it
                gauge.remove(topic, str(partition))

    def backed_off(self, topic: str, part: str) -> None:
        """A consumer waits because Kafka or Redis is unavailable."""
        self._backoffs.labels(topic, part).inc()

    def records_lost(self, topic: str, count: int) -> None:
        """Records were deleted before they were read."""
        self._lost.labels(topic).inc(count)

    def log_broken(self, topic: str, kind: str) -> None:
        """A partition's log was not the one that had been read."""
        self._breaks.labels(topic, kind).inc()

    def flushed(self, topic: str, seconds: float) -> None:
        """A batch was stored."""
        self._flush.labels(topic).observe(seconds)

    def flush_refused(self, topic: str) -> None:
        """A flush was refused."""
        self._refused.labels(topic).inc()

    def snapshot_taken(self, seconds: float) -> None:
        """Estimates were computed."""
        self._snapshot.observe(seconds)

    def round_failed(self, part: str) -> None:
        """A round was given up."""
        self._rounds_failed.labels(part).inc()

    def leading(self, leads: bool) -> None:
        """Whether this process leads, and requests labels."""
        self._leader.set(1 if leads else 0)

    def performance_failed(self, model: str) -> None:
        """The performance of a model could not be learned."""
        self._performance_failures.labels(model).inc()

    def published(self, model: str, count: int) -> None:
        """Label requests were sent."""
        self._published.labels(model).inc(count)

    def requests_chosen(self, model: str, assessment: str, *, policy: int, drift: int) -> None:
        """Label requests were issued to groups that the policy chose, or that have drifted."""
        self._chosen.labels(model, assessment, "policy").inc(policy)
        self._chosen.labels(model, assessment, "drift").inc(drift)

    def draws_short(self, model: str, assessment: str, count: int) -> None:
        """Labels could not be requested because the pool had no item."""
        self._short.labels(model, assessment).inc(count)


class VendorMetrics:
    """The instruments of the vendor API.

    Args:
        registry: that they belong to.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = _counter("credence_vendor_api_calls_total", registry)
        self._refused = _counter("credence_vendor_api_logins_refused_total", registry)
        self._waits = _gauge("credence_vendor_api_waits", registry)
        self._claims = _counter("credence_vendor_claims_total", registry)
        self._labels = _counter("credence_vendor_labels_total", registry)

    def called(self, vendor: str, route: str, status: int) -> None:
        """A call was answered."""
        self._calls.labels(vendor, route, f"{status // 100}xx").inc()

    def login_refused(self) -> None:
        """A call came without a valid token."""
        self._refused.inc()

    def waiting(self, vendor: str, count: int) -> None:
        """So many calls of a vendor wait."""
        self._waits.labels(vendor).set(count)

    def claimed(self, vendor: str, model: str, count: int) -> None:
        """Requests were given to a vendor."""
        self._claims.labels(vendor, model).inc(count)

    def wrote(self, vendor: str, model: str, kind: str) -> None:
        """A vendor's label is in Kafka."""
        self._labels.labels(vendor, model, kind).inc()
