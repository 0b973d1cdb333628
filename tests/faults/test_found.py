"""Faults that this suite has found and that are not mended yet; strictly: what is mended loses its mark."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable

import pytest
from layout import MODELS, wait_for
from stand import Stand
from store_site import Record, Site
from workload import CLASSES, MODEL, Workload

from service.store.connection import Connection

HEEDED_SECONDS = 3.0
"""Time in which a process surely heeds that its clock was moved."""


@pytest.mark.xfail(
    strict=True,
    reason="a Redis that forgot is noticed when the next record of a partition is taken in, and not before",
)
def test_a_redis_emptied_while_nothing_is_sent_is_filled_again(stands: Callable[..., Stand]) -> None:
    stand, workload = stands(), Workload(21, began=1_700_000_000.0)
    stand.send(workload.predictions(0, 200))
    stand.members["predictions-1"].start()
    wait_for(stand.predictions_stored, seconds=60, what="everything stored")
    stand.redis_client.flushall()
    wait_for(stand.predictions_stored, seconds=20, what="everything stored again")


@pytest.mark.xfail(strict=True, reason="the consumers' loop measures its waiting by the clock")
def test_a_consumer_whose_clock_is_set_back_goes_on(stands: Callable[..., Stand]) -> None:
    stand, workload = stands(moves_clocks=True), Workload(22, began=1_700_000_000.0)
    stand.members["predictions-1"].start()
    stand.send(workload.predictions(0, 100))
    wait_for(stand.predictions_stored, seconds=60, what="the first part stored")
    stand.members["predictions-1"].move_clock(-240)
    heeded_at = time.monotonic() + HEEDED_SECONDS
    for part in itertools.count(1):
        stand.send(workload.predictions(100 * part, 100))
        wait_for(stand.predictions_stored, seconds=20, what=f"part {part} stored")
        if time.monotonic() > heeded_at:
            break


@pytest.mark.xfail(
    strict=True,
    reason="an answer that says nothing new leaves no trace, and looks like a conflict when it is applied "
    "again behind a later correction",
)
def test_labels_applied_again_are_refused_no_more_than_before(reference: Connection) -> None:
    site, now = Site(reference, MODELS), time.time()
    item = {"model": MODEL, "item_id": "item", "predicted_class": "cat", "score": 0.9}
    site.take_in([Record(0, json.dumps(item).encode())])
    monitor = site.monitor(MODEL)
    monitor.refresh(now)
    monitor.ask(epoch=1, now=now)
    (message,) = map(json.loads, site.requests(MODEL).outbox().values())

    def label(offset: int, kind: str, true_class: str) -> Record:
        said = {name: message[name] for name in ("request_id", "model", "item_id")}
        said |= {"kind": kind, "true_class": true_class}
        return Record(offset, json.dumps(said).encode(), timestamp=int(now * 1_000) + offset)

    first, second, _ = CLASSES
    labels = [label(0, "answer", first), label(1, "answer", first), label(2, "correction", second)]
    for _ in range(2):
        step = site.label_step()
        step.assign(0, 0)
        step.process(0, labels, now)
    assert site.letters.reasons == []
