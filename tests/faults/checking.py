"""What must hold when a trial rests: facts against those of one process that nothing disturbed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from answers import check_labels, dead_letters
from asked import Asked, check_requests
from findings import Findings
from layout import MODELS
from people import check_people
from reference import Place, Reference, References
from stand import Records, Stand
from store_site import Facts, read_facts
from workload import Workload


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


def check_pool(findings: Findings, found: Facts, reference: Reference, asked: Asked) -> None:
    """Every group's pool holds all of its items above its bound, but those that were drawn.

    Items that were drawn for requests which expired before they could be sent are missing, too.
    """
    pooled: dict[tuple[Any, ...], set[bytes]] = defaultdict(set)
    for *parts, record in found.pool:
        pooled[tuple(parts)].add(record)
    for group, kept in pooled.items():
        offered = set().union(*reference.entrants.get(group, {}).values())
        findings.expect(kept <= offered, f"the pool of {group} holds what nobody predicted")
    missing = []
    for group, entrants in reference.entrants.items():
        bound = found.bounds.get(group, -np.inf)
        missing += [
            (group, item_id)
            for item_id, records in entrants.items()
            for record, priorities in records.items()
            if record not in pooled.get(group, set())
            if item_id not in asked.requests and max(priorities) > bound
        ]
    never_sent = {item_id for _, item_id in missing}
    findings.expect(len(never_sent) <= asked.never_sent, f"{missing} is missing in the pool")


def check_letters(
    findings: Findings, letters: Mapping[Place, tuple[str, bytes]], records: Mapping[str, Records]
) -> None:
    """The dead letter of a whole record has its value, byte for byte, whatever its format is."""
    sent = {
        (kind, partition, record.offset): record.value
        for kind, of_kind in records.items()
        for partition, of_partition in of_kind.items()
        for record in of_partition
    }
    changed = [
        place for place, (_, value) in letters.items() if place[3] is None and value != sent[place[:3]]
    ]
    findings.expect(not changed, f"dead letters that differ from their records: {changed}")


def check_all(stand: Stand, references: References, workload: Workload, *, forgetful: bool) -> Findings:
    """Everything that must hold of a deployment at rest.

    Args:
        stand: at rest.
        references: of its predictions topic.
        workload: that made the records of its topics.
        forgetful: whether Redis was set back to an older state, or emptied, on the way: requests that it
            has forgotten, and labels that came for them, are then reported as such.
    """
    findings = Findings()
    ends, letters = stand.ends("predictions"), dead_letters(stand)
    requests, labels = stand.records("label-requests"), stand.records("labels")
    check_letters(findings, letters, {"predictions": references.records, "labels": labels})
    refused = {place: reason for place, (reason, _) in letters.items()}
    for model in MODELS:
        found, reference, of_model = read_facts(stand.site(), model), references.models[model], Findings()
        check_traffic(of_model, found, reference, ends)
        asked = check_requests(of_model, stand, model, records=requests, forgetful=forgetful)
        check_pool(of_model, found, reference, asked)
        stream, items = check_labels(
            of_model,
            stand,
            model,
            records=labels,
            workload=workload,
            reference=reference,
            asked=asked,
            refused=refused,
            forgetful=forgetful,
        )
        if not forgetful:
            check_people(of_model, stand, model, asked=asked, stream=stream, items=items)
        findings.add(model, of_model)
    found_bad = {place: reason for place, reason in refused.items() if place[0] == "predictions"}
    rejected = references.rejected
    findings.expect(found_bad == rejected, f"dead letters {found_bad}, expected {rejected}")
    return findings
