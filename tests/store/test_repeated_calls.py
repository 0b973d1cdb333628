"""Calls to the vendor API that are made again: done once, and answered as before."""

from __future__ import annotations

import pytest

from service.store.connection import Connection
from service.store.idempotency import REMEMBERED_SECONDS, RUNNING_SECONDS, Call, CallState, IdempotencyRecords
from service.store.keys import idempotency_key

ANSWER = b'{"status": "\x00\n ok"}'
CALL, OTHER_CALL = b"\x01" * 16, b"\x02" * 16


@pytest.fixture
def records(connection: Connection) -> IdempotencyRecords:
    return IdempotencyRecords(connection)


def begin(records: IdempotencyRecords, owner: str, *, vendor: str = "acme", call: bytes = CALL) -> CallState:
    return records.begin(Call(vendor, "key", call, owner))


def seconds_left(connection: Connection) -> int:
    """Until the first of all keys ends."""
    keys = list(connection.client.scan_iter(f"{connection.prefix}:*", count=1_000))
    assert all(key.decode().startswith(idempotency_key(connection.prefix, "acme", "")) for key in keys)
    return min(int(connection.client.ttl(key)) for key in keys)


def test_a_call_runs_once_at_a_time(records: IdempotencyRecords) -> None:
    assert begin(records, "one") == CallState("new")
    assert begin(records, "two") == CallState("running")
    assert begin(records, "one") == CallState("new"), "the reply may have been lost"


def test_a_call_that_is_done_is_answered_as_before(records: IdempotencyRecords) -> None:
    begin(records, "one")
    for _ in range(2):
        records.finish(Call("acme", "key", CALL, "one"), ANSWER)
    assert begin(records, "two") == CallState("done", ANSWER)
    assert begin(records, "one") == CallState("done", ANSWER)


@pytest.mark.parametrize("done", [False, True])
def test_another_call_under_the_same_key_is_told_apart(records: IdempotencyRecords, done: bool) -> None:
    begin(records, "one")
    if done:
        records.finish(Call("acme", "key", CALL, "one"), ANSWER)
    assert begin(records, "two", call=OTHER_CALL) == CallState("different")


def test_keys_of_two_vendors_have_nothing_to_do_with_one_another(records: IdempotencyRecords) -> None:
    begin(records, "one")
    assert begin(records, "two", vendor="bolt", call=OTHER_CALL) == CallState("new")


def test_an_abandoned_call_may_be_made_again(records: IdempotencyRecords) -> None:
    begin(records, "one")
    records.abandon(Call("acme", "key", CALL, "other"))
    assert begin(records, "two") == CallState("running"), "it is not the other's to abandon"
    records.abandon(Call("acme", "key", CALL, "one"))
    assert begin(records, "two") == CallState("new")


def test_a_finished_call_is_not_abandoned(records: IdempotencyRecords) -> None:
    begin(records, "one")
    records.finish(Call("acme", "key", CALL, "one"), ANSWER)
    records.abandon(Call("acme", "key", CALL, "one"))
    assert begin(records, "two") == CallState("done", ANSWER)


def test_a_call_that_outlived_its_mark_does_not_write_over_the_next_one(
    records: IdempotencyRecords, connection: Connection
) -> None:
    begin(records, "one")
    (key,) = connection.client.scan_iter(f"{connection.prefix}:*", count=1_000)
    connection.client.delete(key)  # as when its time is over
    begin(records, "two")
    records.finish(Call("acme", "key", CALL, "one"), ANSWER)
    assert begin(records, "two") == CallState("new")


def test_records_end_by_themselves(records: IdempotencyRecords, connection: Connection) -> None:
    begin(records, "one")
    assert 0 < seconds_left(connection) <= RUNNING_SECONDS
    records.finish(Call("acme", "key", CALL, "one"), ANSWER)
    assert RUNNING_SECONDS < seconds_left(connection) <= REMEMBERED_SECONDS


def test_a_vendors_newest_calls_alone_are_remembered(connection: Connection) -> None:
    records = IdempotencyRecords(connection, most=3)
    for vendor, keys in (("acme", "abcde"), ("bolt", "a")):
        for key in keys:
            call = Call(vendor, key, CALL)
            records.begin(call)
            for _ in range(2):
                records.finish(call, b"x")

    def status(vendor: str, key: str) -> str:
        return records.begin(Call(vendor, key, CALL)).status

    assert [status("acme", key) for key in "abcde"] == ["new", "new", "done", "done", "done"]
    assert status("bolt", "a") == "done"


def test_a_call_may_run_as_long_as_it_may_wait(connection: Connection) -> None:
    IdempotencyRecords(connection, running_seconds=700).begin(Call("acme", "k", CALL))
    (key,) = connection.client.scan_iter(match=f"{connection.prefix}:*")
    assert 690 < connection.client.ttl(key) <= 700
