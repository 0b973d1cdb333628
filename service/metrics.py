"""All Prometheus metrics: one typed catalogue, and the instruments of the pipeline.

The catalogue is the only place with a metric's name, type, labels and meaning; `docs/metrics.md` is made
from it. Lower, mean and upper are metrics of their own, as a label would invite averaging them. No label
ever holds an item id.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service import __version__

Kind = Literal["counter", "gauge", "histogram"]
Unit = Literal[
    "",
    "ratio",
    "seconds",
    "labels",
    "records",
    "items",
    "requests",
    "predictions",
    "groups",
    "combinations",
    "messages",
    "cost",
]

_GROUP = ("model", "grouping", "group")
_GROUPING = ("model", "grouping")
_ASSESSMENT = ("model", "assessment")
_ASSESSMENT_GROUP = (*_ASSESSMENT, "group")
_PAIR = (*_ASSESSMENT, "first", "second")
_MEASURE = (*_ASSESSMENT, "measure")
_MEMBER = (*_ASSESSMENT, "member")
_PARTITION = ("topic", "partition")


@dataclass(frozen=True)
class MetricSpec:
    """One metric: full name as scraped, type, unit (none where it says nothing), labels, meaning."""

    name: str
    kind: Kind
    unit: Unit
    labels: tuple[str, ...]
    meaning: str


CATALOGUE: tuple[MetricSpec, ...] = (
    MetricSpec("credence_group_accuracy_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of accuracy; of grouping `all`, of the overall accuracy."),
    MetricSpec("credence_group_accuracy_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of accuracy."),
    MetricSpec("credence_group_accuracy_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of accuracy."),
    MetricSpec("credence_group_accuracy_below_threshold_probability_ratio", "gauge", "ratio", _GROUP, "Posterior probability that accuracy is below alerts.min_accuracy; absent without one, and of score bins. Of `other`, the highest among those with labels enough."),
    MetricSpec("credence_group_ece_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of the expected calibration error."),
    MetricSpec("credence_group_ece_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_above_threshold_probability_ratio", "gauge", "ratio", _GROUP, "Posterior probability that the expected calibration error is above alerts.max_ece; absent without one. Of `other`, the highest among those with labels enough."),
    MetricSpec("credence_group_calibration_gap_ratio", "gauge", "ratio", _GROUP, "Mean score less the posterior mean of accuracy: positive where the model is overconfident, negative where it is underconfident."),
    MetricSpec("credence_group_cost_lower", "gauge", "cost", _GROUP, "Lower end of the credible interval of the expected cost of a prediction, in the unit of costs; of predicted classes, absent without costs."),
    MetricSpec("credence_group_cost_mean", "gauge", "cost", _GROUP, "Posterior mean of the expected cost of a prediction."),
    MetricSpec("credence_group_cost_upper", "gauge", "cost", _GROUP, "Upper end of the credible interval of the expected cost of a prediction."),
    MetricSpec("credence_group_score_mean_ratio", "gauge", "ratio", _GROUP, "Mean score: what the model itself says of its accuracy."),
    MetricSpec("credence_group_traffic_share_ratio", "gauge", "ratio", _GROUP, "Share of the model's traffic, recent traffic counting more."),
    MetricSpec("credence_group_labels", "gauge", "labels", (*_GROUP, "outcome"), "Labelled predictions in the group, whoever asked for them, by outcome: correct or incorrect."),
    MetricSpec("credence_group_effective_labels", "gauge", "labels", _GROUP, "What the group's labels are worth after weighting and forgetting."),
    MetricSpec("credence_group_verdict_labels", "gauge", "labels", _GROUP, "Labels that the group still needs, in the median of what is believed, until it has alerts.min_labels and is known with alerts.confidence on which side of alerts.min_accuracy it lies; 0 once it is known, absent without a threshold."),
    MetricSpec("credence_group_verdict_seconds", "gauge", "seconds", _GROUP, "Time to that many labels, if all budgets are spent and the group goes on to get its share of the labels; absent without a budget that renews."),
    MetricSpec("credence_grouping_groups", "gauge", "groups", _GROUPING, "Groups that have had traffic."),
    MetricSpec("credence_grouping_groups_omitted", "gauge", "groups", _GROUPING, "Groups folded into `other`, as there are more than bounds.metric_groups; the worst, the most uncertain and those that alert are told one by one."),
    MetricSpec("credence_grouping_traffic_share_failing_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups that are known to be below alerts.min_accuracy, those in `other` included; absent without a threshold, and of score bins."),
    MetricSpec("credence_grouping_traffic_share_meeting_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups that are known to meet alerts.min_accuracy, those in `other` included; absent without a threshold, and of score bins."),
    MetricSpec("credence_alert_min_accuracy_ratio", "gauge", "ratio", ("model",), "The configured alerts.min_accuracy; absent without one."),
    MetricSpec("credence_alert_max_ece_ratio", "gauge", "ratio", ("model",), "The configured alerts.max_ece; absent without one."),
    MetricSpec("credence_alert_confidence_ratio", "gauge", "ratio", ("model",), "The configured alerts.confidence: the posterior probability from which a threshold counts as crossed."),
    MetricSpec("credence_alert_min_labels", "gauge", "labels", ("model",), "The configured alerts.min_labels: effective labels without which a threshold counts neither as crossed nor as met; twice as many for calibration."),
    MetricSpec("credence_assessment_group_extreme_probability_ratio", "gauge", "ratio", _ASSESSMENT_GROUP, "Posterior probability that the group is among the top_m that an identification looks for. Of `other`, the highest among its groups."),
    MetricSpec("credence_assessment_group_next_probability_ratio", "gauge", "ratio", _ASSESSMENT_GROUP, "Probability that the policy asks for a label of the group next."),
    MetricSpec("credence_assessment_comparison_below_probability_ratio", "gauge", "ratio", _PAIR, "Posterior probability that the first group is less accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_comparison_within_probability_ratio", "gauge", "ratio", _PAIR, "Posterior probability that the two groups' accuracies differ by the region at most."),
    MetricSpec("credence_assessment_comparison_above_probability_ratio", "gauge", "ratio", _PAIR, "Posterior probability that the first group is more accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_budget_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget allows in one window."),
    MetricSpec("credence_assessment_budget_remaining_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget still allows in this window."),
    MetricSpec("credence_performance_lower_ratio", "gauge", "ratio", _MEASURE, "Lower end of the credible interval of a binary classifier's precision, recall, f1 or false_positive_rate at its threshold, or of the prevalence of the positive class, by measure."),
    MetricSpec("credence_performance_mean_ratio", "gauge", "ratio", _MEASURE, "Posterior mean of the same."),
    MetricSpec("credence_performance_upper_ratio", "gauge", "ratio", _MEASURE, "Upper end of the credible interval of the same."),
    MetricSpec("credence_performance_target_ratio", "gauge", "ratio", _MEASURE, "The assessment's configured target of a measure; absent without one."),
    MetricSpec("credence_performance_target_missed_probability_ratio", "gauge", "ratio", _MEASURE, "Posterior probability that the measure misses its target at the classifier's threshold."),
    MetricSpec("credence_performance_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The classifier's configured threshold."),
    MetricSpec("credence_performance_best_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The threshold that meets all targets most probably; absent where it is to call nothing positive."),
    MetricSpec("credence_performance_best_threshold_probability_ratio", "gauge", "ratio", _ASSESSMENT, "Posterior probability that it meets them."),
    MetricSpec("credence_performance_labels", "gauge", "labels", _ASSESSMENT, "Labels that the performance was learned from, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_performance_misfit", "gauge", "", _ASSESSMENT, "1 where the scores are no mixture of two classes as far as its families go, else 0; the mixture then counts for less."),
    MetricSpec("credence_performance_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the facts were read that the performance was learned from."),
    MetricSpec("credence_performance_failures_total", "counter", "", ("model",), "How often this process failed to learn the performance; what was known before is shown."),
    MetricSpec("credence_ensemble_member_precision_lower_ratio", "gauge", "ratio", _MEMBER, "Lower end of the credible interval of a member's precision: how many of the items that it calls positive are. The member `ensemble` is the ensemble's own decision."),
    MetricSpec("credence_ensemble_member_precision_mean_ratio", "gauge", "ratio", _MEMBER, "Posterior mean of a member's precision."),
    MetricSpec("credence_ensemble_member_precision_upper_ratio", "gauge", "ratio", _MEMBER, "Upper end of the credible interval of a member's precision."),
    MetricSpec("credence_ensemble_member_target_missed_probability_ratio", "gauge", "ratio", _MEMBER, "Posterior probability that a member's precision is below the assessment's target; absent without one."),
    MetricSpec("credence_ensemble_member_positive_share_ratio", "gauge", "ratio", _MEMBER, "Share of the traffic that a member calls positive."),
    MetricSpec("credence_ensemble_member_labels", "gauge", "labels", _MEMBER, "Labels of items that a member calls positive, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_ensemble_target_ratio", "gauge", "ratio", _ASSESSMENT, "The assessment's configured target of precision; absent without one."),
    MetricSpec("credence_ensemble_wanted_labels", "gauge", "labels", _ASSESSMENT, "Labels that each member is to have (member_labels), the ensemble itself included."),
    MetricSpec("credence_ensemble_labels", "gauge", "labels", _ASSESSMENT, "Labels of items that the ensemble or any member calls positive, each counted once, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_ensemble_needed_labels", "gauge", "labels", _ASSESSMENT, "Labels still to be asked for, so that each member has as many as it is to have."),
    MetricSpec("credence_ensemble_saving_ratio", "gauge", "ratio", _ASSESSMENT, "Share of the labels saved so far, compared with as many for each member, none shared; 0 before the first one."),
    MetricSpec("credence_requests_open", "gauge", "requests", _ASSESSMENT, "Label requests that wait for an answer."),
    MetricSpec("credence_requests_oldest_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the oldest label request that waits for an answer was first issued; absent while none waits."),
    MetricSpec("credence_requests_total", "counter", "requests", (*_ASSESSMENT, "event"), "Events in the life of label requests, of all replicas together: issued, reissued, answered, corrected, retracted, skipped, expired."),
    MetricSpec("credence_traffic_predictions_total", "counter", "predictions", ("model",), "Predictions in the traffic, of all consumers together; starts anew when cells change their meaning."),
    MetricSpec("credence_attribute_combinations", "gauge", "combinations", ("model",), "Combinations of attribute values that are told apart."),
    MetricSpec("credence_attribute_combinations_limit", "gauge", "combinations", ("model",), "Combinations that fit bounds.cells; beyond it, attributes fold into `__other__`."),
    MetricSpec("credence_pool_items", "gauge", "items", ("model",), "Unlabelled items in the pool."),
    MetricSpec("credence_pool_item_age_seconds", "gauge", "seconds", ("model",), "Median age of the items in the pool, from a sample; absent while it is empty."),
    MetricSpec("credence_outbox_requests", "gauge", "requests", ("model",), "Label requests that wait to be published."),
    MetricSpec("credence_outcomes", "gauge", "labels", ("model",), "Outcomes in the beliefs."),
    MetricSpec("credence_last_label_timestamp_seconds", "gauge", "seconds", ("model",), "When the newest label was given; absent before the first."),
    MetricSpec("credence_snapshot_timestamp_seconds", "gauge", "seconds", ("model",), "When the beliefs shown here were computed."),
    MetricSpec("credence_snapshot_duration_seconds", "histogram", "seconds", (), "Time to read the facts and compute the beliefs of all models."),
    MetricSpec("credence_rounds_failed_total", "counter", "", ("part",), "Rounds given up because a part was away; the next round tries again."),
    MetricSpec("credence_leader", "gauge", "", (), "1 on the replica that asks for labels, else 0."),
    MetricSpec("credence_requests_published_total", "counter", "requests", ("model",), "Label requests sent to Kafka by this process, repeated ones included."),
    MetricSpec("credence_draws_short_total", "counter", "labels", _ASSESSMENT, "Labels that were wanted but found no item in the pool."),
    MetricSpec("credence_predictions_consumed_total", "counter", "predictions", ("model",), "Predictions taken in by this process, repeated ones after a restart included."),
    MetricSpec("credence_labels_consumed_total", "counter", "labels", ("result",), "Labels taken in by this process: applied or duplicate."),
    MetricSpec("credence_label_delay_seconds", "histogram", "seconds", ("model",), "Time from the first issue of a label request to the label that closed it."),
    MetricSpec("credence_dead_letters_total", "counter", "messages", ("topic", "reason"), "Messages sent to the dead-letter topic by this process."),
    MetricSpec("credence_consumer_flooded", "gauge", "", ("topic",), "1 when a flood of bad messages has stopped the consumer."),
    MetricSpec("credence_consumer_lag_records", "gauge", "records", _PARTITION, "Records behind the partition's end when last read; of partitions that this process owns."),
    MetricSpec("credence_consumer_lag_seconds", "gauge", "seconds", _PARTITION, "Age of the last record that was taken in, while others wait behind it; 0 while none waits."),
    MetricSpec("credence_consumer_record_timestamp_seconds", "gauge", "seconds", _PARTITION, "Time of the last record read."),
    MetricSpec("credence_consumer_backoffs_total", "counter", "", ("topic", "part"), "How often the consumer waited because a part was away."),
    MetricSpec("credence_records_lost_total", "counter", "records", ("topic",), "Records that the topic's retention deleted before they were read."),
    MetricSpec("credence_log_breaks_total", "counter", "", ("topic", "kind"), "How often a partition's log was not the one that had been read: recreated, its topic was deleted and made anew; truncated, it lost its end."),
    MetricSpec("credence_flush_duration_seconds", "histogram", "seconds", ("topic",), "Time to store what was taken in."),
    MetricSpec("credence_flushes_refused_total", "counter", "", ("topic",), "Flushes refused because another owner had moved on, or Redis had lost data; nothing is counted twice."),
    MetricSpec("credence_vendor_api_calls_total", "counter", "", ("vendor", "route", "status"), "Calls of the vendor API that this process answered, by route and class of status, such as 2xx; without a vendor where the login was refused."),
    MetricSpec("credence_vendor_api_logins_refused_total", "counter", "", (), "Calls of the vendor API without a valid token."),
    MetricSpec("credence_vendor_api_waits", "gauge", "", ("vendor",), "Calls of the vendor API of this process that wait for label requests."),
    MetricSpec("credence_vendor_claims_total", "counter", "requests", ("vendor", "model"), "Label requests that the vendor API of this process has given out, repeated ones included."),
    MetricSpec("credence_vendor_labels_total", "counter", "labels", ("vendor", "model", "kind"), "Labels that the vendor API of this process has written to Kafka, repeated ones included."),
    MetricSpec("credence_build_info", "gauge", "", ("version",), "Always 1."),
)  # fmt: skip

SPECS = {spec.name: spec for spec in CATALOGUE}
_DURATIONS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DELAYS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0)


def _counter(name: str, registry: CollectorRegistry) -> Counter:
    spec = SPECS[name]
    return Counter(name, spec.meaning, spec.labels, registry=registry)


def _gauge(name: str, registry: CollectorRegistry) -> Gauge:
    spec = SPECS[name]
    return Gauge(name, spec.meaning, spec.labels, registry=registry)


def _histogram(name: str, registry: CollectorRegistry, buckets: Sequence[float] = _DURATIONS) -> Histogram:
    spec = SPECS[name]
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
        self._labels = _counter("credence_labels_consumed_total", registry)
        self._delay = _histogram("credence_label_delay_seconds", registry, _DELAYS)
        self._dead_letters = _counter("credence_dead_letters_total", registry)
        self._flooded = _gauge("credence_consumer_flooded", registry)
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
        _gauge("credence_build_info", registry).labels(__version__).set(1)

    def takes_predictions(self, models: Iterable[str]) -> None:
        """This process reads predictions.

        What it counts of them begins at zero, here and below, and not with the first event: Prometheus sees no
        increase in a series that was not there before, and a series of one process would be away when another takes
        its place.
        """
        self._flush.labels("predictions")
        for model in models:
            self.consumed(model, 0)

    def takes_labels(self, models: Iterable[str]) -> None:
        """This process reads labels."""
        self._flush.labels("labels")
        self.labels_taken(applied=0, duplicate=0)
        for model in models:
            self._delay.labels(model)

    def may_lead(self, assessments: Mapping[str, Iterable[str]]) -> None:
        """This process asks for labels when it leads.

        Args:
            assessments: of every model.
        """
        for model, names in assessments.items():
            self.published(model, 0)
            for assessment in names:
                self.draws_short(model, assessment, 0)

    def learns_performance(self, models: Iterable[str]) -> None:
        """This process learns the performance of these models."""
        for model in models:
            self._performance_failures.labels(model)

    def consumed(self, model: str, count: int) -> None:
        """Predictions were taken in."""
        self._consumed.labels(model).inc(count)

    def labels_taken(self, *, applied: int, duplicate: int) -> None:
        """Labels were taken in."""
        self._labels.labels("applied").inc(applied)
        self._labels.labels("duplicate").inc(duplicate)

    def label_delayed(self, model: str, seconds: float) -> None:
        """A label closed its request so long after the request was first issued."""
        self._delay.labels(model).observe(seconds)

    def dead_lettered(self, topic: str, reasons: Sequence[str]) -> None:
        """Messages went to the dead-letter topic."""
        for reason, count in Tally(reasons).items():
            self._dead_letters.labels(topic, reason).inc(count)

    def consumer_flooded(self, topic: str) -> None:
        """A flood of bad messages has stopped a consumer."""
        self._flooded.labels(topic).set(1)

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
        """Records of a partition were read but cannot be taken in yet.

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
        """A partition is another process's now, which tells of it from here on."""
        for gauge in (self._lag, self._lag_time, self._record_time):
            with suppress(KeyError):  # nothing was read of it
                gauge.remove(topic, str(partition))

    def backed_off(self, topic: str, part: str) -> None:
        """A consumer waits because a part is away."""
        self._backoffs.labels(topic, part).inc()

    def records_lost(self, topic: str, count: int) -> None:
        """Records were deleted before they were read."""
        self._lost.labels(topic).inc(count)

    def log_broken(self, topic: str, kind: str) -> None:
        """A partition's log was not the one that had been read."""
        self._breaks.labels(topic, kind).inc()

    def flushed(self, topic: str, seconds: float) -> None:
        """What was taken in was stored."""
        self._flush.labels(topic).observe(seconds)

    def flush_refused(self, topic: str) -> None:
        """A flush was refused."""
        self._refused.labels(topic).inc()

    def snapshot_taken(self, seconds: float) -> None:
        """Beliefs were computed."""
        self._snapshot.observe(seconds)

    def round_failed(self, part: str) -> None:
        """A round was given up."""
        self._rounds_failed.labels(part).inc()

    def leading(self, leads: bool) -> None:
        """Whether this process asks for labels."""
        self._leader.set(1 if leads else 0)

    def performance_failed(self, model: str) -> None:
        """The performance of a model could not be learned."""
        self._performance_failures.labels(model).inc()

    def published(self, model: str, count: int) -> None:
        """Label requests were sent."""
        self._published.labels(model).inc(count)

    def draws_short(self, model: str, assessment: str, count: int) -> None:
        """Labels were wanted, but the pool had no item."""
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
