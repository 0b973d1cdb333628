"""The leader's lease, with a fencing token, and the hash key that all replicas share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from service.domain.errors import HashKeyChanged
from service.store.connection import Connection, translate_redis_errors
from service.store.keys import epoch_key, hash_key_key, leader_since_key, lease_key

_SEPARATOR = "#"
"""Between the name of a holder and what tells apart holders of the same name."""


@dataclass(frozen=True)
class Leader:
    """Who holds the lease.

    Attributes:
        name: host and port where the process serves its metrics; empty if it has given none.
        since: when it took the lease, seconds since the epoch; None if unknown.
    """

    name: str
    since: float | None


class LeaderLease:
    """A lease that one process at a time holds; its epoch grows with every new holder.

    Every write of a leader carries its epoch, and a model that has seen a higher one refuses it.
    So a leader that slept through its lease can do no harm.

    Args:
        connection: to Redis.
        lease_seconds: how long the lease lasts if it is not renewed.
        name: of this process, for people.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        lease_seconds: float,
        name: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._lease_ms = int(lease_seconds * 1000)
        self._holder = f"{name}{_SEPARATOR}{secrets.token_hex(8)}"
        self._clock = clock

    def hold(self) -> int | None:
        """Take or renew the lease; returns the epoch, or None if another process leads.

        Raises:
            Unavailable: Redis cannot answer now, so this process must not lead.
        """
        prefix = self._connection.prefix
        epoch = self._connection.run(
            "hold_lease",
            [lease_key(prefix), epoch_key(prefix), leader_since_key(prefix)],
            [self._holder, self._lease_ms, self._clock()],
        )
        return int(epoch) or None

    def release(self) -> None:
        """Let another process lead at once.

        Raises:
            Unavailable: Redis cannot answer now; the lease then ends by itself.
        """
        self._connection.run("release_lease", [lease_key(self._connection.prefix)], [self._holder])


def current_leader(connection: Connection) -> Leader | None:
    """Who holds the lease; None if it is free.

    Raises:
        Unavailable: Redis cannot answer now.
    """
    prefix = connection.prefix
    with translate_redis_errors():
        holder = connection.client.get(lease_key(prefix))
        since = connection.client.get(leader_since_key(prefix))
    if holder is None:
        return None
    return Leader(holder.decode().rpartition(_SEPARATOR)[0], None if since is None else float(since))


def shared_hash_key(connection: Connection) -> bytes:
    """The 16-byte hash key kept in Redis, made by the first process that asks.

    Raises:
        Unavailable: Redis cannot answer now.
    """
    return _kept_hash_key(connection, secrets.token_bytes(16))


def keep_hash_key(connection: Connection, key: bytes) -> None:
    """Store the 16 bytes that this process has used since its start, if Redis has lost them.

    The pools of running processes were filled with this key; processes that start later must share it.

    Raises:
        HashKeyChanged: Redis holds another key by now.
        Unavailable: Redis cannot answer now.
    """
    if _kept_hash_key(connection, key) != key:
        name = hash_key_key(connection.prefix)
        raise HashKeyChanged(
            f"Redis was emptied, and holds another hash key under {name} than this process started with; "
            "this process stops, and shares the new key when it starts again"
        )


def _kept_hash_key(connection: Connection, key: bytes) -> bytes:
    """The hash key that Redis keeps: this one, if it keeps none."""
    name = hash_key_key(connection.prefix)
    with translate_redis_errors():
        connection.client.set(name, key.hex(), nx=True)
        kept = connection.client.get(name)
    # A Redis that is emptied between the two is given it the next time.
    return key if kept is None else bytes.fromhex(kept.decode())
