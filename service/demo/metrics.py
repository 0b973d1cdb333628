"""Credence's metrics, read over HTTP, and when Credence found what.

This is the one place of the demo that knows the metrics' names.
"""

from __future__ import annotations

import http.client
from collections import defaultdict
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from service.demo.configuration import WEAKEST_CAMERA
from service.demo.world import CAMERAS, DEGRADED_CAMERA, MODEL

_TIMEOUT_SECONDS = 2.0

_ESTIMATES = {
    "lower": "credence_group_accuracy_lower_ratio",
    "mean": "credence_group_accuracy_mean_ratio",
    "upper": "credence_group_accuracy_upper_ratio",
    "share": "credence_group_traffic_share_ratio",
    "labels": "credence_group_labels",
    "below": "credence_group_accuracy_below_threshold_probability",
}
"""Metrics of a group, by the fields of `GroupReading`, in their order."""

_CHANGED_AT = "credence_group_confirmed_change_timestamp_seconds"


@dataclass(frozen=True)
class GroupReading:
    """Credence's estimate of one group's accuracy."""

    grouping: str
    group: str
    lower: float  # of the credible interval
    mean: float  # of the posterior
    upper: float  # of the credible interval
    share: float  # of the traffic
    labels: float  # behind the estimate
    below: float  # probability that the accuracy is below the configured minimum


@dataclass(frozen=True)
class Reading:
    """Credence's metrics at one moment."""

    time: float  # when they were read, seconds since the epoch
    snapshot_time: float = 0.0  # when they were computed, seconds since the epoch; 0 before the first
    groups: dict[tuple[str, str], GroupReading] = field(default_factory=dict)  # by (grouping, group)
    # (grouping, group) that are confirmed to be below the minimum or to have declined
    confirmed: frozenset[tuple[str, str]] = frozenset()
    # probability of being among the extreme groups, by (assessment, group)
    extremes: dict[tuple[str, str], float] = field(default_factory=dict)
    # probability that the next label request goes to the group, by (assessment, group)
    next_requests: dict[tuple[str, str], float] = field(default_factory=dict)
    # drift scores of the drifted groups, by (grouping, group)
    drifted: dict[tuple[str, str], float] = field(default_factory=dict)
    # accuracy expected from recent scores, without labels of the group, by (grouping, group)
    expected: dict[tuple[str, str], float] = field(default_factory=dict)
    # when a confirmed change of the group most likely began, seconds since the epoch, by (grouping, group)
    changed_at: dict[tuple[str, str], float] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)  # of label requests, over all assessments, by event
    open: int = 0  # requests in flight
    budgets: dict[str, int] = field(default_factory=dict)  # labels that remain, by assessment
    consumed: int = 0  # predictions


Samples = dict[str, list[tuple[dict[str, str], float]]]
"""Labels and values of samples, by the metric's name."""


def samples_of(text: str, model: str) -> Samples:
    """Samples of one model, and of none, in the text of `/metrics`, in the Prometheus text format."""
    samples: Samples = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("model", model) == model:
                samples[sample.name].append((sample.labels, sample.value))
    return samples


def parse(text: str, now: float) -> Reading:
    """Read the text of `/metrics` at a time in seconds since the epoch."""
    samples = samples_of(text, MODEL)

    def total(name: str) -> int:
        return int(sum(value for _, value in samples[name]))

    def by_group(name: str) -> dict[tuple[str, str], float]:
        values: dict[tuple[str, str], float] = defaultdict(float)
        for labels, value in samples[name]:
            values[labels["grouping"], labels["group"]] += value
        return values

    def by_assessment(name: str) -> dict[tuple[str, str], float]:
        return {(labels["assessment"], labels["group"]): value for labels, value in samples[name]}

    estimates = {field: by_group(name) for field, name in _ESTIMATES.items()}
    scores = by_group("credence_group_drift_score")
    confirmed = ("credence_group_evidence_confirmed", _CHANGED_AT)
    events: dict[str, int] = defaultdict(int)
    for labels, value in samples["credence_requests_total"]:
        events[labels["event"]] += int(value)
    return Reading(
        time=now,
        snapshot_time=max((time for _, time in samples["credence_snapshot_timestamp_seconds"]), default=0.0),
        groups={
            key: GroupReading(*key, *(values.get(key, 0.0) for values in estimates.values()))
            for key in estimates["mean"]
        },
        confirmed=frozenset(
            (labels["grouping"], labels["group"])
            for name in confirmed
            for labels, value in samples[name]
            if labels.get("kind", "below_threshold") == "below_threshold" and value
        ),
        extremes=by_assessment("credence_assessment_group_extreme_probability"),
        next_requests=by_assessment("credence_assessment_group_next_probability"),
        drifted={key: scores[key] for key, drifted in by_group("credence_group_drifted").items() if drifted},
        expected=by_group("credence_group_expected_accuracy_ratio"),
        changed_at=by_group(_CHANGED_AT),
        events=dict(events),
        open=total("credence_requests_open"),
        budgets={
            labels["assessment"]: int(value)
            for labels, value in samples["credence_assessment_budget_remaining_labels"]
        },
        consumed=total("credence_predictions_consumed_total"),
    )


def fetch(port: int, path: str = "/metrics", *, accept: str = "text/plain") -> str | None:
    """What is served on this machine, such as the metrics; None if it is not served now."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return body.decode() if response.status == http.HTTPStatus.OK else None


CERTAIN = 0.9  # probability above which the demo says that Credence has found something


class Findings:
    """Remembers when each thing was first found, in seconds since the epoch."""

    def __init__(self) -> None:
        self.drifted_at: float | None = None  # the degraded camera's traffic has drifted, without labels
        self.weakest_at: float | None = None  # it is the weakest camera
        self.below_at: float | None = None  # it is below the minimum accuracy
        self.confirmed_at: float | None = None  # evidence confirms that, or that it has declined

    def watch(self, reading: Reading, degraded_at: float | None) -> None:
        """Read the newest metrics; estimates from before the camera degraded find nothing."""
        if degraded_at is None or reading.snapshot_time < degraded_at:
            return
        now, key = reading.time, ("camera", DEGRADED_CAMERA)
        if self.drifted_at is None and key in reading.drifted:
            self.drifted_at = now
        if self.weakest_at is None and is_weakest(reading):
            self.weakest_at = now
        if self.below_at is None and key in reading.groups and reading.groups[key].below > CERTAIN:
            self.below_at = now
        if self.confirmed_at is None and key in reading.confirmed:
            self.confirmed_at = now


def weakest_probability(reading: Reading) -> float:
    """Probability that the degraded camera is the weakest."""
    return reading.extremes.get((WEAKEST_CAMERA, DEGRADED_CAMERA), 0.0)


def is_weakest(reading: Reading) -> bool:
    """Whether the degraded camera is the weakest with certainty, and has a lower mean than the others."""
    means = {camera: reading.groups.get(("camera", camera)) for camera in CAMERAS}
    degraded = means.pop(DEGRADED_CAMERA)
    return (
        weakest_probability(reading) > CERTAIN
        and degraded is not None
        and all(other is not None and degraded.mean < other.mean for other in means.values())
    )
