"""What must hold of who is asked, and of what is known of people, when a trial rests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from answers import ItemLabels
from asked import Asked
from findings import Findings
from outcome_stream import OutcomeStream
from stand import Stand
from store_site import HASH_KEY
from workload import CLASSES, gold_items

from service.config.labels_per_item import LabelsPerItem
from service.monitoring.item_labels import Person
from service.monitoring.label_truth import LabelledItems
from service.monitoring.outcome_table import OutcomeLedger
from service.store.labelled_items import LabelledItemStore
from service.store.request_registry import request_id_of

_LabelledItem = tuple[str, frozenset[tuple[str, str]]]
"""A class of an item, and who gave which label."""


def check_people(
    findings: Findings,
    stand: Stand,
    model: str,
    *,
    asked: Asked,
    stream: OutcomeStream,
    items: Mapping[str, ItemLabels],
) -> None:
    """People are asked as configured, and what estimates use of them is a recount of the labels topic."""
    entries = stream.page.labelled
    predicted = {entry.fact.item_id: entry.fact.predicted_class for entry in entries}
    _check_asked(findings, stand, model, asked=asked, items=items, predicted=predicted)
    _check_gold_requests(findings, stand, model, asked)
    ledger = OutcomeLedger(stand.site().space(model), may_err=True)
    ledger.fold(stream.page.entries)
    ledger.place()
    gold = ledger.gold_items(at=float("inf"))
    found_gold = Counter[_LabelledItem]()
    if gold is not None:
        true_classes = [CLASSES[true] for true in gold.true_classes]
        found_gold = _by_item(gold.labelled, true_classes, gold.people)
    file = gold_items()
    expected_gold = _expected({item: file[item]["true_class"] for item in asked.gold}, items)
    findings.expect(found_gold == expected_gold, f"gold labels {found_gold}, expected {expected_gold}")
    findings.gold_labels = sum(len(labels) for _, labels in found_gold.elements())

    usual = ledger.labelled_items(at=float("inf"))
    assert usual is not None
    found = _by_item(usual, [CLASSES[predicted] for predicted in usual.predicted], ledger.people)
    expected = _expected({item: predicted[item] for item in stream.predictions}, items)
    findings.expect(found == expected, f"labels of people {found - expected}, expected {expected - found}")


def _by_item(
    labelled: LabelledItems, classes: Sequence[str], people: Sequence[Person]
) -> Counter[_LabelledItem]:
    """Original items with their labels."""
    labels: list[set[tuple[str, str]]] = [set() for _ in labelled.rows]
    for item, person, given in zip(labelled.items, labelled.people, labelled.classes, strict=True):
        labels[item].add((people[person][1], CLASSES[given]))
    chosen = zip(classes, labels, labelled.original, strict=True)
    return Counter((name, frozenset(given)) for name, given, original in chosen if original)


def _expected(classes: Mapping[str, str], items: Mapping[str, ItemLabels]) -> Counter[_LabelledItem]:
    found = Counter[_LabelledItem]()
    for item, name in classes.items():
        if item in items and (given := items[item].history.labels()):
            found[name, frozenset(given)] += 1
    return found


def _check_gold_requests(findings: Findings, stand: Stand, model: str, asked: Asked) -> None:
    """Redis remembers for ever that a gold item was requested, and counts its requests apart."""
    if asked.gold:
        items = sorted(asked.gold)
        used = stand.site().requests(model).are_used([request_id_of(model, item) for item in items])
        unknown = [item for item, is_used in zip(items, used, strict=True) if not is_used]
        findings.expect(not unknown, f"gold items that may be requested again: {unknown}")
    issued = asked.tallied("issued", gold=True)
    sent = sum(len(asked.requests[item]) for item in asked.gold)
    findings.expect(0 <= issued - sent <= asked.never_sent, f"{issued} requests for gold items, {sent} sent")


def _check_asked(
    findings: Findings,
    stand: Stand,
    model: str,
    *,
    asked: Asked,
    items: Mapping[str, ItemLabels],
    predicted: Mapping[str, str],
) -> None:
    """One more person is asked if and only if the labels by then call for it; no item is forgotten.

    What is decided depends on when that was: on any of the changes since the last person has answered.
    """
    store = LabelledItemStore(stand.connection, stand.site().keys(model))
    undecided = {item.first_request for item in store.undecided()}
    policy = stand.site().settings.models[model].labels_per_item
    forgotten: list[Any] = []
    for item, opinions in asked.requests.items():
        history, first = items[item].history, opinions[1]
        for opinion in opinions:
            states = history.classes.get(opinion, [])
            wanted = {
                opinion < policy.most
                and policy.wants_another(classes, predicted.get(item), is_audited=_is_audited(first, policy))
                for classes in states
            }
            if opinion + 1 in opinions:
                findings.expect(True in wanted, f"{item}: person {opinion + 1} is asked after {states}")
            elif wanted == {True} and history.people and first not in undecided:
                forgotten.append((item, states))
    findings.expect(len(forgotten) <= asked.never_sent, f"nobody else is asked about {forgotten}")


def _is_audited(first_request: str, policy: LabelsPerItem) -> bool:
    hashed = hashlib.blake2b(first_request.encode(), key=HASH_KEY, digest_size=8, person=b"audit")
    return int.from_bytes(hashed.digest()) / 2**64 < policy.audit_share
