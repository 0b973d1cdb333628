"""Authentication by bearer tokens, of which only the SHA-256 is configured."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.serving.vendor_api.body_limits import refuse
from service.serving.vendor_api.problems import Kind, Refused, later
from service.serving.vendor_api.rate_limits import Buckets
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_REFUSED_PER_SECOND = 0.2
_REFUSED_BURST = 10
_ADDRESSES = 10_000
_VENDORS = 1_000

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="credence vendor API"'}


class Tokens:
    """The tokens of all vendors, as SHA-256 digests of 64 hexadecimal digits, by vendor."""

    def __init__(self, digests: Mapping[str, Sequence[str]]) -> None:
        self._known = [(digest, vendor) for vendor, several in digests.items() for digest in several]

    def vendor_of(self, token: str) -> str | None:
        """Whose token it is; None of an unknown one. Looks at all of them, whichever fits."""
        given = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for digest, vendor in self._known:
            if hmac.compare_digest(digest, given):
                found = vendor
        return found


class Login:
    """Lets callers with a valid token through, as often as their vendor may call.

    After repeated failures an address has to wait. Valid tokens from the same address still pass: otherwise
    anybody behind the same proxy could lock a vendor out.

    Args:
        app: the next application; it finds the `vendor` in the scope's state.
        tokens: of all vendors.
        per_second: sustained rate of calls of a vendor.
        burst: calls of a vendor at once.
        metrics: of the vendor API.
        stopwatch: monotonic seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        per_second: float,
        burst: int,
        metrics: VendorMetrics,
        stopwatch: Callable[[], float],
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._metrics = metrics
        self._stopwatch = stopwatch
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
        now = self._stopwatch()
        if vendor is None:
            self._metrics.logins_refused.inc()
            client = scope.get("client")
            if wait := self._failures.take(client[0] if client else "", now):
                raise Refused(Kind.TOO_MANY_LOGINS, headers=later(wait))
            # Logged as often as the bucket allows: a flood must not fill the disk.
            log.warning("a login was refused", extra={"address": client[0] if client else None})
            raise Refused(Kind.UNAUTHORIZED, headers=_CHALLENGE)
        if wait := self._calls.take(vendor, now):
            raise Refused(Kind.TOO_MANY_CALLS, headers=later(wait))
        return vendor

    def _vendor_of(self, headers: Sequence[str]) -> str | None:
        if len(headers) != 1:
            return None
        scheme, _, token = headers[0].partition(" ")
        return self._tokens.vendor_of(token.strip()) if scheme.lower() == "bearer" else None
