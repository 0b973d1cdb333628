"""Weighted labels, once for every imputation of what people who err leave open (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.outcome_aggregates import EXPIRED_CLASS, NO_CLASS
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
    unanswered: Collection[int] = (),
) -> tuple[tuple[Labels, ...], Indices]:
    """Labels of all items, one row each, for every imputation; and which of the sums every row is of.

    Items without a label for the reasons `unanswered` have rows, too, with the reason in place of a class.

    `counting` says which of the ledger's sums count; these have the `weights`. Rows lose weight at `decay`,
    1/s, and by the `factors` that changes leave of them [rows].
    """
    items = ledger.labelled_items(at=at)
    if items is None or not len(items.rows):
        return (), np.zeros(0, np.intp)
    of_rows, fresh = ledger.row_labels(at=at, decay=decay, factors=factors, unanswered=unanswered)
    sums = np.flatnonzero(np.bincount(of_rows[of_rows >= 0]))
    places = np.zeros(int(of_rows.max(initial=0)) + 1, np.intp)
    places[sums[counting]] = np.arange(len(weights))
    kept = np.isin(of_rows[items.rows], sums[counting])
    rows, cells = items.rows[kept], items.cells[kept]
    found = truth.imputations(items, ledger.people, index.crossed(truth.groupings))
    without, of_without = ledger.unanswered_items(unanswered)
    usable = np.isin(of_rows[without], sums[counting])
    without = without[usable]
    rows, cells = np.append(rows, without), np.append(cells, of_without[usable])
    places, fresh = places[of_rows[rows]], fresh[rows]
    missing, nothing = np.full(len(without), EXPIRED_CLASS), np.zeros(len(without))
    imputed = []
    for correct, true in found:
        known = np.append(correct[kept], nothing).astype(np.float64)
        challenger = None
        if items.rivals is not None:
            # Where the two agree, nobody asks who is right.
            is_right = (items.rivals >= 0) & (true == items.rivals)
            challenger = np.append(is_right[kept], nothing).astype(np.float64)
        labels = Labels(
            cells,
            known,
            weights[places],
            fresh,
            np.append(true[kept], missing),
            challenger=challenger,
        )
        imputed.append(labels)
    return tuple(imputed), places


def extremes(labels: Labels, classes: Indices) -> tuple[Labels, Labels]:
    """The labels if all predictions without a label are incorrect, and if all are correct.

    A mixture of the posteriors of both gives intervals as those of Imbens and Manski (Econometrica 2004): a
    true accuracy between the two is covered, also at the ends. `classes` has the predicted class of every
    label cell [cells].
    """
    missing = labels.true_classes < NO_CLASS
    incorrect = np.where(missing, NO_CLASS, labels.true_classes)
    correct = np.where(missing, classes[labels.cells], labels.true_classes)
    return (
        replace(labels, correct=np.where(missing, 0.0, labels.correct), true_classes=incorrect),
        replace(labels, correct=np.where(missing, 1.0, labels.correct), true_classes=correct),
    )


def alternate_extremes(imputed: Sequence[Labels], classes: Indices) -> tuple[Labels, ...]:
    """The labels of all imputations, with either of the `extremes` in turn."""
    return tuple(extremes(each, classes)[number % 2] for number, each in enumerate(imputed))


def answered(labels: Labels) -> Labels:
    """The labels without items that have none."""
    has_label = labels.true_classes >= NO_CLASS
    return labels if has_label.all() else labels.part(has_label, labels.weights)


def pooled(imputed: Sequence[Labels]) -> Labels:
    """The labels of all imputations, of which each counts a part, so that together they count once."""
    return Labels(
        np.concatenate([each.cells for each in imputed]),
        np.concatenate([each.correct for each in imputed]),
        np.concatenate([each.weights for each in imputed]),
        np.concatenate([each.freshness for each in imputed]) / len(imputed),
        np.concatenate([each.true_classes for each in imputed]),
    )
