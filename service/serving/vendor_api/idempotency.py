"""`Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a call made again is answered again."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.domain.errors import Unavailable
from service.serving.vendor_api.problems import GONE_STATUS, Kind, Refused, later, refusal
from service.store.idempotency import IdempotencyRecords

log = logging.getLogger(__name__)

LONGEST_KEPT_BYTES = 1_024
"""A longer response is made again: it follows from the key, or is the same anyway."""

_PASSING = frozenset({408, 429, GONE_STATUS})
_AGAIN = b""
_RETRY_SECONDS = 1.0

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


class _Kept(msgspec.Struct, array_like=True):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Idempotency:
    """Does a call with a key once, and answers a repeated call with the same response.

    The response is stored before it is sent, in case it gets lost. Responses that say to try again are not
    stored. Calls without a key pass unchanged.

    The next application finds in the scope's state the `idempotency_key`, or None, and `again`: whether the
    call was done without its response being stored, because it was too long or the application had set
    `unkept`. Responses with payloads are not stored. `records` gives None until Redis has been reached.
    """

    def __init__(self, app: ASGIApp, *, records: Callable[[], IdempotencyRecords | None]) -> None:
        self._app = app
        self._records = records

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            key = _key_of(scope)
            scope["state"]["idempotency_key"] = key
            scope["state"]["again"] = False
            scope["state"]["unkept"] = False
            if key is None:
                await self._app(scope, receive, send)
            else:
                await self._once(key, scope, receive, send)
        except Refused as refused:
            await refusal(refused)(scope, receive, send)

    async def _once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        records = self._records()
        if records is None:
            raise Refused(Kind.UNAVAILABLE, headers=later(_RETRY_SECONDS))
        vendor, fingerprint = scope["state"]["vendor"], _fingerprint(scope)
        owner = secrets.token_hex(8)
        try:
            begun = await run_in_threadpool(records.begin, vendor, key, fingerprint=fingerprint, owner=owner)
        except Unavailable as error:
            log_unserved(scope, error)
            raise Refused(Kind.UNAVAILABLE, headers=later(_RETRY_SECONDS)) from error
        if begun.status == "different":
            raise Refused(Kind.KEY_REUSED)
        if begun.status == "running":
            raise Refused(Kind.STILL_RUNNING, headers=later(_RETRY_SECONDS))
        if begun.status == "done":
            if begun.response == _AGAIN:
                scope["state"]["again"] = True
                await self._app(scope, receive, send)
            else:
                await _tell(msgspec.msgpack.decode(begun.response, type=_Kept), send)
            return
        kept: _Kept | None = None
        try:
            kept = await self._answer(scope, receive)
        finally:
            await run_in_threadpool(
                _note,
                records,
                vendor,
                key,
                fingerprint=fingerprint,
                owner=owner,
                kept=kept,
                again=scope["state"]["unkept"],
            )
        await _tell(kept, send)

    async def _answer(self, scope: Scope, receive: Receive) -> _Kept:
        kept = _Kept(500, [], b"")

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept.status = message["status"]
                kept.headers = list(message.get("headers", ()))
            else:
                kept.body += message.get("body", b"")

        await self._app(scope, receive, hold)
        return kept


def _note(
    records: IdempotencyRecords,
    vendor: str,
    key: str,
    *,
    fingerprint: bytes,
    owner: str,
    kept: _Kept | None,
    again: bool,
) -> None:
    try:
        if kept is None or kept.status >= 500 or kept.status in _PASSING:  # noqa: PLR2004 - server errors
            records.abandon(vendor, key, fingerprint=fingerprint, owner=owner)
        else:
            response = msgspec.msgpack.encode(kept)
            if again or len(response) > LONGEST_KEPT_BYTES:
                response = _AGAIN
            records.finish(vendor, key, fingerprint=fingerprint, owner=owner, response=response)
    except Unavailable as error:
        log.warning(
            "the outcome of a call could not be stored", extra={"vendor": vendor, "cause": str(error)}
        )


def log_unserved(scope: Scope, error: Unavailable) -> None:
    """Log why a call gets 503; the vendor does not learn the cause."""
    vendor = scope["state"]["vendor"]
    log.warning("a call cannot be served now", extra={"vendor": vendor, "cause": str(error)})


async def _tell(kept: _Kept, send: Send) -> None:
    await send({"type": "http.response.start", "status": kept.status, "headers": kept.headers})
    await send({"type": "http.response.body", "body": kept.body})


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
