"""What must hold of requests, labels and outcomes when a trial rests."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from findings import Findings
from layout import MODELS
from reference import Place, Reference
from stand import Stand
from workload import MODEL

from service.store.outcome_entries import BEGINNING, OutcomeEntry, SharedDraw
from service.store.records import EXPIRED, SKIPPED, Fact

MOST_ATTEMPTS = 2

LabelPlace = tuple[str, int, int]
"""Kind of topic, partition and offset of a label."""


@dataclass(frozen=True)
class Asked:
    """What the label-requests topic holds.

    Attributes:
        request_of: request id by item id.
        never_sent: requests, by Redis's count, that expired before they could be sent.
    """

    request_of: dict[str, str]
    never_sent: int


def check_requests(findings: Findings, stand: Stand, *, forgetful: bool) -> Asked:
    """Requests and budgets: every request is of one item, no item has two, and all are counted.

    Args:
        findings: where problems are noted.
        stand: at rest.
        forgetful: whether Redis was set back to an older state, or emptied, on the way. It then counts
            those alone that it has not forgotten.
    """
    facts = stand.site().reader(MODEL).requests()
    sent = [json.loads(r.value) for records in stand.records("label-requests").values() for r in records]
    item_of: dict[str, str] = {}
    request_of: dict[str, str] = {}
    texts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for message in sent:
        request, item, attempt = message["request_id"], message["item_id"], message["attempt"]
        findings.expect(item_of.setdefault(request, item) == item, f"{request} is sent for two items")
        findings.expect(request_of.setdefault(item, request) == request, f"{item} is requested twice")
        findings.expect(1 <= attempt <= MOST_ATTEMPTS, f"{request} has attempt {attempt}")
        texts[request, attempt].add(json.dumps(message, sort_keys=True))
    unlike = [key for key, shown in texts.items() if len(shown) > 1]
    findings.expect(forgetful or not unlike, f"attempts that were sent twice, and differ: {unlike}")
    findings.requests = len(item_of)

    for name, settings in MODELS[MODEL]["assessments"].items():
        used = sum(count for field, count in facts.budget.items() if field.startswith(f"{name}|"))
        issued, expired = (facts.tallies.get((event, name), 0) for event in ("issued", "expired"))
        findings.expect(used == issued - expired, f"{name}: {used} used, {issued} issued, {expired} expired")
        findings.expect(used <= settings["budget"]["labels"], f"{name}: {used} labels used")
    issued, expired = (
        sum(count for (kind, _), count in facts.tallies.items() if kind == event)
        for event in ("issued", "expired")
    )
    never_sent = issued - len(item_of)
    findings.expect(never_sent <= expired, f"{issued} issued, {len(item_of)} sent, {expired} expired")
    findings.expect(forgetful or never_sent >= 0, f"{issued} issued, {len(item_of)} sent")
    return Asked(request_of, max(never_sent, 0))


@dataclass(frozen=True)
class Effect:
    """One entry of the outcome stream.

    Attributes:
        item_id: of the item.
        true_class: empty for a retraction; why there is none, if the request ended without one.
        prediction: what it tells of the item's prediction.
    """

    item_id: str
    true_class: str
    prediction: tuple[Any, ...]


def effects_in(stand: Stand) -> list[Effect]:
    """The outcome stream, oldest first."""
    page = stand.site().reader(MODEL).outcomes(BEGINNING)
    assert page is not None
    assert page.complete, "a trial is not so long"
    return [
        Effect(
            entry.fact.item_id, entry.label.unanswered or entry.label.true_class, _prediction_of(entry.fact)
        )
        for entry in page.entries
        if isinstance(entry, OutcomeEntry)
    ]


def _shared_in(stand: Stand) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Further draws of items in the outcome stream: item, grouping, and the prediction that was drawn."""
    page = stand.site().reader(MODEL).outcomes(BEGINNING)
    assert page is not None
    return [
        (entry.fact.item_id, entry.fact.grouping, _prediction_of(entry.fact))
        for entry in page.entries
        if isinstance(entry, SharedDraw)
    ]


def _prediction_of(fact: Fact) -> tuple[Any, ...]:
    attributes = tuple(sorted(fact.attributes.items()))
    return (fact.predicted_class, fact.score, fact.predicted_at, attributes)


