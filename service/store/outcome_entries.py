"""Entries of the stream of outcomes: labels with what they are about."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from service.store.records import Fact, LabelFact, decode_fact, decode_label_fact

Position = tuple[int, int]
"""Position of an entry in the outcome stream: its milliseconds and sequence number."""

BEGINNING: Position = (0, 0)
"""Before the first entry of any stream."""


class OutcomeEntry(msgspec.Struct, frozen=True, gc=False):
    """An outcome, or the revision of one.

    Attributes:
        of: position of the outcome that it revises; its own position if it is the outcome itself.
        item: of a further label of an item, position of the item's outcome; None of others and of revisions.
        attempt: of an outcome, the attempt of its request that was answered, or was the last one; from 1.
    """

    position: Position
    of: Position
    assessment: str
    fact: Fact
    label: LabelFact
    item: Position | None = None
    attempt: int = 1

    @property
    def is_unrequested(self) -> bool:
        """Whether it is about a prediction that waited for a label that nobody requested."""
        return not self.assessment and not self.fact.request_id

    @property
    def is_gold(self) -> bool:
        """Whether it is about a gold item, and so no outcome of the model."""
        return bool(self.fact.gold)


class SharedDraw(msgspec.Struct, frozen=True, gc=False):
    """A further draw of an item that has been labelled: its label counts as drawn for this, too.

    Attributes:
        of: position of the item's outcome.
        fact: its prediction may be a later one of the same item.
    """

    position: Position
    of: Position
    assessment: str
    fact: Fact


@dataclass(frozen=True)
class OutcomePage:
    """Some entries of the outcome stream.

    Attributes:
        first: position of the first entry that the stream still holds.
        entries: those after the requested position, in the stream's order.
        last: position of the last entry that was read.
        complete: whether that is the end of the stream.
    """

    first: Position
    entries: list[OutcomeEntry | SharedDraw]
    last: Position
    complete: bool

    @property
    def labelled(self) -> list[OutcomeEntry]:
        """The entries with a label: outcomes and their revisions."""
        return [entry for entry in self.entries if isinstance(entry, OutcomeEntry)]


def outcome_entry(entry_id: bytes, fields: dict[bytes, bytes]) -> OutcomeEntry | SharedDraw:
    """An entry of the stream, from its id and fields."""
    position, of = position_of(entry_id), fields.get(b"of")
    revised = position if of is None else position_of(of)
    assessment, fact = fields[b"assessment"].decode(), decode_fact(fields[b"fact"])
    if b"label" not in fields:
        return SharedDraw(position, revised, assessment, fact)
    item = position_of(fields[b"item"]) if b"item" in fields else None
    label, attempt = decode_label_fact(fields[b"label"]), int(fields.get(b"attempt", 1))
    return OutcomeEntry(position, revised, assessment, fact, label, item, attempt)


def position_of(entry_id: bytes) -> Position:
    """The position of an entry, from its id."""
    milliseconds, _, sequence = entry_id.partition(b"-")
    return int(milliseconds), int(sequence)


def entry_id_of(position: Position) -> str:
    """The id of the entry at a position."""
    return f"{position[0]}-{position[1]}"
