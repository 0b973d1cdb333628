"""Items that got no label while others did, and nobody knows why: their correctness is imputed (pure).

Where items with an unrequested label are self-selected, these labels count for their own items alone. All
items that waited for such a label, with it or without, are an even sample of traffic. Those without are like
those of them that were requested (`service/statistics/absent_answers.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.absent_learning import (
    LearnedAccuracies,
    answered_requests,
    factor_groups,
    strata_of,
)
from service.monitoring.group_index import GroupIndex
from service.monitoring.imputed_labels import extremes
from service.monitoring.outcome_aggregates import NO_CLASS, OutcomeSums
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.absent_answers import stratified
from service.statistics.absent_chains import CHAINS
from service.statistics.balance_heuristic import sums as summed
from service.statistics.groups import Labels

IMPUTATIONS: Final = 20
_LEAST: Final = 1e-9
_EXTREMES: Final = 500  # draws of either end, if nothing is known


@dataclass(frozen=True)
class ImputedItems:
    """Labels with an imputed correctness of items without one."""

    imputed: tuple[Labels, ...]
    requested: Labels  # the labels, and the requests that may have any true class
    # draws of the accuracy of items with an unrequested label minus that of all; None without such items
    selection_bias: Floats | None


def impute_items(
    index: GroupIndex,
    ledger: OutcomeLedger,
    sums: OutcomeSums,
    labels: Labels,
    *,
    any_class: Collection[int],
    learned: LearnedAccuracies | None,
) -> ImputedItems | None:
    """Imputations of the items of an even sample that have no label; None if all have one.

    `sums` has the same rows as the `labels`, among which are items without one. Requested ones whose reason
    is in `any_class` are correct in every other imputation, and incorrect in the others. Where nothing is
    `learned`, or no request has been answered, all items may be correct, or all incorrect.
    """
    waited, absent, answered = answered_requests(ledger, sums)
    sought = absent & (sums.true_classes < NO_CLASS) & ~np.isin(sums.true_classes, list(any_class))
    if not sought.any():
        return None
    cells, of_rows = _ordered_cells(index, labels.cells[sought])
    masses = np.bincount(of_rows, (labels.weights * labels.freshness)[sought], len(cells))
    counts = summed(of_rows, labels.freshness[sought], len(cells))
    if learned is not None and answered.any():
        drawn = _imputed(learned.accuracies(strata_of(index, cells), factor_groups(index)), counts)
        _extend_ends(
            drawn, drawn @ masses, none_correct=learned.none_correct, none_incorrect=learned.none_incorrect
        )
        chosen = _chosen(drawn, masses / masses.sum(), halved=learned.has_unclear)
    else:
        drawn = np.repeat([0.0, 1.0], _EXTREMES)[:, None] * np.ones(len(cells))
        chosen = drawn[_EXTREMES - IMPUTATIONS // 2 :][:IMPUTATIONS]
    imputed = []
    for number, accuracies in enumerate(chosen):
        filled = _filled(labels, sought, accuracies[of_rows], index.cells.classes)
        imputed.append(extremes(filled, index.cells.classes)[number % 2])
    known = replace(labels, true_classes=np.where(sought, NO_CLASS, labels.true_classes))
    return ImputedItems(
        tuple(imputed), known, _selection_bias(labels, waited, absent, sought, drawn @ masses)
    )


def _ordered_cells(index: GroupIndex, cells: Indices) -> tuple[Indices, Indices]:
    """The label cells that some rows are of, and the place of each row's among these.

    They are in the order of their values, classes and bins. Their numbers depend on how outcomes came, and
    draws are made, and ties are broken, in this order.
    """
    found, of_rows = np.unique(cells, return_inverse=True)
    keys = [index.cells.bins[found], index.cells.classes[found]]
    for attribute in index.space.attributes:
        names, numbers = index.cells.values(attribute)
        ranks = np.argsort(np.argsort(np.array(names)))
        keys.append(ranks[numbers[found]])
    order = np.lexsort(keys)
    return found[order], np.argsort(order)[of_rows.ravel()]


def _imputed(accuracies: Floats, counts: Floats) -> Floats:
    """Shares of correct ones among so many predictions of every stratum, for every draw [D, S].

    An imputation is of items, not of their accuracy: else intervals would not be wide enough where many of
    the items were requested (Rubin, Multiple Imputation for Nonresponse in Surveys, 1987).
    """
    whole = np.maximum(np.rint(counts), 1.0).astype(np.int64)
    drawn = np.random.default_rng(3).binomial(whole, np.clip(accuracies, 0.0, 1.0)) / whole
    return np.asarray(drawn, np.float64)


def _extend_ends(drawn: Floats, totals: Floats, *, none_correct: bool, none_incorrect: bool) -> None:
    """Let the lower half of the draws be 0, or the upper half 1, if the data agree with that.

    Near 0 and 1 no prior gives intervals that hold: this is the modified interval of Jeffreys (Brown, Cai and
    DasGupta, Statistical Science 2001). Half, because it is not known either how many items have a label.
    `totals` say which draws are low [D].
    """
    order, count = np.argsort(totals, kind="stable"), len(drawn) // 2
    if none_correct:
        drawn[order[:count]] = 0.0
    if none_incorrect:
        drawn[order[-count:]] = 1.0


def _chosen(drawn: Floats, shares: Floats, *, halved: bool) -> Floats:
    """A few draws that stand for all [n, S]; every other one for every other draw, if `halved`."""
    if not halved:
        found = stratified(drawn, shares, IMPUTATIONS)
        # Whatever goes by turns must not depend on how high a draw is.
        return found[np.random.default_rng(0).permutation(IMPUTATIONS)]
    odd = np.arange(len(drawn)) % CHAINS % 2
    halves = [stratified(drawn[odd == each], shares, IMPUTATIONS // 2) for each in (0, 1)]
    return np.stack(halves, axis=1).reshape(IMPUTATIONS, -1)


def _filled(labels: Labels, sought: Flags, accuracies: Floats, classes: Indices) -> Labels:
    """The labels, with every row that is sought as two: its correct and its incorrect part.

    The true class of the incorrect part is not known.
    """
    rows = np.flatnonzero(sought)
    order = np.concatenate([np.arange(len(sought)), rows])
    correct, true, fresh = (
        column[order] for column in (labels.correct, labels.true_classes, labels.freshness)
    )
    correct[rows], true[rows], fresh[rows] = 1.0, classes[labels.cells[rows]], fresh[rows] * accuracies
    more = slice(len(sought), None)
    correct[more], true[more], fresh[more] = 0.0, NO_CLASS, fresh[more] * (1 - accuracies)
    return Labels(labels.cells[order], correct, labels.weights[order], fresh, true)


def _selection_bias(
    labels: Labels, waited: Flags, absent: Flags, sought: Flags, correct: Floats
) -> Floats | None:
    """Draws of the accuracy of items with an unrequested label, minus that of all that waited for one [D].

    `correct` are draws of how many of the items that are sought are correct, by weight [D].
    """
    worth = labels.weights * labels.freshness
    chosen, total = worth[waited & ~absent], worth[waited].sum()
    if not chosen.sum() > 0:
        return None
    right = float(chosen @ labels.correct[waited & ~absent])
    others = float((worth * labels.correct)[absent & ~sought].sum())
    share = 1 - chosen.sum() / total
    own, absents = right / chosen.sum(), (others + correct) / max(total - chosen.sum(), _LEAST)
    # The items are a sample, too.
    size = total**2 / (worth[waited] @ labels.weights[waited])
    spread = share**2 * (own * (1 - own) / (1 - share) + absents * (1 - absents) / share)
    spread += (own - absents) ** 2 * share * (1 - share)
    noise = np.random.default_rng(0).standard_normal(len(correct)) * np.sqrt(np.maximum(spread, 0.0) / size)
    return np.asarray(share * (own - absents) + noise, np.float64)
