"""The outcomes that came last, for people to look at."""

from __future__ import annotations

from itertools import islice

import msgspec

from service.store.outcome_entries import OutcomeEntry, Position

RECENT = 50  # outcomes that are kept as they came


class RecentOutcomes:
    """Keeps the newest outcomes with their latest label; a retracted one is dropped."""

    def __init__(self) -> None:
        self._entries: dict[Position, OutcomeEntry] = {}

    def relabel(self, item: Position, entry: OutcomeEntry, true_class: str) -> None:
        """Put an entry in place of the item's outcome, which has another class now."""
        label = msgspec.structs.replace(entry.label, true_class=true_class)
        self.add(msgspec.structs.replace(entry, of=item, item=None, label=label))

    def add(self, entry: OutcomeEntry) -> None:
        """Add an outcome, in place of what was known of it."""
        self._entries.pop(entry.of, None)
        if entry.label.true_class:
            self._entries[entry.of] = entry
            for position in list(islice(self._entries, max(0, len(self._entries) - RECENT))):
                del self._entries[position]

    def forget(self, first: Position) -> None:
        """Drop outcomes before a position."""
        self._entries = {position: entry for position, entry in self._entries.items() if position >= first}

    def newest_first(self) -> list[OutcomeEntry]:
        """All that are kept."""
        return list(reversed(self._entries.values()))
