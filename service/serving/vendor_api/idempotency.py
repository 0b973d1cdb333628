"""`Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a repeated call gets the same response."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.domain.errors import Unavailable
from service.serving.vendor_api.problems import GONE_STATUS, Kind, Refused, unavailable
from service.store.idempotency import Call, IdempotencyRecords

log = logging.getLogger(__name__)

LONGEST_KEPT_BYTES = 1_024
"""A longer response is made again: it follows from the key, or is the same anyway."""

_RETRY_STATUSES = frozenset({408, 429, GONE_STATUS})
_NOT_STORED = b""

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


class _Response(msgspec.Struct, array_like=True):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Idempotency:
    """Does a call with a key once, and answers a repeated call with the same response.

    The response is stored before it is sent, in case it gets lost. Responses that say to try again are not
    stored. Calls without a key pass unchanged.

    The next application finds in the scope's state the `idempotency_key`, or None, and `is_repeated`: whether
    the call was done without its response being stored, because it was too long or the application had set
    `no_store`. Responses with payloads are not stored. `records` raises `Refused` until Redis is reached.
    """

    def __init__(self, app: ASGIApp, *, records: Callable[[], IdempotencyRecords]) -> None:
        self._app = app
        self._records = records

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            key = _key_of(scope)
            scope["state"] |= {"idempotency_key": key, "is_repeated": False, "no_store": False}
            if key is None:
                await self._app(scope, receive, send)
            else:
                await self._once(key, scope, receive, send)
        except Refused as refused:
            await refused.response()(scope, receive, send)

    async def _once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        records, state = self._records(), scope["state"]
        call = Call(state["vendor"], key, _fingerprint(scope))
        try:
            begun = await run_in_threadpool(records.begin, call)
        except Unavailable as error:
            log_unserved(scope, error)
            raise unavailable() from error
        if begun.status == "different":
            raise Refused(Kind.KEY_REUSED)
        if begun.status == "running":
            raise Refused(Kind.STILL_RUNNING, retry_seconds=1.0)
        if begun.status == "done":
            if begun.response == _NOT_STORED:
                state["is_repeated"] = True
                await self._app(scope, receive, send)
            else:
                await _send(msgspec.msgpack.decode(begun.response, type=_Response), send)
            return
        response: _Response | None = None

        def store() -> None:
            if response is None or response.status >= 500 or response.status in _RETRY_STATUSES:  # noqa: PLR2004 - server errors
                records.abandon(call)
                return
            stored = msgspec.msgpack.encode(response)
            if state["no_store"] or len(stored) > LONGEST_KEPT_BYTES:
                stored = _NOT_STORED
            records.finish(call, stored)

        try:
            response = await self._response(scope, receive)
        finally:
            try:
                await run_in_threadpool(store)
            except Unavailable as error:
                log.warning(
                    "the outcome of a call could not be stored",
                    extra={"vendor": call.vendor, "cause": str(error)},
                )
        await _send(response, send)

    async def _response(self, scope: Scope, receive: Receive) -> _Response:
        response = _Response(500, [], b"")

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                response.status = message["status"]
                response.headers = list(message.get("headers", ()))
            else:
                response.body += message.get("body", b"")

        await self._app(scope, receive, hold)
        return response


def log_unserved(scope: Scope, error: Unavailable) -> None:
    """Log why a call gets 503; the vendor does not learn the cause."""
    vendor = scope["state"]["vendor"]
    log.warning("a call cannot be served now", extra={"vendor": vendor, "cause": str(error)})


async def _send(response: _Response, send: Send) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body})


def _key_of(scope: Scope) -> str | None:
    given = Headers(scope=scope).getlist("idempotency-key")
    if not given or scope["method"] != "POST":
        return None
    # The draft wants a string in quotes; hardly any client sends one.
    key = given[0][1:-1] if len(given[0]) > 1 and given[0][0] == given[0][-1] == '"' else given[0]
    if len(given) > 1 or not _KEY.fullmatch(key):
        raise Refused(Kind.BAD_IDEMPOTENCY_KEY)
    return key


def _fingerprint(scope: Scope) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in (scope["raw_path"], scope["query_string"], scope["state"]["body"]):
        digest.update(len(part).to_bytes(8) + part)
    return digest.digest()
