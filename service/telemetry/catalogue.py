"""The metrics that a process counts itself; those of snapshots are in `service/serving`.

An entry is the only place with a metric's name, type, labels and meaning; `docs/metrics.md` is made from all
entries. No label ever holds an item id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    "problems",
    "values",
    "messages",
    "cost",
]

_ASSESSMENT = ("model", "assessment")
_PARTITION = ("topic", "partition")


@dataclass(frozen=True)
class MetricSpec:
    """One metric: full name as scraped, type, unit (none where it says nothing), labels, meaning.

    Attributes:
        off_dashboards: why no dashboard shows it; empty where one does.
    """

    name: str
    kind: Kind
    unit: Unit
    labels: tuple[str, ...]
    meaning: str
    off_dashboards: str = ""


PROCESS_METRICS: tuple[MetricSpec, ...] = (
    MetricSpec("credence_performance_failures_total", "counter", "", ("model",), "Failures of this process to estimate the performance; the previous estimate is shown."),
    MetricSpec("credence_snapshot_duration_seconds", "histogram", "seconds", (), "Time to read the data and compute the estimates of all models."),
    MetricSpec("credence_rounds_failed_total", "counter", "", ("part",), "Rounds that failed because Kafka or Redis (part) was unavailable; the next round "
        "retries."),
    MetricSpec("credence_leader", "gauge", "", (), "1 on the replica that requests labels, else 0."),
    MetricSpec("credence_redis_reset", "gauge", "", (), "1 on replicas that compute estimates, while Redis has lost data that Credence had stored and no operator has acknowledged it; else 0.", "the alert and credence status say what was lost"),
    MetricSpec("credence_topic_unread", "gauge", "", ("topic",), "1 on replicas that compute estimates, while no consumer reads some or all partitions of the topic (predictions or labels); else 0.", "the alert and credence status say what is not read"),
    MetricSpec("credence_requests_published_total", "counter", "requests", ("model",), "Label requests sent to Kafka by this process, including repeated ones."),
    MetricSpec("credence_draws_short_total", "counter", "labels", _ASSESSMENT, "Labels that could not be requested because the pool had no item."),
    MetricSpec("credence_requests_chosen_total", "counter", "requests", (*_ASSESSMENT, "reason"), "Label requests that this process has issued, by reason: policy, the assessment's policy chose the group; drift, the group has drifted; reference, the group's reference for declines is not complete; gold, the item is a gold item."),
    MetricSpec("credence_predictions_consumed_total", "counter", "predictions", ("model",), "Predictions ingested by this process, including repeated ones after a restart."),
    MetricSpec("credence_prediction_times_clipped_total", "counter", "predictions", ("model", "direction"), "Predictions whose time was too far from that of their record, and was set to the limit, "
        "by direction: future or past (bounds.lateness_hours)."),
    MetricSpec("credence_labels_consumed_total", "counter", "labels", ("result",), "Labels processed by this process: applied or duplicate."),
    MetricSpec("credence_unrequested_labels_total", "counter", "labels", ("model", "result"), "Labels without a request, by result: joined, early (kept until its prediction comes), revised (after the close of its cohort), "
        "unchanged, not_sampled, no_prediction, too_late or dropped."),
    MetricSpec("credence_label_delay_seconds", "histogram", "seconds", ("model",), "Time from the first issue of a label request to the label that closed it."),
    MetricSpec("credence_dead_letters_total", "counter", "messages", ("topic", "reason"), "Messages sent to the dead-letter topic by this process."),
    MetricSpec("credence_consumer_paused", "gauge", "", ("topic",), "1 if the consumer is paused because too many messages are bad."),
    MetricSpec("credence_consumer_lag_records", "gauge", "records", _PARTITION, "Consumer lag when last read, for partitions that this process owns."),
    MetricSpec("credence_consumer_lag_seconds", "gauge", "seconds", _PARTITION, "Age of the last processed record while others wait; 0 while none waits."),
    MetricSpec("credence_consumer_record_timestamp_seconds", "gauge", "seconds", _PARTITION, "Time of the last record read.", "credence_consumer_lag_seconds shows it better"),
    MetricSpec("credence_consumer_backoffs_total", "counter", "", ("topic", "part"), "Backoffs of the consumer because Kafka, Redis or the schema registry (part) was unavailable."),
    MetricSpec("credence_records_lost_total", "counter", "records", ("topic",), "Records that the topic's retention deleted before they were read."),
    MetricSpec("credence_log_breaks_total", "counter", "", ("topic", "kind"), "Partitions whose log was not the one read before, by kind: recreated, the topic was deleted and created again; truncated, the log lost its end."),
    MetricSpec("credence_flush_duration_seconds", "histogram", "seconds", ("topic",), "Time to write a batch to Redis."),
    MetricSpec("credence_flushes_refused_total", "counter", "", ("topic",), "Flushes refused because another consumer owned the partition, or Redis had lost data; nothing is counted twice."),
    MetricSpec("credence_vendor_api_calls_total", "counter", "", ("vendor", "route", "status"), "Calls of the vendor API, and of senders of predictions (whose name is then the vendor), that this process answered, by route and class of status, such as 2xx; without a vendor if the login was refused."),
    MetricSpec("credence_vendor_api_logins_refused_total", "counter", "", (), "Calls of the vendor API without a valid token."),
    MetricSpec("credence_vendor_api_waits", "gauge", "", ("vendor",), "Calls of the vendor API of this process that wait for label requests."),
    MetricSpec("credence_vendor_claims_total", "counter", "requests", ("vendor", "model"), "Label requests claimed through the vendor API of this process, including repeated ones."),
    MetricSpec("credence_vendor_labels_total", "counter", "labels", ("vendor", "model", "kind"), "Labels that the vendor API of this process has written to Kafka, including repeated ones."),
    MetricSpec("credence_build_info", "gauge", "", ("version",), "Always 1."),
)  # fmt: skip
