"""The metrics of models, assessments and their results, each with the function that reads it from a snapshot.

Those of groups are beside the documents of groups (`documents/group_measures.py`).
"""

from __future__ import annotations

import numpy as np

from service.monitoring.annotator_estimates import VendorEstimate
from service.monitoring.assessment_snapshot import AssessmentSnapshot, Compared
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.drift import GroupingDrift
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.error_rates import ErrorRatesSnapshot, RateSnapshot
from service.monitoring.group_index import AttributeTraffic
from service.monitoring.grouping_snapshot import GroupingSnapshot, WeakestSnapshot
from service.monitoring.label_quality import Ends, LabelQuality
from service.monitoring.snapshot import ModelSnapshot
from service.serving.metric_selection import ShownGroups
from service.serving.metrics import Metric, MetricTable, highest, total
from service.statistics.e_processes import e_values
from service.statistics.label_errors import WrongLabels

_Measured = tuple[PerformanceSnapshot, str]
"""The performance of a binary classifier, and the name of a measure."""


def _end(ends: Ends | None, which: int) -> float | None:
    return None if ends is None else ends[which]


_GROUPING = ("model", "grouping")
_ASSESSMENT = ("model", "assessment")

# fmt: off
MODEL = MetricTable[ModelSnapshot](("model",), (
    Metric("credence_alert_min_reliability_ratio", "ratio", "The configured alerts.min_reliability; absent without one.", lambda model: model.settings.alerts.min_reliability),
    Metric("credence_alert_confidence_ratio", "ratio", "The configured alerts.confidence: the posterior probability at which a threshold counts "
        "as violated.", lambda model: model.settings.alerts.confidence),
    Metric("credence_alert_min_labels", "labels", "The configured alerts.min_labels: effective labels that a group needs before a threshold"
        " counts as violated or met; twice as many for calibration.", lambda model: model.settings.alerts.min_labels),
    Metric("credence_evidence_alpha_ratio", "ratio", "The configured evidence.alpha.", lambda model: model.settings.evidence.alpha, off_dashboards="`confirmed` already depends on it"),
    Metric("credence_drift_max_distance_ratio", "ratio", "The configured drift.max_distance.", lambda model: model.settings.drift.max_distance),
    Metric("credence_drift_reference_predictions", "predictions", "Predictions in the reference; absent while there is none.", lambda model: model.drift.reference_predictions if model.drift else None),
    Metric("credence_drift_recent_predictions", "predictions", "Predictions that are compared with the reference: those of the last drift.window_hours, or since the reference.", lambda model: model.drift.recent_predictions if model.drift else None),
    Metric("credence_drift_reference_end_timestamp_seconds", "seconds", "When the reference ended.", lambda model: model.drift.reference_until if model.drift else None),
    Metric("credence_attribute_values_limit", "values", "Maximum number of values of one attribute with groups of their own, per partition "
        "(bounds.attribute_values).", lambda model: max((one.limit for one in model.attributes.values()), default=None), off_dashboards="the traffic in `__other__` is what matters"),
    Metric("credence_traffic_predictions_total", "predictions", "Predictions counted by all consumers; restarts at 0 with a new layout.", lambda model: model.predictions),
    Metric("credence_pool_items", "items", "Unlabelled items in the pool.", lambda model: model.pool_items),
    Metric("credence_pool_item_age_seconds", "seconds", "Median age of the items in the pool, from a sample; absent while it is empty.", lambda model: model.pool_item_age),
    Metric("credence_outbox_requests", "requests", "Label requests that are not published yet.", lambda model: model.outbox_size),
    Metric("credence_outcomes", "labels", "Outcomes in the estimates.", lambda model: model.outcomes, off_dashboards="labels by outcome show the same for every group"),
    Metric("credence_model_unanswered_ratio", "ratio", "Share of the ended label requests, of those whose outcomes are kept, that were skipped or have expired; absent with fewer than 20.", lambda model: model.unanswered.share if model.unanswered.has_shares else None),
    Metric("credence_model_worst_case_ratio", "ratio", "Share of them whose items estimates allow to have any true class, because the reason why there is no label may depend on the item (`unanswered`); by so much accuracy intervals are wider. Absent with fewer than 20.", lambda model: model.unanswered.worst_case_share if model.unanswered.has_shares else None),
    Metric("credence_model_selection_bias_lower_ratio", "ratio", "Lower end of the credible interval of the accuracy of items with an unrequested label minus that of all traffic. Absent unless `unrequested_labels.items` is `unknown`, and some items have no label.", lambda model: float(model.selection_bias.lower) if model.selection_bias else None),
    Metric("credence_model_selection_bias_mean_ratio", "ratio", "Posterior mean of the same.", lambda model: float(model.selection_bias.mean) if model.selection_bias else None),
    Metric("credence_model_selection_bias_upper_ratio", "ratio", "Upper end of the credible interval of the same.", lambda model: float(model.selection_bias.upper) if model.selection_bias else None),
    Metric("credence_unrequested_waiting_items", "items", "Predictions that wait for unrequested labels. Absent without `unrequested_labels`, as all of these.", lambda model: model.waiting.joins.items if model.waiting else None),
    Metric("credence_unrequested_sample_ratio", "ratio", "Share of the predictions that is sampled to wait for unrequested labels: 1 unless there are more than bounds.join_items.", lambda model: model.waiting.joins.share if model.waiting else None),
    Metric("credence_unrequested_oldest_cohort_timestamp_seconds", "seconds", "When the hour of the oldest predictions that wait for unrequested labels began; absent without any.", lambda model: model.waiting.joins.oldest if model.waiting else None),
    Metric("credence_unrequested_dropped_cohorts", "", "Hours of predictions that were dropped, because more than 1.5 times bounds.join_items waited for unrequested labels.", lambda model: model.waiting.joins.dropped if model.waiting else None),
    Metric("credence_last_label_timestamp_seconds", "seconds", "When the newest label was given; absent before the first.", lambda model: model.last_label_at),
    Metric("credence_snapshot_timestamp_seconds", "seconds", "When the current estimates were computed.", lambda model: model.taken_at),
))
UNREQUESTED_DELAY = MetricTable[float](("model", "quantile"), (
    Metric("credence_unrequested_label_delay_seconds", "seconds", "Quantile of the time from a prediction to its unrequested label, of the newest outcomes; absent before the first."),
))
LABEL_AGREEMENT = MetricTable[LabelQuality](("model",), (
    Metric("credence_label_agreement_lower_ratio", "ratio", "Lower end of the interval of the probability that two people give an item the same label, over all items of the model. Absent where labels are the truth, or too few items have several.", lambda quality: _end(quality.agreement, 0)),
    Metric("credence_label_agreement_mean_ratio", "ratio", "Weighted estimate of the same.", lambda quality: _end(quality.agreement, 1)),
    Metric("credence_label_agreement_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda quality: _end(quality.agreement, 2)),
    Metric("credence_label_alpha_lower", "", "Lower end of the interval of Krippendorff's alpha of the labels: 1 if all agree, 0 if as often as by chance. Absent likewise, and if all labels are one class.", lambda quality: _end(quality.alpha, 0)),
    Metric("credence_label_alpha_mean", "", "Weighted estimate of the same.", lambda quality: _end(quality.alpha, 1)),
    Metric("credence_label_alpha_upper", "", "Upper end of the interval of the same.", lambda quality: _end(quality.alpha, 2)),
))
LABEL_ERRORS = MetricTable[WrongLabels](("model",), (
    Metric("credence_label_error_bound_correct_ratio", "ratio", "Upper bound of the share of wrong first labels about correct predictions, learned from gold items and valid at every moment; evidence allows for it. Absent unless labels_per_item.max_error is `learned`, and if it may be above 30%.", lambda wrong: wrong.most_of_correct),
    Metric("credence_label_error_bound_incorrect_ratio", "ratio", "The same about incorrect predictions.", lambda wrong: wrong.most_of_incorrect),
))
VENDOR = MetricTable[VendorEstimate](("model", "vendor"), (
    Metric("credence_vendor_reliability_lower_ratio", "ratio", "Lower end of the credible interval of the share of the model's items about which a label of the vendor is right. Without vendors, all people are one with an empty name. Absent where labels are the truth.", lambda vendor: vendor.lower),
    Metric("credence_vendor_reliability_mean_ratio", "ratio", "Posterior mean of the same.", lambda vendor: vendor.mean),
    Metric("credence_vendor_reliability_upper_ratio", "ratio", "Upper end of the credible interval of the same.", lambda vendor: vendor.upper),
    Metric("credence_vendor_reliability_below_threshold_probability", "", "Posterior probability that the vendor's reliability is below alerts.min_reliability; absent without one.", lambda vendor: vendor.below),
    Metric("credence_vendor_reliability_labels", "labels", "Labels of the vendor that its reliability comes from.", lambda vendor: vendor.labels),
    Metric("credence_vendor_agreement_lower_ratio", "ratio", "Lower end of the interval of the probability that somebody else gives an item the same label as the vendor; absent without shared items.", lambda vendor: _end(vendor.quality.agreement, 0)),
    Metric("credence_vendor_agreement_mean_ratio", "ratio", "Weighted estimate of the same.", lambda vendor: _end(vendor.quality.agreement, 1)),
    Metric("credence_vendor_agreement_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda vendor: _end(vendor.quality.agreement, 2)),
    Metric("credence_vendor_answer_seconds", "seconds", "Median time from the first issue of a request to the vendor's label. It includes the time until somebody takes the request, and further attempts.", lambda vendor: vendor.quality.answer_seconds),
    Metric("credence_vendor_gold_labels", "labels", "First labels of the vendor about gold items, whose true classes are known.", lambda vendor: vendor.quality.gold_labels),
    Metric("credence_vendor_gold_wrong_lower_ratio", "ratio", "Lower end of the interval of the share of these labels that are wrong; absent without any.", lambda vendor: _end(vendor.quality.gold_wrong, 0)),
    Metric("credence_vendor_gold_wrong_mean_ratio", "ratio", "Share of these labels that are wrong.", lambda vendor: _end(vendor.quality.gold_wrong, 1)),
    Metric("credence_vendor_gold_wrong_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda vendor: _end(vendor.quality.gold_wrong, 2)),
    Metric("credence_vendor_annotators", "", "People of the vendor who gave labels.", lambda vendor: vendor.people),
    Metric("credence_vendor_annotators_below_threshold", "", "People of the vendor with alerts.min_labels labels who are below alerts.min_reliability with a probability of at least alerts.confidence; absent without a threshold.", lambda vendor: vendor.unreliable),
))
PROBLEMS = MetricTable[int](("model", "severity"), (
    Metric("credence_model_problems", "problems", "Problems of the model by severity (critical, warning, info), as on the status page: "
        "conditions of all alerts about the model, without their `for` duration.", lambda count: count, off_dashboards="dashboards show what they are about"),
))
ATTRIBUTE = MetricTable[AttributeTraffic](("model", "attribute"), (
    Metric("credence_attribute_values", "values", "Distinct values of the attribute, in all partitions.", lambda attribute: attribute.values, off_dashboards="the traffic in `__other__` is what matters"),
    Metric("credence_attribute_other_ratio", "ratio", "Share of the model's traffic whose value of the attribute is folded into `__other__`: too rare, or too long.", lambda attribute: attribute.other_share),
))
GROUPING = MetricTable[GroupingSnapshot](_GROUPING, (
    Metric("credence_grouping_groups", "groups", "Groups with traffic.", lambda grouping: len(grouping.groups), off_dashboards="the groups folded into `other` are what matters"),
    Metric("credence_grouping_traffic_share_failing_ratio", "ratio", "Share of the traffic in groups that fail their threshold of accuracy, including those in "
        "`other`; absent without a threshold, and for score bins.", lambda grouping: None if grouping.accuracy_below is None else grouping.share_failing),
    Metric("credence_grouping_traffic_share_meeting_ratio", "ratio", "Share of the traffic in groups that meet their threshold of accuracy, including those in "
        "`other`; absent without a threshold, and for score bins.", lambda grouping: None if grouping.accuracy_below is None else grouping.share_meeting),
    Metric("credence_grouping_certificate_needed_labels", "labels", "Labels that all groups of the certificate together lack, on average, until each is shown to meet its threshold of accuracy (the certificate), valid at every moment; 0 once it is given. "
        "Absent without a threshold or labels, and while a group is not expected to meet it, or cannot be shown to.", lambda grouping: None if (left := grouping.certificate_labels) is None else left[grouping.in_certificate].sum(), off_dashboards="the status page and `credence gate` say which groups lack them"),
))
WEAKEST = MetricTable[WeakestSnapshot](_GROUPING, (
    Metric("credence_grouping_weakest_accuracy_lower_ratio", "ratio", "Lower end of the credible interval of the accuracy of the weakest group, whichever it is; absent for a single group and for score bins.", lambda weakest: weakest.lower),
    Metric("credence_grouping_weakest_accuracy_upper_ratio", "ratio", "Upper end of the credible interval of the same.", lambda weakest: weakest.upper),
    Metric("credence_grouping_weakest_below_threshold_probability", "", "Lower bound of the posterior probability that a group is below its threshold of accuracy, of groups with alerts.min_labels; it accounts for the number of groups. Absent without a threshold or such groups.", lambda weakest: weakest.below, off_dashboards="for an alert; dashboards show the interval"),
))
SHOWN = MetricTable[ShownGroups](_GROUPING, (
    Metric("credence_grouping_groups_in_other", "groups", "Groups folded into `other` because there are more than bounds.metric_groups; the worst, the most uncertain and alerting groups are exported.", lambda shown: 0 if shown.other is None else len(shown.other.members)),
))
DRIFTED = MetricTable[GroupingDrift](_GROUPING, (
    Metric("credence_grouping_groups_drifted", "groups", "Groups that have drifted, including those in `other`; absent while there is no reference.", lambda drift: int(drift.drifted.sum())),
    Metric("credence_grouping_groups_drift_held", "groups", "Drifted groups by an earlier verdict, which holds because their recent traffic is too little for another one.", lambda drift: len(drift.held), off_dashboards="the recent predictions of each group show why"),
    Metric("credence_grouping_groups_without_recent_traffic", "groups", "Groups in the reference without recent traffic, including those in `other`; absent while there is no reference.", lambda drift: int(((drift.reference.sum(axis=1) > 0) & ~drift.has_recent).sum()), off_dashboards="the recent predictions of each group show it"),
))
ASSESSMENT = MetricTable[AssessmentSnapshot](_ASSESSMENT, (
    Metric("credence_assessment_budget_labels", "labels", "Labels that the budget allows in one period.", lambda state: state.settings.budget.labels),
    Metric("credence_assessment_budget_remaining_labels", "labels", "Labels left in the budget in this period. At 0 it is exhausted, and no labels are "
        "requested until it renews.", lambda state: state.budget.remaining),
    Metric("credence_assessment_budget_exhausted", "", "1 if no label is left, the reserve included, although the budget does not renew, or only after the "
        "mean time of one label; else 0.", lambda state: state.budget.is_exhausted, off_dashboards="credence_assessment_budget_remaining_labels shows how many are left"),
    Metric("credence_assessment_budget_available_labels", "labels", "Labels that may be requested now, for any group: a budget that renews is spread over its period.", lambda state: state.budget.available),
    Metric("credence_assessment_budget_reserve_labels", "labels", "Labels left in this period that only suspected groups may get.", lambda state: state.budget.reserve),
    Metric("credence_requests_open", "requests", "Label requests that wait for an answer.", lambda state: state.open_requests),
    Metric("credence_requests_oldest_timestamp_seconds", "seconds", "When the oldest label request that waits for an answer was first issued, gold items left out; absent while none waits.", lambda state: state.oldest_request_at),
))
EVENTS = MetricTable[int]((*_ASSESSMENT, "event"), (
    Metric("credence_requests_total", "requests", "Events of label requests, in all replicas together: issued, reissued, answered, corrected, retracted, skipped, expired. Without those of gold items.", lambda count: count),
))
ASSESSED_GROUPS = MetricTable[AssessmentSnapshot]((*_ASSESSMENT, "group"), (
    Metric("credence_assessment_group_extreme_probability", "", "Posterior probability that the group is among the top_m of an identification. For `other`, the highest among its groups.", lambda state: state.extreme, other=highest),
    Metric("credence_assessment_group_next_probability", "", "Probability that the next label request goes to the group, chosen by the policy or because the group is suspected.", lambda state: state.next, other=total),
))
COMPARED = MetricTable[Compared]((*_ASSESSMENT, "first", "second"), (
    Metric("credence_assessment_comparison_below_probability", "", "Posterior probability that the first group is less accurate than the second, by more than the comparison's region.", lambda compared: compared.below),
    Metric("credence_assessment_comparison_within_probability", "", "Posterior probability that the two groups' accuracies differ by at most the region.", lambda compared: compared.within),
    Metric("credence_assessment_comparison_above_probability", "", "Posterior probability that the first group is more accurate than the second, by more than the comparison's region.", lambda compared: compared.above),
))
PERFORMANCE = MetricTable[PerformanceSnapshot](_ASSESSMENT, (
    Metric("credence_performance_threshold_ratio", "ratio", "The classifier's configured threshold.", lambda there: there.threshold),
    Metric("credence_performance_best_threshold_ratio", "ratio", "The threshold with the highest probability of meeting all targets.", lambda there: there.thresholds.thresholds[there.thresholds.best]),
    Metric("credence_performance_best_threshold_probability", "", "Posterior probability that the best threshold meets all targets.", lambda there: there.thresholds.probability[there.thresholds.best]),
    Metric("credence_performance_labels", "labels", "Effective number of labels behind the performance, after weighting and forgetting.", lambda there: there.effective_labels),
    Metric("credence_performance_misfit", "", "1 if no mixture of two distributions, one per class, fits the scores, else 0; precision "
        "and recall then come from logistic curves fitted to labels.", lambda there: there.misfit),
    Metric("credence_performance_design_disagrees", "", "1 if labels contradict the score model, else 0; then the estimates at the threshold come from labels and their inclusion probabilities alone.", lambda there: there.design.disagrees, off_dashboards="the status page says so, and what to do"),
    Metric("credence_performance_timestamp_seconds", "seconds", "When the data for the estimate of performance was read.", lambda there: there.taken_at),
))
MEASURE = MetricTable[_Measured]((*_ASSESSMENT, "measure"), (
    Metric("credence_performance_lower_ratio", "ratio", "Lower end of the credible interval of a binary classifier's precision, recall, f1 or false_positive_rate at its threshold, or of the prevalence of the positive class, by measure.", lambda of: of[0].measures[of[1]].lower.item()),
    Metric("credence_performance_median_ratio", "ratio", "Posterior median of the measure.", lambda of: of[0].measures[of[1]].median.item()),
    Metric("credence_performance_upper_ratio", "ratio", "Upper end of the credible interval of the same.", lambda of: of[0].measures[of[1]].upper.item()),
    Metric("credence_performance_target_ratio", "ratio", "The assessment's configured target of a measure; absent without one.", lambda of: of[0].targets.get(of[1])),
    Metric("credence_performance_target_missed_probability", "", "Posterior probability that the measure misses its target at the classifier's threshold.", lambda of: of[0].missed.get(of[1])),
))
ENSEMBLE = MetricTable[EnsembleSnapshot](_ASSESSMENT, (
    Metric("credence_ensemble_target_ratio", "ratio", "The assessment's configured target of precision; absent without one.", lambda ensemble: ensemble.target),
    Metric("credence_ensemble_wanted_labels", "labels", "Target number of labels for each member and for the ensemble (member_labels).", lambda ensemble: ensemble.wanted),
    Metric("credence_ensemble_labels", "labels", "Effective number of labels of items that the ensemble or any member predicts as positive, each counted once, after weighting and forgetting.", lambda ensemble: ensemble.asked),
    Metric("credence_ensemble_needed_labels", "labels", "Labels still to be requested until each member has its target number.", lambda ensemble: ensemble.plan.sum()),
    Metric("credence_ensemble_saving_ratio", "ratio", "Share of labels saved so far, compared with the same number for each member without sharing; 0 before the first label.", lambda ensemble: ensemble.saving),
))
MEMBERS = MetricTable[EnsembleSnapshot]((*_ASSESSMENT, "member"), (
    Metric("credence_ensemble_member_precision_lower_ratio", "ratio", "Lower end of the credible interval of a member's precision: share of its positive predictions that are correct. The member `ensemble` is the ensemble's own decision.", lambda ensemble: ensemble.beliefs.lower),
    Metric("credence_ensemble_member_precision_mean_ratio", "ratio", "Posterior mean of a member's precision.", lambda ensemble: ensemble.beliefs.mean),
    Metric("credence_ensemble_member_precision_upper_ratio", "ratio", "Upper end of the credible interval of a member's precision.", lambda ensemble: ensemble.beliefs.upper),
    Metric("credence_ensemble_member_target_missed_probability", "", "Posterior probability that a member's precision is below the assessment's target; absent without one.", lambda ensemble: ensemble.missed),
    Metric("credence_ensemble_member_positive_share_ratio", "ratio", "Share of the traffic that a member predicts as positive.", lambda ensemble: ensemble.shares),
    Metric("credence_ensemble_member_labels", "labels", "Effective number of labels of items that a member predicts as positive, after weighting and forgetting.", lambda ensemble: ensemble.labels),
))
CHALLENGE = MetricTable[ChallengeSnapshot](_ASSESSMENT, (
    Metric("credence_challenge_margin_ratio", "ratio", "The configured margin: a smaller difference in accuracy counts as none.", lambda challenge: challenge.margin),
    Metric("credence_challenge_known_ratio", "ratio", "Share of the traffic with a prediction of the challenger.", lambda challenge: challenge.known),
    Metric("credence_challenge_groups", "groups", "Groups in which the two are compared; the e-value limit for one group is multiplied by "
        "their number.", lambda challenge: max(1, len(challenge.groups) - 1)),
))
CHALLENGED_GROUPS = MetricTable[ChallengeSnapshot]((*_ASSESSMENT, "grouping", "group"), (
    Metric("credence_challenge_difference_lower_ratio", "ratio", "Lower end of the credible interval of the challenger's accuracy minus the model's. "
        "Grouping and group `all` are all traffic.", lambda challenge: challenge.difference.lower),
    Metric("credence_challenge_difference_mean_ratio", "ratio", "Posterior mean of the challenger's accuracy minus the model's.", lambda challenge: challenge.difference.mean),
    Metric("credence_challenge_difference_upper_ratio", "ratio", "Upper end of the credible interval of the same.", lambda challenge: challenge.difference.upper),
    Metric("credence_challenge_better_probability", "", "Posterior probability that the challenger is more accurate than the model, by more than the margin.", lambda challenge: challenge.better),
    Metric("credence_challenge_worse_probability", "", "Posterior probability that the challenger is less accurate than the model, by more than "
        "the margin.", lambda challenge: challenge.worse),
    Metric("credence_challenge_better_evidence", "", "E-value: evidence that the challenger is better by more than the margin. If it is not, this ever reaches 20 with a probability of at most 1/20. At most 1e300.", lambda challenge: challenge.evidence_better),
    Metric("credence_challenge_worse_evidence", "", "E-value: evidence that the challenger is worse by more than the margin. If it is not, "
        "this ever reaches 20 with a probability of at most 1/20. At most 1e300.", lambda challenge: challenge.evidence_worse),
    Metric("credence_challenge_disagreement_ratio", "ratio", "Share of the traffic on which challenger and model disagree.", lambda challenge: challenge.disagreement),
    Metric("credence_challenge_labels", "labels", "Effective number of labels of disagreements, after weighting and forgetting.", lambda challenge: challenge.labels),
))
RATE_GROUPS = MetricTable[RateSnapshot]((*_ASSESSMENT, "grouping", "group", "rate"), (
    Metric("credence_error_rate_lower_ratio", "ratio", "Lower end of the interval of an error rate of the group, for the assessment's positive class; the intervals of all groups hold at once. Rates: false_positive_rate, false_negative_rate, true_positive_rate, precision, selection_rate.", lambda rate: rate.estimate.lower),
    Metric("credence_error_rate_mean_ratio", "ratio", "Posterior mean of the rate; absent if it counts no item.", lambda rate: rate.estimate.mean),
    Metric("credence_error_rate_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda rate: rate.estimate.upper),
    Metric("credence_error_rate_limit_ratio", "ratio", "The configured limit of the rate in the group: the minimum of true_positive_rate and precision, the maximum of other rates. Absent without one.", lambda rate: rate.limits),
    Metric("credence_error_rate_violated", "", "1 if the whole interval of the group's rate is beyond the configured limit, from at least alerts.min_labels effective labels, or evidence confirms that it is; else 0. Absent without a limit.", lambda rate: np.where(np.isnan(rate.limits), np.nan, rate.violated)),
    Metric("credence_error_rate_violated_evidence", "", "E-value: evidence that the group's rate is beyond its limit, from labels that were requested for the grouping. If it is not, this ever reaches 20 with a probability of at most 1/20. At most 1e300. Absent without a limit, and where labels may be wrong.", lambda rate: None if rate.proof is None else e_values(rate.proof.log_e), off_dashboards="the status page says what is confirmed"),
))
RATES = MetricTable[RateSnapshot]((*_ASSESSMENT, "grouping", "rate"), (
    Metric("credence_error_rate_max_difference_ratio", "ratio", "The configured maximum difference between any two groups; absent without one.", lambda rate: rate.max_difference),
    Metric("credence_error_rate_min_quotient_ratio", "ratio", "The configured minimum of the lowest rate over the highest; absent without one.", lambda rate: rate.min_ratio),
    Metric("credence_error_rate_difference_lower_ratio", "ratio", "Lower end of the interval of the highest rate of any group minus the lowest. Absent with fewer than two groups.", lambda rate: _end(rate.difference, 0)),
    Metric("credence_error_rate_difference_mean_ratio", "ratio", "Estimate of the same.", lambda rate: _end(rate.difference, 1)),
    Metric("credence_error_rate_difference_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda rate: _end(rate.difference, 2)),
    Metric("credence_error_rate_quotient_lower_ratio", "ratio", "Lower end of the interval of the lowest rate of any group over the highest. Absent with fewer than two groups.", lambda rate: _end(rate.ratio, 0)),
    Metric("credence_error_rate_quotient_mean_ratio", "ratio", "Estimate of the same.", lambda rate: _end(rate.ratio, 1)),
    Metric("credence_error_rate_quotient_upper_ratio", "ratio", "Upper end of the interval of the same.", lambda rate: _end(rate.ratio, 2)),
    Metric("credence_error_rate_difference_violated", "", "1 if the whole interval of the difference of groups with alerts.min_labels effective labels is above the configured maximum, else 0; absent without one.", lambda rate: None if rate.max_difference is None else rate.differs_too_much),
    Metric("credence_error_rate_quotient_violated", "", "1 if the whole interval of the quotient of such groups is below the configured minimum, else 0; absent without one.", lambda rate: None if rate.min_ratio is None else rate.ratio_too_low),
    Metric("credence_error_rate_difference_evidence", "", "E-value: evidence that two groups differ by more than the configured maximum. Absent without one, where labels may be wrong, and with more than 50 groups.", lambda rate: None if rate.proof is None else e_values(rate.proof.log_e_difference), off_dashboards="the status page says what is confirmed"),
    Metric("credence_error_rate_quotient_evidence", "", "E-value: evidence that the ratio of two groups is below the configured minimum. Absent likewise.", lambda rate: None if rate.proof is None else e_values(rate.proof.log_e_ratio), off_dashboards="the status page says what is confirmed"),
))
RATE_LABELS = MetricTable[ErrorRatesSnapshot]((*_ASSESSMENT, "grouping", "group"), (
    Metric("credence_error_rate_labels", "labels", "Effective number of labels behind the group's error rates, after weighting and forgetting.", lambda rates: rates.labels),
))
# fmt: on
