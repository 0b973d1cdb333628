"""Redis that fails over: a plain one behind a name, and a cluster."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis
from harness import wait_for
from redis_cluster import EmbeddedRedisCluster
from store_site import redis_settings, wired
from wires import Wires

from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.domain.errors import Unavailable
from service.store.client import build_redis
from service.store.connection import Connection, translate_redis_errors
from service.store.keys import lease_key
from service.store.lease import LeaderLease


@pytest.fixture
def servers() -> Iterator[tuple[EmbeddedRedis, EmbeddedRedis]]:
    with EmbeddedRedis() as first, EmbeddedRedis() as second:
        yield first, second


def test_a_name_that_leads_to_another_master_is_resolved_anew(
    servers: tuple[EmbeddedRedis, EmbeddedRedis], wires: Wires
) -> None:
    old, new = servers
    name = wires.wire(old.port)
    client = build_redis(RedisSettings.model_validate({"url": f"redis://127.0.0.1:{name.port}/0"}))
    lease = LeaderLease(Connection(client, secrets.token_hex(4)), lease_seconds=60)
    assert lease.hold() == 1
    with redis.Redis(port=old.port) as demoted:
        demoted.replicaof("127.0.0.1", new.port)
    name.target_port = new.port
    with pytest.raises(Unavailable):
        lease.hold()
    assert lease.hold() == 1
    client.close()
    name.close()


@pytest.fixture
def cluster() -> Iterator[EmbeddedRedisCluster]:
    with EmbeddedRedisCluster() as cluster:
        yield cluster


@pytest.fixture
def clustered(cluster: EmbeddedRedisCluster) -> Iterator[Connection]:
    client = build_redis(redis_settings(cluster))
    yield Connection(client, secrets.token_hex(4))
    client.close()


def test_a_write_to_a_cluster_whose_reply_is_lost_is_not_repeated(
    cluster: EmbeddedRedisCluster, clustered: Connection
) -> None:
    key = f"{clustered.prefix}:number"
    with wired(cluster, clustered) as (wires, far):
        far.client.get(key)  # so that a connection stands
        wires.become("loses_replies")
        with pytest.raises(Unavailable), translate_redis_errors():
            far.client.incr(key)
    assert clustered.client.get(key) == b"1"


@pytest.mark.parametrize("transaction", [True, False])
def test_a_pipeline_to_a_cluster_whose_reply_is_lost_is_not_repeated(
    cluster: EmbeddedRedisCluster, clustered: Connection, transaction: bool
) -> None:
    key = f"{clustered.prefix}:number"
    with wired(cluster, clustered) as (wires, far):
        far.client.get(key)
        pipeline = far.client.pipeline(transaction=transaction)
        pipeline.incr(key)
        pipeline.incr(key)
        wires.become("loses_replies")
        with pytest.raises(Unavailable), translate_redis_errors():
            pipeline.execute()
    assert clustered.client.get(key) == b"2"


def test_slots_that_have_moved_are_followed(cluster: EmbeddedRedisCluster, clustered: Connection) -> None:
    lease = LeaderLease(clustered, lease_seconds=60)
    epoch = lease.hold()
    move_slot(cluster, clustered.client.keyslot(lease_key(clustered.prefix)))
    assert lease.hold() == epoch


def test_a_read_that_meets_a_moved_slot_finds_it_at_the_next_try(
    cluster: EmbeddedRedisCluster, clustered: Connection
) -> None:
    key = f"{clustered.prefix}:number"
    clustered.client.set(key, 7)
    move_slot(cluster, clustered.client.keyslot(key))
    pipeline = clustered.client.pipeline(transaction=True)
    pipeline.get(key)
    with pytest.raises(Unavailable), translate_redis_errors():
        pipeline.execute()
    pipeline = clustered.client.pipeline(transaction=True)
    pipeline.get(key)
    assert pipeline.execute() == [b"7"]


def test_a_cluster_that_is_away_at_the_start_is_unavailable(cluster: EmbeddedRedisCluster) -> None:
    settings = redis_settings(cluster, timeout_seconds=1)
    cluster.stop()
    with pytest.raises(Unavailable, match="ConnectionError"):
        build_redis(settings)


def test_a_cluster_whose_nodes_have_all_moved_is_found_at_its_name(
    cluster: EmbeddedRedisCluster, wires: Wires
) -> None:
    name = wires.wire(cluster.nodes[0].port)
    client = build_redis(redis_settings(cluster, url=f"redis://127.0.0.1:{name.port}/0", timeout_seconds=1))
    lease = LeaderLease(Connection(client, secrets.token_hex(4)), lease_seconds=60)
    lease.hold()
    cluster.stop()
    with EmbeddedRedisCluster() as elsewhere:
        name.target_port = elsewhere.nodes[0].port
        with pytest.raises(Unavailable):
            lease.hold()

        def leads() -> bool:
            try:
                return lease.hold() == 1
            except Unavailable:
                return False

        wait_for(leads, seconds=10, what="the other cluster")
    client.close()
    name.close()


def move_slot(cluster: EmbeddedRedisCluster, slot: int) -> None:
    """Give a slot and its keys to another node than it is at."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(redis.Redis(port=node.port)) for node in cluster.nodes]
        ids = [node.execute_command("CLUSTER", "MYID").decode() for node in nodes]
        ((_, owner),) = [
            (first, port)
            for first, last, (_, port, *_) in nodes[0].execute_command("CLUSTER", "SLOTS")
            if first <= slot <= last
        ]
        source = next(i for i, node in enumerate(cluster.nodes) if node.port == owner)
        target = (source + 1) % len(nodes)
        nodes[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        nodes[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        keys = nodes[source].execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
        port = cluster.nodes[target].port
        nodes[source].execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5_000, "KEYS", *keys)
        for node in (nodes[target], nodes[source], nodes[3 - target - source]):
            node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
