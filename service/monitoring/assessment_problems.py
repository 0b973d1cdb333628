"""Problems that assessments find of more than the accuracy of groups, as alerts define them (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from service.config.assessments import PerformanceSettings
from service.domain.groupings import ALL
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.monitoring.problem import Problem

if TYPE_CHECKING:
    from service.monitoring.snapshot import ModelSnapshot

_LATE_SECONDS = 1_800.0
"""Age from which an estimate of performance is out of date."""


def assessment_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    """Problems that assessments find, or have themselves."""
    for name in snapshot.settings.assessments_of(PerformanceSettings):
        yield from _performance(snapshot, name)
    for name in snapshot.ensembles:
        yield from _members(snapshot, name)
    for name, challenge in snapshot.challenges.items():
        yield from _challenger(snapshot, name, challenge)
    for name, rates in snapshot.error_rates.items():
        yield from _error_rates(name, rates)


def _performance(snapshot: ModelSnapshot, name: str) -> Iterator[Problem]:
    alerts, found = snapshot.settings.alerts, snapshot.performances.get(name)
    failed = name in snapshot.performance_failures
    late = (
        found is not None and snapshot.taken_at - found.taken_at > _LATE_SECONDS and snapshot.predictions > 0
    )
    if failed or late:
        yield Problem(
            kind="performance_stale",
            severity="warning",
            alerts=("CredencePerformanceStale",),
            subject=name,
            at=None if found is None else found.taken_at,
        )
    if found is None:
        return
    for measure, missed in found.missed.items():
        if missed >= alerts.confidence and found.effective_labels >= alerts.min_labels:
            estimate = found.measures[measure]
            yield Problem(
                kind="performance_target_missed",
                severity="critical",
                alerts=("CredencePerformanceTargetMissed",),
                subject=name,
                part=measure,
                probability=missed,
                labels=float(found.labels),
                value=(estimate.lower.item(), estimate.median.item(), estimate.upper.item()),
                limit=found.targets[measure],
            )
    if found.design.disagrees:
        yield Problem(
            kind="performance_design_disagrees",
            severity="info",
            alerts=(),
            subject=name,
            amount=found.design.log10_factor,
        )
    if found.misfit:
        yield Problem(
            kind="performance_misfit",
            severity="info",
            alerts=("CredencePerformanceMisfit",),
            subject=name,
            amount=float(found.mixture.misfit_p_value),
        )


def _members(snapshot: ModelSnapshot, name: str) -> Iterator[Problem]:
    alerts, ensemble = snapshot.settings.alerts, snapshot.ensembles[name]
    if ensemble.missed is None:
        return
    for m, member in enumerate(ensemble.members):
        # NaN, of a member without a label, is not above anything.
        if ensemble.missed[m] >= alerts.confidence and ensemble.labels[m] >= alerts.min_labels:
            beliefs = ensemble.beliefs
            yield Problem(
                kind="member_target_missed",
                severity="warning",
                alerts=("CredenceEnsembleMemberTargetMissed",),
                subject=name,
                part=member,
                probability=float(ensemble.missed[m]),
                share=float(ensemble.shares[m]),
                labels=float(ensemble.labels[m]),
                value=(float(beliefs.lower[m]), float(beliefs.mean[m]), float(beliefs.upper[m])),
                limit=ensemble.target,
            )


def _challenger(snapshot: ModelSnapshot, name: str, challenge: ChallengeSnapshot) -> Iterator[Problem]:
    chance = 1 - snapshot.settings.alerts.confidence
    groups = max(1, len(challenge.groups) - 1)
    better = challenge.evidence_better[0] >= 1 / chance
    for g, group in enumerate(challenge.groups):
        worse = challenge.evidence_worse[g] >= groups / chance
        if not worse and not (better and g == 0):
            continue
        evidence = challenge.evidence_worse[g] if worse else challenge.evidence_better[g]
        difference = challenge.difference
        yield Problem(
            kind="challenger_worse" if worse else "challenger_better",
            severity="warning" if worse else "info",
            alerts=("CredenceChallengerWorse" if worse else "CredenceChallengerBetter",),
            grouping=ALL if g == 0 else challenge.grouping,
            group=group,
            subject=name,
            share=float(challenge.shares[g]),
            labels=float(challenge.labels[g]),
            value=(float(difference.lower[g]), float(difference.mean[g]), float(difference.upper[g])),
            limit=challenge.margin,
            log10_e=math.log10(evidence),
        )


def _error_rates(name: str, found: ErrorRatesSnapshot) -> Iterator[Problem]:
    for rate, of in found.rates.items():
        for g in np.flatnonzero(of.violated).tolist():
            yield Problem(
                kind="error_rate_violated",
                severity="warning",
                alerts=("CredenceErrorRateViolated",),
                grouping=found.grouping,
                group=found.groups[g],
                subject=name,
                part=rate,
                share=float(found.shares[g]),
                labels=float(found.labels[g]),
                value=(float(of.estimate.lower[g]), float(of.estimate.mean[g]), float(of.estimate.upper[g])),
                limit=float(of.limits[g]),
                log10_e=_log10(of.proof.log_e[g]) if of.proof and of.proof.confirmed[g] else None,
            )
        proof = of.proof
        of_difference = proof.log_e_difference if proof and proof.difference_confirmed else None
        of_ratio = proof.log_e_ratio if proof and proof.ratio_confirmed else None
        apart = (
            (of.differs_too_much, "difference", of.difference, of.max_difference, of_difference),
            (of.ratio_too_low, "ratio", of.ratio, of.min_ratio, of_ratio),
        )
        for is_wrong, kind, ends, limit, log_e in apart:
            if is_wrong:
                yield Problem(
                    kind="error_rates_differ",
                    severity="warning",
                    alerts=("CredenceErrorRatesDiffer",),
                    subject=name,
                    part=f"{kind} of {rate}",
                    value=ends,
                    limit=limit,
                    log10_e=None if log_e is None else _log10(log_e),
                )


def _log10(log_e: float) -> float:
    return float(log_e) / math.log(10)
