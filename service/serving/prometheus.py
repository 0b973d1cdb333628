"""Snapshots as Prometheus samples.

Of a large grouping the prominent groups have samples of their own, and `other` stands for the rest.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.domain.groupings import ALL
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.prominence import OTHER
from service.monitoring.snapshot import ModelSnapshot
from service.serving.drift_exposition import drift_rows
from service.serving.evidence_samples import evidence_samples
from service.serving.metric_selection import OtherGroups, ShownGroups, shown_groups
from service.telemetry.catalogue import SPECS

Samples = dict[str, list[tuple[tuple[str, ...], float]]]
Column = npt.NDArray[Any] | None


class SnapshotCollector(Collector):
    """Shows the latest snapshots.

    Args:
        snapshots: gives the latest snapshots.
        group_limit: groups of a grouping that have metrics of their own, at most.
    """

    def __init__(self, snapshots: Callable[[], Iterable[ModelSnapshot]], *, group_limit: int) -> None:
        self._snapshots = snapshots
        self._limit = group_limit
        self._shown: dict[str, tuple[ModelSnapshot, dict[str, ShownGroups]]] = {}
        self._choosing = threading.Lock()

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry must not ask for a snapshot at registration."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """One family per metric that has samples."""
        samples: Samples = {}
        for snapshot in self._snapshots():
            _model_samples(samples, snapshot, self._groups(snapshot))
        for name, rows in samples.items():
            spec = SPECS[name]
            family: Any = (
                CounterMetricFamily(name.removesuffix("_total"), spec.meaning, labels=spec.labels)
                if spec.kind == "counter"
                else GaugeMetricFamily(name, spec.meaning, labels=spec.labels)
            )
            for labels, value in rows:
                family.add_metric(labels, value)
            yield family

    def _groups(self, snapshot: ModelSnapshot) -> dict[str, ShownGroups]:
        """The groups to show, chosen once for every snapshot."""
        with self._choosing:
            last, shown = self._shown.get(snapshot.model, (None, {}))
            if last is not snapshot:
                shown = shown_groups(snapshot, limit=self._limit, before=shown)
                self._shown[snapshot.model] = snapshot, shown
            return shown


def _model_samples(samples: Samples, snapshot: ModelSnapshot, shown: Mapping[str, ShownGroups]) -> None:
    alerts = snapshot.settings.alerts
    _tell(
        samples,
        (snapshot.model,),
        {
            "credence_alert_min_accuracy_ratio": alerts.min_accuracy,
            "credence_alert_max_ece_ratio": alerts.max_ece,
            "credence_alert_confidence_ratio": alerts.confidence,
            "credence_alert_min_labels": alerts.min_labels,
            "credence_evidence_alpha_ratio": snapshot.settings.evidence.alpha,
            "credence_traffic_predictions_total": snapshot.predictions,
            "credence_pool_items": snapshot.pool_items,
            "credence_pool_item_age_seconds": snapshot.pool_item_age,
            "credence_outbox_requests": snapshot.outbox_size,
            "credence_outcomes": snapshot.outcomes,
            "credence_last_label_timestamp_seconds": snapshot.last_label_at,
            "credence_snapshot_timestamp_seconds": snapshot.taken_at,
        },
    )
    _attribute_samples(samples, snapshot)
    for name, grouping in snapshot.groupings.items():
        _grouping_samples(samples, (snapshot.model, name), grouping, shown[name])
    for name, labels, value in drift_rows(snapshot, shown):
        samples.setdefault(name, []).append((labels, value))
    for name, performance in snapshot.performances.items():
        _performance_samples(samples, (snapshot.model, name), performance)
    for name, ensemble in snapshot.ensembles.items():
        _ensemble_samples(samples, (snapshot.model, name), ensemble)
    for name, challenge in snapshot.challenges.items():
        _challenge_samples(samples, (snapshot.model, name), challenge, shown.get(challenge.grouping))
    for name, state in snapshot.assessments.items():
        _assessment_samples(samples, (snapshot.model, name), state, shown.get(state.grouping))


def _attribute_samples(samples: Samples, snapshot: ModelSnapshot) -> None:
    for name, attribute in snapshot.attributes.items():
        _tell(
            samples,
            (snapshot.model, name),
            {
                "credence_attribute_values": attribute.values,
                "credence_attribute_other_ratio": attribute.other_share,
            },
        )
    if snapshot.attributes:
        limit = max(attribute.limit for attribute in snapshot.attributes.values())
        _tell(samples, (snapshot.model,), {"credence_attribute_values_limit": limit})


def _grouping_samples(
    samples: Samples, at: tuple[str, str], grouping: GroupingSnapshot, shown: ShownGroups
) -> None:
    for name, values in _columns(grouping).items():
        _tell_groups(samples, name, at, shown.names, None if values is None else values[shown.members])
    for outcome, counts in {
        "correct": grouping.beliefs.labels_correct,
        "incorrect": grouping.beliefs.labels_incorrect,
    }.items():
        samples.setdefault("credence_group_labels", []).extend(
            ((*at, group, outcome), float(n))
            for group, n in zip(shown.names, counts[shown.members], strict=True)
        )
    omitted = 0 if shown.other is None else len(shown.other.members)
    watched = grouping.accuracy_below is not None
    _tell(
        samples,
        at,
        {
            "credence_grouping_groups": len(grouping.groups),
            "credence_grouping_groups_in_other": omitted,
            "credence_grouping_traffic_share_failing_ratio": grouping.share_failing if watched else None,
            "credence_grouping_traffic_share_meeting_ratio": grouping.share_meeting if watched else None,
        },
    )
    if shown.other is not None:
        _other_samples(samples, (*at, OTHER), shown.other)
    for name, labels, value in evidence_samples(grouping, shown):
        samples.setdefault(name, []).append(((*at, *labels), value))


def _columns(grouping: GroupingSnapshot) -> dict[str, Column]:
    beliefs = grouping.beliefs
    cost = grouping.cost
    return {
        "credence_group_accuracy_lower_ratio": grouping.accuracy_lower,
        "credence_group_accuracy_mean_ratio": grouping.accuracy_mean,
        "credence_group_accuracy_upper_ratio": grouping.accuracy_upper,
        "credence_group_accuracy_below_threshold_probability": grouping.accuracy_below,
        "credence_group_ece_lower_ratio": grouping.ece_lower,
        "credence_group_ece_mean_ratio": grouping.ece_mean,
        "credence_group_ece_upper_ratio": grouping.ece_upper,
        "credence_group_ece_above_threshold_probability": grouping.ece_above,
        "credence_group_calibration_gap_ratio": beliefs.scores - grouping.accuracy_mean,
        "credence_group_cost_lower": cost.lower if cost else None,
        "credence_group_cost_mean": cost.mean if cost else None,
        "credence_group_cost_upper": cost.upper if cost else None,
        "credence_group_score_mean_ratio": beliefs.scores,
        "credence_group_traffic_share_ratio": beliefs.shares,
        "credence_group_missed_traffic_ratio": np.where(grouping.missed > 0, grouping.missed, np.nan),
        "credence_group_effective_labels": beliefs.labels,
        "credence_group_own_labels_share": grouping.own_share,
        "credence_group_labels_to_decision": grouping.verdict_labels,
        "credence_group_time_to_decision_seconds": grouping.verdict_seconds,
        "credence_group_change_point_timestamp_seconds": _changes(grouping),
    }


def _changes(grouping: GroupingSnapshot) -> Column:
    """When groups changed [G]; NaN of those that did not."""
    if not grouping.relearned:
        return None
    nothing = float("nan")
    times = (
        grouping.relearned[name].since if name in grouping.relearned else nothing for name in grouping.groups
    )
    return np.fromiter(times, np.float64, count=len(grouping.groups))


def _other_samples(samples: Samples, at: tuple[str, str, str], other: OtherGroups) -> None:
    lower, mean, upper = other.accuracy
    _tell(
        samples,
        at,
        {
            "credence_group_accuracy_lower_ratio": lower,
            "credence_group_accuracy_mean_ratio": mean,
            "credence_group_accuracy_upper_ratio": upper,
            "credence_group_accuracy_below_threshold_probability": other.accuracy_below,
            "credence_group_ece_above_threshold_probability": other.ece_above,
            "credence_group_calibration_gap_ratio": other.score_mean - mean,
            "credence_group_score_mean_ratio": other.score_mean,
            "credence_group_traffic_share_ratio": other.share,
            "credence_group_effective_labels": other.effective_labels,
        },
    )
    for outcome, count in {"correct": other.labels_correct, "incorrect": other.labels_incorrect}.items():
        samples.setdefault("credence_group_labels", []).append(((*at, outcome), count))


def _assessment_samples(
    samples: Samples, at: tuple[str, str], state: AssessmentSnapshot, shown: ShownGroups | None
) -> None:
    _tell(
        samples,
        at,
        {
            "credence_assessment_budget_labels": state.settings.budget.labels,
            "credence_assessment_budget_remaining_labels": state.budget_remaining,
            "credence_requests_open": state.open_requests,
            "credence_requests_oldest_timestamp_seconds": state.oldest_request_at,
        },
    )
    samples.setdefault("credence_requests_total", []).extend(
        ((*at, event), count) for event, count in state.events.items()
    )
    if shown is not None:
        for name, values in {
            "credence_assessment_group_extreme_probability": state.extreme,
            "credence_assessment_group_next_probability": state.next,
        }.items():
            _tell_groups(samples, name, at, shown.names, None if values is None else values[shown.members])
        if shown.other is not None:
            rest = shown.other.members
            _tell(
                samples,
                (*at, OTHER),
                {
                    "credence_assessment_group_extreme_probability": None
                    if state.extreme is None
                    else float(state.extreme[rest].max()),
                    "credence_assessment_group_next_probability": None
                    if state.next is None
                    else float(state.next[rest].sum()),
                },
            )
    if state.compared is not None:
        _tell(
            samples,
            (*at, state.compared.first, state.compared.second),
            {
                "credence_assessment_comparison_below_probability": state.compared.below,
                "credence_assessment_comparison_within_probability": state.compared.within,
                "credence_assessment_comparison_above_probability": state.compared.above,
            },
        )


def _performance_samples(samples: Samples, at: tuple[str, str], performance: PerformanceSnapshot) -> None:
    choice = performance.thresholds
    _tell(
        samples,
        at,
        {
            "credence_performance_threshold_ratio": performance.threshold,
            "credence_performance_best_threshold_ratio": float(choice.thresholds[choice.best]),
            "credence_performance_best_threshold_probability": float(choice.probability[choice.best]),
            "credence_performance_labels": performance.effective_labels,
            "credence_performance_misfit": float(performance.misfit),
            "credence_performance_timestamp_seconds": performance.taken_at,
        },
    )
    for measure, estimate in performance.measures.items():
        ends = {"lower": estimate.lower, "mean": estimate.mean, "upper": estimate.upper}
        told = {f"credence_performance_{end}_ratio": float(value) for end, value in ends.items()}
        _tell(samples, (*at, measure), {name: v if math.isfinite(v) else None for name, v in told.items()})
    for measure, target in performance.targets.items():
        _tell(
            samples,
            (*at, measure),
            {
                "credence_performance_target_ratio": target,
                "credence_performance_target_missed_probability": performance.missed.get(measure),
            },
        )


def _ensemble_samples(samples: Samples, at: tuple[str, str], ensemble: EnsembleSnapshot) -> None:
    beliefs = ensemble.beliefs
    for name, values in {
        "credence_ensemble_member_precision_lower_ratio": beliefs.lower,
        "credence_ensemble_member_precision_mean_ratio": beliefs.mean,
        "credence_ensemble_member_precision_upper_ratio": beliefs.upper,
        "credence_ensemble_member_target_missed_probability": ensemble.missed,
        "credence_ensemble_member_positive_share_ratio": ensemble.shares,
        "credence_ensemble_member_labels": ensemble.labels,
    }.items():
        _tell_groups(samples, name, at, list(ensemble.members), values)
    _tell(
        samples,
        at,
        {
            "credence_ensemble_target_ratio": ensemble.target,
            "credence_ensemble_wanted_labels": ensemble.wanted,
            "credence_ensemble_labels": ensemble.asked,
            "credence_ensemble_needed_labels": ensemble.plan.cost,
            "credence_ensemble_saving_ratio": ensemble.saving,
        },
    )


_MOST_WORSE = 20
"""Groups where a challenger is worse that have metrics though their accuracy alone would give them none."""


def _challenge_samples(
    samples: Samples, at: tuple[str, str], challenge: ChallengeSnapshot, shown: ShownGroups | None
) -> None:
    """Of all traffic, of the groups that have metrics of their own, and of those that an alert names."""
    told: list[int] = []
    if shown is not None and len(challenge.groups) > 1:
        # Accuracy decides which groups have metrics; it may be fine where the challenger's is not.
        evidence = challenge.evidence_worse[1:]
        worst = np.argsort(-evidence, kind="stable")[:_MOST_WORSE]
        told = [1 + int(g) for g in np.union1d(shown.members, worst[evidence[worst] >= len(evidence)])]
    names, estimate = [challenge.groups[g] for g in told], challenge.difference
    for name, values in {
        "credence_challenge_difference_lower_ratio": estimate.lower,
        "credence_challenge_difference_mean_ratio": estimate.mean,
        "credence_challenge_difference_upper_ratio": estimate.upper,
        "credence_challenge_better_probability": challenge.better,
        "credence_challenge_worse_probability": challenge.worse,
        "credence_challenge_better_evidence": challenge.evidence_better,
        "credence_challenge_worse_evidence": challenge.evidence_worse,
        "credence_challenge_disagreement_ratio": challenge.disagreement,
        "credence_challenge_labels": challenge.labels,
    }.items():
        _tell(samples, (*at, ALL, ALL), {name: float(values[0])})
        _tell_groups(samples, name, (*at, challenge.grouping), names, values[told])
    _tell(
        samples,
        at,
        {
            "credence_challenge_margin_ratio": challenge.margin,
            "credence_challenge_known_ratio": challenge.known,
            "credence_challenge_groups": max(1, len(challenge.groups) - 1),
        },
    )


def _tell(samples: Samples, at: tuple[str, ...], values: Mapping[str, float | None]) -> None:
    for name, value in values.items():
        if value is not None:
            samples.setdefault(name, []).append((at, value))


def _tell_groups(samples: Samples, name: str, at: tuple[str, ...], groups: list[str], values: Column) -> None:
    """What is not finite, such as a time that never comes, has no sample."""
    if values is not None:
        samples.setdefault(name, []).extend(
            ((*at, group), value)
            for group, value in zip(groups, np.asarray(values, dtype=np.float64).tolist(), strict=True)
            if math.isfinite(value)
        )
