"""Builders of the Kafka and Redis clients: called where a process or a command is put together."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import urlsplit

import redis
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from service.errors import Unavailable
from service.kafka_connecting import connected, handshake_failure
from service.kafka_tokens import token_provider
from service.lasting_producer import LastingProducer
from service.redis_refusals import redis_refusal
from service.settings import KafkaSettings, RedisSettings
from service.tls import FreshContext

_REPLY_SECONDS = 30.0

Reach = Callable[[tuple[str, int]], tuple[str, int]]


class _Cluster(RedisCluster):
    """A client of a Redis Cluster that follows redirections, and else runs nothing twice.

    The library runs the commands of a plain pipeline again, one by one, when its connection breaks, whatever
    retries it is told; those of a transaction it does not. It gives their replies as the wire has them, so
    those of ours that differ are given the form here that they have from a Redis alone.
    """

    def pipeline(self, transaction: bool | None = None, shard_hint: Any = None) -> Any:  # noqa: ARG002 - always one
        pipeline: Any = super().pipeline(transaction=True, shard_hint=shard_hint)  # type: ignore[no-untyped-call]
        pipeline.cluster_response_callbacks = {"HRANDFIELD": _fields_and_values, "XRANGE": _stream_entries}
        return pipeline


def _fields_and_values(pairs: list[list[bytes]], **_: Any) -> list[bytes]:
    return [each for pair in pairs for each in pair]


def _stream_entries(
    entries: list[tuple[bytes, list[bytes]]], **_: Any
) -> list[tuple[bytes, dict[bytes, bytes]]]:
    return [(entry_id, dict(zip(told[::2], told[1::2], strict=True))) for entry_id, told in entries]


def build_redis(settings: RedisSettings, *, reach: Reach | None = None) -> redis.Redis | RedisCluster:
    """A Redis client that never retries by itself: a write whose reply was lost is not repeated blindly.

    Args:
        settings: the Redis part of the settings.
        reach: of a cluster, where a node that names itself (host, port) is reached; there, if absent.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no node of the cluster can be reached, or they refuse. A Redis alone is reached when it
            is used.
    """
    url = settings.url.get_secret_value()
    never = Retry(NoBackoff(), 0)
    options: dict[str, Any] = {
        "socket_timeout": settings.timeout_seconds,
        "socket_connect_timeout": settings.timeout_seconds,
        "health_check_interval": 0,
    }
    if settings.username is not None:
        options["username"] = settings.username
    if settings.password is not None:
        options["password"] = settings.password.get_secret_value()
    pool_class = _pool_class(settings)
    if not settings.cluster:
        return redis.Redis.from_pool(pool_class.from_url(url, retry=never, **options))
    try:
        return _Cluster.from_url(
            url, retry=never, address_remap=reach, connection_pool_class=pool_class, **options
        )
    except (redis.RedisError, RedisClusterException) as error:
        raise redis_refusal(error) or Unavailable("redis", error.__cause__ or error) from error


def _pool_class(settings: RedisSettings) -> type[redis.ConnectionPool]:
    """What makes connections.

    Encrypted ones trust and show what the settings say, and nothing else: the library's own would trust the
    system's certificates too, and ask a terminal for the key's password. And none says which library it is,
    or asks for what Redis Enterprise alone has: for either a right would be needed that serves nothing else.
    """
    kinds = {
        "redis": redis.Connection,
        "rediss": redis.SSLConnection,
        "unix": redis.UnixDomainSocketConnection,
    }
    kind: Any = kinds[urlsplit(settings.url.get_secret_value()).scheme]
    # Made now, though sockets are wrapped later, so that a file which cannot be used is told at once.
    context = FreshContext(settings, at="redis", failure=redis.ConnectionError)

    class QuietConnection(kind):  # type: ignore[misc]  # a class by the URL's scheme
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.driver_info = self.lib_name = self.lib_version = None
            self.maint_notifications_config = None

        def _wrap_socket_with_ssl(self, sock: socket.socket) -> ssl.SSLSocket:
            return context.wrap_socket(sock, server_hostname=self.host)

    class QuietPool(redis.ConnectionPool):
        """Of a cluster's client, no other way leads to the class of its connections."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options | {"connection_class": QuietConnection})

    return QuietPool


