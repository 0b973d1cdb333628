"""Results of assessments that ask about more than the estimates of groups (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.config.assessments import ChallengeSettings, EnsembleSettings, ErrorRateSettings
from service.config.model import ModelSettings
from service.monitoring.challenger import ChallengeSnapshot, challenge_snapshot
from service.monitoring.ensembles import EnsembleSnapshot, ensemble_snapshot
from service.monitoring.error_rate_evidence import error_rate_evidence
from service.monitoring.error_rates import ErrorRatesSnapshot, error_rates_snapshot
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import WeightedLabels
from service.store.requests import OpenRequest


@dataclass(frozen=True)
class AssessmentResults:
    """By assessment; those without traffic have none."""

    ensembles: Mapping[str, EnsembleSnapshot]
    challenges: Mapping[str, ChallengeSnapshot]
    error_rates: Mapping[str, ErrorRatesSnapshot]


def assessment_results(
    settings: ModelSettings,
    index: GroupIndex,
    weighted: WeightedLabels,
    ledger: OutcomeLedger,
    *,
    opened: Iterable[OpenRequest],
    since: float | None,
    any_class: Collection[int],
    now: float,
    rng: np.random.Generator,
) -> AssessmentResults:
    """Results by the labels of a round, and the requests that are open.

    Evidence begins with what was predicted `since` the end of the reference window. `any_class` is as of
    `UnansweredRequests`.
    """
    policy, in_flight = settings.labels_per_item, Counter((one.assessment, one.group) for one in opened)
    ensembles = {
        name: ensemble_snapshot(
            asked,
            index,
            weighted.compared,
            in_flight=Counter({group: count for (of, group), count in in_flight.items() if of == name}),
            rng=rng,
            interval=settings.interval,
        )
        for name, asked in settings.assessments_of(EnsembleSettings).items()
    }
    challenges = {
        name: challenge_snapshot(
            asked,
            index,
            weighted.compared,
            ledger,
            now=now,
            interval=settings.interval,
            since=since,
            any_class=any_class,
            wrong_labels=None if policy.learns_bound or not policy.has_evidence else policy.wrong_labels,
        )
        for name, asked in settings.assessments_of(ChallengeSettings).items()
    }
    error_rates = {
        name: error_rates_snapshot(
            asked,
            index,
            weighted,
            partial(
                error_rate_evidence,
                asked,
                index,
                ledger,
                alpha=settings.evidence.alpha,
                now=now,
                since=since,
                any_class=any_class,
            )
            if policy.has_evidence and not policy.may_err
            else None,
            interval=settings.interval,
            min_labels=settings.alerts.min_labels,
            rng=rng,
        )
        for name, asked in settings.assessments_of(ErrorRateSettings).items()
    }
    return AssessmentResults(
        {name: one for name, one in ensembles.items() if one is not None},
        {name: one for name, one in challenges.items() if one is not None},
        {name: one for name, one in error_rates.items() if one is not None},
    )
