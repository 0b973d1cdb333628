"""Idempotency records of the vendor API: a repeated call gets the same reply and is not done twice."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Literal, get_args

from service.store.connection import Connection
from service.store.keys import idempotency_key

BeginStatus = Literal["new", "running", "done", "different"]

REMEMBERED_SECONDS = 86_400
RUNNING_SECONDS = 60
"""How long a call counts as running, besides its longest wait, if it neither finished nor was abandoned."""

MOST_RECORDS = 50_000
"""Calls of one vendor that are remembered."""

_STATUSES: dict[bytes, BeginStatus] = {status.encode(): status for status in get_args(BeginStatus)}


@dataclass(frozen=True)
class Call:
    """A call that a vendor makes under a key.

    Attributes:
        vendor: keys of different vendors are independent.
        key: chosen by the vendor, of any length.
        fingerprint: digest of the call: method, path and body.
        owner: identifies this attempt to `finish` and `abandon`; begun again with the same owner, after a
            lost reply, a call is `new` again.
    """

    vendor: str
    key: str
    fingerprint: bytes
    owner: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True)
class CallState:
    """State of a call when it begins.

    Attributes:
        status: `new`: do it; `running`: it is being done elsewhere; `done`: answer as before; `different`:
            the key was used for another call.
        response: of a call that is done, as it was given to `finish`.
    """

    status: BeginStatus
    response: bytes = b""


class IdempotencyRecords:
    """One record per vendor and key, in Redis; of the newest calls that were done.

    Every method raises `Unavailable` while Redis cannot answer, and may then be called again. A call that
    could not be abandoned is forgotten once it may run no longer.

    Args:
        connection: to Redis.
        running_seconds: how long a call may run.
        most: calls of one vendor that are remembered once they are done.
    """

    def __init__(
        self, connection: Connection, *, running_seconds: int = RUNNING_SECONDS, most: int = MOST_RECORDS
    ) -> None:
        self._connection = connection
        self._running_seconds = running_seconds
        self._most = most

    def begin(self, call: Call) -> CallState:
        """State of a call; if it is `new`, it is running from now on."""
        status, response = self._run("begin", call)
        return CallState(_STATUSES[status], response)

    def finish(self, call: Call, response: bytes) -> None:
        """Remember the response, short and without payloads, for a day or until newer ones displace it."""
        self._run("finish", call, response)

    def abandon(self, call: Call) -> None:
        """Forget a call that could not be done, so that it may be made again under the same key."""
        self._run("abandon", call)

    def _run(self, verb: str, call: Call, response: bytes = b"") -> tuple[bytes, bytes]:
        digest = hashlib.blake2b(call.key.encode(), digest_size=16).hexdigest()
        name = idempotency_key(self._connection.prefix, call.vendor, digest)
        recent = idempotency_key(self._connection.prefix, call.vendor, "recent")
        times = [self._running_seconds, REMEMBERED_SECONDS]
        reply = self._connection.run(
            "keep_call",
            [name, recent],
            [verb, call.owner, call.fingerprint.hex(), *times, response, digest, self._most],
        )
        return reply[0], reply[1]
