"""Predictions with two sources of labels: a request, and labels that nobody requested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from service.domain.arrays import Flags, Indices, UInt64s
from service.domain.request_order import NO_PLACE
from service.monitoring.label_encoding import LabelSources
from service.monitoring.outcome_aggregates import (
    ABSENT_CLASS,
    ABSENT_EXPIRED,
    ABSENT_SKIPPED,
    EXPIRED_CLASS,
    NO_CLASS,
    SKIPPED_CLASS,
)
from service.monitoring.outcome_rows import OutcomeRows, key_position, position_key
from service.store.outcome_entries import Position
from service.store.records import Fact

UNREQUESTED_COLUMNS: Final = {
    "item": np.uint64,
    "unrequested": np.bool_,
    "paired": np.bool_,
    "place_in_traffic": np.uint64,
}
"""Of every outcome, if there are unrequested labels: 18 bytes more.

`item` identifies the prediction: the same item, predicted at the same time. `paired` is an unrequested
outcome that counts as part of a requested one. `place_in_traffic` is its place in the sample of all traffic,
`NO_PLACE` of what is not in it.
"""

LATEST_SHARE: Final = 1 / 8
"""Of the outcomes that the stream keeps, how many at most may stand between a prediction and its outcome.

A checkpoint takes an outcome before three quarters of them have come after it, or a little later while older
requests are open.
"""

_WAITED: Final = {EXPIRED_CLASS: ABSENT_EXPIRED, SKIPPED_CLASS: ABSENT_SKIPPED}
_MERGED: Final = ("true_class", "correct", "challenger", "alive", "given_at", "source")
"""Columns of a requested outcome that depend on the unrequested one."""


def item_marks(facts: Iterable[Fact]) -> UInt64s:
    """Numbers, as good as random, that identify items and the times of their predictions [n]."""
    texts = (f"{fact.predicted_at!r} {fact.item_id}".encode() for fact in facts)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


class OutcomePairs:
    """Pairs of a requested and an unrequested outcome of the same prediction.

    The requested one counts for both: with its own label; without one, with the unrequested label. What it
    was before is kept, because either of the two may be revised, or trimmed.
    """

    def __init__(self) -> None:
        self._unrequested: dict[int, int] = {}  # key of the unrequested outcome, by that of the requested one
        self._requested: dict[int, int] = {}  # the other way round
        self._before: dict[int, dict[str, Any]] = {}  # columns of the requested one by its key

    def __contains__(self, key: int) -> bool:
        return key in self._unrequested or key in self._requested

    def found(self, rows: OutcomeRows, pending: Indices) -> Iterator[tuple[int, int]]:
        """Rows of pairs with a pending outcome that are not known yet: the requested one, and the other."""
        items = rows["item"]
        near = np.flatnonzero(np.isin(items, items[pending]) & ~rows["paired"])
        (asked, first), (waited, second) = (
            _first_of_each(items, near[rows["unrequested"][near] == kind]) for kind in (False, True)
        )
        _, own, other = np.intersect1d(asked, waited, assume_unique=True, return_indices=True)
        keys = rows.outcome_keys()
        for row, twin in zip(first[own].tolist(), second[other].tolist(), strict=True):
            if int(keys[row]) not in self:
                yield row, twin

    def merge(self, rows: OutcomeRows, row: int, twin: int, sources: LabelSources) -> None:
        """Let a requested outcome count for an unrequested one, too; both must count in no sum."""
        key, other = (int(rows.outcome_keys(slice(each, each + 1))[0]) for each in (row, twin))
        self._unrequested[key], self._requested[other] = other, key
        self._before[key] = {name: rows[name][row] for name in _MERGED}
        labelled, arrived = (
            rows["alive"][each] and rows["true_class"][each] >= NO_CLASS for each in (row, twin)
        )
        reason = int(rows["true_class"][row]) if rows["alive"][row] else NO_CLASS
        if not labelled and arrived:
            for name in ("true_class", "correct", "challenger", "alive", "given_at"):
                rows[name][row] = rows[name][twin]
        elif not labelled:
            rows["true_class"][row] = _WAITED.get(reason, ABSENT_CLASS)
            rows["correct"][row] = rows["challenger"][row] = False
            rows["alive"][row] = True
        source = sources.all[rows["source"][row]].with_unrequested(
            absent=not arrived, instead_of=reason if arrived and not labelled else None
        )
        rows["source"][row] = sources.code(source)
        rows["place_in_traffic"][row] = rows["place"][twin]
        rows["paired"][twin] = True

    def partners(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        """Pairs in which one of these outcomes is: keys of the requested one, and of the other."""
        found = {self._requested.get(key, key) for key in keys if key in self}
        return [(key, self._unrequested[key]) for key in sorted(found)]

    def trimmed(self, first: Position) -> list[int]:
        """Keys of requested outcomes in pairs of which either stands before a position."""
        least = position_key(first)
        return [key for key, other in self._unrequested.items() if min(key, other) < least]

    def split(self, rows: OutcomeRows, key: int) -> None:
        """Let the two outcomes of a pair be what they were; both must count in no sum."""
        other, before = self._unrequested.pop(key), self._before.pop(key)
        del self._requested[other]
        row, twin = (rows.row(key_position(each)) for each in (key, other))
        if row is not None:
            for name, value in before.items():
                rows[name][row] = value
            rows["place_in_traffic"][row] = NO_PLACE
        if twin is not None:
            rows["paired"][twin] = False


def _first_of_each(items: UInt64s, rows: Indices) -> tuple[UInt64s, Indices]:
    """Items that some rows are of, ascending, and the first row of each."""
    found, first = np.unique(items[rows], return_index=True)
    return found, rows[first]


def may_count_already(rows: OutcomeRows, outcome_limit: int, *, trimmed: bool) -> Flags:
    """Rows whose prediction may have another outcome that was `trimmed`, or will be [rows].

    That one stands before them, and later than the prediction; if both are there, nothing was trimmed. Of
    the stream's `outcome_limit` outcomes, only `LATEST_SHARE` may stand between the prediction and a row that
    counts. A checkpoint takes it long before the stream is trimmed of any of these. So no row counts at first
    and later does not: then evidence would forget, and have another chance.
    """
    if not len(rows):
        return np.zeros(0, np.bool_)
    arrived = rows["milliseconds"] / 1_000
    alone: Flags = rows["unrequested"] | (rows["place_in_traffic"] == NO_PLACE)
    between = np.arange(len(rows)) - np.searchsorted(arrived, rows["predicted_at"])
    out: Flags = between > outcome_limit * LATEST_SHARE
    return alone & (out | (rows["predicted_at"] < arrived[0])) if trimmed else alone & out
