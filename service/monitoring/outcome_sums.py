"""The outcomes of one model, summed up for estimates."""

from __future__ import annotations

import sys
from collections.abc import Collection

import numpy as np

from service.config.unrequested import ChosenBy
from service.domain.arrays import Codes, Flags, Floats, Indices, Ints
from service.domain.cells import FORMER_GROUPING, CellSpace
from service.monitoring.change_discounting import ChangeMemory, OrderedOutcomes
from service.monitoring.label_encoding import Source
from service.monitoring.outcome_aggregates import (
    EXPIRED_CLASS,
    NO_CLASS,
    OF_REQUESTS,
    SKIPPED_CLASS,
    OutcomeSums,
    SumTallies,
    counting_in,
)
from service.monitoring.outcome_fold import OutcomeFold
from service.monitoring.outcome_rows import NONE
from service.monitoring.paired_outcomes import may_count_already
from service.statistics.balance_heuristic import sums as summed
from service.statistics.ratios import ratio


class SummedOutcomes(OutcomeFold):
    """The outcomes of one model in sums; see `OutcomeFold` for how they come and go.

    Where it says `unanswered`, outcomes without a label count if the reason is one of these: `EXPIRED_CLASS`,
    `SKIPPED_CLASS`. All others are left out.
    """

    def __init__(
        self,
        space: CellSpace,
        *,
        may_err: bool = False,
        unrequested: ChosenBy | None = None,
        outcome_limit: int = sys.maxsize,
    ) -> None:
        super().__init__(space, may_err=may_err, unrequested=unrequested)
        self._outcome_limit = outcome_limit  # about how many outcomes the stream keeps
        self.changes = ChangeMemory()  # what earlier rounds found

    @property
    def sources(self) -> list[Source]:
        """Who asked, in the order of the codes in `sums`."""
        return self._sources.all

    def is_drawn_for(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether weights depend on how densely it drew for a grouping [sources]."""
        return np.array([grouping in source.samples for source in self.sources], np.bool_)

    def is_requested_for(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether labels were requested for a grouping [sources]."""
        return np.array([grouping in source.groupings for source in self.sources], np.bool_)

    def is_sample_of(self, grouping: str, *, unanswered: Collection[int] = ()) -> Flags:
        """Of every code in `sums`, whether labels are a random sample within a grouping's groups [sources].

        These were requested for the grouping, or are of an even sample of all traffic, unless groups are by
        votes. Where unrequested labels are self-selected, requested ones are as `counts_as_requested` says.
        """
        requested, by = self.is_requested_for(grouping), self._space.groupings.get(grouping)
        if self.unrequested is not None and not self.samples_traffic:
            requested &= self.counts_as_requested(unanswered)
        if not self.samples_traffic or by is None or by.is_by_votes:
            return requested
        return requested | self.of_traffic

    def counts_as_requested(self, unanswered: Collection[int]) -> Flags:
        """Of every code in `sums`, whether labels are those that were requested [sources].

        A self-selected label in place of a requested one is none, unless items without a label for the same
        reason count as well (`unanswered`).
        """
        chosen = [bool(source.draws) and source.instead_of in (None, *unanswered) for source in self.sources]
        return np.array(chosen, np.bool_) & ~self.is_requested_for(FORMER_GROUPING)

    @property
    def samples_traffic(self) -> bool:
        """Whether unrequested labels are of an even sample of all traffic."""
        return self.unrequested in ("census", "sampled")

    @property
    def of_traffic(self) -> Flags:
        """Of every code in `sums`, whether its items waited for unrequested labels [sources]."""
        return np.array([source.of_traffic for source in self.sources], np.bool_)

    @property
    def is_absent(self) -> Flags:
        """Of every code in `sums`, whether these labels did not come [sources]."""
        return np.array([source.absent for source in self.sources], np.bool_)

    @property
    def is_requested(self) -> Flags:
        """Of every code in `sums`, whether its items were requested [sources]."""
        return np.array([bool(source.draws) for source in self.sources], np.bool_)

    def is_drawn_by_value(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether labels were drawn from the groups of their values [sources]."""
        return np.array([grouping in source.by_value for source in self.sources], np.bool_)

    @property
    def has_known_density(self) -> Flags:
        """Of every code in `sums`, whether it is still known how densely its labels were asked for [sources].

        It is not of those whose grouping is configured no more, under whatever name, nor of those that were
        aimed by votes of a challenger, or an ensemble, that is none any more.
        """
        return np.logical_not(self.is_drawn_for(FORMER_GROUPING))

    @property
    def of_any_vote(self) -> Flags:
        """Of every code in `sums`, whether its labels stand for predictions of all votes [sources]."""
        return np.array([source.any_vote for source in self.sources], np.bool_)

    def ended_by_reason(self) -> dict[int, Ints]:
        """How many requests have ended, by why there is no label (or `NO_CLASS`) and score bin [B]."""
        bins = self.cells.bins[self._sums.cells]
        found = np.minimum(self._sums.true_classes, NO_CLASS)
        counts = self._sums.tallies.counts * self.is_requested[self._sums.sources]
        parts = {
            reason: np.isin(found, list(OF_REQUESTS.get(reason, (reason,))))
            for reason in (NO_CLASS, EXPIRED_CLASS, SKIPPED_CLASS)
        }
        return {
            reason: summed(bins[part], counts[part].astype(np.float64), self._space.bin_count).astype(
                np.int64
            )
            for reason, part in parts.items()
        }

    def unanswered_shares(self, groups: Indices, group_count: int) -> Floats:
        """Share of the items of every group without a label among those whose request has ended [G].

        `groups` has the group of every label cell, or `group_count` of one that is in none [cells]. NaN
        without any.
        """
        of_sums, counts = groups[self._sums.cells], self._sums.tallies.counts.astype(np.float64)
        counts *= self.is_requested[self._sums.sources]
        ended = summed(of_sums, counts, group_count + 1)[:-1]
        answered = summed(of_sums, counts * self._sums.answered, group_count + 1)[:-1]
        return ratio(ended - answered, ended)

    def count_drawn_for(self, grouping: str) -> int:
        """How many outcomes count that were drawn for a grouping."""
        asked = self.is_requested_for(grouping)[self._sums.sources] & self._sums.answered
        return int(self._sums.tallies.counts[asked].sum())

    @property
    def predicted_at(self) -> Floats:
        """When predictions were made, seconds since the epoch [rows]."""
        return np.asarray(self._rows["predicted_at"], np.float64)

    def outcomes(self, *, at: float) -> OrderedOutcomes:
        """The outcomes that count, with the labels given by then; views, good until the ledger changes."""
        of_rows: Codes = self._rows["sum"]
        tallies = self._sums.tallies
        later = self._rows["given_at"] > at
        if later.any():
            of_rows = np.where(later, NONE, of_rows)
            there = np.flatnonzero(of_rows != NONE)
            tallies = SumTallies(len(self._sums))
            tallies.add(of_rows[there], self._rows.marks(there))
        return OrderedOutcomes(
            sums=of_rows,
            predicted_at=self._rows["predicted_at"],
            cells=self._sums.cells,
            sources=self._sums.sources,
            correct=self._sums.correct,
            answered=self._sums.answered,
            tallies=tallies,
        )

    def row_labels(
        self,
        *,
        at: float,
        decay: float,
        factors: Floats | None = None,
        unanswered: Collection[int] = (),
    ) -> tuple[Indices, Floats]:
        """The sum in which every row counts by then, `NONE` without one, and what is left of it [rows].

        Of the sums in which rows count, `sums` has the same in the order of their numbers.
        """
        fresh = self._freshness(at, decay)
        return self._slots(at, None, unanswered) - 1, fresh if factors is None else fresh * factors

    def sums(
        self,
        *,
        at: float,
        decay: float,
        factors: Floats | None = None,
        since: float | None = None,
        unanswered: Collection[int] = (),
    ) -> OutcomeSums:
        """The outcomes that count, with the labels that had been given by then, summed up.

        Those of a class that the model does not have are left out, and those without a label for another
        reason than these (`unanswered`: `EXPIRED_CLASS`, `SKIPPED_CLASS`).

        Labels lose weight at `decay`, 1/s, and `factors` are what changes leave of every row [rows]. What was
        predicted before `since` is left out.
        """
        slots = self._slots(at, since, unanswered)
        fresh, length = self._freshness(at, decay), len(self._sums) + 1
        counts = np.bincount(slots, minlength=length)[1:]
        whole = left = summed(slots, fresh, length)[1:]
        if factors is not None:
            left = summed(slots, fresh * factors, length)[1:]
        return self._sums.summed(counts, left, whole)

    def by_epoch(
        self,
        epochs: Indices,
        count: int,
        *,
        at: float,
        decay: float,
        factors: Floats | None = None,
        unanswered: Collection[int] = (),
    ) -> tuple[Floats, Floats]:
        """What age leaves of the labels of every sum by epoch, and what is left after changes [some sums, E].

        Of the same sums as `sums`, with the same arguments, in their order; `epochs` has that of every row.
        """
        slots = self._slots(at, None, unanswered)
        fresh, length = self._freshness(at, decay), len(self._sums) + 1
        some = np.bincount(slots, minlength=length)[1:] > 0
        whole, left = (
            summed(slots * count + epochs, weights, length * count).reshape(length, count)[1:][some]
            for weights in (fresh, fresh if factors is None else fresh * factors)
        )
        return whole, left

    def _slots(self, at: float, since: float | None, unanswered: Collection[int]) -> Indices:
        """The sum in which every row counts by then, from 1; 0 of rows that count in none [rows]."""
        rows = self._rows
        slots = rows["sum"].astype(np.intp) + 1
        slots[(rows["given_at"] > at) | ~self._counts(rows["true_class"], unanswered)] = 0
        if since is not None:
            slots[rows["predicted_at"] < since] = 0
        return slots

    @staticmethod
    def _counts(true_classes: Codes | Indices, unanswered: Collection[int]) -> Flags:
        """Whether there is a label, or the reason why there is none is one of these [n]."""
        counts: Flags = true_classes >= NO_CLASS
        for reason in unanswered:
            counts |= true_classes == reason
        return counts

    def _freshness(self, at: float, decay: float) -> Floats:
        """What age leaves of every row [rows]."""
        return np.exp(-decay * np.maximum(at - self._rows["predicted_at"], 0.0))

    def _may_count_already(self, trimmed: bool) -> Flags:
        """Rows that `may_count_already` [rows]."""
        if self.unrequested is None:
            return np.zeros(len(self._rows), np.bool_)
        return may_count_already(self._rows, self._outcome_limit, trimmed=trimmed)

    def tallies(
        self,
        grouping: str,
        groups: Indices,
        group_count: int,
        *,
        unanswered: Collection[int] = (),
        trimmed: bool | None = None,
    ) -> SumTallies:
        """How many outcomes of a grouping's sample are in every group, and which [G].

        `groups` has the group of every label cell, or `group_count` of one that is in none [cells]. Those
        without a label count for these reasons. Unless `trimmed` is None, those are left out whose prediction
        may have another outcome that is not in the stream, now or later; it says whether some are gone.
        """
        of_sums = groups[self._sums.cells]
        asked = self.is_sample_of(grouping, unanswered=unanswered)[self._sums.sources]
        asked &= self._counts(self._sums.true_classes, unanswered) & (of_sums < group_count)
        found = self._sums.tallies.of_groups(asked, of_sums, group_count)
        if trimmed is not None:
            out = counting_in(asked, np.where(self._may_count_already(trimmed), self._rows["sum"], NONE))
            found.remove(of_sums[self._rows["sum"][out]], self._rows.marks(out))
        return found
