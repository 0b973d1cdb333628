"""Weighted labels, once for every imputation of what people who err leave open (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.domain.arrays import Flags, Floats
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.groups import Labels


def imputed_labels(
    truth: LearnedTruth,
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    counting: Flags,
    weights: Floats,
    decay: float,
    factors: Floats | None,
    at: float,
) -> tuple[Labels, ...]:
    """Labels of all items, one row each, for every imputation.

    `counting` says which of the ledger's sums count; these have the `weights`. Rows lose weight at `decay`,
    1/s, and by the `factors` that changes leave of them [rows].
    """
    items = ledger.labelled_items(at=at)
    if items is None or not len(items.rows):
        return ()
    of_rows, fresh = ledger.row_labels(at=at, decay=decay, factors=factors)
    sums = np.flatnonzero(np.bincount(of_rows[of_rows >= 0]))
    of_sums = np.zeros(int(of_rows.max(initial=0)) + 1)
    of_sums[sums[counting]] = weights
    kept = np.isin(of_rows[items.rows], sums[counting])
    rows, cells = items.rows[kept], items.cells[kept]
    found = truth.imputations(items, ledger.people, index[truth.grouping])
    return tuple(
        Labels(cells, correct[kept].astype(np.float64), of_sums[of_rows[rows]], fresh[rows], true[kept])
        for correct, true in found
    )


def pooled(imputed: Sequence[Labels]) -> Labels:
    """The labels of all imputations, of which each counts a part, so that together they count once."""
    return Labels(
        np.concatenate([each.cells for each in imputed]),
        np.concatenate([each.correct for each in imputed]),
        np.concatenate([each.weights for each in imputed]),
        np.concatenate([each.freshness for each in imputed]) / len(imputed),
        np.concatenate([each.true_classes for each in imputed]),
    )
