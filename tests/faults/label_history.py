"""What the labels of one item do, by the contract: a recount that knows nothing of Redis.

The labels of an item are in one partition of their topic, so they were applied in this order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from service.store.records import EXPIRED, SKIPPED


class Entry(NamedTuple):
    """One entry that an item has in the outcome stream.

    Attributes:
        number: of the label that it gives or revises, among those of the item, from 0.
        true_class: empty for a retraction; why there is none, if the request ended without one.
        annotator: who gave, corrected or retracted it; empty if nobody did.
    """

    number: int
    true_class: str
    annotator: str


@dataclass
class Request:
    """One request of an item.

    Attributes:
        true_class: that counts; empty without one.
        barred: those who had labelled the item when it was skipped.
        number: of its label among those of the item; None without one.
        refused: why a label with this identity is refused, or None; of all that were given.
    """

    state: Literal["open", "answered", "skipped", "retracted", "expired"] = "open"
    true_class: str = ""
    barred: frozenset[str] = frozenset()
    number: int | None = None
    refused: dict[str, str | None] = field(default_factory=dict)


@dataclass
class ItemHistory:
    """The labels of one item, taken in one after the other.

    Attributes:
        requests: of the item, by the opinion that each asks for.
        entries: that the item has in the outcome stream.
        events: what happened, as it is counted.
        people: who has given each opinion, or corrected it; nobody else is asked once this is dropped.
        classes: of the labels, after each change, by how many opinions had been given by then.
    """

    requests: dict[int, Request] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    people: dict[int, set[str]] = field(default_factory=dict)
    classes: dict[int, list[list[str]]] = field(default_factory=dict)

    def is_open(self, opinion: int) -> bool:
        """Whether no label has closed a request, and it has not expired."""
        return self.requests.setdefault(opinion, Request()).state == "open"

    def expire(self, opinion: int) -> None:
        """Let a request expire. That the first one did is an outcome."""
        self.requests[opinion].state = "expired"
        self.events.append("expired")
        if opinion == 1:
            self.entries.append(Entry(0, EXPIRED, ""))

    def take(self, opinion: int, label: Mapping[str, Any]) -> str | None:
        """Take in the next label, of one of the opinions; why it is refused, or None."""
        request = self.requests.setdefault(opinion, Request())
        parts = [label["kind"], label.get("true_class"), label["annotator"], label["time"]]
        identity = json.dumps(parts)
        if identity not in request.refused:
            reason = self._apply(request, opinion, label)
            if reason == "expired_request":
                return reason
            request.refused[identity] = reason
        return request.refused[identity]

    def labels(self) -> list[tuple[str, str]]:
        """Who gave each label that counts, and its class; whoever corrects one, it stays theirs."""
        found: dict[int, tuple[str, str]] = {}
        for number, true_class, annotator in self.entries:
            given_by = found.get(number, ("", ""))
            is_first = not given_by[0] or given_by[1] == SKIPPED
            found[number] = (annotator if is_first else given_by[0], true_class)
        return [each for each in found.values() if each[1] not in {"", SKIPPED, EXPIRED}]

    def _apply(self, request: Request, opinion: int, label: Mapping[str, Any]) -> str | None:
        kind, said, by = label["kind"], label.get("true_class") or "", label["annotator"]
        state = request.state
        if state == "expired":
            return "expired_request"
        barred = frozenset[str]().union(*self.people.values()) if state == "open" else request.barred
        fills = kind != "retraction" if state == "open" else (state, kind) == ("skipped", "correction")
        if fills and opinion > 1 and by in barred:
            return "same_annotator"
        if kind == "skip" and state == "open":
            self._skip(request, opinion, by, barred)
        elif kind in ("answer", "skip") and state != "open":
            same = (
                (state, request.true_class) == ("answered", said) if kind == "answer" else state == "skipped"
            )
            return None if same else "conflicting_label"
        elif kind == "retraction":
            if state == "answered":
                self._revise(request, opinion, "", by)
            return None if state in ("answered", "retracted") else "nothing_to_retract"
        elif state == "open":
            self._answer(request, opinion, said, by)
        elif (state, request.true_class) != ("answered", said):
            self._revise(request, opinion, said, by)
        return None

    def _append(self, request: Request, true_class: str, by: str) -> None:
        if request.number is None:
            request.number = len({entry.number for entry in self.entries})
        self.entries.append(Entry(request.number, true_class, by))

    def _skip(self, request: Request, opinion: int, by: str, barred: frozenset[str]) -> None:
        """The item keeps the labels that it has, and nobody else is asked."""
        request.state, request.barred = "skipped", barred
        self.events.append("skipped")
        if opinion == 1:
            self._append(request, SKIPPED, by)
        self.people.clear()

    def _answer(self, request: Request, opinion: int, said: str, by: str) -> None:
        request.state, request.true_class = "answered", said
        self.events.append("answered")
        self._append(request, said, by)
        self.people[opinion] = {by}
        self.classes[opinion] = [self._known()]

    def _revise(self, request: Request, opinion: int, said: str, by: str) -> None:
        """Let a label be corrected, or retracted if nothing is said."""
        was_answered = request.state == "answered"
        self.events.append("retracted" if not said else "corrected" if was_answered else "answered")
        request.state, request.true_class = "answered" if said else "retracted", said
        self._append(request, said, by)
        if self.people:
            if said and opinion in self.people:
                self.people[opinion].add(by)
            self.classes[max(self.people)].append(self._known())

    def _known(self) -> list[str]:
        """The classes of the labels that were not retracted, by opinion."""
        return [one.true_class for _, one in sorted(self.requests.items()) if one.state == "answered"]
