"""The lease: one leader at a time, each under a higher epoch, and none that acts when its time is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis
from harness import wait_for
from redis.cluster import RedisCluster
from store_site import Site, draws_of, issue, message, record, redis_settings, wired

from service.demo.servers import EmbeddedRedis
from service.domain.errors import FenceRefused, HashKeyChanged, Unavailable
from service.store.client import build_redis
from service.store.connection import Connection, translate_redis_errors
from service.store.keys import hash_key_key, lease_key
from service.store.lease import LeaderLease, keep_hash_key, shared_hash_key

LONG = 60.0
SHORT = 0.05


def test_one_process_at_a_time_holds_the_lease(connection: Connection) -> None:
    first, second = (LeaderLease(connection, lease_seconds=LONG) for _ in range(2))
    epoch = first.hold()
    assert epoch is not None
    assert second.hold() is None


def test_a_holder_keeps_its_epoch_and_renews_its_time(connection: Connection) -> None:
    lease = LeaderLease(connection, lease_seconds=LONG)
    epoch = lease.hold()
    connection.client.pexpire(lease_key(connection.prefix), 1_000)
    assert lease.hold() == epoch
    assert connection.client.pttl(lease_key(connection.prefix)) > 50_000


def test_a_released_lease_is_taken_at_once_under_a_higher_epoch(connection: Connection) -> None:
    first, second = (LeaderLease(connection, lease_seconds=LONG) for _ in range(2))
    old = first.hold()
    first.release()
    new = second.hold()
    assert old is not None
    assert new is not None
    assert new > old
    assert first.hold() is None


def test_a_process_that_does_not_lead_cannot_release_the_leader(connection: Connection) -> None:
    first, second = (LeaderLease(connection, lease_seconds=LONG) for _ in range(2))
    epoch = first.hold()
    second.release()
    assert second.hold() is None
    assert first.hold() == epoch


def test_releasing_twice_and_releasing_what_was_never_held_is_harmless(connection: Connection) -> None:
    lease = LeaderLease(connection, lease_seconds=LONG)
    lease.release()
    lease.hold()
    lease.release()
    lease.release()
    assert lease.hold() == 2


def test_a_silent_leader_is_replaced_when_its_lease_ends(connection: Connection) -> None:
    silent = LeaderLease(connection, lease_seconds=SHORT)
    successor = LeaderLease(connection, lease_seconds=LONG)
    old = silent.hold()
    assert old is not None
    assert wait_for(successor.hold, seconds=10, what="a free lease") > old
    assert silent.hold() is None


def test_a_leader_that_returns_late_to_a_free_lease_leads_under_a_new_epoch(connection: Connection) -> None:
    lease = LeaderLease(connection, lease_seconds=SHORT)
    old = lease.hold()
    wait_for(
        lambda: not connection.client.exists(lease_key(connection.prefix)), seconds=10, what="a free lease"
    )
    assert old is not None
    assert wait_for(lease.hold, seconds=10, what="a free lease") > old


def test_a_leader_that_slept_through_its_lease_is_fenced_off(connection: Connection) -> None:
    ask = {"ask": {"budget": {"labels": 9}}}
    site = Site(connection, {"m": {"classes": ["cat", "dog"], "score_bins": 1, "assessments": ask}})
    site.take_in([record(i, message(item)) for i, item in enumerate("abc")])
    sleeper, successor = (
        LeaderLease(connection, lease_seconds=SHORT),
        LeaderLease(connection, lease_seconds=LONG),
    )
    first, second, third = draws_of(site)
    old = sleeper.hold()
    assert old is not None
    assert issue(site, [first], epoch=old) == ["issued"]
    new = wait_for(successor.hold, seconds=10, what="a free lease")
    assert issue(site, [second], epoch=new) == ["issued"]
    with pytest.raises(FenceRefused):
        issue(site, [third], epoch=old)
    assert site.reader("m").requests().budget == {"ask|0": 2}


def test_of_many_that_try_at_once_one_leads(redis_server: EmbeddedRedis, connection: Connection) -> None:
    start = threading.Barrier(8)
    epochs: list[int | None] = []

    def attempt() -> None:
        client = build_redis(redis_settings(redis_server))
        lease = LeaderLease(Connection(client, connection.prefix), lease_seconds=LONG)
        start.wait()
        epochs.append(lease.hold())
        client.close()

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(epochs, key=lambda epoch: epoch or 0) == [None] * 7 + [1]


def test_a_lease_whose_reply_was_lost_is_found_again_by_its_holder(
    redis_server: EmbeddedRedis, connection: Connection
) -> None:
    with wired(redis_server, connection) as (wire, far):
        lease = LeaderLease(far, lease_seconds=LONG)
        lease.release()
        lease.hold()
        lease.release()
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            lease.hold()
        wire.become("whole")
        assert lease.hold() == 2
    assert LeaderLease(connection, lease_seconds=LONG).hold() is None


def test_nobody_leads_while_redis_is_away(redis_server: EmbeddedRedis, connection: Connection) -> None:
    with wired(redis_server, connection) as (wire, far):
        lease = LeaderLease(far, lease_seconds=LONG)
        wire.become("cut")
        with pytest.raises(Unavailable):
            lease.hold()


def test_all_processes_share_one_hash_key(connection: Connection) -> None:
    key = shared_hash_key(connection)
    assert len(key) == 16
    assert shared_hash_key(connection) == key
    other = Connection(connection.client, f"{connection.prefix}.other")
    assert shared_hash_key(other) != key


def test_a_hash_key_that_is_there_is_used(connection: Connection) -> None:
    connection.client.set(hash_key_key(connection.prefix), "00" * 15 + "ff")
    assert shared_hash_key(connection) == bytes(15) + b"\xff"


def test_a_hash_key_that_redis_lost_is_put_back(connection: Connection) -> None:
    key = shared_hash_key(connection)
    connection.client.delete(hash_key_key(connection.prefix))
    keep_hash_key(connection, key)
    assert shared_hash_key(connection) == key


def test_a_process_with_another_hash_key_is_reported(connection: Connection) -> None:
    key = shared_hash_key(connection)
    connection.client.set(hash_key_key(connection.prefix), "00" * 16)
    with pytest.raises(HashKeyChanged, match="starts again"):
        keep_hash_key(connection, key)
    assert shared_hash_key(connection) == bytes(16)


REFUSALS = {
    "out of memory": ({"maxmemory": "1"}, {"maxmemory": "0"}),
    "without its replicas": ({"min-replicas-to-write": "1"}, {"min-replicas-to-write": "0"}),
    "a replica by now": ({}, {}),
    "a replica without its master": (
        {"replica-serve-stale-data": "no"},
        {"replica-serve-stale-data": "yes"},
    ),
}


@pytest.fixture(params=list(REFUSALS))
def refusing(request: pytest.FixtureRequest, connection: Connection) -> Iterator[Connection]:
    """A Redis that answers, but refuses to work."""
    refuse, relent = REFUSALS[request.param]
    client = connection.client
    replica = request.param.startswith("a replica")
    clustered = isinstance(client, RedisCluster)
    everywhere = {"target_nodes": RedisCluster.ALL_NODES} if clustered else {}
    if replica and clustered:
        pytest.skip("a node of a cluster is made a replica by the cluster, and redirects instead")
    client.config_set("maxmemory-policy", "noeviction", **everywhere)
    LeaderLease(connection, lease_seconds=LONG).release()  # so that the script is loaded
    try:
        for name, value in refuse.items():
            client.config_set(name, value, **everywhere)
        if replica:
            client.replicaof("127.0.0.1", 1)
        yield connection
    finally:
        if replica:
            client.replicaof("NO", "ONE")
        for name, value in relent.items():
            client.config_set(name, value, **everywhere)


def test_a_redis_that_refuses_a_script_for_now_is_away(refusing: Connection) -> None:
    with pytest.raises(Unavailable):
        LeaderLease(refusing, lease_seconds=LONG).hold()


def test_a_redis_that_refuses_a_command_for_now_is_away(refusing: Connection) -> None:
    with pytest.raises(Unavailable):
        shared_hash_key(refusing)


def test_a_redis_that_refuses_a_pipeline_for_now_is_away(refusing: Connection) -> None:
    pipeline = refusing.client.pipeline(transaction=True)
    pipeline.set(f"{refusing.prefix}:x", "y")
    with pytest.raises(Unavailable), translate_redis_errors():
        pipeline.execute()


def test_a_mistake_of_our_own_is_no_outage(connection: Connection) -> None:
    connection.client.lpush(f"{connection.prefix}:-OOM", "a list")
    with pytest.raises(redis.ResponseError), translate_redis_errors():
        connection.client.get(f"{connection.prefix}:-OOM")
    pipeline = connection.client.pipeline()
    pipeline.get(f"{connection.prefix}:-OOM")
    with pytest.raises(redis.ResponseError), translate_redis_errors():
        pipeline.execute()


def test_scripts_that_redis_has_forgotten_are_sent_again(connection: Connection) -> None:
    lease = LeaderLease(connection, lease_seconds=LONG)
    epoch = lease.hold()
    connection.client.script_flush()
    assert lease.hold() == epoch
