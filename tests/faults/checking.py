"""What must hold when a trial rests: facts against those of one process that nothing disturbed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from answers import Asked, check_outcomes, check_requests, dead_letters
from findings import Findings
from layout import BOUNDS
from reference import Reference, reference_of
from stand import Stand
from store_site import HASH_KEY, Facts, read_facts
from workload import MODEL

from service.shard import gumbel_noise
from service.siphash import siphash24
from service.store.connection import Connection
from service.store.records import decode_pool_record


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
    for *parts, record in found.pool:
        cell, item_id = tuple(parts), decode_pool_record(record).item_id
        findings.expect(item_id not in pooled[cell], f"{item_id} stands twice in the pool of {cell}")
        pooled[cell][item_id] = record
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
