"""What became of calls to the vendor API, so that one made again is answered again and not done again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from service.store.connection import Connection
from service.store.keys import idempotency_key

BeginStatus = Literal["new", "running", "done", "different"]

REMEMBERED_SECONDS = 86_400
RUNNING_SECONDS = 60
"""A call that neither finished nor was abandoned counts as running for so long, and for what it may wait."""

MOST_RECORDS = 50_000
"""Calls of one vendor that are remembered."""

_STATUSES: dict[bytes, BeginStatus] = {status.encode(): status for status in get_args(BeginStatus)}


@dataclass(frozen=True)
class Begun:
    """Whether a call is to be done.

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

    def begin(self, vendor: str, key: str, *, fingerprint: bytes, owner: str) -> Begun:
        """Ask whether a call is to be done; if so, it is running from now on.

        Args:
            vendor: that calls; keys of different vendors are independent.
            key: chosen by the vendor, of any length.
            fingerprint: digest of the call: method, path and body.
            owner: random text that identifies this call to `finish` and `abandon`; begun again with the same
                owner, after a lost reply, it is `new` again.
        """
        status, response = self._run(vendor, key, ["begin", owner, fingerprint.hex()])
        return Begun(_STATUSES[status], response)

    def finish(self, vendor: str, key: str, *, fingerprint: bytes, owner: str, response: bytes) -> None:
        """Remember the response, short and without payloads, for a day or until newer ones displace it."""
        self._run(vendor, key, ["finish", owner, fingerprint.hex()], response)

    def abandon(self, vendor: str, key: str, *, fingerprint: bytes, owner: str) -> None:
        """Forget a call that could not be done, so that it may be made again under the same key."""
        self._run(vendor, key, ["abandon", owner, fingerprint.hex()])

    def _run(self, vendor: str, key: str, call: Sequence[str], response: bytes = b"") -> tuple[bytes, bytes]:
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        name = idempotency_key(self._connection.prefix, vendor, digest)
        recent = idempotency_key(self._connection.prefix, vendor, "recent")
        times = [self._running_seconds, REMEMBERED_SECONDS]
        reply = self._connection.run(
            "keep_call", [name, recent], [*call, *times, response, digest, self._most]
        )
        return reply[0], reply[1]
