"""Builders of the Kafka and Redis clients; called from the command line alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from service.errors import Unavailable
from service.settings import KafkaSettings, RedisSettings

Reach = Callable[[tuple[str, int]], tuple[str, int]]


class _Cluster(RedisCluster):
    """A client of a Redis Cluster that follows redirections, and else runs nothing twice.

    The library runs the commands of a plain pipeline again, one by one, when its connection breaks, whatever
    retries it is told; those of a transaction it does not. It gives their replies as the wire has them, so
    the one of ours that differs is given the form here that it has from a Redis alone.
    """

    def pipeline(self, transaction: bool | None = None, shard_hint: Any = None) -> Any:  # noqa: ARG002 - always one
        pipeline: Any = super().pipeline(transaction=True, shard_hint=shard_hint)  # type: ignore[no-untyped-call]
        pipeline.cluster_response_callbacks = {"HRANDFIELD": _fields_and_values}
        return pipeline


def _fields_and_values(pairs: list[list[bytes]], **_: Any) -> list[bytes]:
    return [each for pair in pairs for each in pair]


def build_redis(settings: RedisSettings, *, reach: Reach | None = None) -> redis.Redis | RedisCluster:
    """A Redis client that never retries by itself: a write whose reply was lost is not repeated blindly.

    Args:
        settings: the Redis part of the settings.
        reach: of a cluster, where a node that names itself (host, port) is reached; there, if absent.

    Raises:
        Unavailable: no node of the cluster can be reached. A Redis alone is reached when it is used.
    """
    url = settings.url.get_secret_value()
    never = Retry(NoBackoff(), 0)
    options: dict[str, Any] = {
        "socket_timeout": settings.timeout_seconds,
        "socket_connect_timeout": settings.timeout_seconds,
        "health_check_interval": 0,
    }
    if not settings.cluster:
        return redis.Redis.from_url(url, retry=never, **options)
    try:
        return _Cluster.from_url(url, retry=never, address_remap=reach, **options)
    except (redis.RedisError, RedisClusterException) as error:
        raise Unavailable("redis", error.__cause__ or error) from error


def build_consumer(settings: KafkaSettings, *, group: str) -> Any:
    """A consumer of bytes: deserializers that raise would make poll() spin.

    Args:
        settings: the Kafka part of the settings.
        group: suffix of the consumer group's name.
    """
    return KafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers,
        group_id=f"{settings.group_prefix}.{group}",
        client_id=f"{settings.group_prefix}-{group}",
        enable_auto_commit=False,
        auto_offset_reset=settings.start,
        max_poll_records=settings.max_poll_records,
        session_timeout_ms=int(settings.session_timeout_seconds * 1000),
        heartbeat_interval_ms=int(settings.session_timeout_seconds * 1000 / 3),
    )


def build_producer(settings: KafkaSettings, *, name: str) -> Any:
    """An idempotent producer that waits for all in-sync replicas.

    Args:
        settings: the Kafka part of the settings.
        name: suffix of the client id.
    """
    return KafkaProducer(
        bootstrap_servers=settings.bootstrap_servers,
        client_id=f"{settings.group_prefix}-{name}",
        acks="all",
        linger_ms=5,
    )


def build_admin(settings: KafkaSettings) -> Any:
    """A client that creates topics."""
    return KafkaAdminClient(
        bootstrap_servers=settings.bootstrap_servers, client_id=f"{settings.group_prefix}-admin"
    )
