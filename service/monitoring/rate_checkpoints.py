"""Evidence on error rates as a checkpoint keeps it, before its labels are trimmed from the stream (pure)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.config.model import ModelSettings
from service.monitoring.error_rate_evidence import error_rate_evidence, evidence_labels, rate_limits
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.store.checkpoints import RateState
from service.store.references import ReferenceWindow


def rate_states(
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    base: Checkpoint,
    reference: ReferenceWindow | None,
    *,
    any_class: Collection[int],
    until: int,
) -> list[RateState]:
    """Evidence of every assessment of error rates from labels of requests before the place `until`.

    All of these have ended. Where labels of all traffic come without a request, none is kept: an outcome may
    count as drawn for its stratum first, and as one of these later.
    """
    if settings.labels_per_item.may_err or ledger.samples_traffic:
        return []
    states = []
    for name, rates in settings.assessments_of(ErrorRateSettings).items():
        groups = index[rates.grouping].names
        if not groups:
            continue
        start = RateBase.of(base, name, rates)
        labelled = evidence_labels(
            rates,
            index,
            ledger,
            {},
            now=np.inf,
            since=None if reference is None else reference.until,
            any_class=any_class,
            base=start,
            until=until,
        )
        limits = rate_limits(rates, groups)
        found = error_rate_evidence(rates, labelled, limits, alpha=settings.evidence.alpha, before={})
        counted = {rate: (each.limits, each.capital) for rate, each in found.counted.items()}
        states.append(start.continued(name, groups, labelled.arrivals, counted))
    return states
