"""All labels of the items of one model, where labels may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.monitoring.outcome_rows import GrowingColumns, key_position, position_key
from service.store.outcome_entries import OutcomeEntry, Position

_COLUMNS = {
    "item": np.int64,
    "entry": np.int64,
    "given_at": np.float64,
    "delay": np.float32,
    "person": np.int32,
    "label": np.int16,
    "as_given": np.int16,
}
"""`as_given` is the label before any correction."""

_RETRACTED, _UNANSWERED = -1, -2  # in place of a class

Person = tuple[str, str]
"""Vendor and annotator."""


@dataclass(frozen=True)
class GivenLabels:
    """Labels that were not retracted, as columns [M], in the order in which they came."""

    items: Ints  # key of the item's outcome
    people: Indices  # codes of who gave each
    classes: Indices  # index of the class; one that the model has no more has a higher one
    as_given: Indices  # that of the label before any correction
    delays: Floats  # from the first issue of the label's request to the label, seconds


class ItemLabels:
    """Labels by item; classes are known by their index, people by codes in the order in which they come."""

    def __init__(self, classes: Sequence[str]) -> None:
        # Those that the model has no more get the next numbers.
        self._classes = {name: number for number, name in enumerate(classes)}
        self._columns = GrowingColumns(_COLUMNS)
        self._people: dict[Person, int] = {}
        self.changes = 0  # how often labels were added, revised or dropped

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def people(self) -> list[Person]:
        """Who gave labels, in the order of their codes."""
        return list(self._people)

    def add(self, entries: Sequence[OutcomeEntry]) -> None:
        """Add labels in the order of the stream: the first one of an item, or further ones."""
        self.changes += 1
        self._columns.extend(
            item=[position_key(entry.item or entry.position) for entry in entries],
            entry=[position_key(entry.position) for entry in entries],
            given_at=[entry.label.time for entry in entries],
            # Clocks of people and of Credence may differ.
            delay=[max(0.0, entry.label.time - entry.fact.requested_at) for entry in entries],
            person=[self._code(entry) for entry in entries],
            label=(labels := [self._class(entry) for entry in entries]),
            as_given=labels,
        )

    def revise(self, entry: OutcomeEntry) -> Position | None:
        """Let an entry correct or retract the label that it revises.

        Returns:
            The position of the item's outcome; None if there is no such label.
        """
        entries, key = self._columns["entry"], position_key(entry.of)
        row = int(np.searchsorted(entries, key))
        if row == len(entries) or entries[row] != key:
            return None
        self.changes += 1
        # Whoever corrects it: it stays the label of who gave it. Who skipped gave none.
        if self._columns["label"][row] == _UNANSWERED:
            self._columns["person"][row] = self._code(entry)
            self._columns["given_at"][row] = entry.label.time
            self._columns["as_given"][row] = self._class(entry)
        self._columns["label"][row] = self._class(entry)
        return key_position(int(self._columns["item"][row]))

    def first(self, item: Position) -> tuple[str, float | None]:
        """Class of an item's first label that is left, and when it was given; empty and None without one."""
        columns = self._columns
        left = np.flatnonzero((columns["item"] == position_key(item)) & (columns["label"] >= 0))
        if not left.size:
            return "", None
        return [*self._classes][columns["label"][left[0]]], float(columns["given_at"][left[0]])

    def given(self, *, at: float) -> GivenLabels:
        """The labels given by then."""
        columns = self._columns
        chosen = np.flatnonzero((columns["label"] >= 0) & (columns["given_at"] <= at))
        return GivenLabels(
            columns["item"][chosen],
            columns["person"][chosen].astype(np.intp),
            columns["label"][chosen].astype(np.intp),
            columns["as_given"][chosen].astype(np.intp),
            columns["delay"][chosen].astype(np.float64),
        )

    def forget(self, first: Position) -> None:
        """Drop the labels of items whose outcome stood before a position, which the stream has trimmed."""
        trimmed = np.flatnonzero(self._columns["item"] < position_key(first))
        if trimmed.size:
            self.changes += 1
            self._columns.drop(trimmed)
            self._forget_people()

    def _forget_people(self) -> None:
        """Number those without gaps who have labels left, so that memory is bounded by that of labels."""
        kept, codes = np.unique(self._columns["person"], return_inverse=True)
        names = self.people
        self._columns["person"][:] = codes
        self._people = {names[code]: number for number, code in enumerate(kept.tolist())}

    def _class(self, entry: OutcomeEntry) -> int:
        name = entry.label.true_class
        if not name:
            return _UNANSWERED if entry.label.unanswered else _RETRACTED
        return self._classes.setdefault(name, len(self._classes))

    def _code(self, entry: OutcomeEntry) -> int:
        person = entry.label.vendor, entry.label.annotator
        return self._people.setdefault(person, len(self._people))
