"""The outcome stream of one model, read and grouped by item."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from label_history import Entry
from stand import Stand

from service.store.outcome_entries import BEGINNING, OutcomePage, SharedDraw
from service.store.records import SKIPPED, Fact

Prediction = tuple[Any, ...]


@dataclass(frozen=True)
class OutcomeStream:
    """What the stream holds.

    Attributes:
        page: as it was read.
        entries: of every item, in order.
        predictions: that the entries of every usual item have.
        gold: predictions and true classes that the entries of every gold item have.
        shared: further draws: item, grouping, and the prediction that was drawn.
        strays: items with a further label that names an outcome which the item does not have.
    """

    page: OutcomePage
    entries: dict[str, list[Entry]]
    predictions: dict[str, set[Prediction]]
    gold: dict[str, set[tuple[Prediction, str]]]
    shared: list[tuple[str, str, Prediction]]
    strays: set[str]

    @classmethod
    def read(cls, stand: Stand, model: str) -> OutcomeStream:
        """The stream of a deployment at rest."""
        page = stand.site().reader(model).outcomes(BEGINNING)
        assert page is not None
        assert page.complete, "a trial is not so long"
        found = cls(page, defaultdict(list), defaultdict(set), defaultdict(set), [], set())
        numbers: dict[str, dict[Any, int]] = defaultdict(dict)
        for entry in page.entries:
            item = entry.fact.item_id
            if isinstance(entry, SharedDraw):
                found.shared.append((item, entry.fact.grouping, _prediction(entry.fact)))
                continue
            of_item = numbers[item]
            if entry.item is not None and of_item.get(entry.item) != 0:
                found.strays.add(item)
            number = of_item.setdefault(entry.of, len(of_item))
            said = entry.label.unanswered or entry.label.true_class
            found.entries[item].append(Entry(number, said, entry.label.annotator))
            if entry.is_gold:
                found.gold[item].add((_prediction(entry.fact), entry.fact.gold))
            else:
                found.predictions[item].add(_prediction(entry.fact))
        return found

    def people(self) -> dict[str, list[str]]:
        """Who gave the labels of every item."""
        found: dict[str, list[str]] = {}
        for item, entries in self.entries.items():
            first: dict[int, Entry] = {}
            for entry in entries:
                if entry.number not in first or first[entry.number].true_class == SKIPPED:
                    first[entry.number] = entry
            found[item] = [entry.annotator for entry in first.values()]
        return found


def _prediction(fact: Fact) -> Prediction:
    attributes = tuple(sorted(fact.attributes.items()))
    return (fact.predicted_class, fact.score, fact.predicted_at, attributes)
