"""What Credence says of itself over HTTP: the one place of the demo that knows its metrics' names."""

from __future__ import annotations

import http.client
from collections import defaultdict
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from service.demo.world import MODEL

_TIMEOUT_SECONDS = 2.0

_LOWER = "credence_group_accuracy_lower_ratio"
_MEAN = "credence_group_accuracy_mean_ratio"
_UPPER = "credence_group_accuracy_upper_ratio"
_SHARE = "credence_group_traffic_share_ratio"
_LABELS = "credence_group_labels"
_BELOW = "credence_group_accuracy_below_threshold_probability"
_CONFIRMED = "credence_group_evidence_confirmed"
_CHANGED = "credence_group_confirmed_change_timestamp_seconds"
_EXTREME = "credence_assessment_group_extreme_probability"
_SUSPICION = "credence_group_drift_score"
_DRIFTED = "credence_group_drifted"
_CONSUMED = "credence_predictions_consumed_total"
_EVENTS = "credence_requests_total"
_OPEN = "credence_requests_open"
_BUDGET = "credence_assessment_budget_remaining_labels"
_DEAD_LETTERS = "credence_dead_letters_total"
_SNAPSHOT = "credence_snapshot_timestamp_seconds"


@dataclass(frozen=True)
class GroupReading:
    """What Credence believes of one group's accuracy.

    Attributes:
        grouping: name.
        group: name.
        lower: of the credible interval.
        mean: of the posterior.
        upper: of the credible interval.
        share: of the traffic.
        labels: in the beliefs.
        below: probability that the accuracy is below the configured minimum.
    """

    grouping: str
    group: str
    lower: float
    mean: float
    upper: float
    share: float
    labels: float
    below: float


@dataclass(frozen=True)
class Reading:
    """Credence's metrics at one moment.

    Attributes:
        time: when they were read, seconds since the epoch.
        snapshot_time: when the beliefs in them were computed, seconds since the epoch; 0 before the first.
        groups: by (grouping, group).
        confirmed: groups of which evidence confirms that they are below the minimum, or have declined, as
            (grouping, group).
        extremes: probability of being among the extreme groups, by (assessment, group).
        drifted: how far the groups have drifted that have, by (grouping, group).
        events: of label requests, over all assessments, by event.
        open: requests in flight.
        budgets: labels that remain, by assessment.
        consumed: predictions.
        dead_letters: messages that could not be used.
    """

    time: float
    snapshot_time: float = 0.0
    groups: dict[tuple[str, str], GroupReading] = field(default_factory=dict)
    confirmed: frozenset[tuple[str, str]] = frozenset()
    extremes: dict[tuple[str, str], float] = field(default_factory=dict)
    drifted: dict[tuple[str, str], float] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    open: int = 0
    budgets: dict[str, int] = field(default_factory=dict)
    consumed: int = 0
    dead_letters: int = 0


def parse(text: str, now: float) -> Reading:
    """Read the text of `/metrics`.

    Args:
        text: in the Prometheus text format.
        now: when it was read, seconds since the epoch.
    """
    samples: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("model", MODEL) == MODEL:
                samples[sample.name].append((sample.labels, sample.value))

    def total(name: str) -> int:
        return int(sum(value for _, value in samples[name]))

    def by_group(name: str) -> dict[tuple[str, str], float]:
        told: dict[tuple[str, str], float] = defaultdict(float)
        for labels, value in samples[name]:
            told[labels["grouping"], labels["group"]] += value
        return told

    lower, upper, share = by_group(_LOWER), by_group(_UPPER), by_group(_SHARE)
    labels_known, below, suspicion = by_group(_LABELS), by_group(_BELOW), by_group(_SUSPICION)
    events: dict[str, int] = defaultdict(int)
    for labels, value in samples[_EVENTS]:
        events[labels["event"]] += int(value)
    return Reading(
        time=now,
        snapshot_time=max((value for _, value in samples[_SNAPSHOT]), default=0.0),
        groups={
            key: GroupReading(
                grouping=key[0],
                group=key[1],
                lower=lower[key],
                mean=mean,
                upper=upper[key],
                share=share.get(key, 0.0),
                labels=labels_known.get(key, 0.0),
                below=below.get(key, 0.0),
            )
            for key, mean in by_group(_MEAN).items()
        },
        confirmed=frozenset(
            (labels["grouping"], labels["group"])
            for labels, value in (*samples[_CONFIRMED], *samples[_CHANGED])
            if labels.get("kind", "below_threshold") == "below_threshold" and value
        ),
        extremes={(labels["assessment"], labels["group"]): value for labels, value in samples[_EXTREME]},
        drifted={key: suspicion[key] for key, told in by_group(_DRIFTED).items() if told},
        events=dict(events),
        open=total(_OPEN),
        budgets={labels["assessment"]: int(value) for labels, value in samples[_BUDGET]},
        consumed=total(_CONSUMED),
        dead_letters=total(_DEAD_LETTERS),
    )


def fetch(port: int) -> str | None:
    """The text of `/metrics` on this machine, or None when it is not served now."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return body.decode() if response.status == http.HTTPStatus.OK else None
