"""Authentication by bearer tokens, of which only the SHA-256 is configured, or sessions; and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.serving.label_page.sessions import Sessions
from service.serving.vendor_api.body_limits import refuse
from service.serving.vendor_api.problems import Kind, Refused
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_REFUSED_PER_SECOND = 0.2
_REFUSED_BURST = 10
_ADDRESSES = 10_000
_VENDORS = 1_000

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="credence vendor API"'}


@dataclass(frozen=True)
class ValidToken:
    """Whose token it is, and its SHA-256 of 64 hexadecimal digits."""

    vendor: str
    sha256: str


class TokenCheck:
    """Knows the vendors' tokens, by their SHA-256 digests, and slows down addresses that send others.

    After repeated failures an address has to wait. Valid tokens from the same address still pass: otherwise
    anybody behind the same proxy could lock a vendor out. Used from the listener's event loop alone.
    """

    def __init__(self, tokens: Mapping[str, Sequence[str]], metrics: VendorMetrics) -> None:
        self._tokens = [
            ValidToken(vendor, digest) for vendor, digests in tokens.items() for digest in digests
        ]
        self._metrics = metrics
        self._failures = Buckets(per_second=_REFUSED_PER_SECOND, burst=_REFUSED_BURST, most=_ADDRESSES)

    def check(self, token: str | None, scope: Scope) -> ValidToken:
        """The token that a request sent, or None if it sent none.

        Raises:
            Refused: it is not valid, or its address has sent too many that are not.
        """
        given = hashlib.sha256((token or "").encode()).hexdigest()
        found = None
        # Compared with all of them, so that the time taken reveals nothing.
        for valid in self._tokens:
            if hmac.compare_digest(valid.sha256, given):
                found = valid
        if token is not None and found is not None:
            return found
        self._metrics.logins_refused.inc()
        client = scope.get("client")
        if wait := self._failures.take(client[0] if client else "", time.monotonic()):
            raise Refused(Kind.TOO_MANY_LOGINS, retry_seconds=wait)
        # Logged as often as the bucket allows: a flood must not fill the disk.
        log.warning("a login was refused", extra={"address": client[0] if client else None})
        raise Refused(Kind.UNAUTHORIZED, headers=_CHALLENGE)


class Login:
    """Lets callers with a valid token or session through, as often as their vendor may call.

    The next application finds the `vendor` in the scope's state, and the `session`: None with a token. A call
    with a token belongs to no session, whatever cookies it has.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenCheck,
        sessions: Sessions | None = None,
        per_second: float,
        burst: int,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._sessions = sessions
        self._calls = Buckets(per_second=per_second, burst=burst, most=_VENDORS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            scope["state"] |= self._admit(scope)
        except Refused as refused:
            await refuse(refused, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> dict[str, object]:
        given = Headers(scope=scope).getlist("authorization")
        session = None if given or self._sessions is None else self._sessions.find(scope)
        vendor = session.vendor if session else self._tokens.check(_bearer_token(given), scope).vendor
        if wait := self._calls.take(vendor, time.monotonic()):
            raise Refused(Kind.TOO_MANY_CALLS, retry_seconds=wait)
        return {"vendor": vendor, "session": session}


def _bearer_token(headers: Sequence[str]) -> str | None:
    if len(headers) != 1:
        return None
    scheme, _, token = headers[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


class Buckets:
    """Token buckets: one per name, of the `most` names that were used last; a forgotten bucket is full.

    `burst` fits into a bucket, and `per_second` flows into it. Used by one thread alone.
    """

    def __init__(self, *, per_second: float, burst: float, most: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, now: float) -> float:
        """Take one from a bucket: 0 if there was one, else the seconds until there is; `now` is monotonic."""
        level, since = self._levels.pop(name, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - since) * self._per_second)
        wait = 0.0
        if level >= 1:
            level -= 1
        else:
            wait = math.nextafter((1 - level) / self._per_second, math.inf)
        self._levels[name] = (level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait
