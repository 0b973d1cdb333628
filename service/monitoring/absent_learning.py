"""What is learned of items without a self-selected label, from those of them that were requested (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.domain.groupings import ByAttribute
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_aggregates import NO_CLASS, OutcomeSums
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.absent_answers import AccuracyDraws, Strata, draw_accuracies, draw_shares
from service.statistics.absent_chains import CHAINS, AnsweredItems
from service.statistics.balance_heuristic import sums as summed

_ROUNDED: Final = 0.02  # numbers of items are rounded by so much, so that replicas learn the same
_LEAST: Final = 1e-9
_ALIKE: Final = 2  # factors whose levels hardly differ beyond their scores: score bins and predicted classes


@dataclass(frozen=True)
class RequestedItems:
    """Requested items by strata of equal ones [S], and the items like them that waited for a label."""

    strata: Strata
    groups: Sequence[Sequence[str]]  # names of the levels of every factor but the first ones
    # of those without an unrequested label, and of those that did not wait for one
    correct: Floats  # [2, S]
    incorrect: Floats  # [2, S]
    unclear: Floats  # that may be either [2, S]
    # of all items that waited
    missing: Floats  # without a label [S]
    chosen: Floats  # with one [S]
    right: Floats  # with one that is the predicted class [S]
    labels: int  # answered requests
    at: float  # seconds since the epoch

    @property
    def _requested(self) -> Flags:
        """Whether items of a stratum were requested [S]."""
        requested: Flags = (self.correct + self.incorrect + self.unclear).sum(axis=0) > 0
        return requested

    @property
    def requested_strata(self) -> int:
        """How many strata have requested items."""
        return int(np.count_nonzero(self._requested))

    def even_part(self, most: int) -> RequestedItems:
        """So many of the strata that have requested items, evenly over all: labels do not decide which."""
        found = np.flatnonzero(self._requested)
        kept = found[np.unique(np.linspace(0, len(found) - 1, most).astype(np.intp))]
        counts = ("correct", "incorrect", "unclear", "missing", "chosen", "right")
        part = {name: getattr(self, name)[..., kept] for name in counts}
        share = sum(part[name].sum() for name in counts[:2]) / (self.correct + self.incorrect).sum()
        which = np.isin(np.arange(len(self.missing)), kept)
        return replace(self, strata=self.strata.part(which), labels=round(share * self.labels), **part)


@dataclass(frozen=True)
class LearnedAccuracies:
    """Draws of the accuracy of items without a self-selected label."""

    draws: AccuracyDraws
    groups: Sequence[Sequence[str]]  # names of the levels, as in `RequestedItems`
    none_correct: bool  # whether answers agree with it that all of them are incorrect
    none_incorrect: bool  # likewise, correct
    has_unclear: bool  # whether in every other draw items of requests without a label are correct
    labels: int  # answered requests that this was learned from
    at: float  # when these were all, seconds since the epoch

    def accuracies(self, strata: Strata, groups: Sequence[Sequence[str]]) -> Floats:
        """Probability that items of other strata are correct, whose levels have these names [D, S]."""
        levels = strata.levels.copy()
        for factor, (now, then) in enumerate(zip(groups, self.groups, strict=True), _ALIKE):
            known = {name: number for number, name in enumerate(then)}
            # Nothing is known of further groups; the last number is of items without one.
            new = iter(range(len(then) + 1, len(then) + len(now) + 2))
            numbers = [known[name] if name in known else next(new) for name in now]
            levels[factor] = np.array([*numbers, len(then)], np.intp)[levels[factor]]
        return self.draws.accuracies(strata.scores, levels)


def strata_of(index: GroupIndex, cells: Indices) -> Strata:
    """Of label cells: log odds of their scores, and their levels of every factor.

    Factors are score bins, predicted classes, and the values of attributes that groupings are by.
    """
    bins, count = index.cells.bins[cells], index.space.bin_count
    factors = [bins, index.cells.classes[cells]]
    factors += [index[name].numbers[cells] for name in _factors(index)]
    scores = np.asarray(special.logit((np.arange(count) + 0.5) / count), np.float64)
    return Strata(scores[bins], np.stack(factors).astype(np.intp), np.arange(len(factors)) >= _ALIKE)


def factor_groups(index: GroupIndex) -> list[list[str]]:
    """Names of the groups of every factor that is a grouping, in the order of their numbers."""
    return [index[name].names for name in _factors(index)]


def _factors(index: GroupIndex) -> list[str]:
    groupings = sorted(index.space.groupings.items())
    return [name for name, each in groupings if isinstance(each, ByAttribute) and not each.is_by_votes]


def requested_items(
    index: GroupIndex, ledger: OutcomeLedger, sums: OutcomeSums, *, any_class: Collection[int], at: float
) -> RequestedItems | None:
    """The items to learn from; None if no request was answered whose item has no unrequested label for sure.

    Of requested items that did not wait for such a label it is not known whether they would have got one.
    Items like them that waited say it. Requests without a label for the reasons `any_class` may be either.
    """
    waited, absent, answered = answered_requests(ledger, sums)
    if not answered.any():
        return None
    unclear = np.isin(sums.true_classes, list(any_class))
    known = strata_of(index, sums.cells)
    keys, of = np.unique(known.levels, axis=1, return_inverse=True)
    places, count = of.ravel(), keys.shape[1]

    def counted(rows: Flags) -> Floats:
        return summed(places, sums.freshness * rows, count)

    scores = np.zeros(count)
    scores[places] = known.scores
    has_label, chosen = sums.true_classes >= NO_CLASS, waited & ~absent
    correct, incorrect, either = (
        np.stack([counted(part & kind) for part in (absent, ~waited)])
        for kind in (has_label & (sums.correct > 0), has_label & (sums.correct == 0), ~has_label & unclear)
    )
    return RequestedItems(
        Strata(scores, keys, known.differ),
        factor_groups(index),
        correct,
        incorrect,
        either,
        missing=counted(absent),
        chosen=counted(chosen),
        right=counted(chosen & (sums.correct > 0)),
        labels=int(sums.counts[answered].sum()),
        at=at,
    )


def answered_requests(ledger: OutcomeLedger, sums: OutcomeSums) -> tuple[Flags, Flags, Flags]:
    """Which sums waited for an unrequested label, which of these have none, and which to learn from [s]."""
    waited = ledger.of_traffic[sums.sources]
    absent = waited & ledger.is_absent[sums.sources]
    return waited, absent, (absent | ~waited) & (sums.true_classes >= NO_CLASS) & (sums.freshness > 0)


def learn_accuracies(items: RequestedItems) -> LearnedAccuracies:
    """Learn from requested items; takes seconds with thousands of strata."""
    found = [np.concatenate(each) for each in (items.correct, items.incorrect, items.unclear)]
    some, count = np.sum(found, axis=0) > 0, len(items.missing)
    shares = np.ones((CHAINS, 2 * count)), np.zeros((CHAINS, 2 * count))
    if some[count:].any():
        missing, chosen, right = (_rounded(each) for each in (items.missing, items.chosen, items.right))
        without = draw_shares(items.strata, missing, chosen, 1)
        accuracy = draw_shares(items.strata, right, np.maximum(chosen - right, 0.0), 2)
        shares[0][:, count:], shares[1][:, count:] = without, (1 - without) * accuracy
    answered = AnsweredItems(
        np.tile(items.strata.scores, 2)[some],
        np.tile(items.strata.levels, 2)[:, some],
        items.strata.differ,
        *(each[:, some] for each in shares),
        *(_rounded(counts[some]) for counts in found),
    )
    return LearnedAccuracies(
        draw_accuracies(answered),
        items.groups,
        none_correct=answered.may_all_be(0),
        none_incorrect=answered.may_all_be(1),
        has_unclear=bool(answered.unclear.any()),
        labels=items.labels,
        at=items.at,
    )


def _rounded(counts: Floats) -> Floats:
    """The same but for so little that their age alone seldom changes them."""
    rounded = np.exp(np.rint(np.log(np.maximum(counts, _LEAST)) / _ROUNDED) * _ROUNDED)
    return np.where(counts > _LEAST, rounded, 0.0)
