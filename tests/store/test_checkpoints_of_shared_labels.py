"""Evidence goes on over more labels than the stream keeps if two assessments draw the same items."""

from __future__ import annotations

from store_site import NOW, Site, message, record

from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection

LIMIT = 1_000
ASK = {"policy": "random", "budget": {"labels": 10_000}, "max_in_flight": 400}
MODELS = {
    "m": {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "alerts": {"min_accuracy": 0.8},
        "groupings": {"class": {"by": "predicted_class"}},
        "assessments": {"ask": ASK | {"grouping": "all"}, "classes": ASK | {"grouping": "class"}},
    }
}


def test_evidence_goes_on_if_two_assessments_draw_the_same_items(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds={"outcomes": LIMIT})
    records = [record(number, message(number)) for number in range(2_600)]
    monitor, answered = site.monitor("m"), 0
    for turn in range(13):
        at = NOW + 10 * turn
        site.take_in(records[: 200 * (turn + 1)])
        monitor.refresh(at)
        monitor.ask(epoch=1, now=at)
        answered += len(site.answer("m", lambda _: "cat"))
    assert answered > 2 * LIMIT
    assert labels_of(monitor.refresh(NOW + 1_000)) == answered


def labels_of(snapshot: ModelSnapshot) -> float:
    evidence = snapshot.groupings["all"].evidence
    assert evidence is not None
    return float(evidence.state.labels.sum())
