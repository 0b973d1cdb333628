"""The outcomes of one model, summed up for estimates or one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Codes, Flags, Floats, Indices, UInt64s
from service.domain.cells import FORMER_GROUPING, CellSpace
from service.domain.request_order import Places
from service.monitoring.change_discounting import ChangeMemory, OrderedOutcomes
from service.monitoring.item_labels import Person
from service.monitoring.label_encoding import Source
from service.monitoring.label_truth import LabelledItems
from service.monitoring.outcome_aggregates import NO_CLASS, Columns, OutcomeSums, SumTallies, counting_in
from service.monitoring.outcome_fold import OutcomeFold
from service.monitoring.outcome_rows import NONE, position_key
from service.statistics.balance_heuristic import sums as summed
from service.store.outcome_entries import OutcomeEntry


@dataclass(frozen=True)
class ScoredLabels(Columns):
    """Labels with their scores, as columns [n]."""

    cells: Indices  # label cell of each
    predicted: Indices  # index of the predicted class
    scores: Floats  # of the predicted class
    sources: Indices  # codes of who asked
    true_classes: Indices  # index of the true class
    freshness: Floats  # what forgetting leaves of each


@dataclass(frozen=True)
class LabelSequence(Columns):
    """Labels that one grouping asked for, as columns [n]."""

    marks: UInt64s  # of each, as good as random, which identify the outcome and whether it is right
    cells: Indices  # label cell of each
    scores: Floats  # of the predicted class
    correct: Flags  # whether that is the true class
    predicted_at: Floats  # when it was predicted, seconds since the epoch
    places: Places  # of their requests among all requests, as `service/domain/request_order.py` gives them
    suspected: Flags  # whether the group was under suspicion at the time of the request


class OutcomeLedger(OutcomeFold):
    """The outcomes of one model, to be read; see `OutcomeFold` for how they come and go."""

    def __init__(self, space: CellSpace, *, may_err: bool = False) -> None:
        super().__init__(space, may_err=may_err)
        self.changes = ChangeMemory()  # what earlier rounds found

    def __len__(self) -> int:
        return int(np.count_nonzero(self._rows["alive"]))

    @property
    def sources(self) -> list[Source]:
        """Who asked, in the order of the codes in `sums`."""
        return self._sources.all

    def is_drawn_for(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether the labels were drawn for a grouping [sources]."""
        return np.array([grouping in source.groupings for source in self.sources], np.bool_)

    def is_drawn_by_value(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether labels were drawn from the groups of their values [sources]."""
        return np.array([grouping in source.by_value for source in self.sources], np.bool_)

    @property
    def has_known_density(self) -> Flags:
        """Of every code in `sums`, whether it is still known how densely its labels were asked for [sources].

        It is not of those whose grouping is configured no more, under whatever name, nor of those that were
        aimed by votes of a challenger, or an ensemble, that is none any more.
        """
        return ~self.is_drawn_for(FORMER_GROUPING)

    @property
    def of_any_vote(self) -> Flags:
        """Of every code in `sums`, whether its labels stand for predictions of all votes [sources]."""
        return np.array([source.any_vote for source in self.sources], np.bool_)

    @property
    def recent(self) -> list[OutcomeEntry]:
        """The outcomes that came last, the newest first."""
        return self._recent.newest_first()

    @property
    def first_label_at(self) -> float | None:
        """When the first label was given, seconds since the epoch; of a corrected one, the first time."""
        return float(self._rows["given_at"].min()) if len(self._rows) else None

    @property
    def last_label_at(self) -> float | None:
        """When the last label was given, likewise."""
        return float(self._rows["given_at"].max()) if len(self._rows) else None

    def count_drawn_for(self, grouping: str) -> int:
        """How many outcomes count that were drawn for a grouping."""
        return int(self._sums.tallies.counts[self.is_drawn_for(grouping)[self._sums.sources]].sum())

    @property
    def people(self) -> list[Person]:
        """Who gave labels, in the order of their codes; none where labels are the truth."""
        return [] if self.item_labels is None else self.item_labels.people

    @property
    def label_changes(self) -> int:
        """How often labels of people who err have changed; unlike `labelled_items` it takes no time."""
        return 0 if self.item_labels is None else self.item_labels.changes

    def labelled_items(self, *, at: float) -> LabelledItems | None:
        """Items that count, with all labels given by then; None where labels are the truth.

        Further predictions of an item are items of their own, with the same labels.
        """
        if self.item_labels is None:
            return None
        rows, given = self._rows, self.item_labels.given(at=at)
        chosen = np.flatnonzero((rows["sum"] != NONE) & (rows["given_at"] <= at))
        keys = self._rows.outcome_keys()
        original = np.ones(len(keys), np.bool_)
        for item, draws in self._further.items():
            for draw in draws:
                if (row := self._rows.row(draw.position)) is not None:
                    keys[row], original[row] = position_key(item), False
        order = np.argsort(given.items, kind="stable")
        starts = np.searchsorted(given.items, keys[chosen], "left", sorter=order)
        counts = np.searchsorted(given.items, keys[chosen], "right", sorter=order) - starts
        chosen, starts, counts = (column[counts > 0] for column in (chosen, starts, counts))
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        labels = order[np.repeat(starts, counts) + within]
        return LabelledItems(
            rows=chosen,
            cells=self._sums.cells[rows["sum"][chosen]],
            predicted=rows["predicted"][chosen].astype(np.intp),
            scores=rows["score"][chosen],
            items=np.repeat(np.arange(len(chosen)), counts),
            people=given.people[labels],
            classes=given.classes[labels],
            delays=given.delays[labels],
            original=original[chosen],
        )

    def row_labels(self, *, at: float, decay: float, factors: Floats | None = None) -> tuple[Indices, Floats]:
        """The sum in which every row counts by then, `NONE` without one, and what is left of it [rows].

        Of the sums in which rows count, `sums` has the same in the order of their numbers.
        """
        fresh = self._freshness(at, decay)
        return self._slots(at) - 1, fresh if factors is None else fresh * factors

    def sums(
        self, *, at: float, decay: float, factors: Floats | None = None, since: float | None = None
    ) -> OutcomeSums:
        """The outcomes that count, with the labels that had been given by then, summed up.

        Those of a class that the model does not have are left out.

        Labels lose weight at `decay`, 1/s, and `factors` are what changes leave of every row [rows]. What was
        predicted before `since` is left out.
        """
        slots, fresh, length = self._slots(at, since), self._freshness(at, decay), len(self._sums) + 1
        counts = np.bincount(slots, minlength=length)[1:]
        whole = left = summed(slots, fresh, length)[1:]
        if factors is not None:
            left = summed(slots, fresh * factors, length)[1:]
        return self._sums.summed(counts, left, whole)

    def by_epoch(
        self, epochs: Indices, count: int, *, at: float, decay: float, factors: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """What age leaves of the labels of every sum by epoch, and what is left after changes [some sums, E].

        Of the same sums as `sums`, with the same arguments, in their order; `epochs` has that of every row.
        """
        slots, fresh, length = self._slots(at), self._freshness(at, decay), len(self._sums) + 1
        some = np.bincount(slots, minlength=length)[1:] > 0
        whole, left = (
            summed(slots * count + epochs, weights, length * count).reshape(length, count)[1:][some]
            for weights in (fresh, fresh if factors is None else fresh * factors)
        )
        return whole, left

    def _slots(self, at: float, since: float | None = None) -> Indices:
        """The sum in which every row counts by then, from 1; 0 of rows that count in none [rows]."""
        rows = self._rows
        slots = rows["sum"].astype(np.intp) + 1
        slots[rows["given_at"] > at] = 0
        if since is not None:
            slots[rows["predicted_at"] < since] = 0
        return slots

    def _freshness(self, at: float, decay: float) -> Floats:
        """What age leaves of every row [rows]."""
        return np.exp(-decay * np.maximum(at - self._rows["predicted_at"], 0.0))

    @property
    def predicted_at(self) -> Floats:
        """When predictions were made, seconds since the epoch [rows]."""
        return np.asarray(self._rows["predicted_at"], np.float64)

    def outcomes(self, *, at: float) -> OrderedOutcomes:
        """The outcomes that count, with the labels given by then; views, good until the ledger changes."""
        of_rows: Codes = self._rows["sum"]
        tallies = self._sums.tallies
        if (self.last_label_at or 0.0) > at:
            of_rows = np.where(self._rows["given_at"] > at, NONE, of_rows)
            there = np.flatnonzero(of_rows != NONE)
            tallies = SumTallies(len(self._sums))
            tallies.add(of_rows[there], self._rows.marks(there))
        return OrderedOutcomes(
            sums=of_rows,
            predicted_at=self._rows["predicted_at"],
            cells=self._sums.cells,
            sources=self._sums.sources,
            correct=self._sums.correct,
            tallies=tallies,
        )

    def scored_labels(self, *, at: float, decay: float) -> ScoredLabels:
        """The outcomes that count, with the labels given by then, which lose weight at `decay`, 1/s."""
        rows = self._rows
        has_label = (rows["true_class"] != NO_CLASS) & (rows["given_at"] <= at)
        chosen = np.flatnonzero((rows["sum"] != NONE) & has_label)
        of = rows["sum"][chosen]
        return ScoredLabels(
            cells=self._sums.cells[of],
            predicted=rows["predicted"][chosen].astype(np.intp),
            scores=rows["score"][chosen],
            sources=self._sums.sources[of],
            true_classes=rows["true_class"][chosen].astype(np.intp),
            freshness=self._freshness(at, decay)[chosen],
        )

    def label_sequence(self, grouping: str, cells: Flags | None = None) -> LabelSequence:
        """The outcomes that count and that a grouping's assessments asked for; in some of all [cells]."""
        rows, of_sums = self._rows, self._sums.cells
        asked = self.is_drawn_for(grouping)[self._sums.sources]
        chosen = counting_in(asked if cells is None else asked & cells[of_sums], rows["sum"])
        places, suspected = self._places(grouping)
        return LabelSequence(
            marks=self._rows.marks(chosen),
            cells=of_sums[rows["sum"][chosen]],
            scores=rows["score"][chosen],
            correct=rows["correct"][chosen],
            predicted_at=rows["predicted_at"][chosen],
            places=places[chosen],
            suspected=suspected[chosen],
        )

    def _places(self, grouping: str) -> tuple[Places, Flags]:
        """Places of all outcomes in a grouping's sample, and whether their groups were suspected [rows]."""
        places, suspected = self._rows["place"], self._rows["suspected"]
        if not len(self._shared):
            return places, suspected
        return self._shared.places(grouping, self._rows.outcome_keys(), places, suspected)

    def first_requests(self) -> dict[tuple[str, str], int]:
        """Of every group that labels were requested for, the place of the first such request.

        Groups are known by the `grouping_key` and their name. Those by votes are left out. Only requests
        whose outcomes are there count, whether the grouping is still configured or not: so the order in which
        groups were first labelled depends on neither traffic nor the configuration.
        """
        shared = self._shared.first_places(self._rows.outcome_keys())
        return self._drawn.first_places(self._rows["drawn_for"], self._rows["place"], shared)

    def place_before(self, count: int) -> int:
        """The highest place among the requests of the `count` first outcomes; 0 of none."""
        own = int(self._rows["place"][:count].max(initial=0))
        return max(own, self._shared.last_place(self._rows.outcome_keys(slice(count))))

    @property
    def rows(self) -> int:
        """How many outcomes there are, retracted ones included."""
        return len(self._rows)

    @property
    def labels(self) -> int:
        """How many labels these have, retracted ones included: one each, or more if several people label."""
        return len(self._rows) if self.item_labels is None else max(len(self._rows), len(self.item_labels))

    def tallies(self, grouping: str, groups: Indices, group_count: int) -> SumTallies:
        """How many outcomes a grouping's assessments asked for in every group, and which [G].

        `groups` has the group of every label cell, or `group_count` of one that is in none [cells].
        """
        of_sums = groups[self._sums.cells]
        asked = self.is_drawn_for(grouping)[self._sums.sources] & (of_sums < group_count)
        return self._sums.tallies.of_groups(asked, of_sums, group_count)

    def labels_since(self, since: float) -> tuple[Floats, Flags]:
        """Labels given from then on: when, and whether they say that the prediction is right [n]."""
        chosen = np.flatnonzero((self._rows["given_at"] >= since) & (self._rows["sum"] != NONE))
        return self._rows["given_at"][chosen], self._rows["correct"][chosen]
