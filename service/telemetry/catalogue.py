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
    MetricSpec("credence_group_accuracy_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of accuracy; of grouping `all`, of the overall accuracy."),
    MetricSpec("credence_group_accuracy_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of accuracy."),
    MetricSpec("credence_group_accuracy_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of accuracy."),
    MetricSpec("credence_group_accuracy_below_threshold_probability", "gauge", "", _GROUP, "Posterior probability that accuracy is below alerts.min_accuracy; absent without one, and of score bins. Of `other`, the highest among those with labels enough."),
    MetricSpec("credence_group_ece_lower_ratio", "gauge", "ratio", _GROUP, "Lower end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_mean_ratio", "gauge", "ratio", _GROUP, "Posterior mean of the expected calibration error."),
    MetricSpec("credence_group_ece_upper_ratio", "gauge", "ratio", _GROUP, "Upper end of the credible interval of the expected calibration error."),
    MetricSpec("credence_group_ece_above_threshold_probability", "gauge", "", _GROUP, "Posterior probability that the expected calibration error is above alerts.max_ece; absent without one. Of `other`, the highest among those with labels enough."),
    MetricSpec("credence_group_calibration_gap_ratio", "gauge", "ratio", _GROUP, "Mean score less the posterior mean of accuracy: positive where the model is overconfident, negative where it is underconfident."),
    MetricSpec("credence_group_cost_lower", "gauge", "cost", _GROUP, "Lower end of the credible interval of the expected cost of a prediction, in the unit of costs; of predicted classes, absent without costs."),
    MetricSpec("credence_group_cost_mean", "gauge", "cost", _GROUP, "Posterior mean of the expected cost of a prediction."),
    MetricSpec("credence_group_cost_upper", "gauge", "cost", _GROUP, "Upper end of the credible interval of the expected cost of a prediction."),
    MetricSpec("credence_group_score_mean_ratio", "gauge", "ratio", _GROUP, "Mean score: what the model itself says of its accuracy."),
    MetricSpec("credence_group_traffic_share_ratio", "gauge", "ratio", _GROUP, "Share of the model's traffic, recent traffic counting more."),
    MetricSpec("credence_group_missed_traffic_ratio", "gauge", "ratio", _GROUP, "Share of the group's traffic that may be in `__other__` instead, at most; absent where none is."),
    MetricSpec("credence_group_labels", "gauge", "labels", (*_GROUP, "outcome"), "Labelled predictions in the group, whoever asked for them, by outcome: correct or incorrect."),
    MetricSpec("credence_group_effective_labels", "gauge", "labels", _GROUP, "What the group's labels are worth after weighting and forgetting."),
    MetricSpec("credence_group_own_labels_share", "gauge", "", _GROUP, "Share of what is believed of the group's accuracy that comes from its own labels; the rest comes from scores and other groups. Absent of `other`."),
    MetricSpec("credence_group_labels_to_decision", "gauge", "", _GROUP, "Labels that the group still needs, in the median of what is believed, until it has alerts.min_labels and is known with alerts.confidence on which side of alerts.min_accuracy it lies; 0 once it is known, absent without a threshold."),
    MetricSpec("credence_group_time_to_decision_seconds", "gauge", "seconds", _GROUP, "Time to that many labels, if all budgets are spent and the group goes on to get its share of the labels; absent without a budget that renews."),
    MetricSpec("credence_group_evidence_log10", "gauge", "", _GROUP_EVIDENCE, "Evidence against a group that may be looked at any time, by kind: below_threshold, declined (from its reference), miscalibrated, or changed (at some label it became less accurate than its reference, or than alerts.min_accuracy, which it reached there); decimal logarithm of the e-value. Absent where the grouping's assessments have asked for no label of the group. Of `other`, the highest."),
    MetricSpec("credence_group_evidence_confirmed", "gauge", "", _GROUP_EVIDENCE, "1 where that evidence is taken for true, else 0. Over all groups, groupings and kinds of a model, a share of credence_evidence_alpha_ratio of what is confirmed is false, on average, at the most; while nothing is wrong, that is also the probability that anything is ever confirmed. Of `other`, 1 if any is."),
    MetricSpec("credence_group_evidence_labels", "gauge", "labels", _GROUP, "Labels that evidence about the group is made from: those that the grouping's own assessments asked for."),
    MetricSpec("credence_group_evidence_reference_labels", "gauge", "labels", _GROUP, "Labels of the reference that the group is compared with."),
    MetricSpec("credence_group_accuracy_confidence_sequence_lower_ratio", "gauge", "ratio", _GROUP, "Lower bound of accuracy that holds at all times at once (a confidence sequence), but with a probability of credence_evidence_alpha_ratio."),
    MetricSpec("credence_group_accuracy_confidence_sequence_upper_ratio", "gauge", "ratio", _GROUP, "Upper bound of accuracy that holds at all times at once, likewise."),
    MetricSpec("credence_group_confirmed_change_timestamp_seconds", "gauge", "seconds", _GROUP, "When the first label after a confirmed change was requested, as it is likeliest to have begun; absent without one."),
    MetricSpec("credence_evidence_alpha_ratio", "gauge", "ratio", ("model",), "The configured evidence.alpha."),
    MetricSpec("credence_group_drift_distance", "gauge", "", (*_GROUP, "mix"), "Jensen-Shannon distance of the group's recent traffic from the reference, as observed, noise included: of its score bins (score), its predicted classes (predicted_class), an attribute's values (attribute:<name>), or an ensemble's votes; 0 is the same, 1 is nothing in common. Absent while there is no reference, and of groups without traffic in it or of late. Of `other`, the highest."),
    MetricSpec("credence_group_drift_score", "gauge", "", _GROUP, "How far the group's recent traffic surely is from the reference: the distance less what noise could make of it, by the mix that tells most. Of `other`, the highest."),
    MetricSpec("credence_group_drifted", "gauge", "", _GROUP, "1 where that is more than drift.max_distance, else 0. Of `other`, 1 where any of its groups has drifted."),
    MetricSpec("credence_group_ks_statistic", "gauge", "", _GROUP, "Largest difference of the cumulative shares of score bins between recent traffic and the reference: the Kolmogorov-Smirnov statistic, or a little less than that of the scores themselves."),
    MetricSpec("credence_group_volume_ratio", "gauge", "ratio", _GROUP, "Predictions a second of late, over those a second in the reference; absent where the reference's time is not known."),
    MetricSpec("credence_group_expected_accuracy_ratio", "gauge", "ratio", _GROUP, "Accuracy that the group's recent scores promise without a label of it, by what the model's labels say of its score bins."),
    MetricSpec("credence_group_below_expected_probability", "gauge", "", _GROUP, "Posterior probability that the group is less accurate than its recent scores promise: high where scores mean something else than elsewhere, such as after a change of what is to be predicted."),
    MetricSpec("credence_grouping_groups_drifted", "gauge", "groups", _GROUPING, "Groups that have drifted, those in `other` included; absent while there is no reference."),
    MetricSpec("credence_drift_max_distance_ratio", "gauge", "ratio", ("model",), "The configured drift.max_distance."),
    MetricSpec("credence_drift_reference_predictions", "gauge", "predictions", ("model",), "Predictions in the reference; absent while there is none."),
    MetricSpec("credence_drift_recent_predictions", "gauge", "predictions", ("model",), "Predictions that are compared with it: those of the last drift.window_hours, or since the reference."),
    MetricSpec("credence_drift_reference_end_timestamp_seconds", "gauge", "seconds", ("model",), "When the reference ended."),
    MetricSpec("credence_group_change_point_timestamp_seconds", "gauge", "seconds", _GROUP, "When the first prediction was made after the last change of the group's accuracy, as far as labels tell: those from before count little. Absent where no change is more probable than not, and of `other`."),
    MetricSpec("credence_grouping_groups", "gauge", "groups", _GROUPING, "Groups that have had traffic."),
    MetricSpec("credence_grouping_groups_in_other", "gauge", "groups", _GROUPING, "Groups folded into `other`, as there are more than bounds.metric_groups; the worst, the most uncertain and those that alert are told one by one."),
    MetricSpec("credence_grouping_traffic_share_failing_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups that are known to be below alerts.min_accuracy, those in `other` included; absent without a threshold, and of score bins."),
    MetricSpec("credence_grouping_traffic_share_meeting_ratio", "gauge", "ratio", _GROUPING, "Share of the traffic in groups that are known to meet alerts.min_accuracy, those in `other` included; absent without a threshold, and of score bins."),
    MetricSpec("credence_alert_min_accuracy_ratio", "gauge", "ratio", ("model",), "The configured alerts.min_accuracy; absent without one."),
    MetricSpec("credence_alert_max_ece_ratio", "gauge", "ratio", ("model",), "The configured alerts.max_ece; absent without one."),
    MetricSpec("credence_alert_confidence_ratio", "gauge", "ratio", ("model",), "The configured alerts.confidence: the posterior probability from which a threshold counts as crossed."),
    MetricSpec("credence_alert_min_labels", "gauge", "labels", ("model",), "The configured alerts.min_labels: effective labels without which a threshold counts neither as crossed nor as met; twice as many for calibration."),
    MetricSpec("credence_assessment_group_extreme_probability", "gauge", "", _ASSESSMENT_GROUP, "Posterior probability that the group is among the top_m that an identification looks for. Of `other`, the highest among its groups."),
    MetricSpec("credence_assessment_group_next_probability", "gauge", "", _ASSESSMENT_GROUP, "Probability that a label of the group is asked for next, by the policy or as the group has drifted."),
    MetricSpec("credence_assessment_comparison_below_probability", "gauge", "", _PAIR, "Posterior probability that the first group is less accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_comparison_within_probability", "gauge", "", _PAIR, "Posterior probability that the two groups' accuracies differ by the region at most."),
    MetricSpec("credence_assessment_comparison_above_probability", "gauge", "", _PAIR, "Posterior probability that the first group is more accurate than the second, by more than the comparison's region."),
    MetricSpec("credence_assessment_budget_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget allows in one window."),
    MetricSpec("credence_assessment_budget_remaining_labels", "gauge", "labels", _ASSESSMENT, "Labels that the budget still allows in this window."),
    MetricSpec("credence_performance_lower_ratio", "gauge", "ratio", _MEASURE, "Lower end of the credible interval of a binary classifier's precision, recall, f1 or false_positive_rate at its threshold, or of the prevalence of the positive class, by measure."),
    MetricSpec("credence_performance_mean_ratio", "gauge", "ratio", _MEASURE, "Posterior mean of the same."),
    MetricSpec("credence_performance_upper_ratio", "gauge", "ratio", _MEASURE, "Upper end of the credible interval of the same."),
    MetricSpec("credence_performance_target_ratio", "gauge", "ratio", _MEASURE, "The assessment's configured target of a measure; absent without one."),
    MetricSpec("credence_performance_target_missed_probability", "gauge", "", _MEASURE, "Posterior probability that the measure misses its target at the classifier's threshold."),
    MetricSpec("credence_performance_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The classifier's configured threshold."),
    MetricSpec("credence_performance_best_threshold_ratio", "gauge", "ratio", _ASSESSMENT, "The threshold that meets all targets most probably."),
    MetricSpec("credence_performance_best_threshold_probability", "gauge", "", _ASSESSMENT, "Posterior probability that it meets them."),
    MetricSpec("credence_performance_labels", "gauge", "labels", _ASSESSMENT, "Labels that the performance was learned from, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_performance_misfit", "gauge", "", _ASSESSMENT, "1 where no mixture of two distributions that is known, one of each class, describes the scores, else 0; precision and recall then lean on logistic curves, which labels decide."),
    MetricSpec("credence_performance_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the facts were read that the performance was learned from."),
    MetricSpec("credence_performance_failures_total", "counter", "", ("model",), "How often this process failed to learn the performance; what was known before is shown."),
    MetricSpec("credence_ensemble_member_precision_lower_ratio", "gauge", "ratio", _MEMBER, "Lower end of the credible interval of a member's precision: how many of the items that it calls positive are. The member `ensemble` is the ensemble's own decision."),
    MetricSpec("credence_ensemble_member_precision_mean_ratio", "gauge", "ratio", _MEMBER, "Posterior mean of a member's precision."),
    MetricSpec("credence_ensemble_member_precision_upper_ratio", "gauge", "ratio", _MEMBER, "Upper end of the credible interval of a member's precision."),
    MetricSpec("credence_ensemble_member_target_missed_probability", "gauge", "", _MEMBER, "Posterior probability that a member's precision is below the assessment's target; absent without one."),
    MetricSpec("credence_ensemble_member_positive_share_ratio", "gauge", "ratio", _MEMBER, "Share of the traffic that a member calls positive."),
    MetricSpec("credence_ensemble_member_labels", "gauge", "labels", _MEMBER, "Labels of items that a member calls positive, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_ensemble_target_ratio", "gauge", "ratio", _ASSESSMENT, "The assessment's configured target of precision; absent without one."),
    MetricSpec("credence_ensemble_wanted_labels", "gauge", "labels", _ASSESSMENT, "Labels that each member is to have (member_labels), the ensemble itself included."),
    MetricSpec("credence_ensemble_labels", "gauge", "labels", _ASSESSMENT, "Labels of items that the ensemble or any member calls positive, each counted once, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_ensemble_needed_labels", "gauge", "labels", _ASSESSMENT, "Labels still to be asked for, so that each member has as many as it is to have."),
    MetricSpec("credence_ensemble_saving_ratio", "gauge", "ratio", _ASSESSMENT, "Share of the labels saved so far, compared with as many for each member, none shared; 0 before the first one."),
    MetricSpec("credence_challenge_difference_lower_ratio", "gauge", "ratio", _CHALLENGE, "Lower end of the credible interval of the challenger's accuracy less the model's. Grouping and group `all` stand for all traffic."),
    MetricSpec("credence_challenge_difference_mean_ratio", "gauge", "ratio", _CHALLENGE, "Posterior mean of the challenger's accuracy less the model's."),
    MetricSpec("credence_challenge_difference_upper_ratio", "gauge", "ratio", _CHALLENGE, "Upper end of the credible interval of the same."),
    MetricSpec("credence_challenge_better_probability", "gauge", "", _CHALLENGE, "Posterior probability that the challenger is more accurate than the model, by more than the margin."),
    MetricSpec("credence_challenge_worse_probability", "gauge", "", _CHALLENGE, "Posterior probability that it is less accurate, by more than the margin."),
    MetricSpec("credence_challenge_better_evidence", "gauge", "", _CHALLENGE, "E-value: evidence that the challenger is better by more than the margin. While it is not, this ever reaches 20 with a probability of 1/20 at the most. At most 1e300."),
    MetricSpec("credence_challenge_worse_evidence", "gauge", "", _CHALLENGE, "E-value: evidence that the challenger is worse by more than the margin, likewise."),
    MetricSpec("credence_challenge_disagreement_ratio", "gauge", "ratio", _CHALLENGE, "Share of the traffic on which challenger and model disagree."),
    MetricSpec("credence_challenge_labels", "gauge", "labels", _CHALLENGE, "Labels of disagreements, as many as they are worth after weighting and forgetting."),
    MetricSpec("credence_challenge_margin_ratio", "gauge", "ratio", _ASSESSMENT, "Difference of accuracies that does not matter (margin)."),
    MetricSpec("credence_challenge_known_ratio", "gauge", "ratio", _ASSESSMENT, "Share of the traffic whose predictions carry what the challenger says."),
    MetricSpec("credence_challenge_groups", "gauge", "groups", _ASSESSMENT, "Groups in which the two are compared; evidence about one of many must be as many times as strong."),
    MetricSpec("credence_requests_open", "gauge", "requests", _ASSESSMENT, "Label requests that wait for an answer."),
    MetricSpec("credence_requests_oldest_timestamp_seconds", "gauge", "seconds", _ASSESSMENT, "When the oldest label request that waits for an answer was first issued; absent while none waits."),
    MetricSpec("credence_requests_total", "counter", "requests", (*_ASSESSMENT, "event"), "Events in the life of label requests, of all replicas together: issued, reissued, answered, corrected, retracted, skipped, expired."),
    MetricSpec("credence_traffic_predictions_total", "counter", "predictions", ("model",), "Predictions in the traffic, of all consumers together; starts anew when cells change their meaning."),
    MetricSpec("credence_attribute_values", "gauge", "values", ("model", "attribute"), "Values of the attribute that are told apart, in any partition."),
    MetricSpec("credence_attribute_values_limit", "gauge", "values", ("model",), "Values of one attribute that a partition tells apart at most (bounds.attribute_values): those with most traffic."),
    MetricSpec("credence_attribute_other_ratio", "gauge", "ratio", ("model", "attribute"), "Share of the model's traffic whose value of the attribute is in `__other__`: too rare to be told apart, or too long."),
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
    MetricSpec("credence_requests_chosen_total", "counter", "requests", (*_ASSESSMENT, "reason"), "Label requests that this process has issued, by why their group was asked: policy, the assessment's policy named it; drift, its traffic has drifted."),
    MetricSpec("credence_predictions_consumed_total", "counter", "predictions", ("model",), "Predictions taken in by this process, repeated ones after a restart included."),
    MetricSpec("credence_prediction_times_clipped_total", "counter", "predictions", ("model", "direction"), "Predictions that claimed a time too far from their record's, and count as of another: future or past (bounds.lateness_hours)."),
    MetricSpec("credence_labels_consumed_total", "counter", "labels", ("result",), "Labels taken in by this process: applied or duplicate."),
    MetricSpec("credence_label_delay_seconds", "histogram", "seconds", ("model",), "Time from the first issue of a label request to the label that closed it."),
    MetricSpec("credence_dead_letters_total", "counter", "messages", ("topic", "reason"), "Messages sent to the dead-letter topic by this process."),
    MetricSpec("credence_consumer_paused", "gauge", "", ("topic",), "1 when the consumer is paused because too many messages are bad."),
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
