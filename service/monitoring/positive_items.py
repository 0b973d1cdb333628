"""Whether items are positive, where labels may be wrong or missing (pure)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats
from service.domain.cells import POSITIVE_SCORE
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_columns import ScoredLabels
from service.monitoring.label_truth import IMPUTATIONS, LearnedTruth
from service.monitoring.label_weights import DrawnLabels, label_weights
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import effective_counts

_USED: Final = 10
"""Imputations: each is learned from, which takes most of a second."""

_PSEUDO_REQUESTS: Final = 1.0  # of the prior of a score bin's share, which is that of all


@dataclass(frozen=True)
class UnclearItems:
    """Requested items by score bin of the positive class, of which some may have any class [B]."""

    edges: Floats  # between the bins [B - 1]
    requests: Floats  # effective number
    unclear: Floats  # of these, those that may have any class

    def shares(self, scores: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draws of the share of items with these scores [n] that may have any class [count, n]."""
        overall = (self.unclear.sum() + 0.5) / (self.requests.sum() + 1)
        drawn = rng.beta(
            self.unclear + _PSEUDO_REQUESTS * overall,
            np.maximum(self.requests - self.unclear, 0.0) + _PSEUDO_REQUESTS * (1 - overall),
            (count, len(self.requests)),
        )
        return np.asarray(drawn[:, np.searchsorted(self.edges, scores, side="right")], np.float64)


def unclear_items(
    index: GroupIndex, ledger: OutcomeLedger, *, at: float, decay: float, any_class: Collection[int]
) -> UnclearItems | None:
    """Requested items by score bin, if some of them have no label for a reason in `any_class`."""
    sums = ledger.sums(at=at, decay=decay, unanswered=any_class)
    if not (sums.true_classes < NO_CLASS).any():
        return None
    drawn = DrawnLabels.of(index, ledger, sums.cells, sums.sources)
    counting = drawn.usable(any_class)
    sums = sums.part(counting)
    _, of_classes = index.space.class_groups(POSITIVE_SCORE) or ([], np.zeros((0, 0), np.intp))
    requests, unclear = effective_counts(
        groups=of_classes[index.cells.classes[sums.cells], index.cells.bins[sums.cells]],
        group_count=index.space.bin_count,
        weights=label_weights(drawn.part(counting), sums.freshness).weights,
        freshness=sums.freshness,
        correct=(sums.true_classes < NO_CLASS).astype(np.float64),
    )
    return UnclearItems(np.array(index.space.score_edges), requests, unclear)


def imputed_positives(
    truth: LearnedTruth,
    index: GroupIndex,
    ledger: OutcomeLedger,
    scored: ScoredLabels,
    *,
    positive: int,
    at: float,
) -> list[Flags]:
    """Whether the items of some labels are positive, once for every imputation [n]; none without a label.

    `positive` is the index of one of two classes.
    """
    items = ledger.labelled_items(at=at)
    if items is None or not len(items.rows):
        return []
    places = np.minimum(np.searchsorted(items.rows, scored.rows), len(items.rows) - 1)
    has_people = items.rows[places] == scored.rows
    found = truth.imputations(items, ledger.people, index.crossed(truth.groupings))
    called = scored.predicted == positive
    return [
        np.where(has_people, correct[places] == called, scored.true_classes == positive)
        for correct, _ in islice(found, 0, None, IMPUTATIONS // _USED)
    ]
