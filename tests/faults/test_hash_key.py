"""The key that decides what is drawn, where none is configured, outlives the Redis that keeps it."""

from __future__ import annotations

from collections.abc import Callable

from harness import wait_for
from stand import Stand

from service.store.keys import hash_key_key

WORKERS = ("predictions-1", "schedule-1")


def started(stand: Stand) -> bytes:
    """Start some processes; the key that they share."""
    for name in WORKERS:
        stand.members[name].start()
    key = wait_for(lambda: stand.redis_client.get(hash_key_key(stand.name)), seconds=60, what="a hash key")
    assert isinstance(key, bytes)
    wait_for(lambda: all(is_up(stand, name) for name in WORKERS), seconds=60, what="all processes up")
    return key


def is_up(stand: Stand, name: str) -> bool:
    return stand.members[name].ready()


def test_an_emptied_redis_gets_the_key_of_those_who_run(stands: Callable[..., Stand]) -> None:
    stand = stands(hash_key=False)
    key = started(stand)
    stand.redis_client.flushall()
    wait_for(
        lambda: stand.redis_client.get(hash_key_key(stand.name)) == key, seconds=30, what="the key put back"
    )
    for name in WORKERS:
        stand.members[name].stop()
    stand.check_logs()


def test_who_has_another_key_than_redis_stops_and_shares_it_when_it_starts_again(
    stands: Callable[..., Stand],
) -> None:
    stand = stands(hash_key=False)
    started(stand)
    stand.redis_client.set(hash_key_key(stand.name), "00" * 16)
    for name in WORKERS:
        member = stand.members[name]
        wait_for(lambda member=member: not member.running, seconds=30, what=f"{name} has stopped")
        assert member.exit_code == 1
        assert "another hash key" in member.log.read_text()
        member.kill()
        member.start()
        wait_for(lambda member=member: member.ready(), seconds=60, what=f"{name} is back")
    assert stand.redis_client.get(hash_key_key(stand.name)) == b"00" * 16