def check_outcomes(
    findings: Findings,
    stand: Stand,
    reference: Reference,
    asked: Asked,
    refused: Mapping[Place, str],
    *,
    forgetful: bool,
) -> None:
    """Every request's outcome is what its labels say, once; every label took effect or was kept as bad."""
    records = stand.records("labels")
    ends = {partition: kept[-1].offset + 1 for partition, kept in records.items() if kept}
    stored = {p: stand.site().labels(MODEL).progress(p)[0] for p in ends}
    findings.expect(stored == ends, f"stored offsets of labels {stored}, ends {ends}")
    findings.labels = sum(len(kept) for kept in records.values())

    letters = {place[:3]: why for place, why in refused.items() if place[0] == "labels"}
    told_of: dict[str, list[tuple[LabelPlace, dict[str, Any]]]] = defaultdict(list)
    for partition, kept in records.items():
        for record in kept:
            place, label = ("labels", partition, record.offset), json.loads(record.value)
            if label["request_id"] == asked.request_of.get(label["item_id"]):
                told_of[label["item_id"]].append((place, label))
            else:
                why = letters.get(place)
                findings.expect(why == "unknown_request", f"a label for no request, at {place}: {why}")
    effects_of_item: dict[str, list[str]] = defaultdict(list)
    for effect in effects_in(stand):
        effects_of_item[effect.item_id].append(effect.true_class)
        true = reference.predictions.get(effect.item_id, {})
        findings.expect(effect.prediction in true, f"an outcome tells wrongly of {effect.item_id}")

    shared = _shared_in(stand)
    for item, _, prediction in shared:
        true = reference.predictions.get(item, {})
        findings.expect(prediction in true, f"a further draw tells wrongly of {item}")
    twice = [
        (item, grouping, prediction)
        for (item, grouping, prediction), count in Counter(shared).items()
        if count > reference.predictions.get(item, {}).get(prediction, 1)
    ]
    findings.expect(forgetful or not twice, f"further draws that count twice: {twice}")

    closed = 0
    for item, shown in told_of.items():
        effects = effects_of_item.pop(item, [])
        whys = {letters.get(place) for place, _ in shown}
        closed += not whys & {"expired_request", "unknown_request"}
        if forgetful:
            said = {label.get("true_class") or "" for _, label in shown} | {SKIPPED, EXPIRED}
            findings.expect(said.issuperset(effects), f"{item}: nobody said {effects}")
            lost = not effects and not whys - {None} and any(label.get("true_class") for _, label in shown)
            findings.expect(not lost, f"{item}: labels took no effect, and are not kept")
            continue
        expired = "expired_request" in whys
        expected, reasons = (
            ([EXPIRED], ["expired_request"] * len(shown))
            if expired
            else effects_of([label for _, label in shown])
        )
        findings.expect(effects == expected, f"{item}: outcomes {effects}, expected {expected}")
        for (place, label), why in zip(shown, reasons, strict=True):
            found = letters.get(place)
            findings.expect(found == why, f"label {label} at {place}: {found}, expected {why}")
    # Nobody may have answered at all.
    unheard = {item: effects for item, effects in effects_of_item.items() if set(effects) != {EXPIRED}}
    findings.expect(not unheard, f"outcomes that nobody gave: {unheard}")
    findings.outcomes = closed
    _check_books(findings, stand, closed=closed, forgetful=forgetful)


def _check_books(findings: Findings, stand: Stand, *, closed: int, forgetful: bool) -> None:
    """Tallies and budgets tell of as many answers as there are."""
    facts = stand.site().reader(MODEL).requests()
    entries = len(effects_in(stand))
    tallied = sum(
        count
        for (event, _), count in facts.tallies.items()
        if event in ("answered", "corrected", "retracted", "skipped", "expired")
    )
    findings.expect(tallied == entries, f"{tallied} outcomes tallied, {entries} in the stream")
    used = sum(facts.budget.values())
    findings.expect(
        forgetful or used == closed + len(facts.open),
        f"{used} labels used: {closed} answered or skipped, {len(facts.open)} in flight",
    )


def effects_of(labels: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str | None]]:
    """What labels do to their request, in order.

    Returns:
        The true class that is known after each label that had an effect, or that it was skipped; and per
        label why it is refused, or None.
    """
    state, known = "open", ""
    seen: dict[str, str | None] = {}
    effects: list[str] = []
    refused: list[str | None] = []
    for label in labels:
        kind, said = label["kind"], label.get("true_class") or ""
        identity = json.dumps([kind, said, label["time"]])
        reason: str | None = None
        if identity in seen:
            reason = seen[identity]
        elif kind == "skip" and state == "open":
            state = "skipped"
            effects.append(SKIPPED)
        elif kind in ("answer", "skip") and state != "open":
            same = (state, known) == ("answered", said) if kind == "answer" else state == "skipped"
            reason = None if same else "conflicting_label"
        elif kind == "answer" or (kind == "correction" and (state, known) != ("answered", said)):
            state, known = "answered", said
            effects.append(said)
        elif kind == "retraction" and state == "answered":
            state, known = "retracted", ""
            effects.append("")
        elif kind == "retraction" and state != "retracted":
            reason = "nothing_to_retract"
        seen[identity] = reason
        refused.append(reason)
    return effects, refused


def dead_letters(stand: Stand) -> dict[Place, str]:
    """Why each message was refused; one that was sent twice stands once."""
    kinds = {stand.topic(kind): kind for kind in ("predictions", "labels")}
    found: dict[Place, str] = {}
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
            found[place] = headers["credence-reason"]
    return found
