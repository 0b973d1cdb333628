"""What must hold of labels and outcomes of one model when a trial rests."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asked import Asked
from findings import Findings
from label_history import Entry, ItemHistory
from outcome_stream import OutcomeStream
from reference import Place, Reference
from stand import Records, Stand
from workload import Workload, gold_items

UNREADABLE = {"malformed_json", "malformed_record", "unknown_schema", "unsupported_event"}
"""Why a record is refused of which nothing can be used."""

LabelPlace = tuple[str, int, int]
"""Kind of topic, partition and offset of a label."""


@dataclass
class ItemLabels:
    """The labels of one item, by the topic.

    Attributes:
        given: place, opinion and label of each, in order.
        history: what they do.
        refused: why each is refused in fact, or None.
    """

    given: list[tuple[LabelPlace, int, dict[str, Any]]] = field(default_factory=list)
    history: ItemHistory = field(default_factory=ItemHistory)
    refused: list[str | None] = field(default_factory=list)


def check_labels(
    findings: Findings,
    stand: Stand,
    model: str,
    *,
    records: Records,
    workload: Workload,
    reference: Reference,
    asked: Asked,
    refused: Mapping[Place, str],
    forgetful: bool,
) -> tuple[OutcomeStream, dict[str, ItemLabels]]:
    """Every item's entries are what its labels say, once; every label took effect or was kept as bad."""
    items = _labels_in(findings, records, workload, model, asked=asked, refused=refused)
    _check_offsets(findings, stand, model, records)
    stream = OutcomeStream.read(stand, model)
    _check_facts(findings, stream, reference, asked, forgetful=forgetful)
    if forgetful:
        for item, labels in items.items():
            _check_possible(findings, item, labels, stream.entries.get(item, []))
        _check_tallies(findings, stream, asked)
        findings.outcomes = sum(
            not {"expired_request", "unknown_request"} & {*i.refused} for i in items.values()
        )
        return stream, items

    never_sent = 0
    for item in {*items, *asked.requests, *stream.entries}:
        labels = items.setdefault(item, ItemLabels())
        opinions = asked.requests.get(item, {})
        reasons = _take_in(labels, opinions, asked)
        found, expected = stream.entries.get(item, []), labels.history.entries
        if not opinions:
            never_sent += 1
            findings.expect(
                Counter(map(_class, found)) == {"expired": 1}, f"outcomes that nobody gave: {item}: {found}"
            )
            continue
        findings.expect(found == expected, f"{item}: outcomes {found}, expected {expected}")
        for (place, _, label), why, reason in zip(labels.given, labels.refused, reasons, strict=True):
            findings.expect(why == reason, f"label {label} at {place}: {why}, expected {reason}")
    findings.expect(never_sent <= asked.never_sent, f"outcomes of {never_sent} items that were never sent")
    _check_recount(findings, items, asked)
    return stream, items


def _class(entry: Entry) -> str:
    return entry.true_class


def _labels_in(
    findings: Findings,
    records: Records,
    workload: Workload,
    model: str,
    *,
    asked: Asked,
    refused: Mapping[Place, str],
) -> dict[str, ItemLabels]:
    """Labels of every item, by the topic; others are refused as those of no request, or as unreadable."""
    letters = {place[:3]: why for place, why in refused.items() if place[0] == "labels"}
    opinion_of = {request: o for of in asked.requests.values() for o, request in of.items()}
    found: dict[str, ItemLabels] = defaultdict(ItemLabels)
    for partition, kept in records.items():
        for record in kept:
            place, plain = ("labels", partition, record.offset), workload.plain(record)
            why = letters.get(place)
            if plain is None:
                findings.expect(why in UNREADABLE, f"a label that cannot be read, at {place}: {why}")
                continue
            label = json.loads(plain)
            if label["model"] != model:
                continue
            findings.labels += 1
            if label["request_id"] in opinion_of:
                item = found[label["item_id"]]
                item.given.append((place, opinion_of[label["request_id"]], label))
                item.refused.append(why)
            else:
                findings.expect(why == "unknown_request", f"a label for no request, at {place}: {why}")
    return dict(found)


def _check_offsets(findings: Findings, stand: Stand, model: str, records: Records) -> None:
    """All labels are taken in."""
    ends = {partition: kept[-1].offset + 1 for partition, kept in records.items() if kept}
    stored = {p: stand.site().labels(model).progress(p)[0] for p in ends}
    findings.expect(stored == ends, f"stored offsets of labels {stored}, ends {ends}")


def _take_in(labels: ItemLabels, opinions: Mapping[int, str], asked: Asked) -> list[str | None]:
    """Take in an item's labels, and that requests expire; why each label is to be refused.

    Only Redis knows when a request expires: before the first label that came too late, or at any time if
    none did. A request that is neither open nor closed by a label has expired.
    """
    history, reasons = labels.history, []
    for (_, opinion, label), why in zip(labels.given, labels.refused, strict=True):
        if why == "expired_request" and history.is_open(opinion):
            history.expire(opinion)
        reasons.append(history.take(opinion, label))
    for opinion, request in opinions.items():
        if history.is_open(opinion) and request not in asked.facts.open:
            history.expire(opinion)
    return reasons


