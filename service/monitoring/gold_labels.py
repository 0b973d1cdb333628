"""Labels about gold items: their true classes are known, so they say how often people are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from service.config.model import ModelSettings
from service.domain.request_order import NO_PLACE, request_place
from service.monitoring.item_labels import ItemLabels
from service.monitoring.label_truth import KnownItems, LabelledItems
from service.monitoring.outcome_rows import NONE, GrowingColumns, position_key
from service.statistics.label_errors import GoldCounts, WrongLabels, learned, stated
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry, Position
from service.store.records import EXPIRED
from service.store.requests import OpenRequest

_COLUMNS = {
    "entry": np.int64,
    "predicted": np.int16,
    "true": np.int16,
    "place": np.uint64,
    "answered": np.bool_,
    "wrong": np.bool_,
}
"""Of every gold item whose first request has ended: `place` is that of this request among all requests,
`answered` is false if it expired, and `wrong` is whether it was skipped or its label was ever wrong."""


class GoldLabels:
    """The labels about gold items of one model, kept current from the stream of outcomes."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._class_index = {name: number for number, name in enumerate(classes)}
        self._labels = ItemLabels(classes)
        self._items = GrowingColumns(_COLUMNS)

    def __len__(self) -> int:
        """How many entries of the stream are of labels and requests without one."""
        return len(self._labels)

    @property
    def changes(self) -> int:
        """How often labels were added, revised or dropped."""
        return self._labels.changes

    def fold(self, entry: OutcomeEntry) -> None:
        """Take in a further entry about a gold item, in the stream's order."""
        if entry.of != entry.position:
            self._labels.revise(entry)
            self._note_wrong(entry)
            return
        self._labels.add([entry])
        if entry.item is None:
            fact = entry.fact
            self._items.extend(
                entry=[position_key(entry.position)],
                predicted=[self._class_index.get(fact.predicted_class, NONE)],
                true=[self._class_index.get(fact.gold, NONE)],
                place=[request_place(fact.requested_at, fact.request_id)],
                answered=[entry.label.unanswered != EXPIRED],
                wrong=[entry.label.true_class != fact.gold],
            )

    def _note_wrong(self, revision: OutcomeEntry) -> None:
        """Let a first label that is corrected to a wrong one count as wrong from now on.

        One that was wrong stays so: evidence has counted labels of usual items as they were, too.
        """
        entries, key = self._items["entry"], position_key(revision.of)
        row = int(np.searchsorted(entries, key))
        if row < len(entries) and entries[row] == key and revision.label.true_class:
            self._items["wrong"][row] |= revision.label.true_class != revision.fact.gold

    def forget(self, first: Position) -> None:
        """Drop items before this position of the stream, which are trimmed, with their labels."""
        self._labels.forget(first)
        self._items.forget(int(np.searchsorted(self._items["entry"], position_key(first))))

    def counts(self, *, after: int, until: int) -> GoldCounts:
        """First requests with places between these two that were answered or skipped.

        Those count as wrong that were skipped, whatever was answered later, or whose label was wrong at any
        time, before a correction or a retraction. Items of a class that the model has no more are left out.
        """
        known = self._items
        counted = known["answered"] & (known["place"] > after) & (known["place"] < until)
        counted &= (known["predicted"] != NONE) & (known["true"] != NONE)
        correct, wrong = (known["predicted"] == known["true"])[counted], known["wrong"][counted]
        which = (correct, correct & wrong, ~correct, ~correct & wrong)
        return GoldCounts(*(int(np.count_nonzero(each)) for each in which))

    def items(self, *, at: float) -> KnownItems | None:
        """Items with all labels given by then; None without any.

        Items of a class that the model has no more are left out.
        """
        given, known = self._labels.given(at=at), self._items
        order = np.argsort(given.items, kind="stable")
        usable = (known["predicted"] != NONE) & (known["true"] != NONE)
        keys, numbers = known["entry"][usable], np.flatnonzero(usable)
        order = order[np.isin(given.items[order], keys)]
        labelled, items = np.unique(given.items[order], return_inverse=True)
        if not len(labelled):
            return None
        rows = numbers[np.searchsorted(keys, labelled)]
        found = LabelledItems(
            rows=rows,
            cells=np.zeros(len(rows), np.intp),
            predicted=known["predicted"][rows].astype(np.intp),
            scores=np.zeros(len(rows)),
            items=items,
            people=given.people[order],
            classes=given.classes[order],
            as_given=given.as_given[order],
            delays=given.delays[order],
            original=np.ones(len(rows), np.bool_),
        )
        return KnownItems(found, known["true"][rows].astype(np.intp), self._labels.people)


def gold_counts(
    labels: GoldLabels | None,
    open_requests: Mapping[str, OpenRequest],
    checkpoint: EvidenceCheckpoint | None,
    *,
    until: int = NO_PLACE,
) -> GoldCounts:
    """First requests for gold items ever, in the order of their requests: up to the first that is open.

    Requests from the place `until` on are left out. It is continued from a checkpoint, also of another
    reference: a new model does not change people.
    """
    if labels is None:
        return GoldCounts()
    until = min(until, first_gold(open_requests))
    if checkpoint is None:
        return labels.counts(after=0, until=until)
    return labels.counts(after=checkpoint.position, until=until).plus(GoldCounts(*checkpoint.gold))


def first_gold(open_requests: Mapping[str, OpenRequest]) -> int:
    """The place of the first open request for a gold item that has no label; `NO_PLACE` without one."""
    places = [
        request_place(one.requested_at, request_id)
        for request_id, one in open_requests.items()
        if one.gold and one.opinion == 1
    ]
    return min(places, default=NO_PLACE)


def allowed_errors(settings: ModelSettings, gold: GoldCounts) -> WrongLabels:
    """How many labels are wrong at most, by the settings or by labels about gold items."""
    if settings.labels_per_item.learns_bound:
        return learned(gold, settings.evidence.alpha)
    return stated(settings.labels_per_item.wrong_labels)
