"""The id of the data in Redis, marks of partitions, and losses that are recorded once."""

from __future__ import annotations

from typing import Any

from service.store.connection import Connection
from service.store.resets import ResetStore

NOW = 1_800_000_000.0


def record(store: ResetStore, lost: str, **changes: Any) -> tuple[bool, str]:
    plain: dict[str, Any] = {
        "now": NOW,
        "labels_before": None,
        "labels_now": None,
        "topic": "predictions",
        "offsets": {0: 100},
    }
    kind = changes.pop("kind", "emptied")
    return store.record(lost, kind, **plain | changes)


def test_all_consumers_find_the_same_id_and_the_partitions_that_nobody_marked(connection: Connection) -> None:
    store = ResetStore(connection)
    identity, unmarked = store.identify(NOW, "predictions", [0, 1])
    assert unmarked == [0, 1]
    store.mark("predictions", [1])
    assert ResetStore(connection).identify(NOW + 1, "predictions", [0, 1]) == (identity, [0])
    assert store.identify(NOW, "labels", [1]) == (identity, [1]), "a mark is of one topic"
    assert store.identify(NOW, "predictions", []) == (identity, [])


def test_what_consumers_know_of_one_loss_is_put_together_and_recorded_once(connection: Connection) -> None:
    store = ResetStore(connection)
    identity, _ = store.identify(NOW, "predictions", [0])
    assert record(store, "old", offsets={0: 100, 2: 50}) == (True, identity)
    assert record(store, "old", now=NOW + 9, offsets={1: 70}) == (False, identity)
    assert record(store, "old", topic="labels", offsets={0: 9}, labels_before=8, labels_now=0)[0] is False
    assert record(store, "old", topic="labels", offsets={1: 1}, labels_before=6, labels_now=0)[0] is False
    found = store.reset()
    assert found is not None
    assert (found.since, found.kind, found.labels_before, found.labels_now) == (NOW, "emptied", 8, 0)
    assert found.records == {"labels": 10, "predictions": 220}


def test_a_loss_that_is_acknowledged_is_not_reported_again_and_the_next_one_is(
    connection: Connection,
) -> None:
    store = ResetStore(connection)
    store.identify(NOW, "predictions", [0])
    record(store, "old")
    acknowledged = store.acknowledge()
    assert acknowledged is not None
    assert acknowledged.records == {"predictions": 100}
    assert store.reset() is None
    assert record(store, "old")[0] is False
    assert store.reset() is None
    assert record(store, "another", now=NOW + 60)[0] is True
    found = store.reset()
    assert found is not None
    assert found.since == NOW + 60


def test_an_older_state_of_the_same_data_gets_another_id(connection: Connection) -> None:
    store = ResetStore(connection)
    identity, _ = store.identify(NOW, "labels", [0])
    store.mark("labels", [0])
    is_first, fresh = record(store, identity, kind="rolled_back", labels_before=9, labels_now=7)
    assert is_first
    assert fresh != identity
    assert store.identify(NOW, "labels", [0]) == (fresh, []), "marks stay"
    assert record(store, identity, kind="rolled_back")[0] is False


def test_nothing_is_acknowledged_where_nothing_was_lost(connection: Connection) -> None:
    assert ResetStore(connection).acknowledge() is None
