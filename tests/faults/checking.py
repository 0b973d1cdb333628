"""What must hold when a trial rests: facts against those of one process that nothing disturbed.

The reference takes what the topics hold with the same steps, on a Redis of its own.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from stand import BOUNDS, MODELS, Stand
from store_site import HASH_KEY, Facts, Record, Site, read_facts
from workload import MODEL

from service.shard import gumbel_noise
from service.siphash import siphash24
from service.store.connection import Connection
from service.store.records import Fact, decode_pool_record

BATCH = 500
MOST_ATTEMPTS = 2
LabelPlace = tuple[str, int, int]
Place = tuple[str, int, int, int | None]
"""Kind of topic, partition, offset, and index in an array, of a message."""


@dataclass
class Reference:
    """What an undisturbed process makes of the predictions.

    Attributes:
        facts: all of them.
        entrants: of every cell and partition, by item id, the records of that item that were offered to
            the pool.
        rejected: why each bad message is refused.
    """

    facts: Facts
    entrants: dict[tuple[Any, ...], dict[str, set[bytes]]]
    rejected: dict[Place, str]

    @cached_property
    def predictions(self) -> dict[str, set[tuple[Any, ...]]]:
        """What outcomes may tell of every item's prediction."""
        told: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for items in self.entrants.values():
            for item_id, encoded in items.items():
                told[item_id] |= {
                    (kept.predicted_class, kept.score, kept.time, tuple(sorted(kept.attributes.items())))
                    for kept in map(decode_pool_record, encoded)
                }
        return told


@dataclass
class Findings:
    """What a trial came to.

    Attributes:
        predictions: in the topic, that can be used.
        counted: in the stored traffic.
        labels: in the topic.
        requests: known to Redis.
        outcomes: in effect.
        problems: what does not hold; none, if all is well.
    """

    predictions: int = 0
    counted: int = 0
    labels: int = 0
    requests: int = 0
    outcomes: int = 0
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: object, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)