def build_consumer(
    settings: KafkaSettings, *, group: str, without_offset: Literal["none", "earliest"] = "none"
) -> Any:
    """A consumer of bytes: deserializers that raise would make poll() spin.

    It gives what is committed alone. Unless it is told to, it never decides by itself where to read on: an
    offset that is missing, or that the log does not hold, is an error, and the caller's to judge.

    Args:
        settings: the Kafka part of the settings.
        group: suffix of the consumer group's name.
        without_offset: where it begins if it has none; `none` leaves that to the caller.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached, or they refuse.
    """
    options = _common(settings, group) | {
        "group_id": f"{settings.group_prefix}.{group}",
        "group_instance_id": None if settings.instance_id is None else f"{settings.instance_id}.{group}",
        "enable_auto_commit": False,
        "auto_offset_reset": without_offset,
        "isolation_level": "read_committed",
        "max_poll_records": settings.max_poll_records,
        "session_timeout_ms": int(settings.session_timeout_seconds * 1000),
        "heartbeat_interval_ms": int(settings.session_timeout_seconds * 1000 / 3),
    }
    return connected(KafkaConsumer, options)


def build_reader(settings: KafkaSettings) -> Any:
    """A consumer of bytes that belongs to no group: it is told what to read, and commits nothing.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached, or they refuse.
    """
    # What retention deletes while it is read must not make it pass over the rest.
    options = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return connected(KafkaConsumer, _common(settings, "reader") | options)


def build_producer(
    settings: KafkaSettings,
    *,
    name: str,
    delivery_seconds: float = 120.0,
    block_seconds: float = 60.0,
    idempotent: bool = True,
) -> Any:
    """A producer that waits for all in-sync replicas, and outlives its client.

    Args:
        settings: the Kafka part of the settings.
        name: suffix of the client id.
        delivery_seconds: how long the client keeps trying to send a record, under one sequence number.
        block_seconds: how long giving it a record may take while brokers are away.
        idempotent: whether the broker keeps what the client sends again from being there twice. A client that
            does without goes on with the next record, at once, after one that it could not deliver in time.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached, or they refuse.
    """
    options: dict[str, Any] = {
        "acks": "all",
        "linger_ms": 5,
        "delivery_timeout_ms": int(delivery_seconds * 1000),
        # The client wants a reply to be awaited less long than a delivery.
        "request_timeout_ms": int(min(_REPLY_SECONDS, delivery_seconds / 2) * 1000),
        "max_block_ms": int(block_seconds * 1000),
    }
    if not idempotent:
        # One at a time, or what is sent again might overtake what came after it.
        options |= {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    return LastingProducer(
        lambda: connected(KafkaProducer, _common(settings, name) | options), sequenced=idempotent
    )


def build_admin(settings: KafkaSettings) -> Any:
    """A client that creates topics.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no broker can be reached, or they refuse.
    """
    return connected(KafkaAdminClient, _common(settings, "admin"))


def _common(settings: KafkaSettings, name: str) -> dict[str, Any]:
    """What all clients are told: whom to reach, and how."""
    security = settings.security
    common: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": f"{settings.group_prefix}-{name}",
        "metadata_max_age_ms": int(settings.metadata_seconds * 1000),
        "security_protocol": security.protocol.upper(),
    }
    if "ssl" in security.protocol:
        common["ssl_context"] = FreshContext(security, at="kafka.security", failure=handshake_failure)
    if security.mechanism == "OAUTHBEARER":
        common |= {
            "sasl_mechanism": security.mechanism,
            "sasl_oauth_token_provider": token_provider(security),
        }
    elif security.username is not None and security.password is not None:
        common |= {
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.password.get_secret_value(),
        }
    return common
