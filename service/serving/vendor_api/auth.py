"""Authentication by bearer tokens, of which only the SHA-256 is configured, and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.serving.vendor_api.body_limits import refuse
from service.serving.vendor_api.problems import Kind, Refused
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_REFUSED_PER_SECOND = 0.2
_REFUSED_BURST = 10
_ADDRESSES = 10_000
_VENDORS = 1_000

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="credence vendor API"'}


class Login:
    """Lets callers with a valid token through, as often as their vendor may call.

    `tokens` are SHA-256 digests of 64 hexadecimal digits, by vendor. The next application finds the `vendor`
    in the scope's state.

    After repeated failures an address has to wait. Valid tokens from the same address still pass: otherwise
    anybody behind the same proxy could lock a vendor out.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Mapping[str, Sequence[str]],
        per_second: float,
        burst: int,
        metrics: VendorMetrics,
    ) -> None:
        self._app = app
        self._tokens = [(digest, vendor) for vendor, digests in tokens.items() for digest in digests]
        self._metrics = metrics
        self._calls = Buckets(per_second=per_second, burst=burst, most=_VENDORS)
        self._failures = Buckets(per_second=_REFUSED_PER_SECOND, burst=_REFUSED_BURST, most=_ADDRESSES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            scope["state"]["vendor"] = self._admit(scope)
        except Refused as refused:
            await refuse(refused, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> str:
        vendor = self._vendor_of(Headers(scope=scope).getlist("authorization"))
        now = time.monotonic()
        if vendor is None:
            self._metrics.logins_refused.inc()
            client = scope.get("client")
            if wait := self._failures.take(client[0] if client else "", now):
                raise Refused(Kind.TOO_MANY_LOGINS, retry_seconds=wait)
            # Logged as often as the bucket allows: a flood must not fill the disk.
            log.warning("a login was refused", extra={"address": client[0] if client else None})
            raise Refused(Kind.UNAUTHORIZED, headers=_CHALLENGE)
        if wait := self._calls.take(vendor, now):
            raise Refused(Kind.TOO_MANY_CALLS, retry_seconds=wait)
        return vendor

    def _vendor_of(self, headers: Sequence[str]) -> str | None:
        if len(headers) != 1:
            return None
        scheme, _, token = headers[0].partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = hashlib.sha256(token.strip().encode()).hexdigest()
        found = None
        # Compared with all of them, so that the time taken reveals nothing.
        for digest, vendor in self._tokens:
            if hmac.compare_digest(digest, given):
                found = vendor
        return found


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
