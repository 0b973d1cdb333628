"""The outcomes of one model as columns, kept current from their stream, and summed up for beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from service.cells import FORMER_GROUPING, CellSpace
from service.columns import GrowingColumns
from service.combination_codes import NO_NUMBER, CombinationCodes
from service.combination_directory import CombinationDirectory
from service.definitions import definitions, grouping_key
from service.outcome_sums import (
    NO_CLASS,
    Keys,
    Marks,
    OutcomeSums,
    SumTallies,
    cells_and_sources,
    counting_in,
    mixed,
    says_correct,
    sum_keys,
)
from service.relearning import ChangeMemory, PlacedOutcomes
from service.request_order import NO_PLACE, Places, request_place, request_places
from service.shared_draws import SharedDraws, outcome_keys
from service.store.facts import OutcomeEntry, Position, SharedDraw
from service.store.records import Fact, Given

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

RECENT = 50
"""Outcomes that are kept as they came, for people to look at."""

_NONE = -1
"""No predicted class, no sum."""

_BY_VOTES = ("", "")
"""What requests were drawn for that votes aimed."""

_COLUMNS = {
    "milliseconds": np.int64,
    "sequence": np.uint32,
    "predicted_at": np.float64,
    "given_at": np.float64,
    "combination": np.int32,
    "predicted": np.int16,
    "score": np.float64,
    "source": np.int32,
    "true_class": np.int16,
    "correct": np.bool_,
    "challenger": np.bool_,
    "alive": np.bool_,
    "sum": np.int32,
    "place": np.uint64,
    "drawn_for": np.int32,
}
"""Of every outcome, 67 bytes. The settings allow 10,000 classes, which fit 16 bits.

