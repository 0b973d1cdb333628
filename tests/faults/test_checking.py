"""The checks are worth what they notice: facts are spoilt, one at a time, and each time they tell."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from answers import effects_of
from checking import check_all
from stand import Stand
from store_site import restore, save
from trial import Trial
from workload import MODEL, Workload

from service.store.connection import Connection
from service.store.keys import ModelKeys


def forget_a_shard(connection: Connection, keys: ModelKeys) -> None:
    connection.client.delete(keys.shard(0))


def forget_a_pool(connection: Connection, keys: ModelKeys) -> None:
    connection.client.delete(keys.pool(1))


def count_a_request_twice(connection: Connection, keys: ModelKeys) -> None:
    connection.client.hincrby(keys.tallies, "issued|weakest", 1)


def pay_a_request_twice(connection: Connection, keys: ModelKeys) -> None:
    connection.client.hincrby(keys.budget, connection.client.hkeys(keys.budget)[0], 1)


def lose_an_outcome(connection: Connection, keys: ModelKeys) -> None:
    entries = connection.client.xrevrange(keys.outcomes)
    # Entries without a label are further draws of an item, which not every answered item has.
    last = next(entry for entry, fields in entries if b"label" in fields)
    connection.client.xdel(keys.outcomes, last)


def lose_a_label_offset(connection: Connection, keys: ModelKeys) -> None:
    connection.client.hincrby(keys.labels(0), "next_offset", -1)


SPOILT = {
    forget_a_shard: "counts found and expected differ",
    forget_a_pool: "is missing in the pool",
    count_a_request_twice: "weakest: ",
    pay_a_request_twice: "labels used",
    lose_an_outcome: "outcomes",
    lose_a_label_offset: "stored offsets of labels",
}


def test_every_fact_that_is_spoilt_is_noticed(stands: Callable[..., Stand], reference: Connection) -> None:
    stand = stands()
    Trial(stand, Workload(30, began=time.time()), [], seconds=1.5).run()
    connection, keys = stand.connection, stand.site().keys(MODEL)
    whole = save(connection)
    findings = check_all(stand, reference, forgetful=False)
    assert findings.problems == []
    assert findings.outcomes
    for number, (spoil, shown) in enumerate(SPOILT.items()):
        spoil(connection, keys)
        fresh = Connection(reference.client, f"{reference.prefix}-{number}")
        problems = check_all(stand, fresh, forgetful=False).problems
        assert any(shown in problem for problem in problems), f"{spoil.__name__}: {problems}"
        restore(connection, whole)


@pytest.mark.parametrize(
    ("labels", "effects", "refused"),
    [
        (["answer cat"], ["cat"], [None]),
        (["answer cat", "answer cat"], ["cat"], [None, None]),
        (["answer cat", "answer dog"], ["cat"], [None, "conflicting_label"]),
        (["answer cat", "correction dog"], ["cat", "dog"], [None, None]),
        (["answer cat", "retraction "], ["cat", ""], [None, None]),
        (["answer cat", "retraction ", "correction dog"], ["cat", "", "dog"], [None, None, None]),
        (["skip ", "answer cat"], ["skipped"], [None, "conflicting_label"]),
        (["skip ", "correction cat"], ["skipped", "cat"], [None, None]),
        (["retraction "], [], ["nothing_to_retract"]),
    ],
)
def test_labels_do_to_their_request_what_the_contract_says(
    labels: list[str], effects: list[str], refused: list[str | None]
) -> None:
    shown = [
        {"kind": kind, "true_class": true_class, "time": number}
        for number, (kind, _, true_class) in enumerate(label.partition(" ") for label in labels)
    ]
    assert effects_of(shown) == (effects, refused)
