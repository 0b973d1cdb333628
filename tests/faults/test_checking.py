"""The checks are worth what they notice: facts are spoilt, one at a time, and each time they tell."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from checking import check_all, check_letters
from findings import Findings
from reference import references_of
from stand import Stand
from store_site import Record, restore, save
from trial import Trial
from workload import MODEL, PANEL, Workload

from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.records import decode_fact, decode_label_fact, encode_packed


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


def all_with(field: bytes, connection: Connection, keys: ModelKeys) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Entries with a field that give a class and are not revised, without revisions; the last first."""
    entries = connection.client.xrevrange(keys.outcomes)
    revised = {fields[b"of"] for _, fields in entries if b"of" in fields and b"label" in fields}
    return [
        (entry, fields)
        for entry, fields in entries
        if field in fields
        and b"of" not in fields
        and entry not in revised
        and not decode_label_fact(fields[b"label"]).unanswered
    ]


def last_with(field: bytes, connection: Connection, keys: ModelKeys) -> tuple[bytes, dict[bytes, bytes]]:
    return all_with(field, connection, keys)[0]


def lose_a_further_label(connection: Connection, keys: ModelKeys) -> None:
    connection.client.xdel(keys.outcomes, last_with(b"item", connection, keys)[0])


def count_a_further_label_twice(connection: Connection, keys: ModelKeys) -> None:
    connection.client.xadd(keys.outcomes, last_with(b"item", connection, keys)[1])


def lose_a_gold_label(connection: Connection, keys: ModelKeys) -> None:
    connection.client.xdel(keys.outcomes, last_with(b"gold", connection, keys)[0])


def count_a_gold_label_twice(connection: Connection, keys: ModelKeys) -> None:
    connection.client.xadd(keys.outcomes, last_with(b"gold", connection, keys)[1])


def take_a_gold_label_for_an_outcome(connection: Connection, keys: ModelKeys) -> None:
    entry, fields = last_with(b"gold", connection, keys)
    connection.client.xdel(keys.outcomes, entry)
    fact = msgspec.structs.replace(decode_fact(fields[b"fact"]), gold="")
    connection.client.xadd(keys.outcomes, fields | {b"fact": encode_packed(fact)})


def forget_that_a_gold_item_was_requested(connection: Connection, keys: ModelKeys) -> None:
    fact = decode_fact(last_with(b"gold", connection, keys)[1][b"fact"])
    connection.client.srem(keys.gold, fact.request_id)


def tally_a_gold_label_as_that_of_another_item(connection: Connection, keys: ModelKeys) -> None:
    fields = connection.client.hkeys(keys.tallies)
    gold = next(field for field in fields if field.startswith(b"gold_answered"))
    connection.client.hincrby(keys.tallies, gold, -1)
    connection.client.hincrby(keys.tallies, gold.removeprefix(b"gold_"), 1)


def forget_which_items_are_undecided(connection: Connection, keys: ModelKeys) -> None:
    connection.client.delete(keys.undecided)


def give_a_label_to_somebody_else(connection: Connection, keys: ModelKeys) -> None:
    entry, fields = last_with(b"item", connection, keys)
    label = msgspec.structs.replace(decode_label_fact(fields[b"label"]), annotator="zoe")
    connection.client.xdel(keys.outcomes, entry)
    connection.client.xadd(keys.outcomes, fields | {b"label": encode_packed(label)})


def lose_a_label_offset(connection: Connection, keys: ModelKeys) -> None:
    connection.client.hincrby(keys.labels(0), "next_offset", -1)


SPOILT = {
    forget_a_shard: (MODEL, "counts found and expected differ"),
    forget_a_pool: (MODEL, "is missing in the pool"),
    count_a_request_twice: (MODEL, "weakest: "),
    pay_a_request_twice: (PANEL, "labels used"),
    lose_an_outcome: (MODEL, "outcomes"),
    lose_a_label_offset: (MODEL, "stored offsets of labels"),
    lose_a_further_label: (PANEL, "outcomes"),
    count_a_further_label_twice: (PANEL, "has two labels of a person"),
    lose_a_gold_label: (PANEL, "gold labels"),
    count_a_gold_label_twice: (PANEL, "has two labels of a person"),
    take_a_gold_label_for_an_outcome: (PANEL, "gold items with outcomes"),
    forget_that_a_gold_item_was_requested: (PANEL, "gold items that may be requested again"),
    tally_a_gold_label_as_that_of_another_item: (PANEL, "answered, gold True"),
    forget_which_items_are_undecided: (PANEL, "nobody else is asked"),
    give_a_label_to_somebody_else: (PANEL, "outcomes"),
}
"""The model whose facts are spoilt, and part of what is then found."""


def has_enough_to_spoil(stand: Stand) -> bool:
    keys = stand.site().keys(PANEL)
    return all(len(all_with(field, stand.connection, keys)) >= 15 for field in (b"item", b"gold"))


def test_every_fact_that_is_spoilt_is_noticed(stands: Callable[..., Stand], reference: Connection) -> None:
    stand, workload = stands(), Workload(30, began=time.time())
    Trial(stand, workload, [], seconds=3.0).run(until=has_enough_to_spoil)
    connection = stand.connection
    whole = save(connection)
    references = references_of(
        reference, stand.records("predictions"), workload, registry_url=stand.registry.url
    )
    findings = check_all(stand, references, workload, forgetful=False)
    assert findings.problems == []
    assert findings.outcomes
    for spoil, (model, shown) in SPOILT.items():
        spoil(connection, stand.site().keys(model))
        problems = check_all(stand, references, workload, forgetful=False).problems
        noticed = any(problem.startswith(model) and shown in problem for problem in problems)
        assert noticed, f"{spoil.__name__}: {problems}"
        restore(connection, whole)


def test_a_dead_letter_that_differs_from_its_record_is_noticed() -> None:
    records = {"predictions": {0: [Record(7, b"{"), Record(8, b"[0]")]}}
    good = {("predictions", 0, 7, None): ("malformed_json", b"{"), ("predictions", 0, 8, 0): ("", b"0")}
    changed = {("predictions", 0, 7, None): ("malformed_json", b"{}")}
    found = {}
    for name, letters in (("good", good), ("changed", changed)):
        findings = Findings()
        check_letters(findings, letters, records)
        found[name] = findings.problems
    assert found["good"] == []
    assert "differ from their records" in found["changed"][0]
