"""The outcomes of one model, summed up for estimates or one by one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, UInt64s
from service.domain.request_order import NO_PLACE, Places, request_places, requested_at
from service.domain.stratum_estimator import unpacked_estimators
from service.monitoring.item_labels import Person
from service.monitoring.label_columns import EndedRequests, ScoredLabels, StratumLabels
from service.monitoring.label_truth import KnownItems, LabelledItems
from service.monitoring.outcome_aggregates import NO_CLASS, OF_REQUESTS, Columns, counting_in
from service.monitoring.outcome_rows import NONE, GroupKey, key_position, position_key
from service.monitoring.outcome_sums import SummedOutcomes
from service.store.outcome_entries import OutcomeEntry


@dataclass(frozen=True)
class LabelSequence(Columns):
    """Labels of one grouping's sample, as columns [n]."""

    marks: UInt64s  # of each, as good as random, which identify the outcome and whether it is right
    cells: Indices  # label cell of each
    scores: Floats  # of the predicted class
    correct: Flags  # whether that is the true class
    unanswered: Flags  # whether there is no label
    predicted_at: Floats  # when it was predicted, seconds since the epoch
    places: Places  # of their requests among all requests, as `service/domain/request_order.py` gives them
    suspected: Flags  # whether the group was under suspicion at the time of the request
    requested: Flags  # whether it was requested; else its place is when it became an outcome

    def time_of(self, number: int) -> float:
        """When a label was requested; of one that was not, the time of the prediction."""
        if self.requested[number]:
            return requested_at(int(self.places[number]))
        return float(self.predicted_at[number])