def _check_facts(
    findings: Findings, stream: OutcomeStream, reference: Reference, asked: Asked, *, forgetful: bool
) -> None:
    """Every entry has the prediction of its item, or of the file of gold items, and counts once a person."""
    file = gold_items()
    for item, predictions in stream.predictions.items():
        true = reference.predictions.get(item, {})
        findings.expect(predictions <= true.keys(), f"an outcome has another prediction than {item}")
    for item, found in stream.gold.items():
        row = file.get(item, {})
        true_gold = (row.get("predicted_class"), row.get("score"), 0.0, ()), row.get("true_class")
        findings.expect(found == {true_gold}, f"an entry of gold item {item} has {found}")
        findings.expect(item not in stream.predictions, f"{item} is a gold item and another one")
        findings.expect(forgetful or item in asked.gold, f"{item} was not requested as a gold item")
    wrong = asked.gold & stream.predictions.keys()
    findings.expect(forgetful or not wrong, f"gold items with outcomes: {wrong}")
    findings.expect(not stream.strays, f"labels that name no outcome of their item: {stream.strays}")
    for item, people in stream.people().items():
        findings.expect(len(people) == len({*people}), f"{item} has two labels of a person: {people}")
    for item, _, prediction in stream.shared:
        true = reference.predictions.get(item, {})
        findings.expect(prediction in true, f"a further draw has another prediction than {item}")
    twice = [
        (item, grouping, prediction)
        for (item, grouping, prediction), count in Counter(stream.shared).items()
        if count > reference.predictions.get(item, {}).get(prediction, 1)
    ]
    findings.expect(forgetful or not twice, f"further draws that count twice: {twice}")


def _check_possible(findings: Findings, item: str, labels: ItemLabels, found: Sequence[Entry]) -> None:
    """Where Redis has forgotten requests, entries are of given labels, and none is without trace."""
    said = {(label.get("true_class") or "", label["annotator"]) for _, _, label in labels.given}
    other = [
        e
        for e in found
        if e.true_class not in ("skipped", "expired") and (e.true_class, e.annotator) not in said
    ]
    findings.expect(not other, f"{item}: nobody said {other}")
    answers = any(label.get("true_class") for _, _, label in labels.given)
    lost = not found and not {*labels.refused} - {None} and answers
    findings.expect(not lost, f"{item}: labels took no effect, and are not kept")


def _check_tallies(findings: Findings, stream: OutcomeStream, asked: Asked) -> None:
    """Redis counts as many labels as are in the stream."""
    for gold in (False, True):
        entries = [
            entry for item, of in stream.entries.items() for entry in of if (item in stream.gold) == gold
        ]
        ended = sum(entry.true_class in ("skipped", "expired") for entry in entries)
        tallied = asked.tallied("answered", "corrected", "retracted", gold=gold)
        findings.expect(
            tallied == len(entries) - ended,
            f"{tallied} labels tallied, gold {gold}, not {len(entries) - ended}",
        )
        most = asked.tallied("skipped", "expired", gold=gold)
        findings.expect(ended <= most, f"{ended} outcomes of items without a label, {most} tallied")


def _check_recount(findings: Findings, items: Mapping[str, ItemLabels], asked: Asked) -> None:
    """Tallies and budgets are those of a recount of the labels topic."""
    of_kind = {gold: Counter[str]() for gold in (False, True)}
    for item, labels in items.items():
        of_kind[item in asked.gold].update(labels.history.events)
    for gold, events in of_kind.items():
        for event in ("answered", "corrected", "retracted", "skipped"):
            tallied = asked.tallied(event, gold=gold)
            findings.expect(
                tallied == events[event], f"{tallied} {event}, gold {gold}, expected {events[event]}"
            )
    expired = asked.tallied("expired") + asked.tallied("expired", gold=True)
    recounted = sum(events["expired"] for events in of_kind.values()) + asked.never_sent
    findings.expect(expired == recounted, f"{expired} requests expired, expected {recounted}")
    closed = sum(
        request.state not in ("open", "expired")
        for labels in items.values()
        for request in labels.history.requests.values()
    )
    findings.outcomes = closed
    used, in_flight = sum(asked.facts.budget.values()), len(asked.facts.open)
    findings.expect(
        used == closed + in_flight, f"{used} labels used: {closed} answered or skipped, {in_flight} in flight"
    )


def dead_letters(stand: Stand) -> dict[Place, tuple[str, bytes]]:
    """Why each message was refused, and its dead letter; one that was sent twice stands once."""
    kinds = {stand.topic(kind): kind for kind in ("predictions", "labels")}
    found: dict[Place, tuple[str, bytes]] = {}
    for records in stand.records("dead-letters").values():
        for record in records:
            headers = {name: value.decode() for name, value in record.headers}
            index = headers.get("credence-source-index")
            place = (
                kinds[headers["credence-source-topic"]],
                int(headers["credence-source-partition"]),
                int(headers["credence-source-offset"]),
                None if index is None else int(index),
            )
            found[place] = headers["credence-reason"], record.value
    return found
