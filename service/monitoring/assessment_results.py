"""Results of assessments that ask about more than the estimates of groups (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.config.assessments import ChallengeSettings, EnsembleSettings, ErrorRateSettings
from service.config.model import ModelSettings
from service.domain.arrays import Floats
from service.domain.assessments import RateName
from service.monitoring.challenger import ChallengeSnapshot, challenge_snapshot
from service.monitoring.ensembles import EnsembleSnapshot, ensemble_snapshot
from service.monitoring.error_rate_evidence import RateProofs, error_rate_evidence
from service.monitoring.error_rates import ErrorRatesSnapshot, error_rates_snapshot
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.group_index import GroupIndex
from service.monitoring.open_places import open_places
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.monitoring.rate_labels import evidence_labels
from service.monitoring.weighted_labels import WeightedLabels
from service.store.checkpoints import EvidenceCheckpoint
from service.store.facts import RequestFacts
from service.store.references import ReferenceWindow


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
    requests: RequestFacts,
    before: Mapping[str, ErrorRatesSnapshot],
    reference: ReferenceWindow | None,
    checkpoint: EvidenceCheckpoint | None,
    any_class: Collection[int],
    now: float,
    rng: np.random.Generator,
) -> AssessmentResults:
    """Results by the labels of a round, and the requests that are open.

    Error rates `before`, by assessment, are those of the last round: their evidence is not counted again.
    Evidence begins with what was predicted since the end of the `reference` window, if one was set, and
    continues from the `checkpoint`. `any_class` is as of `UnansweredRequests`.
    """
    since = None if reference is None else reference.until
    wrong_labels = settings.labels_per_item.stated_bound
    in_flight = Counter((one.assessment, one.group) for one in requests.open.values())
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
            wrong_labels=wrong_labels,
        )
        for name, asked in settings.assessments_of(ChallengeSettings).items()
    }
    error_rates: dict[str, ErrorRatesSnapshot | None] = {}
    asked_rates = settings.assessments_of(ErrorRateSettings)
    if asked_rates:
        base = Checkpoint(checkpoint, index.space, reference)
        opened = open_places(requests.of_new_items, settings, base.keys)
    for name, rates in asked_rates.items():
        prove: Callable[[Mapping[RateName, Floats]], RateProofs] | None = None
        if wrong_labels is not None and index[rates.grouping].names:
            prove = partial(
                error_rate_evidence,
                rates,
                evidence_labels(
                    rates,
                    index,
                    ledger,
                    opened,
                    now=now,
                    since=since,
                    any_class=any_class,
                    base=RateBase.of(base, name, rates, samples_traffic=ledger.samples_traffic),
                    wrong_labels=wrong_labels,
                ),
                alpha=settings.evidence.alpha,
                before=before[name].counted if name in before else {},
            )
        error_rates[name] = error_rates_snapshot(
            rates,
            index,
            weighted,
            prove,
            interval=settings.interval,
            min_labels=settings.alerts.min_labels,
            rng=rng,
        )
    return AssessmentResults(
        {name: one for name, one in ensembles.items() if one is not None},
        {name: one for name, one in challenges.items() if one is not None},
        {name: one for name, one in error_rates.items() if one is not None},
    )
