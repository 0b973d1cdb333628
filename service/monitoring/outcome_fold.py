"""The outcomes of one model, kept current from their stream: each counts in one sum, or in none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Codes, Indices
from service.domain.cells import CellSpace
from service.domain.groupings import ByClass
from service.domain.request_order import request_place, request_places
from service.monitoring.item_labels import ItemLabels
from service.monitoring.label_encoding import LabelCells, LabelSources
from service.monitoring.outcome_aggregates import NO_CLASS, LabelSums, sum_keys
from service.monitoring.outcome_rows import NONE, DrawnGroups, OutcomeRows, SharedDraws, drawn_group
from service.monitoring.recent_outcomes import RecentOutcomes
from service.store.outcome_entries import OutcomeEntry, Position, SharedDraw
from service.store.records import Fact, LabelFact

_SUMMED_BY = (
    "predicted_at",
    "combination",
    "predicted",
    "score",
    "source",
    "true_class",
    "correct",
    "challenger",
    "alive",
)
"""Columns that decide on the sum."""


class OutcomeFold:
    """Folds outcome entries: the last word on an item counts, a retraction removes it.

    Invariants: folding a stream in one go or piece by piece gives the same outcomes; and a process that has
    forgotten what the stream trimmed holds the same as one that reads the stream again. An outcome is
    identified by the position of its entry, so what revises one that was trimmed changes nothing.

    Where votes distinguish groups, a prediction without them that is from before the first known one with
    them may have been of any vote. So may one where there is no traffic at all without votes. Either has a
    source of its own, which says that its labels stand for predictions of all votes.
    """

    def __init__(self, space: CellSpace, *, may_err: bool = False) -> None:
        self._space = space
        # Kept only where labels may be wrong.
        self.item_labels = ItemLabels(space.classes) if may_err else None
        self._class_index = {name: i for i, name in enumerate(space.classes)}
        by_class = any(isinstance(g, ByClass) for g in space.groupings.values())
        self._needs_classes = by_class or space.ensemble is not None
        self.cells = LabelCells(space)  # numbered by `place`
        self._rows = OutcomeRows()
        self._sources = LabelSources(space)
        self._sums = LabelSums()
        self._stale = 0  # changes since codes were last numbered without gaps
        self._further: dict[Position, list[SharedDraw]] = {}
        self._shared = SharedDraws()
        self._drawn = DrawnGroups()
        self._voted_from = np.inf
        self._votes_missing = False
        self._recent = RecentOutcomes()

    def fold(self, entries: Sequence[OutcomeEntry | SharedDraw]) -> None:
        """Take in further entries, in the stream's order; they count after the next `place`."""
        outcomes: list[OutcomeEntry] = []
        for entry in entries:
            if isinstance(entry, SharedDraw):
                self._take(outcomes)
                outcomes = []
                self._share(entry)
            else:
                outcomes.append(entry)
        self._take(outcomes)

    def forget(self, first: Position) -> None:
        """Drop outcomes before this position of the stream, which are trimmed."""
        if self.item_labels is not None:
            self.item_labels.forget(first)
        self._forget_further(first)
        count = self._rows.first_from(first)
        if not count:
            return
        self._withdraw(np.arange(count))
        self._rows.forget(count)
        self._recent.forget(first)
        self._stale += count
        if self._stale > len(self._rows):
            self._tidy()

    def _forget_further(self, first: Position) -> None:
        """Drop further predictions of items whose outcomes stand before a position.

        Who reads the stream from there does not learn their label, and what revises it reaches them no more.
        """
        trimmed = [position for position in self._further if position < first]
        positions = [draw.position for position in trimmed for draw in self._further.pop(position)]
        found = [row for position in positions if (row := self._rows.row(position)) is not None]
        if not found:
            return
        dropped = np.array(found, np.intp)
        self._withdraw(dropped)
        self._rows.drop(dropped)
        self._stale += len(dropped)

    def place(self, *, votes_missing: bool = True) -> None:
        """Let all outcomes count in their sums, those too that came since the last time.

        Only while there is traffic without the votes that distinguish groups (`votes_missing`) is a label
        without votes from after the first vote not of any vote.
        """
        rows, voted_from = self._rows, self._first_voted()
        if votes_missing != self._votes_missing or voted_from != self._voted_from:
            earlier, later = sorted((voted_from, self._voted_from))
            moved = self.cells.voteless[rows["combination"]]
            if votes_missing == self._votes_missing:
                moved = moved & (rows["predicted_at"] >= earlier) & (rows["predicted_at"] < later)
            self._voted_from, self._votes_missing = voted_from, votes_missing
            self._withdraw(np.flatnonzero(moved))
        pending = np.flatnonzero(rows["pending"])
        if pending.size:
            self._sum_up(pending)

    def _take(self, entries: Sequence[OutcomeEntry]) -> None:
        """Add outcomes and further labels, and let those entries that revise some do so."""
        labels = [entry for entry in entries if entry.of == entry.position]
        if outcomes := [entry for entry in labels if entry.item is None]:
            self._append(outcomes)
        if self.item_labels is not None and labels:
            self.item_labels.add(labels)
        for entry in entries:
            if entry.item is not None:
                self._label_again(entry.item, entry)
            elif entry.of == entry.position:
                self._recent.add(entry)
            else:
                self._revise(entry)

    def _share(self, draw: SharedDraw) -> None:
        """Let the label of an item count as drawn once more.

        Drawn for another grouping, the same prediction has one more source. Another prediction of the item is
        an outcome of its own, with the same label.
        """
        row, rows = self._rows.row(draw.of), self._rows
        if row is None:
            return
        fact, name = draw.fact, self._sources.grouping_of(draw.fact)
        predicted = self._class_index.get(fact.predicted_class, NONE)
        if (rows["predicted_at"][row], rows["predicted"][row]) == (fact.predicted_at, predicted):
            known = self._sources.all[rows["source"][row]]
            if name not in known.groupings:
                (outcome,) = rows.outcome_keys(slice(row, row + 1)).tolist()
                place = request_place(fact.requested_at, fact.request_id)
                self._shared.add(
                    outcome, place, grouping=name, group=drawn_group(fact), suspected=fact.suspected
                )
            self._withdraw(np.array([row]))
            rows["source"][row] = self._sources.code(
                known.with_further(self._sources.source(draw.assessment, fact))
            )
            return
        label = rows["true_class"][row]
        true_class = self._space.classes[label] if label != NO_CLASS else ""
        given = LabelFact(true_class, float(rows["given_at"][row]), "")
        self._append([OutcomeEntry(draw.position, draw.position, draw.assessment, fact, given)])
        rows["alive"][len(rows) - 1] = rows["alive"][row]
        self._further.setdefault(draw.of, []).append(draw)

    def _append(self, outcomes: Sequence[OutcomeEntry]) -> None:
        facts, true_classes = [e.fact for e in outcomes], [e.label.true_class for e in outcomes]
        pairs = list(zip(facts, true_classes, strict=True))
        index, space = self._class_index, self._space
        self._rows.extend(
            milliseconds=[e.position[0] for e in outcomes],
            sequence=[e.position[1] for e in outcomes],
            predicted_at=[fact.predicted_at for fact in facts],
            given_at=[e.label.time for e in outcomes],
            combination=[
                self.cells.combination(space.add_pattern(fact.attributes, fact.predicted_class, fact.votes))
                for fact in facts
            ],
            predicted=[index.get(fact.predicted_class, NONE) for fact in facts],
            score=[fact.score for fact in facts],
            source=[self._sources.code(self._sources.source(e.assessment, e.fact)) for e in outcomes],
            true_class=[index.get(name, NO_CLASS) for name in true_classes],
            correct=[fact.predicted_class == name for fact, name in pairs],
            challenger=[self._challenger_right(fact, name) for fact, name in pairs],
            alive=np.ones(len(outcomes), dtype=np.bool_),
            sum=np.full(len(outcomes), NONE),
            pending=np.ones(len(outcomes), dtype=np.bool_),
            place=request_places((fact.requested_at, fact.request_id) for fact in facts),
            drawn_for=[self._drawn.code(fact) for fact in facts],
            suspected=[fact.suspected for fact in facts],
        )

    def _first_voted(self) -> float:
        """When the first prediction with votes was made, seconds since the epoch; infinite without one."""
        if self._space.voters is None:
            return np.inf
        voted = ~self.cells.voteless[self._rows["combination"]]
        return float(self._rows["predicted_at"][voted].min(initial=np.inf))

    def _asked_by(self, rows: Mapping[str, npt.NDArray[Any]]) -> Codes:
        """Codes of who asked; labels of any vote have codes of their own [n]."""
        sources: Codes = rows["source"]
        if self._space.voters is None:
            return sources
        any_vote = self.cells.voteless[rows["combination"]]
        if self._votes_missing:
            any_vote = any_vote & (rows["predicted_at"] < self._voted_from)
        if not any_vote.any():
            return sources
        known, other = self._sources.all, np.arange(len(self._sources), dtype=np.int32)
        for code in np.unique(sources[any_vote]).tolist():
            other[code] = self._sources.code(known[code]._replace(any_vote=True))
        return np.where(any_vote, other[sources], sources)

    def _challenger_right(self, fact: Fact, true_class: str) -> bool:
        """Whether a challenger, if there is one, is right."""
        challenge = self._space.challenge
        return challenge is not None and fact.votes.get(challenge.challenger) == true_class

    def _revise(self, entry: OutcomeEntry) -> None:
        """Let an entry change the outcomes that it revises, if there are any.

        An item of several people's labels counts with the first one that is left.
        """
        if self.item_labels is None or (item := self.item_labels.revise(entry)) is None:
            self._relabel(entry.of, entry, entry.label.true_class)
        else:
            self._relabel(item, entry, *self.item_labels.first(item))

    def _label_again(self, item: Position, entry: OutcomeEntry) -> None:
        """Let an item of which no label was left count again."""
        row = self._rows.row(item)
        if self.item_labels is not None and row is not None and not self._rows["alive"][row]:
            self._relabel(item, entry, *self.item_labels.first(item))

    def _relabel(self, item: Position, entry: OutcomeEntry, name: str, given_at: float | None = None) -> None:
        """Give the outcomes of an item, if there are any, another class; an empty one retracts it."""
        facts = [(item, entry.fact), *((draw.position, draw.fact) for draw in self._further.get(item, ()))]
        found = [(row, known) for position, known in facts if (row := self._rows.row(position)) is not None]
        rows = self._rows
        for row, known in found:
            self._withdraw(np.array([row]))
            rows["alive"][row] = bool(name)
            rows["true_class"][row] = self._class_index.get(name, NO_CLASS)
            rows["correct"][row] = known.predicted_class == name
            rows["challenger"][row] = self._challenger_right(known, name)
            rows["given_at"][row] = given_at or rows["given_at"][row]
            self._stale += 1
        if found:
            self._recent.relabel(item, entry, name)

    def _sum_up(self, chosen: Indices) -> None:
        """Find in which sums some rows count."""
        rows = {name: self._rows[name][chosen] for name in _SUMMED_BY}
        counts = rows["alive"] & (rows["predicted"] != NONE)
        counted = {name: column[counts] for name, column in rows.items()}
        cells = self.cells.cells(
            counted["combination"], counted["predicted"], self._space.bins(counted["score"])
        )
        keys = sum_keys(
            cells=cells,
            sources=self._asked_by(counted),
            true_classes=counted["true_class"] if self._needs_classes else np.full(len(cells), NO_CLASS),
            correct=counted["correct"],
            challenger=counted["challenger"],
        )
        sums = np.full(len(chosen), NONE)
        sums[counts] = self._sums.numbers(keys)
        self._rows["sum"][chosen], self._rows["pending"][chosen] = sums, False
        self._sums.tallies.add(sums[counts], self._rows.marks(chosen[counts]))

    def _withdraw(self, chosen: Indices) -> None:
        """Let some rows count in no sum until the next `place`; before their marks change."""
        column = self._rows["sum"]
        counted = chosen[column[chosen] != NONE]
        self._sums.tallies.remove(column[counted], self._rows.marks(counted))
        column[counted] = NONE
        self._rows["pending"][chosen] = True

    def _tidy(self) -> None:
        """Number what is left without gaps, so that it is bounded by the number of outcomes.

        Sources keep their codes, which are in the keys of sums: they come from configurations, not messages.
        """
        rows = self._rows
        combinations = rows.renumber("combination", self.cells.combination_count)
        cells = self._sums.keep(rows.renumber("sum", len(self._sums)), len(self.cells))
        self.cells.keep(combinations, cells)
        self._drawn.keep(rows.renumber("drawn_for", len(self._drawn)))
        self._shared.keep(rows.outcome_keys())
        self._stale = 0
