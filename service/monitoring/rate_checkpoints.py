"""Evidence on error rates as a checkpoint keeps it, before its labels are trimmed from the stream (pure)."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from service.config.assessments import ErrorRateSettings
from service.config.model import ModelSettings
from service.monitoring.error_rate_evidence import error_rate_evidence, rate_limits
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_rows import stratum_group
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.monitoring.rate_labels import evidence_labels
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

    All of these have ended. Assessments that are configured no more keep theirs, unless labels came since.
    """
    wrong_labels = settings.labels_per_item.stated_bound
    if wrong_labels is None:
        return []
    states: list[RateState] = []
    for name, rates in settings.assessments_of(ErrorRateSettings).items():
        start = RateBase.of(base, name, rates, samples_traffic=ledger.samples_traffic)
        groups = index[rates.grouping].names
        if not groups:
            states.append(start.continued(name, start.arrived, None))
            continue
        labelled = evidence_labels(
            rates,
            index,
            ledger,
            {},
            now=np.inf,
            since=None if reference is None else reference.until,
            any_class=any_class,
            base=start,
            wrong_labels=wrong_labels,
            until=until,
        )
        found = error_rate_evidence(
            rates, labelled, rate_limits(rates, groups), alpha=settings.evidence.alpha, before={}
        )
        counted = {of: (each.groups, each.limits, each.capital) for of, each in found.counted.items()}
        # See `RateBase.of`.
        counted = {} if ledger.samples_traffic else counted
        states.append(start.continued(name, labelled.arrivals, counted))
    return [*states, *_former_states(base, ledger, {state.key for state in states}, until)]


def _former_states(
    base: Checkpoint, ledger: OutcomeLedger, known: Collection[tuple[str, str]], until: int
) -> list[RateState]:
    """Of assessments that are configured no more; with arrivals alone if labels came that are not in them."""
    passed = ledger.groups_requested(after=base.position, until=until - 1)
    keys = {of[0] for drawn in passed if (of := stratum_group(drawn)) is not None}
    return [
        state if base.is_current and state.key[0] not in keys else msgspec.structs.replace(state, capitals={})
        for state in base.rate_states
        if state.key not in known
    ]
