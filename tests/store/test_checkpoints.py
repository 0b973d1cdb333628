"""Checkpoints of evidence in Redis: of the leader alone, read by all, and written before labels go."""

from __future__ import annotations

import numpy as np
import pytest
from store_site import NOW, Site, message, record

from service.domain.errors import FenceRefused
from service.monitoring.monitor import ModelMonitor
from service.monitoring.snapshot import ModelSnapshot
from service.store.checkpoints import CheckpointStore, DatedChange, EvidenceCheckpoint, GroupingState
from service.store.connection import Connection
from service.store.references import ReferenceWindow

LIMIT = 1_000
ASK = {"policy": "random", "budget": {"labels": 10_000}, "max_in_flight": 400}
MODELS = {
    "m": {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "alerts": {"min_accuracy": 0.8},
        "assessments": {"ask": ASK | {"grouping": "all"}},
    }
}


def checkpoint(place: int) -> EvidenceCheckpoint:
    state = GroupingState(
        "all", "all", ["all"], {"labels": b"\0" * 8}, {"all": DatedChange(1.0, 0.5, 1.5, 0.9, 7)}
    )
    return EvidenceCheckpoint(
        place, ReferenceWindow(-np.inf, 5.0, 9.0), [("all", "all"), ("ab12", "north")], [state]
    )


def stores(connection: Connection, count: int) -> list[CheckpointStore]:
    keys = Site(connection, MODELS).keys("m")
    return [CheckpointStore(connection, keys) for _ in range(count)]


def test_what_is_kept_is_read_by_every_process(connection: Connection) -> None:
    leader, replica = stores(connection, 2)
    assert replica.checkpoint() is None
    for place in (3, (1 << 63) + 5):
        leader.keep(checkpoint(place), epoch=1)
        assert replica.checkpoint() == leader.checkpoint() == checkpoint(place)


def test_a_checkpoint_that_has_not_changed_is_not_read_again(connection: Connection) -> None:
    leader, replica = stores(connection, 2)
    leader.keep(checkpoint(3), epoch=1)
    known = replica.checkpoint()
    leader.keep(checkpoint(3), epoch=2)
    assert replica.checkpoint() is known


def test_a_leader_of_the_past_keeps_none(connection: Connection) -> None:
    leader, former = stores(connection, 2)
    leader.keep(checkpoint(3), epoch=2)
    with pytest.raises(FenceRefused):
        former.keep(checkpoint(4), epoch=1)
    assert former.checkpoint() == checkpoint(3)


def answer_many(site: Site) -> tuple[ModelMonitor, int]:
    """Have more labels answered than the stream keeps, round after round; how many."""
    records = [record(number, message(number)) for number in range(2_600)]
    monitor, answered = site.monitor("m"), 0
    for turn in range(13):
        at = NOW + 10 * turn
        site.take_in(records[: 200 * (turn + 1)])
        monitor.refresh(at)
        monitor.ask(epoch=1, now=at)
        answered += len(site.answer("m", lambda _: "cat"))
    assert answered > 2 * LIMIT
    return monitor, answered


def test_evidence_goes_on_over_more_labels_than_the_stream_keeps(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds={"outcomes": LIMIT})
    monitor, answered = answer_many(site)
    assert site.connection.client.xlen(site.keys("m").outcomes) < answered
    # A process that starts now knows as much as the one that has seen all labels.
    for process in (monitor, site.monitor("m")):
        assert labels_of(process.refresh(NOW + 1_000)) == answered


def test_evidence_goes_on_if_two_assessments_draw_the_same_items(connection: Connection) -> None:
    # What the second one draws takes room in the stream, and is no label.
    asked = {name: ASK | {"grouping": grouping} for name, grouping in (("ask", "all"), ("classes", "class"))}
    model = MODELS["m"] | {"groupings": {"class": {"by": "predicted_class"}}, "assessments": asked}
    site = Site(connection, {"m": model}, bounds={"outcomes": LIMIT})
    monitor, answered = answer_many(site)
    assert labels_of(monitor.refresh(NOW + 1_000)) == answered


def labels_of(snapshot: ModelSnapshot) -> float:
    evidence = snapshot.groupings["all"].evidence
    assert evidence is not None
    return float(evidence.state.labels.sum())
