"""All Prometheus metrics: one typed catalogue.

The catalogue is the only place with a metric's name, type, labels and meaning; `docs/metrics.md` is made
from it. Lower, mean and upper are metrics of their own, as a label would invite averaging them. No label
ever holds an item id.
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
    "values",
    "messages",
    "cost",
]

_GROUP = ("model", "grouping", "group")
_GROUPING = ("model", "grouping")
_GROUP_EVIDENCE = (*_GROUP, "kind")
_ASSESSMENT = ("model", "assessment")
_ASSESSMENT_GROUP = (*_ASSESSMENT, "group")
_PAIR = (*_ASSESSMENT, "first", "second")
_MEASURE = (*_ASSESSMENT, "measure")
_MEMBER = (*_ASSESSMENT, "member")
_CHALLENGE = (*_ASSESSMENT, "grouping", "group")
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
    MetricSpec("credence_group_accuracy_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of accuracy; for grouping `all`, of the overall accuracy."),
    MetricSpec("credence_group_accuracy_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of accuracy."),
    MetricSpec("credence_group_accuracy_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of accuracy."),
    MetricSpec("credence_group_accuracy_below_threshold_probability", "gauge", "", _GROUP, "Posterior probability that accuracy is below alerts.min_accuracy; absent without one, and for score bins. For `other`, the highest among groups with enough labels."),
    MetricSpec("credence_group_ece_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of the expected calibration error."),
    MetricSpec("credence_group_ece_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_above_threshold_probability", "gauge", "", _GROUP, "Posterior probability that the expected calibration error is above alerts.max_ece; absent without one. For `other`, the highest among groups with enough labels."),
    MetricSpec("credence_group_calibration_gap_ratio", "gauge", "ratio", _GROUP, "Mean score minus the posterior mean of accuracy: positive if the model is overconfident, negative if it is underconfident."),
    MetricSpec("credence_group_cost_lower", "gauge", "cost", _GROUP, "Lower end of the credible interval of the expected cost of a prediction, in the unit of costs; only for predicted classes, absent without costs."),
    MetricSpec("credence_group_cost_mean", "gauge", "cost", _GROUP, "Posterior mean of the expected cost of a prediction."),
    MetricSpec("credence_group_cost_upper", "gauge", "cost", _GROUP, "Upper end of the credible interval of the expected cost of a prediction."),
    MetricSpec("credence_group_score_mean_ratio", "gauge", "ratio", _GROUP, "Mean score: the accuracy that the model itself claims."),
    MetricSpec("credence_group_traffic_share_ratio", "gauge", "ratio", _GROUP, "Share of the model's traffic; recent traffic counts more."),
    MetricSpec("credence_group_missed_traffic_ratio", "gauge", "ratio", _GROUP, "Largest share of the group's traffic that may be in `__other__` instead; absent if none is."),
    MetricSpec("credence_group_labels", "gauge", "labels", (*_GROUP, "outcome"), "Labelled predictions in the group, requested by any assessment, by outcome: correct or incorrect."),
    MetricSpec("credence_group_effective_labels", "gauge", "labels", _GROUP, "Effective number of the group's labels, after weighting and forgetting."),
    MetricSpec("credence_group_own_labels_share", "gauge", "", _GROUP, "Share of the accuracy estimate that comes from the group's own labels; the rest comes from scores and other groups. Absent for `other`."),
    MetricSpec("credence_group_labels_to_decision", "gauge", "", _GROUP, "Labels that the group still needs, in the posterior median, until it has alerts.min_labels and is decided: above or below alerts.min_accuracy with alerts.confidence. 0 once it is decided, absent without a threshold."),
    MetricSpec("credence_group_time_to_decision_seconds", "gauge", "seconds", _GROUP, "Time until the group has these labels, if all budgets are spent and the group keeps its share of the labels; absent without a budget that renews."),
    MetricSpec("credence_group_evidence_log10", "gauge", "", _GROUP_EVIDENCE, "Anytime-valid evidence against a group: decimal logarithm of the e-value, by kind: below_threshold, declined (from its reference), miscalibrated, or changed (at some label it became less accurate than its reference, or than alerts.min_accuracy if it met that there). Absent if the grouping's assessments have requested no label of the group. For `other`, the highest."),
    MetricSpec("credence_group_evidence_confirmed", "gauge", "", _GROUP_EVIDENCE, "1 if that evidence is confirmed, else 0. Over all groups, groupings and kinds of a model the false discovery rate is at most credence_evidence_alpha_ratio, valid under continuous monitoring; while nothing is wrong, that is also the probability that anything is ever confirmed. For `other`, 1 if any group is."),
    MetricSpec("credence_group_evidence_labels", "gauge", "labels", _GROUP, "Labels behind the evidence about the group: those that the grouping's own assessments requested."),
    MetricSpec("credence_group_evidence_reference_labels", "gauge", "labels", _GROUP, "Labels of the reference that the group is compared with."),
    MetricSpec("credence_group_accuracy_confidence_sequence_lower_ratio", "gauge", "ratio", _GROUP, "Lower bound of a confidence sequence of accuracy: it holds at all times at once, except with a probability of credence_evidence_alpha_ratio."),
    MetricSpec("credence_group_accuracy_confidence_sequence_upper_ratio", "gauge", "ratio", _GROUP, "Upper bound of the same confidence sequence."),
    MetricSpec("credence_group_confirmed_change_timestamp_seconds", "gauge", "seconds", _GROUP, "When a confirmed change most likely began: the time when the first label after it was requested; absent without one."),
    MetricSpec("credence_evidence_alpha_ratio", "gauge", "ratio", ("model",), "The configured evidence.alpha."),
    MetricSpec("credence_group_drift_distance", "gauge", "", (*_GROUP, "mix"), "Jensen-Shannon distance of the group's recent traffic from the reference, noise included: of its score bins (score), its predicted classes (predicted_class), an attribute's values (attribute:<name>), or an ensemble's votes; 0 is the same, 1 is nothing in common. Absent while there is no reference, and for groups without traffic in the reference or recently. For `other`, the highest."),
    MetricSpec("credence_group_drift_score", "gauge", "", _GROUP, "Distance of the group's recent traffic from the reference beyond what noise can explain, for the mix where it is largest. For `other`, the highest."),
    MetricSpec("credence_group_drifted", "gauge", "", _GROUP, "1 if the drift score exceeds drift.max_distance, else 0. For `other`, 1 if any of its groups has drifted."),
    MetricSpec("credence_group_ks_statistic", "gauge", "", _GROUP, "Largest difference of the cumulative shares of score bins between recent traffic and the reference: the Kolmogorov-Smirnov statistic, or slightly less than that of the scores themselves."),
    MetricSpec("credence_group_volume_ratio", "gauge", "ratio", _GROUP, "Recent predictions per second, divided by those in the reference; absent if the reference's time is unknown."),
    MetricSpec("credence_group_expected_accuracy_ratio", "gauge", "ratio", _GROUP, "Accuracy expected from the group's recent scores, without labels of the group: by the accuracy of score bins in the model's labels."),
    MetricSpec("credence_group_below_expected_probability", "gauge", "", _GROUP, "Posterior probability that the group is less accurate than expected from its recent scores: high if scores mean something else here, such as after concept drift."),
    MetricSpec("credence_grouping_groups_drifted", "gauge", "groups", _GROUPING, "Groups that have drifted, including those in `other`; absent while there is no reference."),
    MetricSpec("credence_drift_max_distance_ratio", "gauge", "ratio", ("model",), "The configured drift.max_distance."),
    MetricSpec("credence_drift_reference_predictions", "gauge", "predictions", ("model",), "Predictions in the reference; absent while there is none."),
    MetricSpec("credence_drift_recent_predictions", "gauge", "predictions", ("model",), "Predictions that are compared with the reference: those of the last drift.window_hours, or since the reference."),
    MetricSpec("credence_drift_reference_end_timestamp_seconds", "gauge", "seconds", ("model",), "When the reference ended."),
    MetricSpec("credence_group_change_point_timestamp_seconds", "gauge", "seconds", _GROUP, "Time of the first prediction after the last change point of the group's accuracy, estimated from labels; labels from before it are down-weighted. Absent if a change is less probable than not, and for `other`."),
    MetricSpec("credence_grouping_groups", "gauge", "groups", _GROUPING, "Groups with traffic."),
    MetricSpec("credence_grouping_groups_in_other", "gauge", "groups", _GROUPING, "Groups folded into `other` because there are more than bounds.metric_groups; the worst, the most uncertain and alerting groups are exported."),
    MetricSpec("credence_grouping_traffic_share_failing_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups decided to be below alerts.min_accuracy, including those in `other`; absent without a threshold, and for score bins."),
    MetricSpec("credence_grouping_traffic_share_meeting_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups decided to meet alerts.min_accuracy, including those in `other`; absent without a threshold, and for score bins."),
    MetricSpec("credence_alert_min_accuracy_ratio", "gauge", "ratio", ("model",), "The configured alerts.min_accuracy; absent without one."),
    MetricSpec("credence_alert_max_ece_ratio", "gauge", "ratio", ("model",), "The configured alerts.max_ece; absent without one."),
    MetricSpec("credence_alert_confidence_ratio", "gauge", "ratio", ("model",), "The configured alerts.confidence: the posterior probability from which a threshold counts as violated."),
    MetricSpec("credence_alert_min_labels", "gauge", "labels", ("model",), "The configured alerts.min_labels: fewest effective labels with which a threshold counts as violated or met; twice as many for calibration."),
    MetricSpec("credence_assessment_group_extreme_probability", "gauge", "", _ASSESSMENT_GROUP, "Posterior probability that the group is among the top_m of an identification. For `other`, the highest among its groups."),
    MetricSpec("credence_assessment_group_next_probability", "gauge", "", _ASSESSMENT_GROUP, "Probability that the next label request goes to the group, chosen by the policy or because the group has drifted."),
    MetricSpec("credence_assessment_comparison_below_probability", "gauge", "", _PAIR, "Posterior probability that the first group is less accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_comparison_within_probability", "gauge", "", _PAIR, "Posterior probability that the two groups' accuracies differ by at most the region."),
    MetricSpec("credence_assessment_comparison_above_probability", "gauge", "", _PAIR, "Posterior probability that the first group is more accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_budget_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget allows in one window."),
    MetricSpec("credence_assessment_budget_remaining_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget still allows in this window."),
    MetricSpec("credence_performance_lower_ratio", "gauge", "ratio", _MEASURE, "Lower end of the credible interval of a binary classifier's precision, recall, f1 or false_positive_rate at its threshold, or of the prevalence of the positive class, by measure."),
    MetricSpec("credence_performance_mean_ratio", "gauge", "ratio", _MEASURE, "Posterior mean of the same."),
    MetricSpec("credence_performance_upper_ratio", "gauge", "ratio", _MEASURE, "Upper end of the credible interval of the same."),
    MetricSpec("credence_performance_target_ratio", "gauge", "ratio", _MEASURE, "The assessment's configured target of a measure; absent without one."),
    MetricSpec("credence_performance_target_missed_probability", "gauge", "", _MEASURE, "Posterior probability that the measure misses its target at the classifier's threshold."),
    MetricSpec("credence_performance_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The classifier's configured threshold."),
    MetricSpec("credence_performance_best_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The threshold that most probably meets all targets."),
    MetricSpec("credence_performance_best_threshold_probability", "gauge", "", _ASSESSMENT, "Posterior probability that it meets them."),
    MetricSpec("credence_performance_labels", "gauge", "labels", _ASSESSMENT, "Effective number of labels behind the performance, after weighting and forgetting."),
    MetricSpec("credence_performance_misfit", "gauge", "", _ASSESSMENT, "1 if no mixture of two known distributions, one per class, fits the scores, else 0; precision and recall then come from logistic curves fitted to labels."),
    MetricSpec("credence_performance_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the data behind the performance was read."),
    MetricSpec("credence_performance_failures_total", "counter", "", ("model",), "Failures of this process to estimate the performance; the previous estimate is shown."),
    MetricSpec("credence_ensemble_member_precision_lower_ratio", "gauge", "ratio", _MEMBER, "Lower end of the credible interval of a member's precision: share of its positive predictions that are correct. The member `ensemble` is the ensemble's own decision."),
    MetricSpec("credence_ensemble_member_precision_mean_ratio", "gauge", "ratio", _MEMBER, "Posterior mean of a member's precision."),
    MetricSpec("credence_ensemble_member_precision_upper_ratio", "gauge", "ratio", _MEMBER, "Upper end of the credible interval of a member's precision."),
    MetricSpec("credence_ensemble_member_target_missed_probability", "gauge", "", _MEMBER, "Posterior probability that a member's precision is below the assessment's target; absent without one."),
    MetricSpec("credence_ensemble_member_positive_share_ratio", "gauge", "ratio", _MEMBER, "Share of the traffic that a member predicts as positive."),
    MetricSpec("credence_ensemble_member_labels", "gauge", "labels", _MEMBER, "Effective number of labels of items that a member predicts as positive, after weighting and forgetting."),
    MetricSpec("credence_ensemble_target_ratio", "gauge", "ratio", _ASSESSMENT, "The assessment's configured target of precision; absent without one."),
    MetricSpec("credence_ensemble_wanted_labels", "gauge", "labels", _ASSESSMENT, "Target number of labels for each member and for the ensemble (member_labels)."),
    MetricSpec("credence_ensemble_labels", "gauge", "labels", _ASSESSMENT, "Effective number of labels of items that the ensemble or any member predicts as positive, each counted once, after weighting and forgetting."),
    MetricSpec("credence_ensemble_needed_labels", "gauge", "labels", _ASSESSMENT, "Labels still to be requested until each member has its target number."),
    MetricSpec("credence_ensemble_saving_ratio", "gauge", "ratio", _ASSESSMENT, "Share of labels saved so far, compared with the same number for each member without sharing; 0 before the first label."),
    MetricSpec("credence_challenge_difference_lower_ratio", "gauge", "ratio", _CHALLENGE, "Lower end of the credible interval of the challenger's accuracy minus the model's. Grouping and group `all` stand for all traffic."),
    MetricSpec("credence_challenge_difference_mean_ratio", "gauge", "ratio", _CHALLENGE, "Posterior mean of the challenger's accuracy minus the model's."),
    MetricSpec("credence_challenge_difference_upper_ratio", "gauge", "ratio", _CHALLENGE, "Upper end of the credible interval of the same."),
    MetricSpec("credence_challenge_better_probability", "gauge", "", _CHALLENGE, "Posterior probability that the challenger is more accurate than the model, by more than the margin."),
    MetricSpec("credence_challenge_worse_probability", "gauge", "", _CHALLENGE, "Posterior probability that it is less accurate, by more than the margin."),
    MetricSpec("credence_challenge_better_evidence", "gauge", "", _CHALLENGE, "E-value: evidence that the challenger is better by more than the margin. If it is not, this ever reaches 20 with a probability of at most 1/20. At most 1e300."),
    MetricSpec("credence_challenge_worse_evidence", "gauge", "", _CHALLENGE, "E-value: evidence that the challenger is worse by more than the margin, likewise."),
    MetricSpec("credence_challenge_disagreement_ratio", "gauge", "ratio", _CHALLENGE, "Share of the traffic on which challenger and model disagree."),
    MetricSpec("credence_challenge_labels", "gauge", "labels", _CHALLENGE, "Effective number of labels of disagreements, after weighting and forgetting."),
    MetricSpec("credence_challenge_margin_ratio", "gauge", "ratio", _ASSESSMENT, "Difference of accuracies that does not matter (margin)."),
    MetricSpec("credence_challenge_known_ratio", "gauge", "ratio", _ASSESSMENT, "Share of the traffic with a prediction of the challenger."),
    MetricSpec("credence_challenge_groups", "gauge", "groups", _ASSESSMENT, "Groups in which the two are compared; evidence about one of them must be that many times as strong."),
    MetricSpec("credence_requests_open", "gauge", "requests", _ASSESSMENT, "Label requests that wait for an answer."),
    MetricSpec("credence_requests_oldest_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the oldest label request that waits for an answer was first issued; absent while none waits."),
    MetricSpec("credence_requests_total", "counter", "requests", (*_ASSESSMENT, "event"), "Events of label requests, in all replicas together: issued, reissued, answered, corrected, retracted, skipped, expired."),
    MetricSpec("credence_traffic_predictions_total", "counter", "predictions", ("model",), "Predictions in the traffic, of all consumers together; restarts at 0 when the meaning of cells changes."),
    MetricSpec("credence_attribute_values", "gauge", "values", ("model", "attribute"), "Distinct values of the attribute, in all partitions."),
    MetricSpec("credence_attribute_values_limit", "gauge", "values", ("model",), "Most values of one attribute that a partition keeps apart (bounds.attribute_values): those with most traffic."),
    MetricSpec("credence_attribute_other_ratio", "gauge", "ratio", ("model", "attribute"), "Share of the model's traffic whose value of the attribute is folded into `__other__`: too rare, or too long."),
    MetricSpec("credence_pool_items", "gauge", "items", ("model",), "Unlabelled items in the pool."),
    MetricSpec("credence_pool_item_age_seconds", "gauge", "seconds", ("model",), "Median age of the items in the pool, from a sample; absent while it is empty."),
    MetricSpec("credence_outbox_requests", "gauge", "requests", ("model",), "Label requests that wait to be published."),
    MetricSpec("credence_outcomes", "gauge", "labels", ("model",), "Outcomes in the estimates."),
    MetricSpec("credence_last_label_timestamp_seconds", "gauge", "seconds", ("model",), "When the newest label was given; absent before the first."),
    MetricSpec("credence_snapshot_timestamp_seconds", "gauge", "seconds", ("model",), "When the current estimates were computed."),
    MetricSpec("credence_snapshot_duration_seconds", "histogram", "seconds", (), "Time to read the facts and compute the estimates of all models."),
    MetricSpec("credence_rounds_failed_total", "counter", "", ("part",), "Rounds given up because Kafka or Redis (part) was unavailable; the next round tries again."),
    MetricSpec("credence_leader", "gauge", "", (), "1 on the replica that requests labels, else 0."),
    MetricSpec("credence_requests_published_total", "counter", "requests", ("model",), "Label requests sent to Kafka by this process, including repeated ones."),
    MetricSpec("credence_draws_short_total", "counter", "labels", _ASSESSMENT, "Labels that could not be requested because the pool had no item."),
    MetricSpec("credence_requests_chosen_total", "counter", "requests", (*_ASSESSMENT, "reason"), "Label requests that this process has issued, by reason: policy, the assessment's policy chose the group; drift, the group has drifted."),
    MetricSpec("credence_predictions_consumed_total", "counter", "predictions", ("model",), "Predictions ingested by this process, including repeated ones after a restart."),
    MetricSpec("credence_prediction_times_clipped_total", "counter", "predictions", ("model", "direction"), "Predictions whose time was too far from their record's and was replaced by the bound, by direction: future or past (bounds.lateness_hours)."),
    MetricSpec("credence_labels_consumed_total", "counter", "labels", ("result",), "Labels processed by this process: applied or duplicate."),
    MetricSpec("credence_label_delay_seconds", "histogram", "seconds", ("model",), "Time from the first issue of a label request to the label that closed it."),
    MetricSpec("credence_dead_letters_total", "counter", "messages", ("topic", "reason"), "Messages sent to the dead-letter topic by this process."),
    MetricSpec("credence_consumer_paused", "gauge", "", ("topic",), "1 if the consumer is paused because too many messages are bad."),
    MetricSpec("credence_consumer_lag_records", "gauge", "records", _PARTITION, "Consumer lag when last read, for partitions that this process owns."),
    MetricSpec("credence_consumer_lag_seconds", "gauge", "seconds", _PARTITION, "Age of the last processed record while others wait; 0 while none waits."),
    MetricSpec("credence_consumer_record_timestamp_seconds", "gauge", "seconds", _PARTITION, "Time of the last record read."),
    MetricSpec("credence_consumer_backoffs_total", "counter", "", ("topic", "part"), "Backoffs of the consumer because Kafka or Redis (part) was unavailable."),
    MetricSpec("credence_records_lost_total", "counter", "records", ("topic",), "Records that the topic's retention deleted before they were read."),
    MetricSpec("credence_log_breaks_total", "counter", "", ("topic", "kind"), "Partitions whose log was not the one read before, by kind: recreated, the topic was deleted and created again; truncated, the log lost its end."),
    MetricSpec("credence_flush_duration_seconds", "histogram", "seconds", ("topic",), "Time to store a batch."),
    MetricSpec("credence_flushes_refused_total", "counter", "", ("topic",), "Flushes refused because another consumer owned the partition, or Redis had lost data; nothing is counted twice."),
    MetricSpec("credence_vendor_api_calls_total", "counter", "", ("vendor", "route", "status"), "Calls of the vendor API that this process answered, by route and class of status, such as 2xx; without a vendor if the login was refused."),
    MetricSpec("credence_vendor_api_logins_refused_total", "counter", "", (), "Calls of the vendor API without a valid token."),
    MetricSpec("credence_vendor_api_waits", "gauge", "", ("vendor",), "Calls of the vendor API of this process that wait for label requests."),
    MetricSpec("credence_vendor_claims_total", "counter", "requests", ("vendor", "model"), "Label requests claimed through the vendor API of this process, including repeated ones."),
    MetricSpec("credence_vendor_labels_total", "counter", "labels", ("vendor", "model", "kind"), "Labels that the vendor API of this process has written to Kafka, including repeated ones."),
    MetricSpec("credence_build_info", "gauge", "", ("version",), "Always 1."),
)  # fmt: skip

SPECS = {spec.name: spec for spec in CATALOGUE}
