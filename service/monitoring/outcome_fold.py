"""The outcomes of one model, kept current from their stream: each counts in one sum, or in none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from service.config.unrequested import ChosenBy
from service.domain.cells import CellSpace
from service.domain.request_order import NO_PLACE, request_place, request_places
from service.domain.stratum_estimator import ESTIMATOR_TYPE, NOTHING
from service.monitoring.gold_labels import GoldLabels
from service.monitoring.item_labels import ItemLabels
from service.monitoring.label_encoding import unrequested_source
from service.monitoring.outcome_aggregates import ABSENT_CLASS, EXPIRED_CLASS, NO_CLASS, SKIPPED_CLASS
from service.monitoring.outcome_rows import NONE, GrowingColumns, drawn_group, position_key
from service.monitoring.paired_outcomes import item_marks
from service.monitoring.placed_outcomes import PlacedOutcomes
from service.monitoring.recent_outcomes import RecentOutcomes
from service.store.outcome_entries import OutcomeEntry, Position, SharedDraw
from service.store.records import EXPIRED, SKIPPED, Fact, LabelFact

_MOST_ATTEMPTS = 255  # further ones count as this one

_UNANSWERED = {SKIPPED: SKIPPED_CLASS, EXPIRED: EXPIRED_CLASS}
_REASONS = {number: reason for reason, number in _UNANSWERED.items()}


class OutcomeFold(PlacedOutcomes):
    """Folds outcome entries: the last word on an item counts, a retraction removes it.

    Invariants: folding a stream in one go or piece by piece gives the same outcomes; and a process that has
    forgotten what the stream trimmed holds the same as one that reads the stream again. An outcome is
    identified by the position of its entry, so what revises one that was trimmed changes nothing.
    """

    def __init__(
        self, space: CellSpace, *, may_err: bool = False, unrequested: ChosenBy | None = None
    ) -> None:
        super().__init__(space, may_err=may_err, unrequested=unrequested)
        # Kept only where labels may be wrong.
        self.item_labels = ItemLabels(space.classes) if may_err else None
        self.gold_labels = GoldLabels(space.classes) if may_err else None
        self._class_index = {name: i for i, name in enumerate(space.classes)}
        self._further: dict[Position, list[SharedDraw]] = {}
        self._recent = RecentOutcomes()
        # all that the stream keeps, whether they are outcomes or not
        self._entries = GrowingColumns({"key": np.int64})

    def fold(self, entries: Sequence[OutcomeEntry | SharedDraw]) -> None:
        """Take in further entries, in the stream's order; they count after the next `place`."""
        outcomes: list[OutcomeEntry] = []
        self._entries.extend(key=[position_key(entry.position) for entry in entries])
        for entry in entries:
            if isinstance(entry, SharedDraw):
                self._take(outcomes)
                outcomes = []
                self._share(entry)
            elif entry.is_gold:
                if self.gold_labels is not None:
                    self.gold_labels.fold(entry)
            elif entry.assessment or self.unrequested is not None or not entry.is_unrequested:
                outcomes.append(entry)  # nothing says how items of other ones were chosen
        self._take(outcomes)

    def forget(self, first: Position) -> None:
        """Drop outcomes before this position of the stream, which are trimmed."""
        self._entries.forget(int(np.searchsorted(self._entries["key"], position_key(first))))
        if self.item_labels is not None:
            self.item_labels.forget(first)
        if self.gold_labels is not None:
            self.gold_labels.forget(first)
        self._forget_further(first)
        count = self._rows.first_from(first)
        if not count:
            return
        self._split(self._pairs.trimmed(first))
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
        self._split(position_key(position) for position in positions)
        dropped = np.array(found, np.intp)
        self._withdraw(dropped)
        self._rows.drop(dropped)
        self._stale += len(dropped)

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
        self._split([position_key(draw.of)])
        fact, name = draw.fact, self._sources.grouping_of(draw.fact)
        predicted = self._class_index.get(fact.predicted_class, NONE)
        if (rows["predicted_at"][row], rows["predicted"][row]) == (fact.predicted_at, predicted):
            known = self._sources.all[rows["source"][row]]
            if name not in known.groupings:
                (outcome,) = rows.outcome_keys(slice(row, row + 1)).tolist()
                place = request_place(fact.requested_at, fact.request_id)
                self._shared.add(
                    outcome,
                    place,
                    grouping=name,
                    group=drawn_group(fact),
                    suspected=fact.suspected,
                    estimator=fact.estimator or NOTHING,
                )
            self._withdraw(np.array([row]))
            rows["source"][row] = self._sources.code(
                known.with_further(self._sources.source(draw.assessment, fact))
            )
            return
        label = int(rows["true_class"][row])
        true_class = self._space.classes[label] if label >= 0 else ""
        given = LabelFact(true_class, float(rows["given_at"][row]), "", unanswered=_REASONS.get(label, ""))
        attempt = int(rows["attempt"][row])
        self._append(
            [OutcomeEntry(draw.position, draw.position, draw.assessment, fact, given, attempt=attempt)]
        )
        rows["alive"][len(rows) - 1] = rows["alive"][row]
        self._further.setdefault(draw.of, []).append(draw)

    def _append(self, outcomes: Sequence[OutcomeEntry]) -> None:
        facts = [e.fact for e in outcomes]
        pairs = [(e.fact, e.label.true_class) for e in outcomes]
        index, space = self._class_index, self._space
        columns: dict[str, npt.ArrayLike] = {
            "milliseconds": [e.position[0] for e in outcomes],
            "sequence": [e.position[1] for e in outcomes],
            "predicted_at": [fact.predicted_at for fact in facts],
            "given_at": [_given_at(e) for e in outcomes],
            "combination": [
                self.cells.combination(space.add_pattern(fact.attributes, fact.predicted_class, fact.votes))
                for fact in facts
            ],
            "predicted": [index.get(fact.predicted_class, NONE) for fact in facts],
            "score": [fact.score for fact in facts],
            "source": [self._source_code(e) for e in outcomes],
            "true_class": [self._true_class(e) for e in outcomes],
            "correct": [fact.predicted_class == name for fact, name in pairs],
            "challenger": [self._challenger_right(fact, name) for fact, name in pairs],
            "alive": np.ones(len(outcomes), dtype=np.bool_),
            "sum": np.full(len(outcomes), NONE),
            "pending": np.ones(len(outcomes), dtype=np.bool_),
            "place": request_places((fact.requested_at, fact.request_id) for fact in facts),
            "drawn_for": [self._drawn.code(fact) for fact in facts],
            "suspected": [fact.suspected for fact in facts],
            "attempt": [min(e.attempt, _MOST_ATTEMPTS) for e in outcomes],
        }
        if self.unrequested is not None:
            columns |= self._unrequested_columns(outcomes)
        if self._has_estimators:
            columns["estimator"] = np.array([fact.estimator or NOTHING for fact in facts], ESTIMATOR_TYPE)
        if self._has_rivals:
            columns["rival"] = [self._rival(fact) for fact in facts]
        self._rows.extend(**columns)

    def _unrequested_columns(self, outcomes: Sequence[OutcomeEntry]) -> dict[str, npt.ArrayLike]:
        """Columns that are other ones with unrequested labels, or that there are only then."""
        places = np.array([_place(e) for e in outcomes], np.uint64)
        unrequested = np.array([e.is_unrequested for e in outcomes], np.bool_)
        return {
            "place": places,
            "item": item_marks(e.fact for e in outcomes),
            "unrequested": unrequested,
            "paired": np.zeros(len(outcomes), np.bool_),
            "place_in_traffic": np.where(unrequested, places, NO_PLACE).astype(np.uint64),
        }

    def _source_code(self, entry: OutcomeEntry) -> int:
        """Code of who asked for a label."""
        if entry.is_unrequested:
            return self._sources.code(unrequested_source(absent=not entry.label.true_class))
        return self._sources.code(self._sources.source(entry.assessment, entry.fact))

    def _true_class(self, entry: OutcomeEntry) -> int:
        """Index of the true class, or why there is no label."""
        if entry.is_unrequested and not entry.label.true_class:
            return ABSENT_CLASS  # for whatever reason
        if entry.label.unanswered:
            return _UNANSWERED.get(entry.label.unanswered, SKIPPED_CLASS)  # of an unknown one, the worst case
        return self._class_index.get(entry.label.true_class, NO_CLASS)

    def _rival(self, fact: Fact) -> int:
        """Index of the class that matters besides the predicted one, if it is another one."""
        ensemble, challenge = self._space.ensemble, self._space.challenge
        rival = "" if ensemble is None else ensemble.positive
        if challenge is not None:
            rival = fact.votes.get(challenge.challenger, "")
        return NONE if rival == fact.predicted_class else self._class_index.get(rival, NONE)

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
        self._split(position_key(position) for position, _ in facts)
        for row, known in found:
            self._withdraw(np.array([row]))
            if rows["true_class"][row] < NO_CLASS:  # a skip is given a label
                given_at = given_at or _given_at(entry)
            rows["alive"][row] = bool(name) or entry.is_unrequested
            rows["true_class"][row] = self._class_index.get(name, NO_CLASS)
            if entry.is_unrequested:
                rows["source"][row], rows["true_class"][row] = (
                    self._source_code(entry),
                    self._true_class(entry),
                )
            rows["correct"][row] = known.predicted_class == name
            rows["challenger"][row] = self._challenger_right(known, name)
            rows["given_at"][row] = given_at or rows["given_at"][row]
            self._stale += 1
        if found:
            self._recent.relabel(item, entry, name)


def _place(entry: OutcomeEntry) -> int:
    """Its place among all requests.

    A prediction that waited for an unrequested label has one, too: when it became an outcome. Its hour of
    arrival closed then, and earlier ones had closed before. A label that was requested meanwhile was known
    earlier, and so stands before it: what comes later never changes the order of what is known.
    """
    if entry.is_unrequested:
        return request_place(entry.position[0] / 1_000, entry.fact.item_id)
    return request_place(entry.fact.requested_at, entry.fact.request_id)


def _given_at(entry: OutcomeEntry) -> float:
    """When the label was given; an unrequested one counts from when it became an outcome."""
    return max(entry.label.time, entry.position[0] / 1_000) if entry.is_unrequested else entry.label.time
