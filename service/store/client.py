"""The builder of the Redis client: called where a process or a command is put together."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import InvalidResponse, RedisClusterException
from redis.retry import Retry

from service.config.settings import RedisSettings
from service.config.tls import FreshContext
from service.domain.errors import Unavailable
from service.store.connection import UnreachableError, redis_refusal

Reach = Callable[[tuple[str, int]], tuple[str, int]]


class _Cluster(RedisCluster):
    """A client of a Redis Cluster that follows redirections, and runs nothing else twice.

    If its connection breaks, the library runs the commands of a plain pipeline again, one by one, whatever
    retries are configured; not those of a transaction. Replies of a transaction have the form of the wire;
    two of them get the form here that a single Redis gives them.
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
    return [(entry_id, dict(zip(fields[::2], fields[1::2], strict=True))) for entry_id, fields in entries]


def build_redis(settings: RedisSettings, *, reach: Reach | None = None) -> redis.Redis | RedisCluster:
    """A Redis client that never retries by itself: a write whose reply was lost is not repeated blindly.

    `reach` maps the (host, port) that a node of a cluster announces to its reachable address.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no node of the cluster can be reached, or they refuse. A single Redis is connected at its
            first command.
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
        address = urlsplit(url).netloc.rpartition("@")[2]
        cause = error.__cause__ or error
        # Other failures are of a server that answers as one that is alone.
        is_reached = not isinstance(cause, (redis.ConnectionError, redis.TimeoutError))
        why = "it is no Redis Cluster; set `redis.cluster: false`" if is_reached else ""
        raise redis_refusal(error) or Unavailable("redis", cause, address=address, why=why) from error


def _pool_class(settings: RedisSettings) -> type[redis.ConnectionPool]:
    """The class of a pool of connections.

    Encrypted connections use only the certificates in the settings: the library's own would also trust the
    system's certificates, and ask a terminal for the key's password. No connection sends the library's name
    or asks for features of Redis Enterprise: either would need a right that serves nothing else.
    """
    kinds = {
        "redis": redis.Connection,
        "rediss": redis.SSLConnection,
        "unix": redis.UnixDomainSocketConnection,
    }
    kind: Any = kinds[urlsplit(settings.url.get_secret_value()).scheme]
    # Made now, though sockets are wrapped later, so that an unusable file is reported at once.
    context = FreshContext(settings, at="redis", failure=redis.ConnectionError)

    class QuietConnection(kind):  # type: ignore[misc]  # a class by the URL's scheme
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.driver_info = self.lib_name = self.lib_version = None
            self.maint_notifications_config = None

        def connect(self) -> None:
            try:
                super().connect()
            except (redis.ConnectionError, redis.TimeoutError, InvalidResponse) as error:
                if redis_refusal(error):
                    raise
                raise UnreachableError(self._host_error()) from error

        def _wrap_socket_with_ssl(self, sock: socket.socket) -> ssl.SSLSocket:
            return context.wrap_socket(sock, server_hostname=self.host)

    class QuietPool(redis.ConnectionPool):
        """The only way to set the class of connections of a cluster's client."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options | {"connection_class": QuietConnection})

    return QuietPool
