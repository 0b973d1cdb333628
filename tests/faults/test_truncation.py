"""What a topic's retention deletes before it is read is lost: exactly that, and it is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checking import check_traffic
from findings import Findings
from harness import wait_for
from kafka import TopicPartition
from layout import PARTITIONS
from reference import references_of
from stand import Stand
from store_site import read_facts
from workload import MODEL, Workload

from service.store.connection import Connection

CONSUMERS = ("predictions-1", "predictions-2")
LOST = 'credence_records_lost_total{topic="predictions"}'
KEPT = 25
"""Records of every partition that retention leaves."""


def stored(stand: Stand) -> dict[int, int]:
    return stand.site().reader(MODEL).traffic().offsets


def delete_before(stand: Stand, offsets: dict[int, int]) -> None:
    admin = stand.kafka.admin()
    admin.delete_records({TopicPartition(stand.topic("predictions"), p): o for p, o in offsets.items()})
    admin.close()


def test_records_deleted_while_nobody_read_are_all_that_is_lost_and_are_counted(
    stands: Callable[..., Stand], reference: Connection
) -> None:
    stand, workload = stands(), Workload(20, began=1_700_000_000.0)
    stand.send(workload.predictions(0, 300))
    for name in CONSUMERS:
        stand.members[name].start()
    wait_for(stand.predictions_stored, seconds=60, what="the first part stored")
    for name in CONSUMERS:
        stand.members[name].stop()
    read = stored(stand)
    stand.send(workload.predictions(300, 400))
    records: dict[int, list[Any]] = stand.records("predictions")
    firsts = {p: end - KEPT for p, end in stand.ends("predictions").items()}
    assert all(firsts[p] > read[p] for p in range(PARTITIONS["predictions"]))
    delete_before(stand, firsts)

    # One after the other: partitions that change hands before the first flush may count the loss twice.
    stand.members[CONSUMERS[0]].start()
    wait_for(stand.predictions_stored, seconds=60, what="the rest stored")
    stand.members[CONSUMERS[1]].start()
    wait_for(stand.members[CONSUMERS[1]].ready, seconds=60, what="the second consumer up")
    left = {p: [r for r in of if r.offset < read[p] or r.offset >= firsts[p]] for p, of in records.items()}
    findings = Findings()
    references = references_of(reference, left, workload, registry_url=stand.registry.url)
    for model, expected in references.models.items():
        check_traffic(findings, read_facts(stand.site(), model), expected, stand.ends("predictions"))
    assert findings.problems == []
    lost = sum(firsts[p] - read[p] for p in firsts)
    assert sum(stand.members[name].metric(LOST) for name in CONSUMERS) == lost