def reference_of(connection: Connection, records: Mapping[int, Sequence[Any]]) -> Reference:
    """Take all records of the predictions topic, undisturbed.

    Args:
        connection: to a Redis and prefix of its own.
        records: of every partition, from its first one.
    """
    site = Site(connection, MODELS, bounds=BOUNDS, flood_window=10**9)
    step, now = site.prediction_step(), time.time()
    roomy = Site(
        Connection(connection.client, f"{connection.prefix}-roomy"),
        MODELS,
        bounds=BOUNDS | {"slots_per_cell": 1_024},
        flood_window=10**9,
    )
    roomy_step = roomy.prediction_step()
    for partition, kept in sorted(records.items()):
        for taking in (step, roomy_step):
            taking.assign(partition, kept[0].offset if kept else 0)
            for start in range(0, len(kept), BATCH):
                taking.process(partition, [_plain(r) for r in kept[start : start + BATCH]], now)
                taking.flush(partition, now)
            taking.flush(partition, now + 1_000)
    rejected: dict[Place, str] = {
        ("predictions", letter.partition, letter.offset, letter.index): letter.error.reason
        for letter in site.letters.kept
    }
    entrants: dict[tuple[Any, ...], dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
    for *cell, record in read_facts(roomy, MODEL).pool:
        entrants[tuple(cell)][decode_pool_record(record).item_id].add(record)
    return Reference(read_facts(site, MODEL), entrants, rejected)


def _plain(record: Any) -> Record:
    return Record(record.offset, record.value, record.key, record.headers, record.timestamp)


def check_traffic(findings: Findings, found: Facts, reference: Reference, ends: Mapping[int, int]) -> None:
    """Counts and offsets are those of the reference, to the last one; weights to 1e-9."""
    expected = reference.facts
    findings.predictions = sum(expected.counts.values())
    findings.counted = sum(found.counts.values())
    findings.expect(found.offsets == dict(ends), f"stored offsets {found.offsets}, ends {dict(ends)}")
    wrong = {
        cell: (found.counts.get(cell, 0), expected.counts.get(cell, 0))
        for cell in found.counts.keys() | expected.counts.keys()
        if found.counts.get(cell, 0) != expected.counts.get(cell, 0)
    }
    findings.expect(not wrong, f"counts found and expected differ: {wrong}")
    findings.expect(found.weights.keys() == expected.weights.keys(), "sums of other cells or classes")
    off = {
        name: (found.weights[name], value)
        for name, value in expected.weights.items()
        if name in found.weights and not np.isclose(found.weights[name], value, rtol=1e-9, atol=0)
    }
    findings.expect(not off, f"sums found and expected differ by more than 1e-9: {off}")


def check_pool(findings: Findings, found: Facts, reference: Reference, asked: Asked, *, decay: float) -> None:
    """Every cell's pool is a legal sample.

    An item may be missing only if as many better ones as there are slots are there or were drawn: whoever
    takes a slot is better than whom it puts out, so their number never falls.
    """
    slots, requested = BOUNDS["slots_per_cell"], asked.request_of.keys()
    pooled: dict[tuple[Any, ...], dict[str, bytes]] = defaultdict(dict)
    for *cell, record in found.pool:
        item_id = decode_pool_record(record).item_id
        findings.expect(item_id not in pooled[tuple(cell)], f"{item_id} stands twice in the pool of {cell}")
        pooled[tuple(cell)][item_id] = record
    for cell, kept in pooled.items():
        entrants = reference.entrants.get(cell, {})
        findings.expect(len(kept) <= slots, f"{len(kept)} items in the pool of {cell}")
        for item_id, record in kept.items():
            findings.expect(
                record in entrants.get(item_id, ()), f"what the pool of {cell} says of {item_id} is not true"
            )
    for cell, entrants in reference.entrants.items():
        kept = pooled.get(cell, {})
        priorities = {item_id: _priority(records, decay) for item_id, records in entrants.items()}
        present = sorted(priorities[i] for i in entrants if i in kept or i in requested)
        for item_id, priority in priorities.items():
            if item_id in kept or item_id in requested:
                continue
            better = len(present) - int(np.searchsorted(present, priority, side="right"))
            findings.expect(
                better + asked.never_sent >= slots,
                f"{item_id} is missing in the pool of {cell}: only {better} are better",
            )


def _priority(records: set[bytes], decay: float) -> float:
    decoded = [decode_pool_record(record) for record in records]
    noise = gumbel_noise(siphash24([decoded[0].item_id.encode()], HASH_KEY))[0]
    return float(decay * max(record.time for record in decoded) + noise)


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
    unlike = [key for key, told in texts.items() if len(told) > 1]
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
        true_class: empty for a retraction.
        prediction: what it tells of the item's prediction.
    """

    item_id: str
    true_class: str
    prediction: tuple[Any, ...]


def effects_in(stand: Stand) -> list[Effect]:
    """The outcome stream, oldest first."""
    _, entries = stand.site().reader(MODEL).outcomes("0-0")
    return [Effect(entry.fact.item_id, entry.true_class, _prediction_of(entry.fact)) for entry in entries]


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
    stored = {p: stand.site().requests(MODEL).labels_progress(p)[0] for p in ends}
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
        true = reference.predictions.get(effect.item_id, set())
        findings.expect(effect.prediction in true, f"an outcome tells wrongly of {effect.item_id}")

    closed = 0
    for item, told in told_of.items():
        effects = effects_of_item.pop(item, [])
        whys = {letters.get(place) for place, _ in told}
        closed += not whys & {"expired_request", "unknown_request"}
        if forgetful:
            said = {label.get("true_class") or "" for _, label in told}
            findings.expect(said.issuperset(effects), f"{item}: nobody said {effects}")
            lost = not effects and not whys - {None} and any(label.get("true_class") for _, label in told)
            findings.expect(not lost, f"{item}: labels took no effect, and are not kept")
            continue
        expired = "expired_request" in whys
        expected, reasons = (
            ([], ["expired_request"] * len(told)) if expired else effects_of([label for _, label in told])
        )
        findings.expect(effects == expected, f"{item}: outcomes {effects}, expected {expected}")
        for (place, label), why in zip(told, reasons, strict=True):
            found = letters.get(place)
            repeated = (found, why) == ("conflicting_label", None)  # test_found.py tells of this
            findings.expect(found == why or repeated, f"label {label} at {place}: {found}, expected {why}")
    findings.expect(not effects_of_item, f"outcomes that nobody gave: {dict(effects_of_item)}")
    findings.outcomes = closed
    _check_books(findings, stand, closed=closed, forgetful=forgetful)


def _check_books(findings: Findings, stand: Stand, *, closed: int, forgetful: bool) -> None:
    """Tallies and budgets tell of as many answers as there are."""
    facts = stand.site().reader(MODEL).requests()
    entries = len(effects_in(stand))
    tallied = sum(
        count
        for (event, _), count in facts.tallies.items()
        if event in ("answered", "corrected", "retracted")
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
        The true class that is known after each label that had an effect, and per label why it is refused, or
        None.
    """
    state, known, seen = "open", "", set[str]()
    effects: list[str] = []
    refused: list[str | None] = []
    for label in labels:
        kind, said = label["kind"], label.get("true_class") or ""
        identity = json.dumps([kind, said, label["time"]])
        reason: str | None = None
        if identity in seen:
            pass
        elif kind == "skip" and state == "open":
            state = "skipped"
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
        seen.add(identity)
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


def check_all(stand: Stand, reference_connection: Connection, *, forgetful: bool) -> Findings:
    """Everything that must hold of a deployment at rest.

    Args:
        stand: at rest.
        reference_connection: to another Redis, for the reference.
        forgetful: whether Redis was set back to an older state, or emptied, on the way: requests that it
            has forgotten, and labels that came for them, are then told as such.
    """
    findings = Findings()
    records = stand.records("predictions")
    reference = reference_of(reference_connection, records)
    found = read_facts(stand.site(), MODEL)
    check_traffic(findings, found, reference, stand.ends("predictions"))
    asked = check_requests(findings, stand, forgetful=forgetful)
    check_pool(findings, found, reference, asked, decay=stand.site().decay(MODEL))
    refused = dead_letters(stand)
    check_outcomes(findings, stand, reference, asked, refused, forgetful=forgetful)
    letters = {place: reason for place, reason in refused.items() if place[0] == "predictions"}
    findings.expect(letters == reference.rejected, f"dead letters {letters}, expected {reference.rejected}")
    return findings
