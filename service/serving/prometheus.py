"""Snapshots as Prometheus samples, and the catalogue of all metrics.

Of a large grouping the prominent groups have samples of their own, and `other` stands for the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.domain.groupings import ALL
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.drift import GroupingDrift
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.monitoring.evidence_base import KINDS
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.problems import count_by_severity, problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving import snapshot_metrics as of
from service.serving.documents.drifts import DRIFT, DRIFT_BY_MIX
from service.serving.documents.evidence import EVIDENCE, EVIDENCE_BY_KIND
from service.serving.documents.group_measures import GROUPS, LABELS_BY_OUTCOME
from service.serving.metric_selection import ShownGroups, shown_groups
from service.serving.metrics import MetricTable, Samples, samples_of_each
from service.telemetry.catalogue import PROCESS_METRICS, MetricSpec

_TABLES: tuple[MetricTable[Any], ...] = (
    *(GROUPS, LABELS_BY_OUTCOME, EVIDENCE, EVIDENCE_BY_KIND, DRIFT, DRIFT_BY_MIX),
    *(of.MODEL, of.UNREQUESTED_DELAY, of.LABEL_AGREEMENT, of.LABEL_ERRORS, of.VENDOR),
    *(of.PROBLEMS, of.ATTRIBUTE, of.GROUPING, of.WEAKEST, of.SHOWN, of.DRIFTED),
    *(of.ASSESSMENT, of.EVENTS, of.ASSESSED_GROUPS, of.COMPARED),
    *(of.PERFORMANCE, of.MEASURE, of.ENSEMBLE, of.MEMBERS, of.CHALLENGE, of.CHALLENGED_GROUPS),
    *(of.RATES, of.RATE_GROUPS, of.RATE_LABELS),
)

CATALOGUE: tuple[MetricSpec, ...] = tuple(
    sorted(
        (*PROCESS_METRICS, *(spec for table in _TABLES for spec in table.specs())), key=lambda spec: spec.name
    )
)
"""All metrics, by name."""

SPECS = {spec.name: spec for spec in CATALOGUE}

_MOST_WORSE = 20
"""Groups with a worse challenger, or a rate beyond its limit, that have metrics whatever their accuracy."""


class SnapshotCollector(Collector):
    """Shows the latest snapshots.

    Of each grouping, at most `group_limit` groups have metrics of their own. The clock tells seconds since
    the epoch.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[ModelSnapshot]],
        *,
        group_limit: int,
        clock: Callable[[], float],
    ) -> None:
        self._snapshots = snapshots
        self._limit = group_limit
        self._clock = clock
        self._shown: dict[str, tuple[ModelSnapshot, dict[str, ShownGroups]]] = {}
        self._choosing = threading.Lock()

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry must not ask for a snapshot at registration."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """One family per metric that has samples."""
        samples: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for snapshot in self._snapshots():
            counts = count_by_severity(problems(snapshot, self._clock()))
            for severity, count in counts.items():
                for name, rows in of.PROBLEMS.samples(count, snapshot.model, severity):
                    samples.setdefault(name, []).extend(rows)
            for name, rows in _samples(snapshot, self._groups(snapshot)):
                samples.setdefault(name, []).extend(rows)
        for name, rows in samples.items():
            if not rows:
                continue
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


def _samples(snapshot: ModelSnapshot, shown: Mapping[str, ShownGroups]) -> Iterator[Samples]:
    """All samples of one model."""
    model = snapshot.model
    yield from of.MODEL.samples(snapshot, model)
    yield from _label_samples(snapshot)
    for name, attribute in snapshot.attributes.items():
        yield from of.ATTRIBUTE.samples(attribute, model, name)
    for name, grouping in snapshot.groupings.items():
        yield from _grouping_samples(grouping, shown[name], model, name)
    if snapshot.drift is not None:
        for name, drift in snapshot.drift.groupings.items():
            yield from _drift_samples(drift, shown[name], model, name)
    for name, state in snapshot.assessments.items():
        yield from _assessment_samples(state, shown.get(state.grouping), model, name)
    yield from _result_samples(snapshot, shown)


def _label_samples(snapshot: ModelSnapshot) -> Iterator[Samples]:
    """Of labels as they come: late, without a request, from people who err."""
    model = snapshot.model
    if snapshot.waiting is not None:
        for quantile, delay in snapshot.waiting.delays.items():
            yield from of.UNREQUESTED_DELAY.samples(delay, model, f"{quantile:g}")
    if snapshot.wrong_labels.is_learned:
        yield from of.LABEL_ERRORS.samples(snapshot.wrong_labels, model)
    if snapshot.labelling is not None:
        yield from of.LABEL_AGREEMENT.samples(snapshot.labelling.quality, model)
        for vendor in snapshot.labelling.vendors:
            yield from of.VENDOR.samples(vendor, model, vendor.vendor)


def _assessment_samples(state: AssessmentSnapshot, shown: ShownGroups | None, *at: str) -> Iterator[Samples]:
    yield from of.ASSESSMENT.samples(state, *at)
    for event, count in state.events.items():
        yield from of.EVENTS.samples(count, *at, event)
    if shown is not None:
        yield from of.ASSESSED_GROUPS.samples_of_groups(state, shown, *at)
    if (compared := state.compared) is not None:
        yield from of.COMPARED.samples(compared, *at, compared.first, compared.second)


def _result_samples(snapshot: ModelSnapshot, shown: Mapping[str, ShownGroups]) -> Iterator[Samples]:
    """Of assessments that ask about more than groups: performance, ensembles, challengers, error rates."""
    model = snapshot.model
    for name, performance in snapshot.performances.items():
        yield from of.PERFORMANCE.samples(performance, model, name)
        for measure in performance.measures:
            yield from of.MEASURE.samples((performance, measure), model, name, measure)
    for name, ensemble in snapshot.ensembles.items():
        yield from of.ENSEMBLE.samples(ensemble, model, name)
        for metric, values in of.MEMBERS.columns(ensemble):
            yield metric.name, samples_of_each((model, name), ensemble.members, values)
    for name, challenge in snapshot.challenges.items():
        yield from _challenge_samples(challenge, shown.get(challenge.grouping), model, name)
    for name, rates in snapshot.error_rates.items():
        yield from _rate_samples(rates, shown.get(rates.grouping), model, name)


def _grouping_samples(grouping: GroupingSnapshot, shown: ShownGroups, *at: str) -> Iterator[Samples]:
    yield from of.GROUPING.samples(grouping, *at)
    if grouping.weakest is not None:
        yield from of.WEAKEST.samples(grouping.weakest, *at)
    yield from of.SHOWN.samples(shown, *at)
    yield from GROUPS.samples_of_groups(grouping, shown, *at)
    beliefs, evidence = grouping.beliefs, grouping.evidence
    for outcome, labels in (("correct", beliefs.labels_correct), ("incorrect", beliefs.labels_incorrect)):
        yield from LABELS_BY_OUTCOME.samples_of_groups(labels, shown, *at, last=(outcome,))
    if evidence is not None:
        yield from EVIDENCE.samples_of_groups(evidence, shown, *at)
        for kind in KINDS:
            yield from EVIDENCE_BY_KIND.samples_of_groups((evidence, kind), shown, *at, last=(kind,))


def _drift_samples(drift: GroupingDrift, shown: ShownGroups, *at: str) -> Iterator[Samples]:
    yield from of.DRIFTED.samples(drift, *at)
    yield from DRIFT.samples_of_groups(drift, shown, *at)
    for name, mix in drift.mixes.items():
        yield from DRIFT_BY_MIX.samples_of_groups(mix, shown, *at, last=(name,))


def _challenge_samples(
    challenge: ChallengeSnapshot, shown: ShownGroups | None, *at: str
) -> Iterator[Samples]:
    """Of all traffic, of the groups that have metrics of their own, and of those that an alert names."""
    yield from of.CHALLENGE.samples(challenge, *at)
    chosen: list[int] = []
    if shown is not None and len(challenge.groups) > 1:
        # Accuracy decides which groups have metrics; it may be fine where the challenger's is not.
        evidence = challenge.evidence_worse[1:]
        worst = np.argsort(-evidence, kind="stable")[:_MOST_WORSE]
        chosen = [1 + int(g) for g in np.union1d(shown.members, worst[evidence[worst] >= len(evidence)])]
    names = [challenge.groups[g] for g in chosen]
    for metric, values in of.CHALLENGED_GROUPS.columns(challenge):
        yield metric.name, [((*at, ALL, ALL), float(values[0]))]
        yield metric.name, samples_of_each((*at, challenge.grouping), names, values[chosen])


def _rate_samples(rates: ErrorRatesSnapshot, shown: ShownGroups | None, *at: str) -> Iterator[Samples]:
    """Of the groups that have metrics of their own, and of those that are beyond a limit."""
    beyond = np.logical_or.reduce([rate.violated for rate in rates.rates.values()])
    chosen = np.flatnonzero(beyond)[:_MOST_WORSE]
    if shown is not None:
        chosen = np.union1d(chosen, shown.members)
    names = [rates.groups[g] for g in chosen]
    where = (*at, rates.grouping)
    for metric, values in of.RATE_LABELS.columns(rates):
        yield metric.name, samples_of_each(where, names, values[chosen])
    for name, rate in rates.rates.items():
        yield from of.RATES.samples(rate, *where, name)
        for measure, values in of.RATE_GROUPS.columns(rate):
            yield measure.name, samples_of_each(where, names, values[chosen], (name,))
