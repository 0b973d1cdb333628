"""What the performance of a binary classifier is learned from (pure).

Items of the pool and labelled ones stand for the traffic of their predicted class and score bin; labels come
with the weights of the balance heuristic, so it does not matter who asked for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.domain.cells import POSITIVE_SCORE, CellSpace
from service.domain.value_table import Block
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.label_weights import DrawnLabels, label_weights
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.positive_items import UnclearItems, imputed_positives, unclear_items
from service.monitoring.score_gains import answered_by_score
from service.statistics.balance_heuristic import sums
from service.statistics.binary.score_bins import NEGATIVE, POSITIVE, UNLABELLED
from service.statistics.ratios import ratio
from service.store.records import PoolRecord


@dataclass(frozen=True)
class PerformanceFacts:
    """What the performance is learned from, as columns [n]."""

    scores: Floats  # of the positive class
    weights: Floats  # how much of the traffic each represents
    labels: Ints  # `POSITIVE`, `NEGATIVE` or `UNLABELLED`
    label_weights: Floats  # as how many labels each counts
    score_edges: tuple[float, ...]  # of the groups that labels are requested by
    imputed: Sequence[Ints] = ()  # the labels, once for every imputation; none where labels are the truth
    unclear: UnclearItems | None = None  # if some requested items may have either class
    answered: Mapping[str, int] = field(default_factory=dict)  # items with a label, by positive score


def performance_facts(
    index: GroupIndex,
    ledger: OutcomeLedger,
    pooled: Sequence[PoolRecord],
    *,
    positive: str,
    decay: float,
    now: float,
    truth: LearnedTruth | None = None,
    any_class: Collection[int] = (),
) -> PerformanceFacts | None:
    """What the performance is learned from; None without traffic.

    Of a model's outcomes, which lose weight at a rate of `decay`, 1/s, and of some of its unlabelled items;
    `positive` is the class to be found. If labels may be wrong, `truth` is what they leave open. Items
    without a label for a reason in `any_class` may have either class.
    """
    space, whole = index.space, index.traffic.whole
    traffic = Block(whole.counts[0], whole.weights[0], whole.score_sums[0])
    if not traffic.weights.any():
        return None
    number = space.classes.index(positive)
    item_cells, item_classes, item_scores = _pooled_items(space, traffic, pooled)
    scored = ledger.scored_labels(at=now, decay=decay)
    cells = index.cells.classes[scored.cells] * space.bin_count + index.cells.bins[scored.cells]
    drawn = DrawnLabels.of(index, ledger, scored.cells, scored.sources)
    usable = drawn.usable(any_class) & (traffic.weights[cells] > 0)
    scored, cells = scored.part(usable), cells[usable]
    balanced = label_weights(drawn.part(usable), scored.freshness).weights
    # A score tells all that the score decides; within one, labels weigh as they were asked for.
    strata = index[POSITIVE_SCORE].cells[scored.cells]
    worth = _worth(balanced, scored.freshness, strata, space.bin_count)
    alone = _cells_alone(traffic, np.concatenate((item_cells, cells)))
    own = np.concatenate(
        (
            _positive(item_scores, item_classes == number),
            _positive(scored.scores, scored.predicted == number),
            _positive(traffic.score_sums[alone] / traffic.weights[alone], alone // space.bin_count == number),
        )
    )

    def labels(positive: Flags) -> Ints:
        found = np.full(len(own), UNLABELLED, np.int64)
        found[len(item_cells) : len(own) - len(alone)] = np.where(positive, POSITIVE, NEGATIVE)
        return found

    imputed: list[Flags] = []
    if truth is not None:
        imputed = imputed_positives(truth, index, ledger, scored, positive=number, at=now)
    return PerformanceFacts(
        scores=np.clip(own, 0.0, 1.0),
        weights=_stood_for(traffic, np.concatenate((item_cells, cells, alone))),
        score_edges=space.score_edges,
        labels=labels(scored.true_classes == number),
        label_weights=np.concatenate((np.ones(len(item_cells)), worth, np.ones(len(alone)))),
        imputed=[labels(each) for each in imputed],
        unclear=unclear_items(index, ledger, at=now, decay=decay, any_class=any_class),
        answered=answered_by_score(index, ledger, now=now),
    )


def _pooled_items(
    space: CellSpace, traffic: Block, pooled: Sequence[PoolRecord]
) -> tuple[Indices, Indices, Floats]:
    """Cells, predicted classes by index, and scores of unlabelled items [n]."""
    classes = {name: i for i, name in enumerate(space.classes)}
    usable = [
        (classes[record.predicted_class], record.score)
        for record in pooled
        if record.predicted_class in classes
    ]
    columns = np.array(usable, np.float64).reshape(-1, 2)
    predicted, scores = columns[:, 0].astype(np.intp), columns[:, 1]
    cells = predicted * space.bin_count + space.bins(scores)
    # The pool may know a cell already that the traffic, as it was read, does not.
    scored = traffic.weights[cells] > 0
    return cells[scored], predicted[scored], scores[scored]


def _cells_alone(traffic: Block, cells: Indices) -> Indices:
    """Cells with traffic, but without an item: their mean score represents it."""
    weights = traffic.weights
    return np.flatnonzero((np.bincount(cells, minlength=len(weights)) == 0) & (weights > 0))


def _positive(scores: Floats, called: Flags) -> Floats:
    return np.where(called, scores, 1 - scores)


def _stood_for(traffic: Block, cells: Indices) -> Floats:
    """How much each counts [n]: its cell's share of the traffic, shared by all items of the cell.

    All together count as many as the traffic, as the share of every cell is known from all of it. How scores
    are spread within a cell is known from its items alone; so score bins should be fine where it matters.
    """
    weights = traffic.weights
    shares = weights[cells] / np.bincount(cells, minlength=len(weights))[cells]
    counted: Floats = shares * (float(traffic.counts.sum()) / float(shares.sum()))
    return counted


def _worth(balanced: Floats, freshness: Floats, strata: Indices, count: int) -> Floats:
    """As how many labels each counts [n].

    In proportion to its weight by the balance heuristic and age, and all of a stratum together as Kish's
    effective number.
    """
    total = sums(strata, balanced * freshness, count)
    squares = sums(strata, balanced**2 * freshness, count)
    return balanced * freshness * ratio(total, squares, 0.0)[strata]