`sum` is which of the sums it counts in: none if it is retracted, or has no cell yet. `place` is that of its
request among all requests, and `drawn_for` the group that the request was drawn for.
"""

_SEQUENCE_BITS = 20
"""Of a mark, before it is mixed, for the sequence number: a million entries a millisecond."""

_TELLING = (
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


class Source(NamedTuple):
    """Who asked for labels that have this in common.

    Attributes:
        draws: pairs of assessment and grouping for which they were drawn; `FORMER_GROUPING` stands for one
            that is configured no more.
        any_vote: whether the cells of the labels stand for those of all votes.
    """

    draws: frozenset[tuple[str, str]]
    any_vote: bool = False

    @property
    def groupings(self) -> frozenset[str]:
        """For which they were drawn."""
        return frozenset(grouping for _, grouping in self.draws)

    def with_further(self, assessment: str, grouping: str) -> Source:
        """Drawn once more; it is known how densely, if it is of one of the groupings."""
        draws = self.draws | {(assessment, grouping)}
        known = frozenset(draw for draw in draws if draw[1] != FORMER_GROUPING)
        return self._replace(draws=known or draws)


@dataclass(frozen=True)
class ScoredLabels:
    """Outcomes one by one, as columns [n].

    Attributes:
        cells: cell of each.
        predicted: index of the predicted class.
        scores: of the predicted class.
        sources: codes of who asked.
        true_classes: index of the true class.
        freshness: what forgetting leaves of each.
    """

    cells: Indices
    predicted: Indices
    scores: Floats
    sources: Indices
    true_classes: Indices
    freshness: Floats

    def part(self, which: Flags) -> ScoredLabels:
        """Some of them."""
        return ScoredLabels(
            self.cells[which],
            self.predicted[which],
            self.scores[which],
            self.sources[which],
            self.true_classes[which],
            self.freshness[which],
        )


@dataclass(frozen=True)
class LabelSequence:
    """Labels one by one, as columns [n].

    Attributes:
        marks: of each, as good as random, which tell the outcome and whether it is right.
        cells: cell of each.
        scores: of the predicted class.
        correct: whether that is the true class.
        predicted_at: when it was predicted, seconds since the epoch.
        places: of their requests among all requests, as `service/request_order.py` gives them.
    """

    marks: Marks
    cells: Indices
    scores: Floats
    correct: Flags
    predicted_at: Floats
    places: Places

    def part(self, which: Flags | Indices) -> LabelSequence:
        """Some of them, or in another order."""
        return LabelSequence(
            self.marks[which],
            self.cells[which],
            self.scores[which],
            self.correct[which],
            self.predicted_at[which],
            self.places[which],
        )


class OutcomeLedger:
    """Folds outcome entries: the last word on an item counts, a retraction removes it.

    Invariants: folding a stream in one go or piece by piece gives the same outcomes; and a ledger that has
    forgotten what the stream let go of holds the same as one that reads the stream anew. An outcome is known
    by the position of its entry, so what revises one that is gone changes nothing.

    Where votes tell groups apart, a prediction without them that is from before the first known one with
    them may have been of any vote. So may one where there is no traffic at all without them. Either is in a
    cell of the same attributes, class and score, and of a source of its own, which tells that the cell stands
    for those of all votes.
    """

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._definitions = definitions(space)
        self._defined = {told: name for name, told in reversed(self._definitions.items())}
        self._class_index = {name: i for i, name in enumerate(space.classes)}
        by_class = any(g.kind == "predicted_class" for g in space.groupings.values())
        self._tells_classes = by_class or space.ensemble is not None
        self._rows = GrowingColumns(_COLUMNS)
        self._summed = 0  # rows before this one have been told which sum they count in
        self._stale = 0  # changes since codes were last given anew
        self._sources: dict[Source, int] = {}
        self._further: dict[Position, list[SharedDraw]] = {}
        self._shared = SharedDraws()
        self._sums: dict[int, int] = {}
        self._keys = np.zeros(0, dtype=np.int64)
        self._tallies = SumTallies()
        self._combinations = CombinationCodes(space)
        self._voted_from = np.inf
        self._recent: dict[Position, OutcomeEntry] = {}
        self._drawn_for: dict[tuple[str, str], int] = {}
        self._first_places = np.zeros(0, dtype=np.uint64)
        self.changes = ChangeMemory()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._rows["alive"]))

    @property
    def sources(self) -> list[Source]:
        """Who asked, in the order of the codes in `sums`."""
        return list(self._sources)

    def asked_for(self, grouping: str) -> Flags:
        """Of every code in `sums`, whether the labels were drawn for a grouping [sources].

        Args:
            grouping: its name.
        """
        return np.array([grouping in source.groupings for source in self._sources], np.bool_)

    @property
    def evenly_asked(self) -> Flags:
        """Of every code in `sums`, whether it is still known how densely its labels were asked for [sources].

        It is not of those whose grouping is configured no more, under whatever name, nor of those that were
        aimed by votes of a challenger, or an ensemble, that is none any more.
        """
        return ~self.asked_for(FORMER_GROUPING)

    @property
    def of_any_vote(self) -> Flags:
        """Of every code in `sums`, whether its labels' cells stand for those of all votes [sources]."""
        return np.array([source.any_vote for source in self._sources], np.bool_)

    @property
    def recent(self) -> list[OutcomeEntry]:
        """The outcomes that came last, the newest first."""
        return list(reversed(self._recent.values()))

    @property
    def first_label_at(self) -> float | None:
        """When the first label was given, seconds since the epoch; of a corrected one, the first time."""
        return float(self._rows["given_at"].min()) if len(self._rows) else None

    @property
    def last_label_at(self) -> float | None:
        """When the last label was given, likewise."""
        return float(self._rows["given_at"].max()) if len(self._rows) else None

    def fold(self, entries: Sequence[OutcomeEntry | SharedDraw]) -> None:
        """Take in further entries, in the stream's order; they count once `place` has found their cells."""
        outcomes: list[OutcomeEntry] = []
        later: list[OutcomeEntry] = []
        for entry in entries:
            if isinstance(entry, SharedDraw):
                self._take(outcomes, later)
                outcomes, later = [], []
                self._share(entry)
            else:
                later.append(entry)
                if entry.of == entry.position:
                    outcomes.append(entry)
        self._take(outcomes, later)

    def _take(self, outcomes: Sequence[OutcomeEntry], entries: Sequence[OutcomeEntry]) -> None:
        """Add outcomes, and let those entries that revise some do so."""
        if outcomes:
            self._append(outcomes)
        for entry in entries:
            if entry.of == entry.position or self._revise(entry):
                self._remember(entry)

    def _share(self, draw: SharedDraw) -> None:
        """Let the label of an item count as drawn once more.

        Drawn for another grouping, the same prediction has one more source. Another prediction of the item is
        an outcome of its own, with the same label.
        """
        row, rows = self._row(draw.of), self._rows
        if row is None:
            return
        fact, name = draw.fact, self._asked_grouping(draw.fact)
        predicted = self._class_index.get(fact.predicted_class, _NONE)
        if (rows["predicted_at"][row], rows["predicted"][row]) == (fact.predicted_at, predicted):
            known = list(self._sources)[rows["source"][row]]
            if name not in known.groupings:
                (outcome,) = self._outcome_keys(slice(row, row + 1)).tolist()
                place = request_place(fact.requested_at, fact.request_id)
                self._shared.add(outcome, place, grouping=name, group=_drawn_for(fact))
            self._withdraw(np.array([row]))
            rows["source"][row] = self._source_code(known.with_further(draw.assessment, name))
            if row < self._summed:
                self._sum_up(np.array([row]))
            return
        label = rows["true_class"][row]
        true_class = self._space.classes[label] if label != NO_CLASS else ""
        given = Given(true_class, float(rows["given_at"][row]), "")
        self._append([OutcomeEntry(draw.position, draw.position, draw.assessment, fact, given)])
        rows["alive"][len(rows) - 1] = rows["alive"][row]
        self._further.setdefault(draw.of, []).append(draw)

    def forget(self, first: Position) -> None:
        """Drop outcomes that stand in the stream before this position: it has let go of them."""
        count = self._index(first)
        if not count:
            return
        self._withdraw(np.arange(min(count, self._summed)))
        going = min(count, len(self._rows))
        codes, places = self._rows["drawn_for"][:going], self._rows["place"][:going]
        was_first = bool(np.any(self._first_places[codes] == places))
        self._rows.forget(count)
        if was_first:
            self._find_first_places()
        self._summed = max(0, self._summed - count)
        self._recent = {position: entry for position, entry in self._recent.items() if position >= first}
        self._further = {position: draws for position, draws in self._further.items() if position >= first}
        self._stale += count
        if self._stale > len(self._rows):
            self._tidy()

    def place(self, directory: CombinationDirectory) -> None:
        """Find the cells of outcomes whose attribute values have been seen in traffic by now."""
        (moved, lost), rows = self._combinations.find(directory), self._rows
        if lost:
            # No sum may be left of a cell that is none any more.
            rows["sum"][:] = _NONE
            self._sums, self._keys, self._tallies = {}, np.zeros(0, dtype=np.int64), SumTallies()
            self._summed = 0
        voted_from = self._first_voted()
        if moved.any() or voted_from != self._voted_from:
            anew = moved[rows["combination"][: self._summed]]
            earlier, later = sorted((voted_from, self._voted_from))
            predicted_at = rows["predicted_at"][: self._summed]
            self._voted_from = voted_from
            self._sum_up(np.flatnonzero(anew | ((predicted_at >= earlier) & (predicted_at < later))))
        if self._summed < len(rows):
            self._sum_up(np.arange(self._summed, len(rows)))
            self._summed = len(rows)

    def sums(
        self, *, at: float, decay: float, factors: Floats | None = None, since: float | None = None
    ) -> OutcomeSums:
        """The outcomes that count, with the labels that had been given by then, summed up.

        Those that have no cell yet are left out.

        Args:
            at: seconds since the epoch.
            decay: how fast labels lose weight, 1/s.
            factors: what changes leave of every row, if not all of all [rows].
            since: leaves out what was predicted before, if given; seconds since the epoch.
        """
        rows = self._rows
        # Those that count in no sum are counted in front of the others, and cut off.
        slots = rows["sum"].astype(np.intp)
        slots += 1
        later = (self.last_label_at or 0.0) > at
        if later:
            slots[rows["given_at"] > at] = 0
        if since is not None:
            slots[rows["predicted_at"] < since] = 0
        length = len(self._sums) + 1
        if later or since is not None:
            counts: Indices = np.bincount(slots, minlength=length)[1:]
        else:
            counts = self._tallies.counts
        if not decay and factors is None:
            whole = freshness = counts.astype(np.float64)
        else:
            # In place, as there are many.
            fresh = at - rows["predicted_at"]
            np.maximum(fresh, 0.0, out=fresh)
            fresh *= -decay
            np.exp(fresh, out=fresh)
            whole = freshness = _summed(slots, fresh, length)[1:]
            if factors is not None:
                fresh *= factors
                freshness = _summed(slots, fresh, length)[1:]
        some = counts > 0
        return OutcomeSums.of(self._sum_keys()[some], counts[some], freshness[some], whole[some])

    def placed(self, *, at: float) -> PlacedOutcomes:
        """The outcomes that count, one by one, with the labels that had been given by then.

        Args:
            at: seconds since the epoch.

        Returns:
            Views, good until the ledger changes.
        """
        sums: npt.NDArray[np.signedinteger[Any]] = self._rows["sum"]
        tallies = self._tallies
        if (self.last_label_at or 0.0) > at:
            sums = np.where(self._rows["given_at"] > at, _NONE, sums)
            there = np.flatnonzero(sums != _NONE)
            tallies = SumTallies(len(self._sums))
            tallies.add(sums[there], self._marks(there))
        keys = self._sum_keys()
        cells, sources = cells_and_sources(keys)
        return PlacedOutcomes(
            sums=sums,
            predicted_at=self._rows["predicted_at"],
            cells=cells,
            sources=sources,
            correct=says_correct(keys),
            tallies=tallies,
        )

    def scored(self, *, at: float, decay: float) -> ScoredLabels:
        """The outcomes that count, one by one, with the labels that had been given by then.

        Args:
            at: seconds since the epoch.
            decay: how fast labels lose weight, 1/s.
        """
        rows = self._rows
        told = (rows["true_class"] != NO_CLASS) & (rows["given_at"] <= at)
        chosen = np.flatnonzero((rows["sum"] != _NONE) & told)
        cells, sources = (column[rows["sum"][chosen]] for column in cells_and_sources(self._sum_keys()))
        age = np.maximum(at - rows["predicted_at"][chosen], 0.0)
        return ScoredLabels(
            cells=cells,
            predicted=rows["predicted"][chosen].astype(np.intp),
            scores=rows["score"][chosen],
            sources=sources,
            true_classes=rows["true_class"][chosen].astype(np.intp),
            freshness=np.exp(-decay * age),
        )

    def asked_by(self, grouping: str, cells: Flags | None = None) -> LabelSequence:
        """The outcomes that count and that a grouping's assessments asked for, one by one.

        Args:
            grouping: its name.
            cells: in which cells, if not in all [cells].
        """
        rows, (of_sums, sources) = self._rows, cells_and_sources(self._sum_keys())
        asked = self.asked_for(grouping)[sources]
        chosen = counting_in(asked if cells is None else asked & cells[of_sums], rows["sum"])
        return LabelSequence(
            marks=self._marks(chosen),
            cells=of_sums[rows["sum"][chosen]],
            scores=rows["score"][chosen],
            correct=rows["correct"][chosen],
            predicted_at=rows["predicted_at"][chosen],
            places=self._places(grouping)[chosen],
        )

    def _places(self, grouping: str) -> Places:
        """Places of all outcomes in the sample of a grouping [rows]."""
        places: Places = self._rows["place"]
        if not len(self._shared):
            return places
        return self._shared.places(grouping, self._outcome_keys(), places)

    def _outcome_keys(self, rows: slice = slice(None)) -> Keys:
        return outcome_keys(self._rows["milliseconds"][rows], self._rows["sequence"][rows])

    def first_requests(self) -> dict[tuple[str, str], int]:
        """Of every group that labels were requested for, the place of the first such request.

        Groups are known by the `grouping_key` and their name. Those by votes are left out. Only requests
        whose outcomes are there count, whether they have a cell or not, and whether the grouping is still
        configured: so the order in which groups were first labelled depends on neither traffic nor the
        configuration.
        """
        told = dict(zip(self._drawn_for, self._first_places.tolist(), strict=True))
        for key, place in self._shared.first_places(self._outcome_keys()).items():
            told[key] = min(place, told.get(key, NO_PLACE))
        return {key: place for key, place in told.items() if place != NO_PLACE and key != _BY_VOTES}

    def place_before(self, count: int) -> int:
        """The highest place among the requests of the first outcomes; 0 of none.

        Args:
            count: how many of the outcomes that came first.
        """
        own = int(self._rows["place"][:count].max(initial=0))
        return max(own, self._shared.last_place(self._outcome_keys(slice(count))))

    @property
    def rows(self) -> int:
        """How many outcomes there are, retracted ones included."""
        return len(self._rows)

    def tallied(self, grouping: str, groups: Indices, group_count: int) -> SumTallies:
        """How many outcomes there are in every group of those, and which [G].

        Args:
            grouping: whose assessments asked for them.
            groups: group of every cell, or `group_count` of one that is in none [cells].
            group_count: G.
        """
        cells, sources = cells_and_sources(self._sum_keys())
        of_sums = groups[cells]
        asked = self.asked_for(grouping)[sources] & (of_sums < group_count)
        return self._tallies.of_groups(asked, of_sums, group_count)

    def _marks(self, rows: Indices) -> Marks:
        """Which outcome each is, and whether it is right [n]."""
        named = self._rows
        places = named["milliseconds"][rows] << _SEQUENCE_BITS | named["sequence"][rows]
        return mixed(places << 1 | named["correct"][rows])

    def given(self, since: float) -> tuple[Floats, Flags]:
        """Labels given from then on: when, and whether they say that the prediction is right [n]."""
        chosen = np.flatnonzero((self._rows["given_at"] >= since) & (self._rows["sum"] != _NONE))
        return self._rows["given_at"][chosen], self._rows["correct"][chosen]

    def _append(self, outcomes: Sequence[OutcomeEntry]) -> None:
        facts, true_classes = [e.fact for e in outcomes], [e.label.true_class for e in outcomes]
        index, drawn_for = self._class_index, self._drawn_for
        self._rows.extend(
            milliseconds=[e.position[0] for e in outcomes],
            sequence=[e.position[1] for e in outcomes],
            predicted_at=[fact.predicted_at for fact in facts],
            given_at=[e.label.time for e in outcomes],
            combination=[
                self._combinations.code(
                    self._space.telling(fact.attributes, fact.predicted_class, fact.votes)
                )
                for fact in facts
            ],
            predicted=[index.get(fact.predicted_class, _NONE) for fact in facts],
            score=[fact.score for fact in facts],
            source=[
                self._source_code(Source(frozenset({(e.assessment, self._asked_grouping(e.fact))})))
                for e in outcomes
            ],
            true_class=[index.get(name, NO_CLASS) for name in true_classes],
            correct=[fact.predicted_class == name for fact, name in zip(facts, true_classes, strict=True)],
            challenger=[
                self._challenger_right(fact, name) for fact, name in zip(facts, true_classes, strict=True)
            ],
            alive=np.ones(len(outcomes), dtype=np.bool_),
            sum=np.full(len(outcomes), _NONE),
            place=request_places((fact.requested_at, fact.request_id) for fact in facts),
            drawn_for=[drawn_for.setdefault(_drawn_for(fact), len(drawn_for)) for fact in facts],
        )
        self._combinations.settle()
        self._find_first_places(len(outcomes))

    def _find_first_places(self, newest: int | None = None) -> None:
        """Find the place of each group's first request: from all rows, or where the newest ones came."""
        begin, known = (0, 0) if newest is None else (len(self._rows) - newest, len(self._first_places))
        unknown = np.full(len(self._drawn_for) - known, NO_PLACE, dtype=np.uint64)
        self._first_places = np.append(self._first_places[:known], unknown)
        np.minimum.at(self._first_places, self._rows["drawn_for"][begin:], self._rows["place"][begin:])

    def _asked_grouping(self, fact: Fact) -> str:
        """The grouping that a label was asked for; `FORMER_GROUPING` where it is no more what it was."""
        name = fact.grouping
        # Of what was asked before definitions were kept the name is all.
        if fact.definition and fact.definition != self._definitions.get(name):
            name = self._defined.get(fact.definition, FORMER_GROUPING)
        return name if fact.voters == self._space.aimed_by(name) else FORMER_GROUPING

    def _first_voted(self) -> float:
        """When the first prediction with votes was made, seconds since the epoch; infinite without one."""
        if self._space.voters is None:
            return np.inf
        voted = ~self._combinations.voteless[self._rows["combination"]]
        return float(self._rows["predicted_at"][voted].min(initial=np.inf))

    def _asked_by(self, rows: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.signedinteger[Any]]:
        """Codes of who asked, those of labels of any vote told apart [n]."""
        sources: npt.NDArray[np.signedinteger[Any]] = rows["source"]
        if self._space.voters is None:
            return sources
        told, codes = self._combinations, rows["combination"]
        any_vote = told.borrowed[codes] | (told.voteless[codes] & (rows["predicted_at"] < self._voted_from))
        if not any_vote.any():
            return sources
        known, other = list(self._sources), np.arange(len(self._sources), dtype=np.int32)
        for code in np.unique(sources[any_vote]).tolist():
            other[code] = self._source_code(known[code]._replace(any_vote=True))
        return np.where(any_vote, other[sources], sources)

    def _challenger_right(self, fact: Fact, true_class: str) -> bool:
        """Whether a challenger, if there is one, is right."""
        challenge = self._space.challenge
        return challenge is not None and fact.votes.get(challenge.challenger) == true_class

    def _source_code(self, source: Source) -> int:
        return self._sources.setdefault(source, len(self._sources))

    def _revise(self, entry: OutcomeEntry) -> bool:
        """Let an entry change the outcomes that it revises; whether there are any."""
        facts = [(entry.of, entry.fact)]
        facts += [(draw.position, draw.fact) for draw in self._further.get(entry.of, ())]
        there = [(row, fact) for position, fact in facts if (row := self._row(position)) is not None]
        for row, fact in there:
            self._relabel(row, fact, entry.label.true_class)
        return bool(there)

    def _relabel(self, row: int, fact: Fact, name: str) -> None:
        rows = self._rows
        self._withdraw(np.array([row]))
        rows["alive"][row] = bool(name)
        rows["true_class"][row] = self._class_index.get(name, NO_CLASS)
        rows["correct"][row] = fact.predicted_class == name
        rows["challenger"][row] = self._challenger_right(fact, name)
        if row < self._summed:
            self._sum_up(np.array([row]))
        self._stale += 1

    def _row(self, position: Position) -> int | None:
        """Row of the outcome that stands there, if there is one."""
        row, rows = self._index(position), self._rows
        if row == len(rows) or (rows["milliseconds"][row], rows["sequence"][row]) != position:
            return None
        return row

    def _remember(self, entry: OutcomeEntry) -> None:
        self._recent.pop(entry.of, None)
        if entry.label.true_class:
            self._recent[entry.of] = entry
            for position in list(islice(self._recent, max(0, len(self._recent) - RECENT))):
                del self._recent[position]

    def _index(self, position: Position) -> int:
        """Row of the first outcome that stands there or behind."""
        milliseconds, sequence = position
        column = self._rows["milliseconds"]
        begin, end = (int(np.searchsorted(column, milliseconds, side)) for side in ("left", "right"))
        return begin + int(np.searchsorted(self._rows["sequence"][begin:end], sequence))

    def _sum_up(self, chosen: Indices) -> None:
        """Find in which sums some rows count now."""
        self._withdraw(chosen)
        rows = {name: self._rows[name][chosen] for name in _TELLING}
        numbers = self._combinations.numbers[rows["combination"]]
        counts = rows["alive"] & (rows["predicted"] != _NONE) & (numbers != NO_NUMBER)
        told = {name: column[counts] for name, column in rows.items()}
        cells = self._space.cells(
            combinations=numbers[counts], classes=told["predicted"].astype(np.intp), scores=told["score"]
        )
        classes = told["true_class"] if self._tells_classes else np.full(len(cells), NO_CLASS)
        keys = sum_keys(
            cells=cells,
            sources=self._asked_by(told),
            true_classes=classes,
            correct=told["correct"],
            challenger=told["challenger"],
        )
        found, inverse = np.unique(keys, return_inverse=True)
        codes = [self._sums.setdefault(key, len(self._sums)) for key in found.tolist()]
        sums = np.full(len(chosen), _NONE)
        sums[counts] = np.array(codes, dtype=np.intp)[inverse]
        self._rows["sum"][chosen] = sums
        self._tallies.add(sums[counts], self._marks(chosen[counts]))

    def _withdraw(self, chosen: Indices) -> None:
        """Let some rows count in no sum; before what tells them from others is changed."""
        column = self._rows["sum"]
        there = chosen[column[chosen] != _NONE]
        self._tallies.remove(column[there], self._marks(there))
        column[there] = _NONE

    def _sum_keys(self) -> Keys:
        """Keys of all sums, in the order of their codes."""
        if more := len(self._sums) - len(self._keys):
            fresh = np.fromiter(islice(self._sums, len(self._keys), None), dtype=np.int64, count=more)
            self._keys = np.concatenate([self._keys, fresh])
        return self._keys

    def _tidy(self) -> None:
        """Give codes anew to what is still there, so that their number is bounded by that of outcomes.

        But not to those who asked: sums are known by them, and they come from configurations, not messages.
        """
        self._combinations.keep(self._renumber("combination", len(self._combinations)))
        kept = self._renumber("sum", len(self._sums))
        self._sums = {key: n for n, key in enumerate(compress(self._sums, kept))}
        self._keys = np.zeros(0, dtype=np.int64)
        self._tallies.keep(kept)
        kept = self._renumber("drawn_for", len(self._drawn_for))
        self._drawn_for = {key: n for n, key in enumerate(compress(self._drawn_for, kept))}
        self._find_first_places()
        self._shared.keep(self._outcome_keys())
        self._stale = 0

    def _renumber(self, name: str, count: int) -> Flags:
        """Number the codes of a column without gaps; which of `count` are still there."""
        column = self._rows[name]
        kept = np.bincount(column[column != _NONE], minlength=count) > 0
        column[:] = np.append(np.cumsum(kept) - 1, _NONE)[column]  # -1 is the last one, and stays
        return kept


def _drawn_for(fact: Fact) -> tuple[str, str]:
    """What the grouping of a draw is known by, and the group that it was drawn for."""
    return _BY_VOTES if fact.voters else (grouping_key(fact.grouping, fact.definition), fact.group)


def _summed(slots: Indices, weights: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(slots, weights=weights, minlength=length), np.float64)
