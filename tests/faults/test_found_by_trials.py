"""What this suite once found, each by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from harness import wait_for
from layout import MODELS
from stand import Stand
from store_site import Record, Site
from workload import CLASSES, MODEL, Message, Workload

from service.store.connection import Connection

A_DAY = 86_400


def test_a_consumer_whose_clock_was_a_day_ahead_keeps_dead_letters_again(
    stands: Callable[..., Stand],
) -> None:
    stand = stands(moves_clocks=True)
    member = stand.members["predictions-1"]
    member.move_clock(A_DAY)
    member.start()
    wait_for(lambda: member.shown_time() > time.time() + A_DAY / 2, seconds=60, what="a clock a day ahead")
    stand.send([Message(b"key", b"{")])
    wait_for(lambda: "InvalidTimestampError" in member.log.read_text(), seconds=60, what="a refusal")
    member.move_clock(0)
    wait_for(stand.predictions_stored, seconds=30, what="the dead letter kept")


def test_a_redis_emptied_while_nothing_is_sent_is_filled_again(stands: Callable[..., Stand]) -> None:
    stand, workload = stands(), Workload(21, began=1_700_000_000.0)
    stand.send(workload.predictions(0, 200))
    stand.members["predictions-1"].start()
    wait_for(stand.predictions_stored, seconds=60, what="everything stored")
    stand.redis_client.flushall()
    wait_for(stand.predictions_stored, seconds=20, what="everything stored again")


def test_labels_applied_again_are_refused_no_more_than_before(reference: Connection) -> None:
    site, now = Site(reference, MODELS), time.time()
    item = {"model": MODEL, "item_id": "item", "predicted_class": "cat", "score": 0.9}
    site.take_in([Record(0, json.dumps(item).encode())])
    monitor = site.monitor(MODEL)
    monitor.refresh(now)
    monitor.ask(epoch=1, now=now)
    (message,) = map(json.loads, site.requests(MODEL).read_outbox().values())

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
