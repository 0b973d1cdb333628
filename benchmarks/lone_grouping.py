"""Evidence about the groups of a model whose only grouping they are of, from labels without a ledger."""

from __future__ import annotations

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Indices
from service.domain.request_order import NO_PLACE
from service.monitoring.anytime_tests import GroupingEvidence, collected_evidence, conclude
from service.monitoring.evidence_base import WatchedGroups
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import LabelSequence
from service.statistics.grouped_e_processes import GroupEvidence
from service.statistics.label_errors import NEVER_WRONG
from service.store.references import ReferenceWindow


def lone_groups(names: list[str], *, min_accuracy: float | None) -> WatchedGroups:
    """Groups that arrived in their order, with one threshold, without an open request or a checkpoint."""
    count = len(names)
    ended = np.full(count, NO_PLACE, dtype=np.uint64)
    return WatchedGroups(
        names,
        np.full(count, np.nan if min_accuracy is None else min_accuracy),
        numbers=np.arange(1, count + 1),
        ended=ended,
        base=GroupEvidence.none(count),
        base_changes={},
        base_position=0,
        sharing=1,
    )


def grouping_evidence(
    watched: WatchedGroups,
    labels: LabelSequence,
    groups: Indices,
    *,
    settings: ModelSettings,
    reference: ReferenceWindow | None = None,
    before: GroupingEvidence | None = None,
) -> GroupingEvidence:
    """Evidence about the groups of a model's only grouping, by labels and the group of each [n]."""
    tallies = SumTallies(len(watched.names))
    tallies.add(groups, labels.marks)

    def labels_of(which: Flags) -> tuple[LabelSequence, Indices]:
        return labels.part(which[groups]), groups[which[groups]]

    found = collected_evidence(
        watched,
        labels_of,
        tallies,
        settings=settings,
        wrong_labels=NEVER_WRONG,
        reference=reference,
        before=before,
    )
    return conclude({"": found}, {"": labels_of}, settings, NEVER_WRONG, {"": before})[""]