class OutcomeLedger(SummedOutcomes):
    """The outcomes of one model, to be read; see `SummedOutcomes` for their sums."""

    def __len__(self) -> int:
        return int(np.count_nonzero(self._labelled))

    @property
    def _labelled(self) -> Flags:
        """Whether there is a label [rows]."""
        labelled: Flags = self._rows["alive"] & (self._rows["true_class"] >= NO_CLASS)
        return labelled if self.unrequested is None else labelled & ~self._rows["paired"]

    @property
    def recent(self) -> list[OutcomeEntry]:
        """The outcomes that came last, the newest first."""
        return self._recent.newest_first()

    @property
    def first_label_at(self) -> float | None:
        """When the first label was given, seconds since the epoch; of a corrected one, the first time."""
        given_at = self._given_at
        return float(given_at.min()) if len(given_at) else None

    @property
    def last_label_at(self) -> float | None:
        """When the last label was given, likewise."""
        given_at = self._given_at
        return float(given_at.max()) if len(given_at) else None

    @property
    def _given_at(self) -> Floats:
        """When labels were given, retracted ones included [n]."""
        given_at: Floats = self._rows["given_at"][self._rows["true_class"] >= NO_CLASS]
        return given_at

    @property
    def people(self) -> list[Person]:
        """Who gave labels, in the order of their codes; none where labels are the truth."""
        return [] if self.item_labels is None else self.item_labels.people

    @property
    def label_changes(self) -> int:
        """How often labels of people who err have changed; unlike `labelled_items` it takes no time."""
        return sum(each.changes for each in (self.item_labels, self.gold_labels) if each is not None)

    def gold_items(self, *, at: float) -> KnownItems | None:
        """Gold items with all labels given by then; None without any, or where labels are the truth."""
        return None if self.gold_labels is None else self.gold_labels.items(at=at)

    def labelled_items(self, *, at: float) -> LabelledItems | None:
        """Items that count, with all labels given by then; None where labels are the truth.

        Further predictions of an item are items of their own, with the same labels.
        """
        if self.item_labels is None:
            return None
        rows, given = self._rows, self.item_labels.given(at=at)
        chosen = np.flatnonzero((rows["sum"] != NONE) & (rows["given_at"] <= at) & self._labelled)
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
            as_given=given.as_given[labels],
            delays=given.delays[labels],
            original=original[chosen],
            rivals=rows["rival"][chosen].astype(np.intp) if self._has_rivals else None,
        )

    def unanswered_items(self, reasons: Collection[int]) -> tuple[Indices, Indices]:
        """Rows of items without a label for these reasons, and the label cell of each [n]."""
        of_rows = self._rows["sum"]
        missing = np.isin(self._rows["true_class"], list(reasons))
        rows = np.flatnonzero(missing & (of_rows != NONE))
        return rows, self._sums.cells[of_rows[rows]]

    def ended_requests(self, newest: int) -> EndedRequests:
        """The newest requests that have ended, and whose label was not retracted."""
        rows = slice(max(0, len(self._rows) - newest), None)
        columns = ("drawn_for", "score", "true_class", "attempt", "correct")
        found = EndedRequests(*(self._rows[name][rows] for name in columns))
        if self.unrequested is None:
            return found.part(self._rows["alive"][rows])
        for reason, others in OF_REQUESTS.items():
            reasons = np.where(np.isin(found.reasons, list(others)), reason, found.reasons)
            found = replace(found, reasons=reasons)
        return found.part(self._rows["alive"][rows] & ~self._rows["unrequested"][rows])

    def label_delays(self, newest: int) -> Floats:
        """Times from predictions to their unrequested labels, in seconds, of the newest outcomes [n]."""
        rows = slice(max(0, len(self._rows) - newest), None)
        names = ("alive", "true_class", "unrequested", "given_at", "predicted_at")
        alive, true_classes, unrequested, given_at, predicted_at = (self._rows[name][rows] for name in names)
        chosen = alive & unrequested & (true_classes >= NO_CLASS)
        return np.asarray(np.maximum(given_at[chosen] - predicted_at[chosen], 0.0), np.float64)

    def scored_labels(self, *, at: float, decay: float) -> ScoredLabels:
        """The outcomes that count, with the labels given by then, which lose weight at `decay`, 1/s."""
        rows = self._rows
        has_label = (rows["true_class"] > NO_CLASS) & (rows["given_at"] <= at)
        chosen = np.flatnonzero((rows["sum"] != NONE) & has_label)
        of = rows["sum"][chosen]
        return ScoredLabels(
            cells=self._sums.cells[of],
            predicted=rows["predicted"][chosen].astype(np.intp),
            scores=rows["score"][chosen],
            sources=self._sums.sources[of],
            true_classes=rows["true_class"][chosen].astype(np.intp),
            freshness=self._freshness(at, decay)[chosen],
            rows=chosen,
        )

    def label_sequence(
        self,
        grouping: str,
        cells: Flags | None = None,
        *,
        unanswered: Collection[int] = (),
        trimmed: bool | None = None,
    ) -> LabelSequence:
        """The outcomes that count and are a random sample of a grouping's groups; in some of all [cells].

        Of those without a label, those for these reasons. `trimmed` is as in `tallies`.
        """
        rows, of_sums = self._rows, self._sums.cells
        asked = self.is_sample_of(grouping, unanswered=unanswered)[self._sums.sources]
        asked &= self._counts(self._sums.true_classes, unanswered)
        chosen = counting_in(asked if cells is None else asked & cells[of_sums], rows["sum"])
        if trimmed is not None:
            chosen = chosen[~self._may_count_already(trimmed)[chosen]]
        places, suspected = self._places(grouping)
        return LabelSequence(
            marks=self._rows.marks(chosen),
            cells=of_sums[rows["sum"][chosen]],
            scores=rows["score"][chosen],
            correct=rows["correct"][chosen],
            unanswered=rows["true_class"][chosen] < NO_CLASS,
            predicted_at=rows["predicted_at"][chosen],
            places=places[chosen],
            suspected=suspected[chosen],
            requested=np.ones(len(chosen), np.bool_)
            if self.unrequested is None
            else ~rows["unrequested"][chosen],
        )

    def stratum_labels(self, grouping: str, *, at: float, unanswered: Collection[int]) -> StratumLabels:
        """The outcomes that count, of strata that were drawn for a grouping by these.

        With the labels given by then; of those without one, those for the reasons `unanswered`.
        """
        rows, sources = self._rows, self._sums.sources
        asked = self.is_requested_for(grouping) & ~self.of_traffic & self.counts_as_requested(unanswered)
        # A draw for several values together says nothing of one of them, whose row may have come later.
        asked &= self.is_drawn_by_value(grouping)
        chosen = counting_in(asked[sources] & self._counts(self._sums.true_classes, unanswered), rows["sum"])
        chosen = chosen[rows["given_at"][chosen] <= at]
        estimators, places = rows["estimator"], self._places(grouping)[0]
        if len(self._shared):
            estimators = self._shared.estimators(grouping, rows.outcome_keys(), estimators)
        numbers = unpacked_estimators(estimators[chosen])
        drawn = numbers[:, -1] > 0  # not of the file of labels from before
        chosen = chosen[drawn]
        return StratumLabels(
            cells=self._sums.cells[rows["sum"][chosen]],
            true_classes=rows["true_class"][chosen].astype(np.intp),
            predicted_at=rows["predicted_at"][chosen],
            places=places[chosen],
            estimators=numbers[drawn],
            marks=rows.marks(chosen),
        )

    def _places(self, grouping: str) -> tuple[Places, Flags]:
        """Places of all outcomes in a grouping's sample, and whether their groups were suspected [rows]."""
        rows = self._rows
        places, suspected = rows["place"], rows["suspected"]
        if len(self._shared):
            places, suspected = self._shared.places(grouping, rows.outcome_keys(), places, suspected)
        if not self.samples_traffic:
            return places, suspected
        # A label that was also requested counts from when it was first known.
        asked = np.append(self.is_requested_for(grouping)[self._sums.sources], False)[rows["sum"]]
        own = np.where(asked, places, NO_PLACE).astype(np.uint64)
        return np.minimum(own, rows["place_in_traffic"]), suspected & (own < rows["place_in_traffic"])

    def first_requests(self) -> dict[GroupKey, int]:
        """Of every group that labels were requested for, the place of the first such request.

        Only requests whose outcomes are there count, whether the grouping is still configured or not: so the
        order in which groups were first labelled depends on neither traffic nor the configuration.
        """
        shared = self._shared.first_places(self._rows.outcome_keys())
        places = self._rows["place"]
        if self.unrequested is not None:
            places = np.where(self._rows["unrequested"], NO_PLACE, places).astype(np.uint64)
        return self._drawn.first_places(self._rows["drawn_for"], places, shared)

    def groups_requested(self, *, after: int, until: int) -> set[GroupKey]:
        """Groups that requests with places after one and up to another were drawn for.

        And those with a further draw up to there.
        """
        rows = self._rows
        chosen = (rows["place"] > after) & (rows["place"] <= until)
        if self.unrequested is not None:
            chosen &= ~rows["unrequested"]
        drawn = self._drawn.first_places(rows["drawn_for"][chosen], rows["place"][chosen], {})
        shared = self._shared.first_places(rows.outcome_keys())
        return {*drawn, *(key for key, place in shared.items() if place <= until)}

    def place_before(self, entries: int) -> int:
        """The highest place among the requests of all outcomes but those of the newest entries, one at least.

        Further predictions of their items are among them: they are forgotten with them. 0 of none.
        """
        keys = self._entries["key"]
        if entries >= len(keys):
            return 0
        first = key_position(int(keys[-entries]))
        older = slice(self._rows.first_from(first))
        further = [draw.fact for of, draws in self._further.items() if of < first for draw in draws]
        places = request_places((fact.requested_at, fact.request_id) for fact in further)
        own = max(int(column.max(initial=0)) for column in (self._rows["place"][older], places))
        return max(own, self._shared.last_place(self._rows.outcome_keys(older)))

    def labels_since(self, since: float) -> tuple[Floats, Flags]:
        """Labels given from then on: when, and whether they say that the prediction is right [n]."""
        counts = (self._rows["sum"] != NONE) & self._labelled
        chosen = np.flatnonzero((self._rows["given_at"] >= since) & counts)
        return self._rows["given_at"][chosen], self._rows["correct"][chosen]
