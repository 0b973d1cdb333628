"""What was counted by earlier times: how often something happened recently is the difference.

Counters of a process begin again with it, and `credence status` is a process of its own. So the leader
keeps counts in Redis: every replica, and a process that has just started, derives the same from them.
"""

from __future__ import annotations

import hashlib

import msgspec

from service.store.connection import Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys


class CountsAt(msgspec.Struct, frozen=True, array_like=True):
    """Counts by one time; times in seconds since the epoch.

    Attributes:
        predictions: in the traffic.
        clipped: predictions whose time was replaced by a bound, by direction.
        issued: label requests, reissued ones included.
        expired: label requests that ended unanswered, by assessment.
        answered: those that were answered, corrected or skipped, by assessment.
        short: draws that found no item, by assessment.
        traffic_at: when predictions had last come, as far as it is known; None before the first.
        asked_at: when a label request, other than for a gold item, was last open or issued; None before the
            first.
        not_joined: unrequested labels that found no prediction, by reason.
    """

    at: float
    predictions: int
    clipped: dict[str, int]
    issued: int
    expired: dict[str, int]
    answered: dict[str, int]
    short: dict[str, int]
    traffic_at: float | None = None
    asked_at: float | None = None
    not_joined: dict[str, int] = {}


CountHistory = tuple[CountsAt, ...]
"""Counts by earlier times, oldest first."""

_decode = msgspec.msgpack.Decoder(CountHistory).decode


class CountHistoryStore(ModelStore):
    """The counts of one model by earlier times, as one process knows them."""

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._digest: bytes | None = None
        self._known: CountHistory = ()

    def history(self) -> CountHistory:
        """The counts that are kept. They are read again only where they have changed."""
        client, key = self._connection.client, self._keys.counts
        with translate_redis_errors():
            if client.hget(key, "digest") == self._digest:
                return self._known
            digest, state = client.hmget(key, ["digest", "state"])
        self._known = () if state is None else _decode(state)
        self._digest = digest
        return self._known

    def keep(self, history: CountHistory, *, epoch: int) -> None:
        """Keep these counts in place of those before; `epoch` is the leader's.

        Raises:
            FenceRefused: a newer leader has written.
        """
        state = msgspec.msgpack.encode(history)
        digest = hashlib.blake2b(state, digest_size=12).hexdigest()
        self._run_fenced("keep_checkpoint", [self._keys.counts], [epoch, digest, state])
